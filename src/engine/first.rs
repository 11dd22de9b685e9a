//! The first attempt of a fresh owner: its caller waits for it, and where the masters grant it with
//! one token no task is needed. Where they do not grant it, a callback on the round undoes it as
//! soon as that is decided, whether or not the caller is polled. If the vote was split, a task
//! finds out who goes on.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use futures::future::{BoxFuture, Either, FutureExt, ready};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::attempt::Attempt;
use crate::error::Error;
use crate::round::{CallerWaker, Decision};
use crate::sync::Mutex;

/// The caller's end. Dropping it undoes the attempt.
pub(super) struct FirstAttempt {
    state: Arc<Mutex<State>>,
    caller_waker: Arc<CallerWaker>,
}

struct State {
    /// `None` while the votes are being looked at, and when the caller has taken it.
    progress: Option<AttemptProgress>,
    waker: Option<Waker>,
    /// A shutdown waits while this lives: until the decision.
    under_way: Option<TaskTrackerToken>,
}

/// How far the attempt is. Dropping it undoes the attempt.
enum AttemptProgress {
    Voting(Attempt),
    Decided(Result<Attempt, Error>),
    /// The vote was split.
    Resolving(BoxFuture<'static, Result<Attempt, Error>>),
}

impl FirstAttempt {
    pub(super) fn begin(
        attempt: Attempt,
        under_way: TaskTrackerToken,
        caller_waker: Arc<CallerWaker>,
    ) -> Self {
        let round = attempt.round().clone();
        let under_way = Some(under_way);
        let state = Arc::new(Mutex::new(State {
            progress: Some(AttemptProgress::Voting(attempt)),
            waker: None,
            under_way,
        }));
        let deciding = state.clone();
        let waking = caller_waker.clone();
        round.call_on_decision(move |decision| on_decision(&deciding, decision, &waking));
        Self { state, caller_waker }
    }

    /// Waits for the decision. Returns the attempt, to make a grant of, or why there is none.
    pub(super) async fn decided(self) -> Result<Attempt, Error> {
        let decided = poll_fn(|cx| {
            self.caller_waker.wake_rest();
            let mut state = self.state.lock();
            match state.progress.take() {
                Some(AttemptProgress::Decided(decided)) => return Poll::Ready(Either::Left(ready(decided))),
                Some(AttemptProgress::Resolving(resolving)) => return Poll::Ready(Either::Right(resolving)),
                voting => state.progress = voting,
            }
            state.waker = Some(cx.waker().clone());
            Poll::Pending
        });
        decided.await.await
    }
}

impl Drop for FirstAttempt {
    fn drop(&mut self) {
        let progress = self.state.lock().progress.take();
        drop(progress); // unlocked
    }
}

/// Called with the decision: see `call_on_decision`.
fn on_decision(state: &Mutex<State>, decision: Decision, caller_waker: &CallerWaker) {
    let Some(AttemptProgress::Voting(attempt)) = state.lock().progress.take() else { return };
    let progress = match decision {
        Decision::Denied if attempt.is_to_resolve() => {
            AttemptProgress::Resolving(attempt.resolve_in_background().boxed())
        }
        _ => AttemptProgress::Decided(attempt.outcome(decision)),
    };
    let mut state = state.lock();
    state.progress = Some(progress);
    let waker = state.waker.take();
    let under_way = state.under_way.take();
    drop(state);
    drop(under_way); // a shutdown waits for the clean-up of a refused attempt from here on
    if let Some(waker) = waker {
        caller_waker.wake(waker);
    }
}
