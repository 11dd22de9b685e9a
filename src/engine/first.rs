//! The first attempt of a fresh owner: its caller waits for it, and where the masters grant it with
//! one token no task is needed. Where they do not grant it, a callback on the round undoes it as
//! soon as that is decided, whether or not the caller is polled.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use tokio_util::task::task_tracker::TaskTrackerToken;

use super::attempt::Attempt;
use super::caller_waker::CallerWaker;
use super::quorum::Decision;
use crate::error::Error;
use crate::sync::{Mutex, MutexGuard};

/// The caller's end. Dropping it undoes the attempt.
pub(super) struct FirstAttempt {
    state: Arc<Mutex<Undecided>>,
    caller_waker: Arc<CallerWaker>,
}

/// Holds the attempt until its caller takes it, or the decision drops it, which undoes it.
struct Undecided {
    attempt: Option<Attempt>,
    /// How it was decided.
    decided: Option<Result<(), Error>>,
    waker: Option<Waker>,
    /// A shutdown waits while this lives: until the decision.
    under_way: Option<TaskTrackerToken>,
}

impl FirstAttempt {
    pub(super) fn begin(
        attempt: Attempt,
        under_way: TaskTrackerToken,
        caller_waker: Arc<CallerWaker>,
    ) -> Self {
        let round = attempt.round().clone();
        let under_way = Some(under_way);
        let state = Undecided { attempt: Some(attempt), decided: None, waker: None, under_way };
        let state = Arc::new(Mutex::new(state));
        let deciding = state.clone();
        let waking = caller_waker.clone();
        round.call_on_decision(move |decision| on_decision(deciding.lock(), decision, &waking));
        Self { state, caller_waker }
    }

    /// Waits for the decision. Returns the attempt, to make a grant of, or why there is none.
    pub(super) async fn until_granted(self) -> Result<Attempt, Error> {
        poll_fn(|cx| {
            self.caller_waker.wake_rest();
            let mut state = self.state.lock();
            match state.decided.take() {
                Some(Ok(())) => Poll::Ready(Ok(state.attempt.take().expect("only the caller takes a grant"))),
                Some(Err(error)) => Poll::Ready(Err(error)),
                None => {
                    state.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for FirstAttempt {
    fn drop(&mut self) {
        let attempt = self.state.lock().attempt.take();
        drop(attempt); // unlocked
    }
}

/// Called with the decision: see `call_on_decision`.
fn on_decision(mut state: MutexGuard<'_, Undecided>, decision: Decision, caller_waker: &CallerWaker) {
    let Some(attempt) = state.attempt.take() else { return };
    let decided = match decision {
        _ if attempt.is_closed() => Err(Error::Closed),
        Decision::Granted => Ok(()),
        _ => Err(attempt.denied()),
    };
    let (granted, refused) = if decided.is_ok() { (Some(attempt), None) } else { (None, Some(attempt)) };
    state.attempt = granted;
    state.decided = Some(decided);
    let waker = state.waker.take();
    let under_way = state.under_way.take();
    drop(state);
    drop(refused); // a shutdown waits for its clean-up from here on
    drop(under_way);
    if let Some(waker) = waker {
        caller_waker.wake(waker);
    }
}
