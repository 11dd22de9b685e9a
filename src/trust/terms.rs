//! What clients of the same masters must agree on.

use std::time::Duration;

use crate::protocol::{NEWEST, OLDEST, UNMEASURED};

/// How far a master's clock may be from the median, and from its own past: hosts whose clocks are
/// kept by NTP are within a tenth of it.
pub(crate) const BAND: Duration = Duration::from_millis(250);

/// The difference between the lowest and the highest that one master's clock may show while it
/// remembers a name.
pub(crate) const CLOCK_RANGE: Duration = Duration::from_secs(60);

/// What clients of the same locks must agree on, and what this one trusts.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The key of the record.
    pub(crate) record: String,
    /// The key of what the master promised about the next generation of its set.
    pub(crate) decree: String,
    pub(crate) max_ttl: Duration,
    /// Whether all masters are new, or forget nothing: for tests.
    pub(crate) all_new: bool,
}

impl Terms {
    /// How long a master that may have forgotten something has no vote: until a lease of the
    /// longest TTL is over (by a clock that is slow, steps within the band, or was off at the
    /// handshake), and every vote that was requested before would be refused for its time.
    pub(crate) fn quarantine(&self) -> Duration {
        self.max_ttl + self.max_ttl / 100 + OLDEST + NEWEST + BAND * 2 + UNMEASURED
    }

    /// How far ahead the end of a quarantine may be. A wrong clock wrote one that is later.
    pub(crate) fn longest_quarantine(&self) -> Duration {
        self.quarantine() + CLOCK_RANGE
    }

    /// How long a master remembers a name that nobody holds: longer than a quarantine. If it forgot
    /// the name sooner, a lost lease could come back, and a token could be granted twice.
    pub(crate) fn kept_free(&self) -> Duration {
        self.quarantine() + CLOCK_RANGE
    }
}
