//! Masters that lose their keys while they live.

use std::fmt;

use super::wound::Wound;
use crate::arena::Arena;

/// How a master loses its keys. They do not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Somebody deletes all of them (FLUSHALL).
    FlushAll,
    /// It becomes a replica of an empty server, and a master again.
    WipeByReplication,
}

impl Keys {
    pub(super) fn strike(self, arena: &mut Arena, masters: &[usize]) -> Wound {
        for master in masters {
            let server = &mut arena.masters[*master];
            match self {
                Self::FlushAll => server.command(&["FLUSHALL"]),
                Self::WipeByReplication => server.process().wipe_by_replication(),
            }
        }
        Wound::none()
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FlushAll => "FLUSHALL",
            Self::WipeByReplication => "wipe by replication",
        })
    }
}
