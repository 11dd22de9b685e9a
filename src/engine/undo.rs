//! Clean-up: sends the masters what an owner still holds, and repeats it until each acknowledges. A
//! release goes this way, too.
//!
//! [`Undo`] is what a master has to acknowledge, [`CleanUp`] hears the answers to it, and a
//! [`Withdrawal`] is the part of it that keeps a waiter's place. Its words are those of
//! [`Op::Release`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::effort::Effort;
use super::hold::{Epoch, Hold, HoldState};
use super::master_set::MasterSet;
use super::parts::Engine;
use super::tally::{Round, Tally};
use crate::backoff::Backoff;
use crate::clock::Moment;
use crate::master::{CallKind, Failure, ReplySink, Value};
use crate::protocol::{Leaving, Op, Place, QUEUE_LIFE, outcome};
use crate::sync::Mutex;
use crate::vote::{Outcome, Refusal, Silence};

/// Delays between tries on one master.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// How long to repeat it to a master that answers and refuses: longer than most take to load their
/// data, or to be able to persist again. It is bounded because such a master may refuse for as long
/// as it lives.
const REFUSED_FOR: Duration = Duration::from_secs(60);

/// A waiter takes back what some masters granted, and goes on waiting.
#[derive(Debug)]
pub(super) struct Withdrawal {
    pub(super) place: Place,
    /// The masters that granted.
    pub(super) from: MasterSet,
}

/// A release, an undo or a way back that the masters have to acknowledge.
#[derive(Clone)]
pub(super) struct Undo {
    /// The hold that it is about.
    pub(super) hold: Arc<Hold>,
    pub(super) round: u64,
    pub(super) op: Op,
    /// When there is nothing to tell any more.
    pub(super) expires_by: Moment,
    /// When that is over it is not to be repeated: something later says otherwise.
    pub(super) epoch: Option<Epoch>,
}

impl Engine {
    /// Sends the masters how many holds the owner has left; zero is a full release. When this
    /// returns, the message is in order behind everything that was sent before, and is repeated in
    /// the background. Masters that may have an entry get it until they acknowledge it or the last
    /// entry has expired; masters in `once` get it once. On the masters that `withdrawal` names the
    /// owner keeps a place in the queue.
    ///
    /// The votes of the round are the first answers, each within the per-master time-out.
    pub(super) fn sync_hold(
        self: &Arc<Self>,
        hold: &Arc<Hold>,
        state: &mut HoldState,
        leaving: Leaving,
        withdrawal: Option<Withdrawal>,
        once: MasterSet,
    ) -> Round {
        debug_assert!(withdrawal.is_none() || state.holds == 0, "a lease that stands is no attempt");
        let place = state.is_queued.then_some(hold.owner);
        let op = Op::Release { holds: state.holds, leaving, place };
        // Masters do not compare the rounds of a key of another library.
        let epoch = hold.kind.is_shared().then(|| Epoch::of(hold));
        let release = Undo {
            hold: hold.clone(),
            round: self.dispatcher.next_round(),
            op,
            expires_by: state.expires_by,
            epoch,
        };
        let round = self.dispatcher.round(&hold.site, None);
        let votes = || Some(round.tally().clone());
        let mut until_done = state.maybe_held_on;
        if let Some(Withdrawal { place, from }) = withdrawal {
            // A place is taken once: what has to be repeated may come when the waiter has left.
            let withdraw = Op::Withdraw { leaving, place };
            let from = from.and(until_done);
            self.tell_first(from, &withdraw, release.clone(), Effort::UntilAcknowledged, votes());
            until_done = until_done.without(from);
        }
        let once = once.without(state.maybe_held_on);
        self.tell(once, release.clone(), Effort::Once, votes());
        self.tell(until_done, release, Effort::UntilAcknowledged, votes());
        let all = MasterSet::all(self.dispatcher.masters());
        for index in all.without(state.maybe_held_on.or(once)).iter() {
            round.tally().need_not_ask(index, "there is nothing to undo");
        }
        if state.holds == 0 {
            (state.maybe_held_on, state.is_queued) = (MasterSet::default(), false);
        }
        round
    }

    /// What undoes a grant of the owner's lease where it does not count: the lease does not rest on
    /// it.
    pub(super) fn undo_of_strays(&self, hold: &Arc<Hold>, state: &HoldState) -> Undo {
        let op = Op::Release { holds: 0, leaving: Leaving::Undone(state.first_round), place: None };
        Undo {
            hold: hold.clone(),
            round: self.dispatcher.next_round(),
            op,
            expires_by: state.expires_by,
            epoch: None,
        }
    }

    /// Gives up the place of a ticket, which is the owner of `hold`, on the masters where it
    /// stands.
    pub(super) fn leave(self: &Arc<Self>, hold: Arc<Hold>, on: MasterSet) {
        self.tell(on, self.undo_of_place(hold), Effort::UntilAcknowledged, None);
    }

    /// What gives that place up.
    pub(super) fn undo_of_place(&self, hold: Arc<Hold>) -> Undo {
        let round = self.dispatcher.next_round();
        let op = Op::Release { holds: 0, leaving: Leaving::Undone(round), place: Some(hold.owner) };
        Undo { hold, round, op, expires_by: self.clock().now() + QUEUE_LIFE, epoch: None }
    }

    /// Tells some masters, with this effort. The first answers are `votes`.
    pub(super) fn tell(
        self: &Arc<Self>,
        to: MasterSet,
        undo: Undo,
        effort: Effort,
        votes: Option<Arc<Tally>>,
    ) {
        let op = undo.op.clone();
        self.tell_first(to, &op, undo, effort, votes);
    }

    /// The same, with another operation for the first time.
    fn tell_first(
        self: &Arc<Self>,
        to: MasterSet,
        op: &Op,
        undo: Undo,
        effort: Effort,
        votes: Option<Arc<Tally>>,
    ) {
        if to.is_empty() {
            return;
        }
        let timeout = self.dispatcher.timeout();
        let call_kind = match effort {
            Effort::Once => CallKind::Vote { timeout },
            Effort::UntilAcknowledged => CallKind::CleanUp { timeout },
        };
        if effort == Effort::UntilAcknowledged {
            for index in to.iter() {
                self.untold[index].fetch_add(1, Ordering::Relaxed);
            }
        }
        let hold = undo.hold.clone();
        let round = undo.round;
        let under_way = self.tasks.token();
        let clean_up = CleanUp { engine: self.clone(), undo, effort, votes, _under_way: under_way };
        self.dispatcher.tell(to, &hold, round, op, call_kind, Arc::new(clean_up));
    }

    /// A master has acknowledged a clean-up, or needs it no more.
    fn note_told(&self, index: usize) {
        self.untold[index].fetch_sub(1, Ordering::Relaxed);
    }

    /// Repeats it to one master until that acknowledges it.
    async fn repeat(self: Arc<Self>, index: usize, undo: Undo) {
        let mut backoff = Backoff::new(RETRY.0, RETRY.1);
        let patience_ends = self.clock().now() + REFUSED_FOR;
        loop {
            tokio::time::sleep(backoff.delay(self.random.next_u64())).await;
            let left = undo.expires_by.since(self.clock().now());
            let ready = tokio::time::timeout(left, self.dispatcher.master(index).ready()).await;
            if ready.is_err() || undo.epoch.as_ref().is_some_and(Epoch::is_over) {
                return;
            }
            let outcome = self.tell_one(index, &undo).await;
            if !self.is_worth_repeating(&outcome, undo.expires_by, patience_ends) {
                return;
            }
        }
    }

    /// Tells one master once, and waits for what it says, however long that takes.
    async fn tell_one(&self, index: usize, undo: &Undo) -> Outcome {
        let (to, answer) = oneshot::channel();
        let call_kind = CallKind::CleanUp { timeout: self.dispatcher.timeout() };
        let last_word = Arc::new(LastWord(Mutex::new(Some(to))));
        let Undo { hold, round, op, .. } = undo;
        self.dispatcher.tell([index].into_iter().collect(), hold, *round, op, call_kind, last_word);
        answer.await.unwrap_or(Outcome::Pending)
    }

    fn is_worth_repeating(&self, outcome: &Outcome, expires_by: Moment, patience_ends: Moment) -> bool {
        let until = match outcome {
            Outcome::Granted | Outcome::Held { .. } | Outcome::Absent | Outcome::Pending => return false,
            Outcome::Refused { reason: Refusal::Stale | Refusal::WrongType, .. } => return false,
            Outcome::Refused { .. } => expires_by.min(patience_ends),
            Outcome::Unreachable(_) | Outcome::Unknown(_) => expires_by,
        };
        self.clock().now() < until
    }
}

/// One clean-up under way to some masters.
struct CleanUp {
    engine: Arc<Engine>,
    undo: Undo,
    effort: Effort,
    votes: Option<Arc<Tally>>,
    /// A shutdown waits while this lives.
    _under_way: TaskTrackerToken,
}

impl ReplySink for CleanUp {
    fn is_wanted(&self) -> bool {
        true
    }

    fn receive(&self, index: usize, answer: Result<Value, Failure>, _time: Option<u64>) {
        let is_last = self.effort == Effort::Once || !is_overdue(&answer);
        let outcome = outcome(answer);
        if is_last && self.effort == Effort::UntilAcknowledged {
            let engine = &self.engine;
            let undo = &self.undo;
            let patience_ends = engine.clock().now() + REFUSED_FOR;
            if engine.is_worth_repeating(&outcome, undo.expires_by, patience_ends) {
                let repeating = engine.clone().repeat(index, undo.clone());
                let engine = engine.clone();
                self.engine.spawn(async move {
                    repeating.await;
                    engine.note_told(index);
                });
            } else {
                engine.note_told(index);
            }
        }
        if let Some(votes) = &self.votes {
            votes.vote(index, outcome.into(), self.engine.clock().now());
        }
    }
}

/// Receives the last answer of a master to a clean-up.
struct LastWord(Mutex<Option<oneshot::Sender<Outcome>>>);

impl ReplySink for LastWord {
    fn is_wanted(&self) -> bool {
        true
    }

    fn receive(&self, _place: usize, answer: Result<Value, Failure>, _time: Option<u64>) {
        if is_overdue(&answer) {
            return;
        }
        if let Some(to) = self.0.lock().take() {
            let _ = to.send(outcome(answer)); // the client may be gone
        }
    }
}

/// Whether the answer to a clean-up is still to come.
fn is_overdue(answer: &Result<Value, Failure>) -> bool {
    matches!(answer, Err(Failure::Unknown(Silence::TimedOut)))
}
