//! How reports are serialised with the feature `serde`: what several types share. docs/COMMAND.md
//! describes the JSON.

use std::time::Duration;

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// A duration in whole milliseconds.
pub(crate) fn ms<S: Serializer>(
    time: &(impl Into<Option<Duration>> + Copy),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let whole = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    (*time).into().map(whole).serialize(serializer)
}

/// A round trip in milliseconds, with three digits.
pub(crate) fn precise_ms<S: Serializer>(
    time: &(impl Into<Option<Duration>> + Copy),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let precise = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    (*time).into().map(precise).serialize(serializer)
}

/// A text that explains a variant, as a field beside the variant's name.
pub(crate) fn detail<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_struct("Detail", 1)?;
    fields.serialize_field("detail", text)?;
    fields.end()
}
