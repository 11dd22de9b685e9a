//! What commands work on, and what they answer.

use std::collections::BTreeMap;

use super::keyspace::Keyspace;
use super::settings::Settings;
use crate::embedded::resp::Resp;

/// The keys of one server, who listens there, and what was published to them.
#[derive(Debug, Default)]
pub struct Store {
    /// What names the process; another one after every restart.
    pub(in crate::embedded) run_id: String,
    /// How often this process was a replica and became a master again.
    pub(in crate::embedded) promotions: u64,
    /// When it was started, by its own clock (us).
    pub(in crate::embedded) started: u64,
    pub(in crate::embedded) keyspace: Keyspace,
    pub(in crate::embedded) settings: Settings,
    /// How many listen on each channel.
    pub(in crate::embedded) listeners: BTreeMap<Vec<u8>, usize>,
    /// What was published to those that listen, and was not handed to them yet.
    pub(in crate::embedded) published: Vec<(Vec<u8>, Vec<u8>)>,
    /// When the script began that runs now (ms): what is alive then is alive to its end.
    pub(super) frozen: Option<i64>,
    /// Whether the script that runs now wrote: it is let in where memory is full from then on.
    pub(super) has_written: bool,
}

impl Store {
    /// From here on keys do not expire.
    pub(in crate::embedded) fn freeze(&mut self, now_us: u64) {
        (self.frozen, self.has_written) = (Some(millis(now_us)), false);
    }

    /// From here on keys expire again.
    pub(in crate::embedded) fn thaw(&mut self) {
        (self.frozen, self.has_written) = (None, false);
    }

    /// Drops the keys whose time is over, as a server does in its spare time.
    pub fn expire(&mut self, now_us: u64) {
        self.keyspace.expire(millis(now_us));
    }
}

/// One command at one moment.
pub(super) struct Context<'a> {
    pub(super) store: &'a mut Store,
    /// The wall clock, in microseconds.
    pub(super) now: u64,
    /// The full name of a command, if there is one of this name.
    pub(super) command_name: fn(&[u8]) -> Option<&'static str>,
}

impl Context<'_> {
    /// The wall clock, in milliseconds.
    pub(super) fn millis(&self) -> i64 {
        millis(self.now)
    }

    /// By when a key must have expired to be gone.
    pub(super) fn horizon(&self) -> i64 {
        self.store.frozen.unwrap_or_else(|| self.millis())
    }

    /// Drops a key whose last item was taken: Redis has no empty hashes or sets.
    pub(super) fn drop_if_empty(&mut self, key: &[u8]) {
        let horizon = self.horizon();
        if self.store.keyspace.get(key, horizon).is_some_and(|entry| entry.data.is_empty()) {
            self.store.keyspace.remove(key);
        }
    }
}

/// What a command answers: a reply, or the words of an error.
pub(super) type Answer = Result<Resp, String>;

pub(super) fn millis(now_us: u64) -> i64 {
    i64::try_from(now_us / 1000).expect("a clock does not show the end of time")
}
