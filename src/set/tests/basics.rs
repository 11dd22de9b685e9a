//! What all tests of a set share: terms, names, dice, and questions to a verdict.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use super::super::record::Members;
use super::super::rules::Verdict;
use super::super::terms::Terms;
use super::super::write::FreshIds;
use crate::vote::Refusal;
use crate::wire::{MasterIndex, MasterSet};

pub(super) const MAX_TTL: Duration = Duration::from_secs(30);

/// Numbers that nobody drew before.
#[derive(Debug)]
pub(super) struct Dice(Cell<u64>);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))
    }

    pub(super) fn draw(&self) -> u64 {
        let state = self.0.get();
        let state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0.set(state);
        state ^ (state >> 29)
    }

    pub(super) fn below(&self, limit: usize) -> usize {
        (self.draw() >> 33) as usize % limit
    }

    pub(super) fn ids(&self) -> FreshIds {
        FreshIds::draw(|| self.draw())
    }
}

pub(super) fn terms(max_ttl: Duration) -> Terms {
    Terms { record: "r".into(), decree: "d".into(), max_ttl, all_new: false }
}

/// How long a quarantine is (us).
pub(super) fn quarantine() -> u64 {
    terms(MAX_TTL).quarantine().as_micros() as u64
}

pub(super) fn name(master: usize) -> Arc<str> {
    format!("m{master}").into()
}

/// The master of this name.
pub(super) fn named(name: &str) -> usize {
    name[1..].parse().unwrap()
}

/// The masters at these indices.
pub(super) fn indices<const N: usize>(places: [usize; N]) -> MasterSet {
    places.map(MasterIndex::from).into_iter().collect()
}

/// The masters of these members.
pub(super) fn masters_of(members: &Members) -> Vec<usize> {
    members.iter().map(|(_, name)| named(name)).collect()
}

pub(super) fn is_wait(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Wait(_) | Verdict::AwaitPeers(_))
}

pub(super) fn refusal(verdict: &Verdict) -> Option<Refusal> {
    match verdict {
        Verdict::Refuse(why, _) => Some(*why),
        _ => None,
    }
}
