//! What a client writes on a master: its record, and the acceptor's state. Pure.

use std::sync::Arc;
use std::time::Duration;

use super::proposer::AcceptorState;
use super::record::MasterRecord;
use super::terms::{CLOCK_RANGE, Terms, micros};
use crate::wire::{TrustedTime, Words};

/// A write by `scripts/lua/record.lua`. It is refused if the master has changed since it was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecordWrite {
    /// The stamp of the record that was read; `None` if there was none.
    pub(crate) found: Option<Arc<str>>,
    /// For how long from now the master has no vote; `None` leaves its quarantine as it is.
    pub(crate) quarantine: Option<Duration>,
    /// The earliest end (us) of the quarantine.
    pub(crate) least: u64,
    pub(crate) record: MasterRecord,
    pub(crate) acceptor: AcceptorWrite,
}

/// What becomes of the acceptor's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AcceptorWrite {
    /// It is not written.
    Unchanged,
    /// It stays, and belongs to the record's incarnation.
    Kept,
    /// It is replaced, and belongs to the record's incarnation.
    New(AcceptorState),
}

/// Random names and numbers, drawn by the caller: nobody drew the same before. One handshake uses
/// each at most once.
#[derive(Clone, Debug)]
pub(crate) struct FreshIds {
    pub(crate) set: Arc<str>,
    pub(crate) incarnation: Arc<str>,
    pub(crate) stamp: Arc<str>,
    /// The number of a master that joins. It is never that of a member of a first list, as these
    /// have lower numbers.
    pub(crate) member: u32,
}

/// The lowest number of a master that joins a set. Members of a first list have lower ones.
const LEAST_JOINING: u32 = 16;

impl FreshIds {
    /// Four numbers that nobody drew before, from `draw`.
    pub(crate) fn draw(mut draw: impl FnMut() -> u64) -> Self {
        Self {
            set: id(draw()),
            incarnation: id(draw()),
            stamp: id(draw()),
            member: LEAST_JOINING + (draw() % u64::from(u32::MAX / 2)) as u32,
        }
    }
}

/// Sixteen hexadecimal digits.
pub(crate) fn id(number: u64) -> Arc<str> {
    format!("{number:016x}").into()
}

impl RecordWrite {
    /// Changes some fields of a record that still counts.
    pub(super) fn update(record: &MasterRecord, change: impl FnOnce(&mut MasterRecord)) -> Self {
        let mut next = record.clone();
        change(&mut next);
        Self {
            found: Some(record.stamp.clone()),
            quarantine: None,
            least: 0,
            record: next,
            acceptor: AcceptorWrite::Unchanged,
        }
    }

    /// Whether it costs the master its vote for a while.
    pub(crate) fn costs_the_vote(&self) -> bool {
        self.quarantine.is_some_and(|time| !time.is_zero())
    }

    /// The arguments of `record.lua`. What is not known of the time makes a quarantine longer.
    pub(super) fn words(&self, terms: &Terms, trusted: TrustedTime) -> Words {
        let Self { found, quarantine, least, record, acceptor } = self;
        let TrustedTime { low, width } = trusted;
        let quarantine = quarantine.map(|time| if time.is_zero() { time } else { time + width });
        let words = Words::new(0)
            .with(&terms.record)
            .with(found.as_deref().unwrap_or_default())
            .with(&record.run_id)
            .with(&record.replid2)
            .with(low)
            .with(quarantine.map_or(String::new(), |time| time.as_micros().to_string()))
            .with(least)
            .with(&terms.decree);
        let empty = |words, count| (0..count).fold(words, |words: Words, _| words.with(""));
        let words = match acceptor {
            AcceptorWrite::New(AcceptorState { generation, promised, accepted }) => words
                .with(&record.incarnation)
                .with(generation)
                .with(promised.map_or(String::new(), |ballot| ballot.to_string()))
                .with(accepted.as_ref().map_or(String::new(), |accepted| accepted.ballot.to_string()))
                .with(accepted.as_ref().map_or("", |accepted| &accepted.value)),
            AcceptorWrite::Kept => empty(words.with(&record.incarnation), 4),
            AcceptorWrite::Unchanged => empty(words, 5),
        };
        record.fields().fold(words, |words, (field, value)| words.with(field).with(value))
    }

    /// The record after `record.lua` wrote it at this time (us).
    pub(crate) fn written(&self, now: u64) -> MasterRecord {
        let end = |quarantine: Duration| {
            if quarantine.is_zero() {
                return self.least;
            }
            let end = now.saturating_add(micros(quarantine));
            let is_too_far = self.least > end.saturating_add(micros(CLOCK_RANGE));
            if is_too_far { end } else { end.max(self.least) }
        };
        let quarantine = self.quarantine.map_or(self.record.quarantine, end);
        MasterRecord { quarantine, ..self.record.clone() }
    }
}
