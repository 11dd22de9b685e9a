//! The wall clock of an embedded server.

use std::sync::Arc;

/// Tells a server's wall clock, in microseconds since 1970.
pub type WallClock = Arc<dyn Fn() -> u64 + Send + Sync>;

#[allow(clippy::disallowed_methods, reason = "a server outside of a simulation has the machine's own clock")]
pub(super) fn system_time() -> u64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("it is later than 1970");
    u64::try_from(since.as_micros()).expect("a clock does not show the end of time")
}
