//! Who waits: the line of each lock in this process, and the wake-ups from the masters.

use std::sync::Arc;

use super::quorum::quorum;
use crate::executor::Executor;
use crate::master::Master;
use crate::protocol::Kind;
use crate::wake::{LocalQueues, WakeHub};

/// The waiters of one client.
pub(super) struct Waiters {
    /// Where they stand.
    pub(super) lines: Arc<LocalQueues>,
    /// Where they are woken.
    pub(super) wakes: Arc<WakeHub>,
}

impl Waiters {
    /// None yet. They are woken on this channel, and so many may wait for one lock.
    pub(super) fn new(
        masters: Vec<Arc<dyn Master>>,
        channel: Arc<str>,
        limit: usize,
        executor: &Executor,
    ) -> Self {
        let quorum = quorum(masters.len());
        let wakes = WakeHub::new(masters, channel, quorum, executor.clone());
        Self { lines: LocalQueues::new(limit), wakes }
    }

    /// Whether a caller that comes may attempt at once: nobody of this client is in line for the
    /// lock, and the client does not listen for wake-ups. While it listens, for whichever lock, a
    /// caller goes the way of a waiter, which is called if it is refused.
    pub(super) fn are_none(&self, kind: Kind, name: &Arc<str>) -> bool {
        !self.wakes.hears() && !self.lines.has(kind.word(), name)
    }
}
