//! Times, and how JSON has them: in whole microseconds.

use std::time::Duration;

/// How long after the beginning: of a simulated run, in true time, which no client and no master
/// knows; on real servers since the host was started, suspend included, or since the run began.
pub type Time = Duration;

/// For fields that are times.
pub mod micros {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Time;

    /// Writes a time.
    ///
    /// # Errors
    ///
    /// When the serializer fails.
    pub fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    }

    /// Reads a time.
    ///
    /// # Errors
    ///
    /// When it is no number.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        u64::deserialize(deserializer).map(Time::from_micros)
    }
}
