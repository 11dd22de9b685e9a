//! Epochs: which operations of an owner are still wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the epochs of whoever has it.
#[derive(Debug, Default)]
pub(crate) struct EpochCounter(AtomicU64);

impl EpochCounter {
    /// Ends the present epoch: what was not sent yet is not sent any more.
    pub(crate) fn end_epoch(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    fn present(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// The epoch in which an operation was asked for. Once it is over, the operation is not sent any
/// more: the owner gave up what it had.
#[derive(Clone)]
pub(crate) struct Epoch {
    /// Whatever has the counter: so that it needs no allocation of its own.
    counter: Arc<dyn AsRef<EpochCounter> + Send + Sync>,
    number: u64,
}

impl Epoch {
    /// The present epoch of `counter`, which this keeps alive.
    pub(crate) fn of(counter: &Arc<impl AsRef<EpochCounter> + Send + Sync + 'static>) -> Self {
        let number = (**counter).as_ref().present();
        Self { counter: counter.clone(), number }
    }

    pub(crate) fn is_over(&self) -> bool {
        (*self.counter).as_ref().present() != self.number
    }
}
