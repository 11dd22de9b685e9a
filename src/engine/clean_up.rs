//! Clean-up: sends the masters the holds that an owner has left. Each master that may have an entry
//! of the owner is sent them until it acknowledges; the others get them once, if at all. A release
//! goes this way, too.
//!
//! A [`CleanUpOp`] is what a master has to acknowledge, a [`CleanUpSink`] receives the answers to
//! it, and a [`Withdrawal`] makes some masters keep a waiter's place. The messages are those of
//! [`Op::Release`]; of a [`Withdrawal`], [`Op::Withdraw`] comes first.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::engine::Engine;
use super::hold::{Hold, HoldState};
use crate::backoff::Backoff;
use crate::round::{Deferred, Epoch, Forward, Round};
use crate::time::Moment;
use crate::vote::{Outcome, Refusal, Silence};
use crate::wire::{
    CallKind, Failure, Leaving, LockId, MasterIndex, MasterSet, Op, PlaceWanted, QUEUE_LIFE, ReplySink,
    Ticket, Value, outcome,
};

/// Delays between tries on one master.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// For how long to repeat a clean-up to a master that answers and refuses: longer than most take to
/// load their data, or to be able to persist again. It is bounded because such a master may refuse
/// for as long as it lives.
const REFUSED_FOR: Duration = Duration::from_secs(60);

/// A waiter takes back what some masters granted, and goes on waiting.
#[derive(Debug)]
pub(super) struct Withdrawal {
    pub(super) place: PlaceWanted,
    /// The masters that granted.
    pub(super) from: MasterSet,
}

/// A release, an undo, or the way back of a transfer: masters that may have the entry have to
/// acknowledge it.
#[derive(Clone)]
pub(super) struct CleanUpOp {
    lock: LockId,
    /// Keeps the hold alive until the last master acknowledges: a named owner that comes again gets
    /// the same hold, and this client rather asks for another permit.
    _hold: Option<Arc<Hold>>,
    round_number: u64,
    op: Op,
    /// When the last entry is over, and with it the need for this.
    expires_by: Moment,
    /// Once this is over the operation is not repeated: a later one says otherwise.
    epoch: Option<Epoch>,
}

impl Engine {
    /// Sends `release` with the holds that are left; zero is a full release. Masters in
    /// `maybe_held_on` get it as a clean-up, until they acknowledge it or the last entry is over;
    /// those in `once` that are not among them get it once, as a vote, [or later if at
    /// all](Engine::defer_release); to the rest nothing is sent.
    /// Masters that a `withdrawal` names get that first: the owner keeps a place in their queues.
    ///
    /// When this returns, the message is in order behind everything that was sent before. The votes
    /// of the round are the first answers, each within the per-master time-out.
    pub(super) fn send_holds_left(
        self: &Arc<Self>,
        hold: &Arc<Hold>,
        hold_state: &mut HoldState,
        leaving: Leaving,
        withdrawal: Option<Withdrawal>,
        once: MasterSet,
    ) -> Arc<Round> {
        debug_assert!(withdrawal.is_none() || hold_state.holds == 0, "a lease that stands is no attempt");
        let place = hold_state.ticket.clone();
        let op = Op::Release { holds: hold_state.holds, leaving, place };
        // Masters do not compare the rounds of a key of another library.
        let epoch = hold.lock.kind.is_shared().then(|| Epoch::of(hold));
        let release = self.clean_up_op(hold, op.clone(), hold_state.expires_by, epoch);
        let round = self.dispatcher.begin_round(self.dispatcher.voters(), None);
        let votes = || Some(round.clone());
        let timeout = self.dispatcher.timeout();
        let vote = CallKind::Vote { timeout };
        let clean_up = CallKind::CleanUp { timeout };
        let mut until_acknowledged = hold_state.maybe_held_on;
        if let Some(Withdrawal { place, from }) = withdrawal {
            // The place is taken by the first message only: a later one may come when the waiter
            // has left.
            let withdraw = Op::Withdraw { leaving, place };
            let from = from.and(until_acknowledged);
            self.clean_up_beginning_with(from, &withdraw, release.clone(), clean_up, votes());
            until_acknowledged = until_acknowledged.without(from);
        }
        let once = once.without(hold_state.maybe_held_on);
        let deferred = self.defer_release(hold, hold_state, leaving, &release, &round);
        let once = once.without(deferred);
        self.clean_up_beginning_with(once, &op, release.clone(), vote, votes());
        self.clean_up_beginning_with(until_acknowledged, &op, release, clean_up, votes());
        for index in round.voters.masters.without(hold_state.maybe_held_on.or(once).or(deferred)).iter() {
            round.count_unasked(index, Refusal::Other, "there is nothing to undo");
        }
        if hold_state.holds == 0 {
            (hold_state.maybe_held_on, hold_state.ticket) = (MasterSet::default(), None);
        }
        round
    }

    /// Defers the masters that were not asked for a lease when it is released: they get the release
    /// only if those that may have the lease do not all release it soon. Returns them.
    fn defer_release(
        self: &Arc<Self>,
        hold: &Hold,
        hold_state: &HoldState,
        leaving: Leaving,
        release: &CleanUpOp,
        round: &Arc<Round>,
    ) -> MasterSet {
        let had = hold_state.maybe_held_on;
        let masters = hold.lease().terms.unasked.and(round.voters.masters).without(had);
        let is_release = hold_state.holds == 0 && matches!(leaving, Leaving::Lease(_));
        if masters.is_empty() || !is_release {
            return MasterSet::default();
        }
        let timeout = self.dispatcher.timeout();
        let Some(patience) = self.dispatcher.patience(had, masters, timeout) else {
            return MasterSet::default();
        };
        let engine = self.clone();
        let votes = Arc::downgrade(round);
        let release = release.clone();
        let ask = Box::new(move |masters| {
            let op = release.op.clone();
            let vote = CallKind::Vote { timeout };
            engine.clean_up_beginning_with(masters, &op, release, vote, votes.upgrade());
        });
        round.defer(Deferred { masters, released_by: Some(had), ask, patience });
        masters
    }

    /// An operation of the owner of `hold` to clean up with.
    pub(super) fn clean_up_op(
        &self,
        hold: &Arc<Hold>,
        op: Op,
        expires_by: Moment,
        epoch: Option<Epoch>,
    ) -> CleanUpOp {
        let round_number = self.dispatcher.next_round_number();
        CleanUpOp { lock: hold.lock.clone(), _hold: Some(hold.clone()), round_number, op, expires_by, epoch }
    }

    /// What undoes a grant of the owner on a master that the lease does not rest on.
    pub(super) fn clean_up_of_strays(&self, hold: &Arc<Hold>, hold_state: &HoldState) -> CleanUpOp {
        let op = Op::Release { holds: 0, leaving: Leaving::Undone(hold_state.first_round), place: None };
        self.clean_up_op(hold, op, hold_state.expires_by, None)
    }

    /// What gives up the place of a ticket, whose owner is that of `lock`.
    pub(super) fn clean_up_of_place(&self, lock: &LockId, ticket: Ticket) -> CleanUpOp {
        let round_number = self.dispatcher.next_round_number();
        let op = Op::Release { holds: 0, leaving: Leaving::Undone(round_number), place: Some(ticket) };
        let expires_by = self.clock().now() + QUEUE_LIFE;
        CleanUpOp { lock: lock.clone(), _hold: None, round_number, op, expires_by, epoch: None }
    }

    /// Sends some masters a clean-up, until they acknowledge it.
    pub(super) fn clean_up_on(self: &Arc<Self>, to: MasterSet, clean_up: CleanUpOp) {
        let op = clean_up.op.clone();
        let timeout = self.dispatcher.timeout();
        self.clean_up_beginning_with(to, &op, clean_up, CallKind::CleanUp { timeout }, None);
    }

    /// Sends some masters `first`. As a vote, it goes to masters that have nothing of ours that we
    /// know of: nothing is sent to one that is known to be out of reach. As a clean-up, it goes to
    /// masters that may have our entry: each is sent `clean_up`, across reconnects, until it has
    /// acknowledged one of the two, or the entry is over. The answers to `first` are counted as
    /// `votes`.
    fn clean_up_beginning_with(
        self: &Arc<Self>,
        to: MasterSet,
        first: &Op,
        clean_up: CleanUpOp,
        call_kind: CallKind,
        votes: Option<Arc<Round>>,
    ) {
        if to.is_empty() {
            return;
        }
        let is_repeated = call_kind.is_clean_up();
        if is_repeated {
            for index in to.iter() {
                self.unacknowledged[index].fetch_add(1, Ordering::Relaxed);
            }
        }
        let under_way = self.tasks.token();
        let sink = CleanUpSink { engine: self.clone(), clean_up, is_repeated, votes, _under_way: under_way };
        let sink = Arc::new(sink);
        let CleanUpOp { lock, round_number, .. } = &sink.clean_up;
        self.dispatcher.send_op(to, lock, *round_number, first, call_kind, sink.clone());
    }

    /// A master has acknowledged a clean-up, or needs it no more.
    fn note_acknowledged(&self, index: MasterIndex) {
        self.unacknowledged[index].fetch_sub(1, Ordering::Relaxed);
    }

    /// Repeats a clean-up to one master until the master acknowledges it, or has left the set:
    /// nobody asks it any more then.
    async fn repeat(self: Arc<Self>, index: MasterIndex, clean_up: CleanUpOp) {
        let mut backoff = Backoff::new(RETRY.0, RETRY.1);
        let patience_ends = self.clock().now() + REFUSED_FOR;
        loop {
            tokio::time::sleep(backoff.delay(self.random.next_u64())).await;
            let left = clean_up.expires_by.since(self.clock().now());
            let ready = tokio::time::timeout(left, self.is_ready(index)).await;
            if ready != Ok(true) || clean_up.epoch.as_ref().is_some_and(Epoch::is_over) {
                return;
            }
            let outcome = self.send_and_wait(index, &clean_up).await;
            if !self.is_worth_repeating(&outcome, clean_up.expires_by, patience_ends) {
                return;
            }
        }
    }

    /// Waits until a master answers. False when it has left the set.
    async fn is_ready(&self, index: MasterIndex) -> bool {
        while !self.dispatcher.trust().set().is_no_member(index) {
            if tokio::time::timeout(RETRY.1, self.dispatcher.ready(index)).await.is_ok() {
                return true;
            }
        }
        false
    }

    /// Sends a clean-up to one master once, and waits for the answer, however long that takes.
    async fn send_and_wait(&self, index: MasterIndex, clean_up: &CleanUpOp) -> Outcome {
        let (to, mut answers) = mpsc::unbounded_channel();
        let sink = Arc::new(Forward { to, read: |answer, _| answer });
        let call_kind = CallKind::CleanUp { timeout: self.dispatcher.timeout() };
        let CleanUpOp { lock, round_number, op, .. } = clean_up;
        self.dispatcher.send_op(index.into(), lock, *round_number, op, call_kind, sink);
        while let Some((_, answer)) = answers.recv().await {
            if !is_overdue(&answer) {
                return outcome(answer);
            }
        }
        Outcome::Pending
    }

    fn is_worth_repeating(&self, outcome: &Outcome, expires_by: Moment, patience_ends: Moment) -> bool {
        let until = match outcome {
            Outcome::Granted | Outcome::Held { .. } | Outcome::Absent => return false,
            Outcome::Pending | Outcome::NotAsked => return false,
            Outcome::Refused { reason: Refusal::Stale | Refusal::WrongType, .. } => return false,
            Outcome::Refused { .. } | Outcome::Answered(_) => expires_by.min(patience_ends),
            Outcome::Unreachable(_) | Outcome::Unknown(_) => expires_by,
        };
        self.clock().now() < until
    }
}

/// Receives the answers to the first message of a clean-up, and has it repeated where it takes
/// that.
struct CleanUpSink {
    engine: Arc<Engine>,
    clean_up: CleanUpOp,
    /// Until it is acknowledged.
    is_repeated: bool,
    votes: Option<Arc<Round>>,
    /// A shutdown waits while this lives.
    _under_way: TaskTrackerToken,
}

impl ReplySink for CleanUpSink {
    fn is_wanted(&self, _index: MasterIndex) -> bool {
        true
    }

    fn receive(&self, index: MasterIndex, answer: Result<Value, Failure>, _time: Option<u64>) {
        let is_last = !is_overdue(&answer);
        let outcome = outcome(answer);
        if self.is_repeated && is_last {
            let engine = &self.engine;
            let clean_up = &self.clean_up;
            let patience_ends = engine.clock().now() + REFUSED_FOR;
            if engine.is_worth_repeating(&outcome, clean_up.expires_by, patience_ends) {
                let repeating = engine.clone().repeat(index, clean_up.clone());
                let engine = engine.clone();
                self.engine.spawn(async move {
                    repeating.await;
                    engine.note_acknowledged(index);
                });
            } else {
                engine.note_acknowledged(index);
            }
        }
        if let Some(votes) = &self.votes {
            votes.vote(index, outcome.into(), self.engine.clock().now());
        }
    }
}

/// Whether the answer to a clean-up is still to come.
fn is_overdue(answer: &Result<Value, Failure>) -> bool {
    matches!(answer, Err(Failure::Unknown(Silence::TimedOut)))
}
