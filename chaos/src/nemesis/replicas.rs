//! Other servers that take masters' places.

use std::fmt;

use quorate_testkit::RedisServer;

use super::wound::Wound;
use crate::arena::Arena;

/// What another server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicas {
    /// A replica gets what the master has, and nothing that comes later. Healed, it takes the
    /// master's place, and its address; the master is killed.
    Promotion,
    /// The same, but healed the master becomes a replica of that one, and a master again: its
    /// process, and clients' connections, go on.
    Relapse,
    /// The master's address leads to another server, and healed to the master again, whose process
    /// goes on. Clients' connections break each time.
    Detour {
        /// Whether that has what the master has at first. Otherwise it is empty.
        has_copy: bool,
    },
}

impl Replicas {
    pub(super) fn strike(self, arena: &mut Arena, masters: &[usize]) -> Wound {
        let others: Vec<_> = masters.iter().map(|master| (*master, self.other(arena, *master))).collect();
        if let Self::Detour { .. } = self {
            others.iter().for_each(|(master, other)| arena.lead(*master, other.address()));
        }
        Wound::new(move |arena| {
            others.into_iter().for_each(|(master, other)| match self {
                Self::Promotion => arena.replace(master, other),
                Self::Relapse => arena.masters[master].process().copy(&other),
                Self::Detour { .. } => arena.lead(master, arena.masters[master].address()),
            });
        })
    }

    /// Another server, mostly one that has what this master has now.
    fn other(self, arena: &mut Arena, master: usize) -> RedisServer {
        let other = arena.another_server();
        if self != (Self::Detour { has_copy: false }) {
            other.copy(arena.masters[master].process());
        }
        other
    }
}

impl fmt::Display for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Promotion => f.write_str("promotion of a replica that lags"),
            Self::Relapse => f.write_str("replication from a copy that lags"),
            Self::Detour { has_copy: true } => f.write_str("address leads to a copy, and back"),
            Self::Detour { has_copy: false } => f.write_str("address leads to an empty server, and back"),
        }
    }
}
