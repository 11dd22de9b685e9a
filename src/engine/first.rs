//! The first attempt of an owner that nobody knows: the caller waits for it by itself, and no task is needed where it is
//! granted. Where it is not, it is undone as soon as that is decided, whether or not the caller is run.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use tokio_util::task::task_tracker::TaskTrackerToken;

use super::attempt::Attempt;
use super::quorum::Decision;
use super::relay::Relay;
use crate::error::Error;
use crate::sync::{Mutex, MutexGuard};

/// The caller's end. Dropping it undoes the attempt.
pub(super) struct First {
    slot: Arc<Slot>,
    relay: Arc<Relay>,
}

/// Where the attempt is until somebody takes it: its caller, or whoever hears that it came to nothing.
pub(super) struct Slot(Mutex<State>);

struct State {
    attempt: Option<Attempt>,
    /// How it was decided: why not, where it was not granted.
    decided: Option<Result<(), Error>>,
    waker: Option<Waker>,
    /// A shutdown waits while it is undecided.
    under_way: Option<TaskTrackerToken>,
}

impl First {
    pub(super) fn begin(attempt: Attempt, under_way: TaskTrackerToken, relay: Arc<Relay>) -> Self {
        let tally = attempt.tally().clone();
        let under_way = Some(under_way);
        let state = State { attempt: Some(attempt), decided: None, waker: None, under_way };
        let slot = Arc::new(Slot(Mutex::new(state)));
        let (deciding, way_back) = (slot.clone(), relay.clone());
        tally.on_decision(move |decision| deciding.decide(decision, &way_back));
        Self { slot, relay }
    }

    /// Waits for the decision: the attempt, to make a grant of, or why there is none.
    pub(super) async fn decision(self) -> Result<Attempt, Error> {
        poll_fn(|context| {
            self.relay.pass_on();
            let mut state = self.slot.state();
            match state.decided.take() {
                Some(Ok(())) => Poll::Ready(Ok(state.attempt.take().expect("only the caller takes a grant"))),
                Some(Err(error)) => Poll::Ready(Err(error)),
                None => {
                    state.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for First {
    fn drop(&mut self) {
        let attempt = self.slot.state().attempt.take();
        drop(attempt); // unlocked
    }
}

impl Slot {
    /// Hears the decision, on the thread where the votes come in.
    pub(super) fn decide(&self, decision: Decision, relay: &Relay) {
        let mut state = self.state();
        let Some(attempt) = state.attempt.take() else { return };
        let error = match decision {
            _ if attempt.is_closed() => Some(Error::Closed),
            Decision::Granted => None,
            _ => Some(attempt.denied()),
        };
        let undone = match error {
            Some(error) => {
                state.decided = Some(Err(error));
                Some(attempt)
            }
            None => {
                (state.decided, state.attempt) = (Some(Ok(())), Some(attempt));
                None
            }
        };
        let (waker, under_way) = (state.waker.take(), state.under_way.take());
        drop(state);
        drop(undone); // it is under way itself from here on
        drop(under_way);
        if let Some(waker) = waker {
            relay.wake(waker);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}
