//! The clock that some of these locks go by, which is their defect.

use std::time::SystemTime;

/// Milliseconds since 1970, as this process sees it.
#[allow(clippy::disallowed_methods, reason = "it is the defect of the locks that use it")]
pub(super) fn wall_clock() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis()
}
