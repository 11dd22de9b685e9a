//! Masters that refuse writes.

use std::fmt;

use super::wound::Wound;
use crate::arena::Arena;

/// Why a master refuses writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// It is out of memory, and evicts nothing (OOM).
    OutOfMemory,
    /// It is the replica of a server that is not there (READONLY). It keeps its keys.
    ReadOnly,
}

impl Limits {
    pub(super) fn strike(self, arena: &mut Arena, masters: &[usize]) -> Wound {
        let (strike, heal): (&[&str], &'static [&'static str]) = match self {
            Self::OutOfMemory => (&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]),
            Self::ReadOnly => (&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]), // nobody listens there
        };
        for master in masters {
            let _: () = arena.masters[*master].command(strike);
        }
        Wound::of_each(masters, move |arena, master| arena.masters[master].command(heal))
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfMemory => "out of memory",
            Self::ReadOnly => "read-only",
        })
    }
}
