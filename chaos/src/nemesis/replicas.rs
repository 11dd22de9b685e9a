//! Replicas that take masters' places.

use std::fmt;

use quorate_testkit::RedisServer;

use super::wound::Wound;
use crate::arena::Arena;

/// What a replica does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicas {
    /// A replica gets what the master has, and nothing that comes later. Healed, it takes the
    /// master's place, and its address; the master is killed.
    Promotion,
    /// The same, but healed the master becomes a replica of that one, and a master again: its
    /// process, and clients' connections, go on.
    Relapse,
}

impl Replicas {
    pub(super) fn strike(self, arena: &mut Arena, masters: &[usize]) -> Wound {
        let replicas: Vec<_> = masters.iter().map(|master| (*master, replica(arena, *master))).collect();
        Wound::new(move |arena| {
            replicas.into_iter().for_each(|(master, replica)| match self {
                Self::Promotion => arena.replace(master, replica),
                Self::Relapse => arena.masters[master].process().copy(&replica),
            });
        })
    }
}

/// Another server that has what this master has now.
fn replica(arena: &mut Arena, master: usize) -> RedisServer {
    let replica = arena.another_server();
    replica.copy(arena.masters[master].process());
    replica
}

impl fmt::Display for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Promotion => f.write_str("promotion of a replica that lags"),
            Self::Relapse => f.write_str("replication from a copy that lags"),
        }
    }
}
