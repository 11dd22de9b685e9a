//! A server's settings.

use std::collections::BTreeSet;

pub(super) const POLICIES: [&str; 8] = [
    "noeviction",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

/// The settings of a server until it restarts.
#[derive(Debug)]
pub(in crate::embedded) struct Settings {
    /// The commands that nobody may call.
    pub(super) denied: BTreeSet<&'static str>,
    pub(super) is_replica: bool,
    pub(super) maxmemory: i64,
    pub(super) policy: &'static str,
}

impl Default for Settings {
    fn default() -> Self {
        Self { denied: BTreeSet::new(), is_replica: false, maxmemory: 0, policy: POLICIES[0] }
    }
}
