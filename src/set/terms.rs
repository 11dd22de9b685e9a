//! What clients of the same masters must agree on.

use std::time::Duration;

use crate::config::Settings;
use crate::time::BAND;
use crate::wire::{NEWEST, OLDEST, UNMEASURED};

/// The difference between the lowest and the highest that one master's clock may show while it
/// remembers a name.
pub(crate) const CLOCK_RANGE: Duration = Duration::from_secs(60);

/// The terms that all clients of a set share, and how much this client trusts its masters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Terms {
    /// The key of the record.
    pub(crate) record: String,
    /// The key of the acceptor's state.
    pub(crate) decree: String,
    pub(crate) max_ttl: Duration,
    /// Whether all masters are new, or forget nothing: for tests.
    pub(crate) all_new: bool,
}

impl Terms {
    /// The terms that the handshakes of a client present to masters.
    pub(crate) fn of(settings: &Settings) -> Self {
        let Settings { max_ttl, all_new, .. } = *settings;
        let key = |of: &str| format!("{}{of}", settings.prefix);
        Self { record: key("master"), decree: key("decree"), max_ttl, all_new }
    }

    /// How long a master that lost its state has no vote. By then a lease of the longest TTL is
    /// over, even by a clock that is slow, steps within the band, or was off at the handshake. A
    /// vote that was requested before is too old to be granted.
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

/// In microseconds, as masters count.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
