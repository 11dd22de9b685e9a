//! Clean-up: telling the masters what an owner holds now, until they have heard it.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::hold::{Count, Hold};
use super::kind::{Errand, Place};
use super::round::Answer;
use super::{Coordinator, reply};
use crate::backoff::Backoff;
use crate::clock::{Clock, Moment};
use crate::master::{Call, Master, Terms};
use crate::random::Random;
use crate::vote::{Outcome, Refusal, Silence};

/// Delays between tries on one master.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// How long to repeat it to a master that answers and refuses: longer than most take to load their data, or to be able
/// to persist again. It is bounded because such a master may refuse for as long as it lives.
const REFUSED_FOR: Duration = Duration::from_secs(60);

/// How hard to try on one master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// It has nothing of ours that we know of: asked as for a vote, so not at all if it is known to be out of reach.
    Once,
    /// It may have our key: across reconnects, until it has answered, or the key has expired.
    UntilDone,
}

/// A waiter takes back what some masters granted, and goes on waiting.
#[derive(Debug)]
pub(crate) struct Withdrawal {
    pub(crate) place: Place,
    /// The masters that granted, by their place among the masters.
    pub(crate) from: u16,
}

impl Effort {
    /// What it takes to undo an acquire or an extend on a master with this outcome.
    pub(crate) fn to_undo(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Granted | Outcome::Unknown(_) | Outcome::Pending => Some(Self::UntilDone),
            // It says that it did nothing; asked once more, it may mend what a failing script left.
            Outcome::Refused { .. } => Some(Self::Once),
            Outcome::Held { .. } | Outcome::Absent | Outcome::Unreachable(_) => None,
        }
    }
}

impl Coordinator {
    /// Tells the masters how many holds the owner has left, none being a full release. What is to be told is in order
    /// behind everything that was sent before when this returns, and goes on by itself. It is not repeated after the
    /// last key has expired by itself. Every master that may have the key is told until it has heard it, and the others
    /// with the effort that `otherwise` gives. Those that `withdrawal` names are left with a place in the queue.
    ///
    /// Each answer is the first that its master gives, within the per-master time-out.
    pub(crate) fn mirror(
        &self,
        hold: &Hold,
        count: &mut Count,
        withdrawal: Option<Withdrawal>,
        otherwise: impl Fn(usize) -> Option<Effort>,
    ) -> Vec<Answer> {
        let mut operation = hold.operation(count.holds, Duration::ZERO, self.next_round());
        let errand = hold.kind.release(&operation);
        operation.place = withdrawal.as_ref().map(|withdrawal| &withdrawal.place);
        let withdrawing =
            withdrawal.as_ref().map(|Withdrawal { from, .. }| (hold.kind.release(&operation), from));
        let tell = |place| {
            let effort = if count.touched(place) { Some(Effort::UntilDone) } else { otherwise(place) };
            let errand = match &withdrawing {
                Some((withdrawing, from)) if **from & (1 << place) != 0 => withdrawing,
                _ => &errand,
            };
            self.tell(place, errand, count.keys_end, effort, CancellationToken::new())
        };
        let answers = (0..self.masters.len()).map(tell).collect();
        if count.holds == 0 {
            count.touched = 0;
        }
        answers
    }

    /// Tells one master, with this effort, again and again until `void` is cancelled. The answer is the first that it
    /// gives.
    pub(super) fn tell(
        &self,
        place: usize,
        errand: &Errand,
        keys_end: Moment,
        effort: Option<Effort>,
        void: CancellationToken,
    ) -> Answer {
        let Some(effort) = effort else {
            return async { Outcome::Unreachable("there is nothing to undo".into()) }.boxed();
        };
        let timeout = self.settings.timeout();
        let terms = match effort {
            Effort::Once => self.unconditional(),
            Effort::UntilDone => Terms::CleanUp,
        };
        let (first, answer) = oneshot::channel();
        let clean_up = CleanUp {
            master: self.masters[place].clone(),
            call: errand.call(terms),
            effort,
            keys_end,
            void,
            clock: self.clock.clone(),
            random: self.random.clone(),
        };
        let mut telling = clean_up.run(first).boxed();
        // The first poll sends a clean-up, here and now, before anything that comes later.
        let done = effort == Effort::UntilDone && (&mut telling).now_or_never().is_some();
        if !done {
            self.spawn(telling);
        }
        async move {
            match tokio::time::timeout(timeout, answer).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Outcome::Unreachable("the client was shut down".into()),
                Err(_) => Outcome::Unknown(Silence::TimedOut),
            }
        }
        .boxed()
    }
}

/// One master that is to be told.
struct CleanUp {
    master: Arc<dyn Master>,
    call: Call,
    effort: Effort,
    keys_end: Moment,
    /// Cancelled when it is not to be repeated: something later says otherwise.
    void: CancellationToken,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl CleanUp {
    async fn run(self, first: oneshot::Sender<Outcome>) {
        let mut first = Some(first);
        let mut backoff = Backoff::new(RETRY.0, RETRY.1);
        let patience_ends = self.clock.now() + REFUSED_FOR;
        loop {
            let outcome = reply::outcome(self.master.call(self.call.clone()).await);
            let again = self.effort == Effort::UntilDone && self.is_worth_repeating(&outcome, patience_ends);
            if let Some(first) = first.take() {
                let _ = first.send(outcome); // there may be nobody who waits for it
            }
            if !again {
                return;
            }
            // The first poll may be where the runtime ends, and has no timers any more.
            tokio::task::yield_now().await;
            tokio::time::sleep(backoff.delay(self.random.next_u64())).await;
            let left = self.keys_end.since(self.clock.now());
            if tokio::time::timeout(left, self.master.ready()).await.is_err() || self.void.is_cancelled() {
                return;
            }
        }
    }

    fn is_worth_repeating(&self, outcome: &Outcome, patience_ends: Moment) -> bool {
        let until = match outcome {
            Outcome::Granted | Outcome::Held { .. } | Outcome::Absent | Outcome::Pending => return false,
            Outcome::Refused { reason: Refusal::Stale | Refusal::WrongType, .. } => return false,
            Outcome::Refused { .. } => self.keys_end.min(patience_ends),
            Outcome::Unreachable(_) | Outcome::Unknown(_) => self.keys_end,
        };
        self.clock.now() < until
    }
}
