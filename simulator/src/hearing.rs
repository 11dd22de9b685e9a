//! What a client listens to, on a connection of its own for each master, apart from the one that
//! carries calls.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorate::seam::{Subscriber, SubscriptionEvent};
use quorate_testkit::Subscription;

use crate::pipe::Pipe;

/// What a client listens to on one master.
#[derive(Default)]
pub(crate) struct Hearing(Mutex<HearingState>);

pub(crate) struct HearingState {
    /// Who listens, and its number; one at a time.
    pub(crate) listener: Option<(u64, Arc<str>, Subscriber)>,
    pub(crate) count: u64,
    /// Which of its connections is open.
    pub(crate) attempt: u64,
    pub(crate) subscription: Option<Subscription>,
    /// What is on its way to the client.
    pub(crate) messages: Pipe<(u64, SubscriptionEvent)>,
}

impl Default for HearingState {
    fn default() -> Self {
        Self { listener: None, count: 0, attempt: 0, subscription: None, messages: Pipe::new() }
    }
}

impl Hearing {
    pub(crate) fn state(&self) -> MutexGuard<'_, HearingState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_current(&self, number: u64) -> bool {
        self.state().listener.as_ref().is_some_and(|(current, ..)| *current == number)
    }
}

impl fmt::Debug for Hearing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hearing").finish_non_exhaustive()
    }
}
