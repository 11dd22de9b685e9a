//! Who is noted at the key of a read-write lock: many readers, or a writer.

use quorate_testkit::{EmbeddedServer, Resp};

use crate::server::text;

/// What owners and tickets that are those of readers begin with, and of writers.
const READS: &str = "r:";
const WRITES: &str = "w:";

/// One that is noted there.
pub(crate) struct Holder {
    /// The owner, and before it what it does.
    pub(crate) field: String,
    /// When its lease ends, by the master's clock.
    ends: u64,
}

impl Holder {
    /// Whether it should be gone by its TTL, and is known: one whose lease is over may stay beside others, and of the last one the
    /// key may be left. Of one nothing is known but that others may read.
    pub(crate) fn counts(&self, all: &[Self], now: u64) -> bool {
        let last = all.iter().map(|holder| holder.ends).max();
        (self.ends > now || Some(self.ends) == last) && self.field.matches(':').count() > 1
    }

    pub(crate) fn reads(&self) -> bool {
        self.field.starts_with(READS)
    }
}

/// All at this key.
pub(crate) fn holders(master: &EmbeddedServer, key: &str) -> Vec<Holder> {
    // At another key there is a lock of another kind.
    let Resp::List(all) = master.command(&["HGETALL", key]) else { return Vec::new() };
    let holder = |pair: &[Resp]| {
        let field = text(&pair[0]).filter(|field| owner_of(field) != field)?;
        let ends = text(&pair[1])?.split(',').nth(2)?.parse().ok()?;
        Some(Holder { field, ends })
    };
    all.chunks_exact(2).filter_map(holder).collect()
}

/// An owner, or a ticket, without what it begins with.
pub(crate) fn owner_of(field: &str) -> &str {
    field.strip_prefix(READS).or_else(|| field.strip_prefix(WRITES)).unwrap_or(field)
}

/// What a holder is noted by, where a key has several.
pub(crate) fn place_of(key: &str, field: &str) -> String {
    format!("{key} {field}")
}
