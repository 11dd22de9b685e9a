//! What a master knows of a name: the entries of its hash, as docs/PROTOCOL.md says.

use std::time::Duration;

use quorate_testkit::{EmbeddedServer, Resp};

/// What owners and tickets that are those of readers begin with, and of writers.
const READS: &str = "r:";
const WRITES: &str = "w:";

/// The field of the one holder.
const HOLDER: &str = "x";

/// What the field of a permit begins with.
const PERMIT: &str = "p:";

/// One that has the name, or a permit, or reads.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) field: String,
    pub(crate) owner: String,
    pub(crate) token: u64,
    /// When it ends (us), by the master's clock.
    ends: u64,
}

impl Entry {
    /// Whether it keeps others away while the clock shows `now`.
    pub(crate) fn counts(&self, now: u64) -> bool {
        self.ends >= now
    }

    /// How long it lives on when the clock shows `now`.
    pub(crate) fn left(&self, now: u64) -> Duration {
        Duration::from_micros(self.ends.saturating_sub(now))
    }

    pub(crate) fn reads(&self) -> bool {
        self.field.starts_with(READS)
    }

    pub(crate) fn permit(&self) -> Option<u32> {
        self.field.strip_prefix(PERMIT)?.parse().ok()
    }
}

/// All entries of a name, over or not, except for what readers that have left leave behind.
pub(crate) fn entries(master: &EmbeddedServer, key: &str) -> Vec<Entry> {
    // At another key there is a lock of another library.
    let Resp::List(all) = master.command(&["HGETALL", key]) else { return Vec::new() };
    let all: Vec<(String, String)> =
        all.chunks_exact(2).filter_map(|pair| Some((text(&pair[0])?, text(&pair[1])?))).collect();
    let owner = |field: &str| match field.strip_prefix(READS) {
        Some(reader) => Some(reader.to_owned()),
        None => {
            all.iter().find(|(other, _)| other.strip_prefix("o:") == Some(field)).map(|(_, it)| it.clone())
        }
    };
    let entry = |(field, value): &(String, String)| {
        let is_entry = field == HOLDER || field.starts_with(READS) || field.starts_with(PERMIT);
        let numbers: Vec<u64> = value.split(' ').map_while(|word| word.parse().ok()).collect();
        let [ends, token, _, holds] = numbers[..] else { return None };
        let owner = (is_entry && holds > 0).then(|| owner(field))??;
        Some(Entry { field: field.clone(), owner, token, ends })
    };
    all.iter().filter_map(entry).collect()
}

/// The field that an operation of this owner is about, by its slot; none where the key is another
/// library's.
pub(crate) fn field_of(slot: &str, owner: &str) -> String {
    match (slot, slot.split_once('/')) {
        ("plain" | "redisson", _) => String::new(),
        ("read", _) => format!("{READS}{owner}"),
        (_, Some((number, _))) => format!("{PERMIT}{number}"),
        _ => HOLDER.to_owned(),
    }
}

/// An owner, or a ticket, without what it begins with.
pub(crate) fn owner_of(field: &str) -> &str {
    field.strip_prefix(READS).or_else(|| field.strip_prefix(WRITES)).unwrap_or(field)
}

pub(crate) fn text(reply: &Resp) -> Option<String> {
    match reply {
        Resp::Bulk(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}
