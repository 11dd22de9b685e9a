//! What may be wrong with connections.

use std::time::Duration;

/// The way of bytes through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From clients to the server.
    There,
    /// From the server to clients.
    Back,
    /// Either.
    Both,
}

impl Way {
    /// Whether what is wrong on this way is wrong on that one.
    pub(super) fn covers(self, way: Self) -> bool {
        self == Self::Both || self == way
    }
}

/// Something that is wrong on a way, for as long as it is there. Several add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toxic {
    /// What is sent arrives later by `delay`, and up to `jitter` more, which is drawn anew for what
    /// arrives together. It stays in order, and does not hold up what follows: a long line, not a
    /// narrow one. What is on its way already stays late when the toxic is removed.
    Latency {
        /// How much later, at least.
        delay: Duration,
        /// And how much more, at most.
        jitter: Duration,
    },
    /// Limits each connection to this many bytes a second.
    Bandwidth {
        /// At least 1; 0 is taken for 1.
        bytes_per_second: u64,
    },
    /// Nothing gets through, nor does the end of a connection. What was sent waits, and arrives
    /// when the toxic is removed, as TCP sees to it. Clients can connect: it is the proxy's system
    /// that accepts.
    Blackhole,
    /// The end of a connection is not passed on this way until the toxic is removed.
    HalfOpen,
    /// The end of a connection is passed on this way with a delay.
    SlowClose {
        /// How much later; not later than the toxic is removed.
        delay: Duration,
    },
    /// Connections are reset (RST) at the end of this way, those that there are and those to come;
    /// the other end is closed.
    Reset,
    /// Connections are cut in the midst of what is sent, at a place that is drawn, and closed at
    /// both ends.
    Cut {
        /// How often, of a thousand times that something arrives.
        per_mille: u64,
    },
}

/// A toxic of one proxy, to remove it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToxicId(pub(super) u64);
