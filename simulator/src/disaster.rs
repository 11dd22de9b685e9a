//! A disaster in the middle of a change of the set, as a plan has it.

use std::fmt;

/// What happens to the masters when most of them have accepted a change, and nobody knows that yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disaster {
    /// Most lose their data, those first that accepted. An operator recovers the set.
    Loss,
    /// One is told that the change is decided, and is down for long, with its data. The others
    /// restart, one after the other.
    RollingRestart,
}

impl fmt::Display for Disaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loss => "most masters lose their data when most have accepted a change",
            Self::RollingRestart => "masters restart in turn when one was told of a change, and is down",
        })
    }
}
