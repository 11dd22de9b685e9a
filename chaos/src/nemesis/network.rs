//! What happens between clients and masters.

use std::fmt;

use quorate_testkit::{Proxy, Toxic, Way};

use super::wound::Wound;
use crate::arena::Arena;

/// What happens to the ways of some clients to some masters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// A toxic is there.
    Toxic(Way, Toxic),
    /// Connections are reset at both ends, once.
    Reset,
    /// Connections are reset at the clients' ends, once, and the masters do not notice: they keep
    /// connections that no client has.
    HalfOpen,
}

impl Network {
    /// Nothing gets through this way.
    pub fn partition(way: Way) -> Self {
        Self::Toxic(way, Toxic::Blackhole)
    }

    pub(super) fn strike(self, arena: &mut Arena, masters: &[usize], clients: &[usize]) -> Wound {
        match self {
            Self::Toxic(way, toxic) => add(arena, masters, clients, way, toxic),
            Self::Reset => {
                each(arena, masters, clients, Proxy::reset);
                Wound::none()
            }
            Self::HalfOpen => {
                let wound = add(arena, masters, clients, Way::There, Toxic::HalfOpen);
                each(arena, masters, clients, |proxy| proxy.reset_at(Way::Back));
                wound
            }
        }
    }
}

fn add(arena: &Arena, masters: &[usize], clients: &[usize], way: Way, toxic: Toxic) -> Wound {
    let mut added = Vec::new();
    for (client, master) in pairs(masters, clients) {
        added.push((client, master, arena.proxy(client, master).add(way, toxic)));
    }
    Wound::new(move |arena| {
        for (client, master, toxic) in added {
            arena.proxy(client, master).remove(toxic);
        }
    })
}

fn each(arena: &Arena, masters: &[usize], clients: &[usize], on: impl Fn(&Proxy)) {
    pairs(masters, clients).for_each(|(client, master)| on(arena.proxy(client, master)));
}

fn pairs(masters: &[usize], clients: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    clients.iter().flat_map(|client| masters.iter().map(|master| (*client, *master)))
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (way, toxic) = match self {
            Self::Toxic(way, toxic) => (way, toxic),
            Self::Reset => return f.write_str("reset"),
            Self::HalfOpen => return f.write_str("half-open"),
        };
        match toxic {
            Toxic::Latency { delay, jitter } => write!(f, "{delay:?} slower, and up to {jitter:?} more")?,
            Toxic::Bandwidth { bytes_per_second } => write!(f, "{bytes_per_second} bytes a second")?,
            Toxic::Blackhole => f.write_str("partition")?,
            Toxic::HalfOpen => f.write_str("ends withheld")?,
            Toxic::SlowClose { delay } => write!(f, "ends {delay:?} late")?,
            Toxic::Reset => f.write_str("resets")?,
            Toxic::Cut { per_mille } => write!(f, "cuts, {per_mille} of 1000")?,
        }
        f.write_str(match way {
            Way::There => ", there",
            Way::Back => ", back",
            Way::Both => ", there and back",
        })
    }
}
