//! The time that a client sends: T of docs/PROTOCOL.md.

use std::time::Duration;

/// The time by the median of the masters' clocks, as far as a client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrustedTime {
    /// The earliest that it may be (us): T of docs/PROTOCOL.md.
    pub(crate) low: u64,
    /// How much later it may be.
    pub(crate) width: Duration,
}

impl TrustedTime {
    /// A client that does not know the time sends 1, which every master refuses.
    pub(crate) const UNKNOWN: Self = Self { low: 1, width: Duration::ZERO };

    /// The most likely time (us).
    pub(crate) fn middle(self) -> u64 {
        self.low.saturating_add((self.width / 2).as_micros() as u64)
    }
}
