//! The first attempt of an owner that nobody knows: the caller waits for it by itself, and no task
//! is needed where it is granted. Where it is not, it is undone as soon as that is decided, whether
//! or not the caller is run.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use tokio_util::task::task_tracker::TaskTrackerToken;

use super::attempt::Attempt;
use super::quorum::Decision;
use super::wake_batcher::WakeBatcher;
use crate::error::Error;
use crate::sync::{Mutex, MutexGuard};

/// The caller's end. Dropping it undoes the attempt.
pub(super) struct FirstAttempt {
    state: Arc<Mutex<Undecided>>,
    wake_batcher: Arc<WakeBatcher>,
}

/// Holds the attempt until its caller takes it, or the decision undoes it.
struct Undecided {
    attempt: Option<Attempt>,
    /// How it was decided: why not, where it was not granted.
    decided: Option<Result<(), Error>>,
    waker: Option<Waker>,
    /// A shutdown waits while it is undecided.
    under_way: Option<TaskTrackerToken>,
}

impl FirstAttempt {
    pub(super) fn begin(
        attempt: Attempt,
        under_way: TaskTrackerToken,
        wake_batcher: Arc<WakeBatcher>,
    ) -> Self {
        let tally = attempt.tally().clone();
        let under_way = Some(under_way);
        let state = Undecided { attempt: Some(attempt), decided: None, waker: None, under_way };
        let state = Arc::new(Mutex::new(state));
        let deciding = state.clone();
        let waking = wake_batcher.clone();
        tally.on_decision(move |decision| on_decision(deciding.lock(), decision, &waking));
        Self { state, wake_batcher }
    }

    /// Waits for the decision: the attempt, to make a grant of, or why there is none.
    pub(super) async fn until_granted(self) -> Result<Attempt, Error> {
        poll_fn(|context| {
            self.wake_batcher.wake_rest();
            let mut state = self.state.lock();
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

impl Drop for FirstAttempt {
    fn drop(&mut self) {
        let attempt = self.state.lock().attempt.take();
        drop(attempt); // unlocked
    }
}

/// Takes the decision, on the thread where the votes come in.
fn on_decision(mut state: MutexGuard<'_, Undecided>, decision: Decision, wake_batcher: &WakeBatcher) {
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
    let waker = state.waker.take();
    let under_way = state.under_way.take();
    drop(state);
    drop(undone); // a shutdown waits for its clean-up from here on
    drop(under_way);
    if let Some(waker) = waker {
        wake_batcher.wake(waker);
    }
}
