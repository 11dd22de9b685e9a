//! Keys, what is at them, and until when.

use std::collections::BTreeMap;

use super::data::Data;

/// Everything that a server keeps. A clone is a snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::embedded) struct Keyspace {
    entries: BTreeMap<Vec<u8>, Entry>,
}

/// What is at a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) data: Data,
    /// Until when, in milliseconds of the wall clock; `None` is for ever. The last of them still
    /// counts.
    pub(super) until: Option<i64>,
}

impl Entry {
    /// What does not expire.
    pub(super) fn new(data: Data) -> Self {
        Self { data, until: None }
    }

    fn is_over(&self, horizon: i64) -> bool {
        self.until.is_some_and(|until| horizon > until)
    }
}

impl Keyspace {
    /// What is at a key, unless its time is over, and then it is dropped.
    pub(super) fn get(&mut self, key: &[u8], horizon: i64) -> Option<&mut Entry> {
        if self.entries.get(key).is_some_and(|entry| entry.is_over(horizon)) {
            self.entries.remove(key);
        }
        self.entries.get_mut(key)
    }

    pub(super) fn put(&mut self, key: &[u8], entry: Entry) {
        self.entries.insert(key.to_vec(), entry);
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        self.entries.remove(key)
    }

    /// The keys, in their order, once those whose time is over are dropped.
    pub(in crate::embedded) fn keys(&mut self, horizon: i64) -> impl ExactSizeIterator<Item = &Vec<u8>> {
        self.expire(horizon);
        self.entries.keys()
    }

    pub(super) fn expire(&mut self, horizon: i64) {
        self.entries.retain(|_, entry| !entry.is_over(horizon));
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
}
