//! What clients of the same masters must agree on, and what to trust of a master that may have
//! forgotten.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::invalid::Invalid;
use crate::protocol::{NEWEST, OLDEST, UNMEASURED};

/// How far a master's clock may be from the median, and from its own past: hosts whose clocks are
/// kept by NTP are within a tenth of it.
pub(crate) const BAND: Duration = Duration::from_millis(250);

/// What a set of masters trusts of one that restarted, and may have forgotten what it granted a
/// moment ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ColdStart {
    /// Nothing: it has no vote until whatever it may have granted is over, a little more than one
    /// [`max_ttl`](crate::Builder::max_ttl). The default, for it is right whatever happened; while
    /// a minority of the masters sits it out nobody notices.
    #[default]
    Quarantine,
    /// A master whose `appendfsync` is `always` loses nothing when it restarts: it has no vote for
    /// four seconds only, in which calls end that were on their way. That is looked up
    /// (`CONFIG GET`) with every connection. Not so of a replica that was promoted, nor where the
    /// disk is replaced.
    Fsync,
}

impl ColdStart {
    const ALL: [Self; 2] = [Self::Quarantine, Self::Fsync];

    fn word(self) -> &'static str {
        match self {
            Self::Quarantine => "quarantine",
            Self::Fsync => "fsync",
        }
    }
}

impl fmt::Display for ColdStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for ColdStart {
    type Err = Invalid;

    /// Reads what [`Display`](fmt::Display) wrote, and nothing else.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let known = Self::ALL.into_iter().find(|policy| policy.word() == text);
        known.ok_or_else(|| Invalid::cold_start(text))
    }
}

/// The difference between the lowest and the highest that one master's clock may show while it
/// remembers a name.
const CLOCK_RANGE: Duration = Duration::from_secs(60);

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
    /// Whether this client goes along when the members of the set change.
    pub(crate) follows: bool,
}

impl Terms {
    /// How long a master that may have forgotten something has no vote: until a lease of the
    /// longest TTL is over (by a clock that is slow, steps within the band, or was off at the
    /// handshake), and every vote that was requested before would be refused for its time.
    pub(crate) fn quarantine(&self) -> Duration {
        self.max_ttl + self.max_ttl / 100 + SHORTEST_QUARANTINE
    }

    /// How long a master remembers a name that nobody holds: longer than a quarantine. If it forgot
    /// the name sooner, a lost lease could come back, and a token could be granted twice.
    pub(crate) fn kept_free(&self) -> Duration {
        self.quarantine() + CLOCK_RANGE
    }
}

/// The same of a master that forgot nothing: every vote that was requested before would be refused
/// for its time.
pub(crate) const SHORTEST_QUARANTINE: Duration =
    OLDEST.saturating_add(NEWEST).saturating_add(BAND.saturating_mul(2)).saturating_add(UNMEASURED);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_reads_back_what_it_wrote() {
        for policy in ColdStart::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let error = "trust me".parse::<ColdStart>().unwrap_err().to_string();
        assert!(error.contains("trust me") && error.contains("quarantine"), "{error}");
    }
}
