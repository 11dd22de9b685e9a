//! One attempt to acquire: its rounds, and what they leave on the masters, which the attempt owns
//! until there is a grant.

use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio::sync::OwnedMutexGuard;

use super::clean_up::{CleanUpOp, Withdrawal};
use super::engine::Engine;
use super::grant::Grant;
use super::hold::{Hold, HoldState, LeaseTerms};
use super::queue_place::{Places, QueuePlace};
use super::request::Acquire;
use crate::error::{Error, Loss};
use crate::renewal::{LeaseTimer, Renewal};
use crate::round::{
    CleanUpDue, Contest, Decision, Epoch, Round, Tokens, VoteCleanUp, has_free_permit, verdict,
};
use crate::time::lease;
use crate::vote::{Outcome, Refusal, Vote};
use crate::wake::WakeHandle;
use crate::wire::{Arrival, Leaving, LockId, MasterSet, Op, PlaceWanted, Ticket};

/// How often the owner that goes on asks again for a read-write lock. A master names one of its
/// readers only, so readers and a writer may go on at the same time.
const READ_WRITE_ROUNDS: u32 = 3;

/// What a waiter's attempt has besides.
pub(super) struct WaiterTurn {
    /// Since when it waits.
    pub(super) arrival: Arrival,
    /// Takes a place in the queue of a master that refuses.
    pub(super) ticket: Option<Ticket>,
    /// The place to take over.
    pub(super) previous: Option<QueuePlace>,
}

/// One attempt, from before its first byte is sent until a grant exists. Dropped before that, at
/// any moment and on any thread, it undoes on the masters what it did or may yet do.
pub(super) struct Attempt {
    engine: Arc<Engine>,
    acquire: Arc<Acquire>,
    hold: Arc<Hold>,
    hold_state: OwnedMutexGuard<HoldState>,
    /// Since when the caller waits, if it does.
    arrival: Option<Arrival>,
    /// Takes a place in the queue of a master that refuses.
    ticket: Option<Ticket>,
    /// Its places in the masters' queues; none where it takes none.
    places: Places,
    /// The token that a majority has confirmed, where the grants differed in theirs.
    confirmed: Option<u64>,
    /// The number of the first round of its lease; 0 before that round.
    first_round: u64,
    /// The masters that may have written something by a call that they refused.
    maybe_written_on: MasterSet,
    /// The last round; `None` when its votes have been dealt with.
    round: Option<Arc<Round>>,
}

impl Attempt {
    /// Sends the first round of an attempt for the owner of `hold`.
    pub(super) fn send(
        engine: &Arc<Engine>,
        acquire: &Arc<Acquire>,
        hold: Arc<Hold>,
        mut hold_state: OwnedMutexGuard<HoldState>,
        turn: Option<WaiterTurn>,
    ) -> Self {
        give_up_if_lapsed(engine, &hold, &mut hold_state);
        let arrival = turn.as_ref().map(|turn| turn.arrival);
        let (ticket, previous) = turn.map_or((None, None), |turn| (turn.ticket, turn.previous));
        // An owner that enters again asks as for an extend, which takes over no place.
        let taken_over = previous.filter(|_| hold_state.holds == 0);
        let places = Places::new(engine, &hold, ticket.as_ref(), taken_over);
        let first_round = if hold_state.holds == 0 { 0 } else { hold_state.first_round };
        let mut attempt = Self {
            engine: engine.clone(),
            acquire: acquire.clone(),
            hold,
            hold_state,
            arrival,
            ticket,
            places,
            confirmed: None,
            first_round,
            maybe_written_on: MasterSet::default(),
            round: None,
        };
        if attempt.hold_state.holds == 0 && attempt.hold.lock.kind.is_shared() {
            attempt.hold.end_epoch(); // a release that is still repeated would remove what is granted now
        }
        // A waiter needs a place in every queue, so it asks all.
        let asks_quorum_first = attempt.arrival.is_none() && attempt.hold.lock.kind.asks_quorum_first();
        attempt.ask_masters(attempt.places.previous_ticket(), asks_quorum_first);
        attempt
    }

    /// Sends a round to the masters: an acquire, or, for an owner that enters its lock again, an
    /// extend with one hold more. An acquire takes over the place of `previous_ticket`.
    fn ask_masters(&mut self, previous_ticket: Option<Ticket>, asks_quorum_first: bool) {
        let hold = &self.hold;
        let dispatcher = &self.engine.dispatcher;
        let holds = self.hold_state.holds;
        let kept = self.kept();
        let round_number = dispatcher.next_round_number();
        let op = if holds == 0 {
            let ticket = self.ticket.clone();
            if ticket.as_ref().is_some_and(|ticket| ticket.owner == hold.lock.owner) {
                self.hold_state.ticket.clone_from(&ticket);
            }
            let first = self.first_round;
            self.first_round = if first == 0 { round_number } else { first };
            Op::Acquire {
                kept,
                label: self.acquire.request.label.clone(),
                before: previous_ticket,
                ticket,
                arrival: self.arrival,
                first,
            }
        } else {
            let LeaseTerms { token, label, .. } = hold.lease().terms.clone();
            Op::Extend { holds: holds + 1, kept, label, token, heals: true, first: 0 }
        };
        let epoch = Some(Epoch::of(hold));
        let timeout = self.acquire.timeout;
        self.round = Some(if asks_quorum_first {
            dispatcher.ask_quorum_first(&hold.lock, round_number, &op, timeout, epoch)
        } else {
            dispatcher.ask(&hold.lock, round_number, &op, timeout, epoch)
        });
    }

    /// For how long the masters are to keep the lock from others.
    fn kept(&self) -> Duration {
        let ttl = self.acquire.request.ttl;
        let delay = match self.hold_state.holds {
            0 => self.acquire.request.delay,
            _ => lease::delay_within(self.engine.settings.max_ttl, ttl, self.hold.lease().terms.delay),
        };
        lease::kept(ttl, delay)
    }

    /// The round whose votes count.
    pub(super) fn round(&self) -> &Arc<Round> {
        self.round.as_ref().expect("it is taken at the end")
    }

    /// Finds out in a task who goes on of those that split the vote, for as long as somebody waits
    /// for that. Returns the attempt if it was granted.
    pub(super) fn resolve_in_background(mut self) -> impl Future<Output = Result<Self, Error>> + use<> {
        let engine = self.engine.clone();
        let closing = engine.closing.clone();
        engine.run_while_wanted(async move {
            let decision = closing.run_until_cancelled(self.resolve_split_vote(None)).await;
            self.outcome(decision.unwrap_or(Decision::Denied))
        })
    }

    /// The attempt if it was granted, and otherwise why not.
    pub(super) fn outcome(self, decision: Decision) -> Result<Self, Error> {
        match decision {
            _ if self.engine.is_closed() => Err(Error::Closed),
            Decision::Granted => Ok(self),
            _ => Err(self.denied()),
        }
    }

    /// The error of an attempt that was not granted.
    pub(super) fn denied(&self) -> Error {
        let LockId { name, owner, .. } = &self.hold.lock;
        verdict::denied(name, self.hold.permits(), self.round().votes(), owner.client())
    }

    /// Whether a round that was granted has its token, so that there is nothing more to ask.
    pub(super) fn has_token(&self) -> bool {
        self.hold_state.holds > 0 || matches!(self.round().tokens(), Tokens::Agreed(_))
    }

    /// Makes a grant of a round that was granted and does not [have its token](Attempt::has_token),
    /// once a majority has the same one. Nothing renews it yet. Their tokens differ where the last
    /// grant reached some of the masters only, or where several owners were granted at the same
    /// time. Then the highest one is written to all that granted.
    pub(super) async fn agree_and_grant(mut self) -> Result<Grant, Error> {
        self.round().ask_deferred();
        let patience = slowest(&self.round().votes()) * 2;
        let _ = tokio::time::timeout(patience, self.round().until_all()).await; // a late vote may have a higher one
        if let Tokens::Split(highest) = self.round().tokens() {
            let dispatcher = &self.engine.dispatcher;
            let hold = &self.hold;
            let kept = self.kept();
            let op = Op::Extend {
                holds: 1,
                kept,
                label: self.acquire.request.label.clone(),
                token: highest,
                heals: false,
                first: self.first_round,
            };
            // The grant of a master whose clock is off does not count, and so is not confirmed.
            let on = self
                .round()
                .masters_with(|outcome| !matches!(outcome, Outcome::Refused { reason: Refusal::Clock, .. }));
            let round_number = dispatcher.next_round_number();
            let round = dispatcher.begin_round(dispatcher.voters(), Some(Epoch::of(hold)));
            let confirming =
                dispatcher.send_round(round, on, &hold.lock, round_number, &op, self.acquire.timeout);
            let decision = confirming.decision().await;
            self.hold_state.note_entries(confirming.may_have_run(), confirming.expires_by(kept));
            if decision != Decision::Granted {
                confirming.cancel();
                return Err(verdict::no_quorum(&self.hold.lock.name, confirming.votes(), false));
            }
            self.confirmed = Some(highest);
        }
        self.grant(None)
    }

    /// The token of what was granted.
    fn token(&self) -> u64 {
        match (self.confirmed, self.round().tokens()) {
            (Some(token), _) | (None, Tokens::Agreed(token) | Tokens::Split(token)) => token,
        }
    }

    /// Makes a grant of a round that was granted, and [has its token](Attempt::has_token).
    pub(super) fn grant(mut self, renewal: Option<Arc<Renewal>>) -> Result<Grant, Error> {
        self.check_that_it_counts()?;
        let entered_again =
            if self.hold_state.holds > 0 { Some(self.enter_again(renewal.clone())?) } else { None };
        let token = self.token();
        let round = self.round.take().expect("it was there");
        round.close();
        self.note_entries(&round);
        self.hold_state.granted_under = round.voters.view;
        let previous_place = self.places.settle(&round, &mut self.hold_state);
        let sent = round.sent;
        let generation = if let Some(generation) = entered_again {
            self.hold_state.holds += 1;
            generation
        } else {
            self.hold_state.begin(self.first_round);
            let clean_up = self.clean_up_of_votes(previous_place);
            round.clean_up_after(VoteCleanUp { token, clean_up });
            let terms = LeaseTerms {
                token,
                delay: self.acquire.request.delay,
                label: self.acquire.request.label.clone(),
                unasked: round.unasked(),
            };
            let timer = LeaseTimer::new(sent, self.acquire.request.ttl, renewal);
            self.engine.leases.begin(&self.hold, timer, terms)
        };
        Ok(Grant::new(self.engine.clone(), self.hold.clone(), generation, &round))
    }

    /// Checks that the grant counts now. If it did when the votes came in, and this owner came too
    /// late for it, the lease is lost; no longer TTL would help.
    fn check_that_it_counts(&self) -> Result<(), Error> {
        let ttl = self.acquire.request.ttl;
        let counts = self.round().check_that_it_counts(&self.hold.lock.name, ttl);
        counts.map_err(|error| match error {
            Error::NoQuorum { late: true, votes, .. }
                if self.hold_state.holds == 0 && self.round().was_granted_within(ttl) =>
            {
                self.hold.lost_error(Loss::Expired, &votes)
            }
            other => other,
        })
    }

    /// Prolongs the lease that the owner enters again, and returns its generation. Where the lease
    /// has lapsed meanwhile there is none to enter, and the extend that was sent brought no new
    /// token to begin another one with.
    fn enter_again(&mut self, renewal: Option<Arc<Renewal>>) -> Result<u64, Error> {
        let prolonged =
            self.engine.leases.prolong(&self.hold, self.round().sent, self.acquire.request.ttl, renewal);
        prolonged.ok_or_else(|| {
            give_up_if_lapsed(&self.engine, &self.hold, &mut self.hold_state);
            verdict::no_quorum(&self.hold.lock.name, self.round().votes(), true)
        })
    }

    /// What cleans up after votes when the lease has begun: it undoes grants that are none of the
    /// lease's, and gives up the previous place on masters that did not take it over.
    fn clean_up_of_votes(
        &self,
        previous_place: Option<(CleanUpOp, MasterSet)>,
    ) -> Arc<dyn Fn(CleanUpDue) + Send + Sync> {
        let engine = self.engine.clone();
        let undo = self.engine.clean_up_of_strays(&self.hold, &self.hold_state);
        Arc::new(move |CleanUpDue { strays, places_left }| {
            engine.clean_up_on(strays, undo.clone());
            if let Some((leave, on)) = &previous_place {
                engine.clean_up_on(on.and(places_left), leave.clone());
            }
        })
    }

    /// Whether to hear all votes after a refusal: the vote was split, or the attempt takes a place
    /// in the queues. Not if no master granted, and another permit may be free: that is asked for.
    pub(super) fn is_to_resolve(&self) -> bool {
        let votes = self.round().votes();
        let has_some = votes.iter().any(|vote| vote.outcome == Outcome::Granted);
        let has_other_permit = !has_some && has_free_permit(&votes, self.hold.permits());
        let is_split = || Contest::of(&votes, self.acquire.timeout).is_some();
        !has_other_permit && (self.ticket.is_some() || is_split())
    }

    /// After a refusal, waits for the other votes, or until a quorum calls this waiter. Where the
    /// vote was split, and this owner is the one that goes on, it asks again until one has a
    /// quorum. After a time-out it withdraws after all: the others may have died.
    pub(super) async fn resolve_split_vote(&mut self, wake_handle: Option<&WakeHandle>) -> Decision {
        self.hear_out(wake_handle).await;
        let gives_up = self.engine.clock().now() + self.acquire.timeout;
        let most = if self.hold.lock.kind.counterpart().is_some() { READ_WRITE_ROUNDS } else { u32::MAX };
        let me = self.hold.lock.owner.to_string();
        let mut pause = Duration::ZERO;
        for _ in 0..most {
            let votes = self.round().votes();
            let is_won =
                Contest::of(&votes, self.acquire.timeout).is_some_and(|contest| contest.is_won_by(&me));
            let left = gives_up.since(self.engine.clock().now());
            if !is_won || left.is_zero() {
                break;
            }
            pause = slowest(&votes).max(pause * 2).min(left); // for as long as the others need to withdraw
            tokio::time::sleep(pause).await;
            let round = self.end_round().expect("it is taken at the end");
            self.places.note_own(&round);
            self.ask_masters(self.ticket.clone(), false); // it takes over its own place
            if self.round().decision().await == Decision::Granted {
                return Decision::Granted;
            }
            self.hear_out(wake_handle).await;
        }
        Decision::Denied
    }

    /// Waits for the votes that are missing.
    async fn hear_out(&self, wake_handle: Option<&WakeHandle>) {
        tokio::select! {
            biased;
            Some(()) = OptionFuture::from(wake_handle.map(WakeHandle::until_woken_by_quorum)) => {}
            () = self.round().until_all() => {}
        }
    }

    /// Takes the round, of which nothing is sent any more, and notes what it may have left.
    fn end_round(&mut self) -> Option<Arc<Round>> {
        let round = self.round.take()?;
        round.cancel();
        self.places.leave_previous(&round);
        self.note_entries(&round);
        self.maybe_written_on = self.maybe_written_on.or(round.may_have_written());
        Some(round)
    }

    /// Takes back what some masters granted, and keeps the place in the queue.
    pub(super) fn withdraw(mut self) -> Option<QueuePlace> {
        // Where this returns early, the drop undoes the attempt, but for the holds of a lease that
        // stands.
        let ticket = self.ticket.take().filter(|_| self.hold_state.holds == 0)?;
        let place = PlaceWanted { ticket, arrival: self.arrival? };
        let round = self.end_round()?;
        let from = round.granted();
        self.places.note_left(&round, &mut self.hold_state);
        self.undo(Some(Withdrawal { place, from }));
        self.places.keep(&round)
    }

    /// Sends the holds that the owner has without this attempt.
    fn undo(&mut self, withdrawal: Option<Withdrawal>) {
        let once = self.maybe_written_on;
        if !once.is_empty() || !self.hold_state.maybe_held_on.is_empty() {
            let leaving = Leaving::Undone(self.first_round);
            drop(self.engine.send_holds_left(&self.hold, &mut self.hold_state, leaving, withdrawal, once));
        }
    }

    /// Notes which masters may have an entry after this round, and until when.
    fn note_entries(&mut self, round: &Round) {
        let expires_by = round.expires_by(self.kept());
        self.hold_state.note_entries(round.may_have_run(), expires_by);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let Some(round) = self.end_round() else { return };
        self.places.note_left(&round, &mut self.hold_state);
        self.undo(None);
        self.places.note_own(&round); // given up with `places`
    }
}

/// Ends a lease that has lapsed or was given up: its guards have lost their holds, and what follows
/// is a new lease.
fn give_up_if_lapsed(engine: &Engine, hold: &Arc<Hold>, hold_state: &mut HoldState) {
    if hold_state.holds > 0 && !hold.stands(engine.clock().now()) {
        hold.give_up(hold_state);
        engine.leases.supersede(hold);
    }
}

/// How long the slowest of the masters took that have voted.
fn slowest(votes: &[Vote]) -> Duration {
    let answered =
        votes.iter().filter(|vote| matches!(vote.outcome, Outcome::Granted | Outcome::Held { .. }));
    answered.map(|vote| vote.latency).max().unwrap_or_default()
}
