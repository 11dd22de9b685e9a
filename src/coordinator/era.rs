//! From when on stragglers are not wanted: what was asked for an owner before it gave up what it had.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::hold::Hold;

/// Counts the eras of one hold. One ends when the last hold is given up, or given away.
#[derive(Debug, Default)]
pub(super) struct Eras(AtomicU64);

/// The era of a hold in which something was asked.
#[derive(Clone)]
pub(super) struct Era {
    hold: Arc<Hold>,
    number: u64,
}

impl Eras {
    /// The present one ends: what was not sent yet is not sent any more.
    pub(super) fn end(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    fn number(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

impl Era {
    /// The present one.
    pub(super) fn of(hold: &Arc<Hold>) -> Self {
        Self { hold: hold.clone(), number: hold.eras.number() }
    }

    pub(super) fn is_over(&self) -> bool {
        self.hold.eras.number() != self.number
    }
}
