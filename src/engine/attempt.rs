//! One attempt to acquire: a round, and what it leaves on the masters, owned until there is a
//! grant.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use super::arbitration::{Ruling, rule};
use super::effort::Effort;
use super::grant::Grant;
use super::hold::{Epoch, Hold, HoldState, LeaseTerms};
use super::master_set::MasterSet;
use super::parts::Engine;
use super::permits::has_free;
use super::quorum::Decision;
use super::tally::{Due, LateVotes, Round, Tally};
use super::tokens::Tokens;
use super::undo::{Undo, Withdrawal};
use super::verdict;
use crate::error::Error;
use crate::lease;
use crate::master::CallKind;
use crate::owner::Owner;
use crate::protocol::{Arrival, Kind, Leaving, Op, Permit, Place};
use crate::renewal::{LeaseTimer, Renewal};
use crate::vote::{Outcome, Refusal, Vote};
use crate::wake::WakeHandle;

/// How often a waiter that has most masters of a split vote asks again before it withdraws after
/// all: the others may have died.
const PERSISTENCE: u32 = 3;

/// What an attempt asks for.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) ttl: Duration,
    /// The per-master time-out.
    pub(super) timeout: Duration,
    /// For how long the lock is kept from others should its lease end without a release.
    pub(super) delay: Duration,
    /// What others are told of the holder; may be empty.
    pub(super) label: Arc<str>,
    /// How the lease is renewed, if it is.
    pub(super) renewal: Option<Arc<Renewal>>,
    /// The place to take in the queue where it is refused.
    pub(super) place: Option<Place>,
    /// Since when its caller waits, if it does.
    pub(super) arrival: Option<Arrival>,
}

/// One attempt, from before anything is sent until a grant exists. Dropped before that, at any
/// moment and on any thread, it undoes on the masters whatever it did or may yet have done.
///
/// A waiter's place in the queues goes through its attempts: each takes over the place of the one
/// `before`, and takes its own (`ask.place`) where it is refused. A master that did not answer may
/// keep the old place, or one of an earlier round of this attempt (`stood`): it is told to give it
/// up. A grant ends with no place; a refusal with a [`QueuePlace`] for the next attempt.
pub(super) struct Attempt {
    engine: Arc<Engine>,
    hold: Arc<Hold>,
    state: OwnedMutexGuard<HoldState>,
    ask: Ask,
    /// The place to take over, until it is known where that came through.
    before: Option<QueuePlace>,
    /// The token that a majority has confirmed, where it was not the same from the start.
    confirmed: Option<u64>,
    /// The first round of its lease; 0 before that.
    first_round: u64,
    /// The masters where an earlier round of it may have left its place in the queue.
    stood: MasterSet,
    /// `None` when its votes have been dealt with.
    round: Option<Round>,
}

impl Attempt {
    /// Sends the first round of an attempt for the owner of `hold`. Where it is refused it takes
    /// over the place of `before`.
    pub(super) fn send(
        engine: &Arc<Engine>,
        hold: Arc<Hold>,
        mut state: OwnedMutexGuard<HoldState>,
        ask: Ask,
        before: Option<QueuePlace>,
    ) -> Self {
        give_up_if_lapsed(engine, &hold, &mut state);
        if state.holds == 0 && hold.kind.is_shared() {
            hold.epochs.end(); // a release that is still repeated would take what comes now
        }
        // An owner that enters again asks as for an extend, which takes over no place.
        let before = before.filter(|_| state.holds == 0);
        let ticket = before.as_ref().map(|before| before.ticket);
        let first_round = if state.holds == 0 { 0 } else { state.first_round };
        let mut attempt = Self {
            engine: engine.clone(),
            hold,
            state,
            ask,
            before,
            confirmed: None,
            first_round,
            stood: MasterSet::default(),
            round: None,
        };
        attempt.ask_masters(ticket);
        attempt
    }

    /// Sends a round: an acquire, or, for an owner that enters its lock again, an extend with one
    /// hold more.
    fn ask_masters(&mut self, before: Option<Owner>) {
        let engine = &self.engine;
        let hold = &self.hold;
        let holds = self.state.holds;
        let number = self.engine.dispatcher.next_round();
        let op = if holds == 0 {
            let place = self.ask.place;
            self.state.is_queued |= place.is_some_and(|place| place.ticket == hold.owner);
            self.first_round = if self.first_round == 0 { number } else { self.first_round };
            let ticket = place.map(|place| place.ticket);
            Op::Acquire {
                kept: self.kept(),
                label: self.ask.label.clone(),
                watched: String::new(),
                before,
                ticket,
                arrival: self.ask.arrival,
            }
        } else {
            let LeaseTerms { token, label, .. } = hold.lease().terms.clone();
            Op::Extend { holds: holds + 1, kept: self.kept(), label, token, heals: true, first: 0 }
        };
        let call_kind = CallKind::Vote { timeout: self.ask.timeout };
        let epoch = Some(Epoch::of(hold));
        self.round = Some(engine.dispatcher.ask(hold, number, &op, call_kind, epoch));
    }

    /// For how long the lock is to be kept from others.
    fn kept(&self) -> Duration {
        match self.state.holds {
            0 => lease::kept(self.ask.ttl, self.ask.delay),
            _ => lease::kept(self.ask.ttl, self.hold.lease().terms.delay),
        }
    }

    fn round(&self) -> &Round {
        self.round.as_ref().expect("it is taken at the end")
    }

    pub(super) async fn decision(&self) -> Decision {
        self.round().decision().await
    }

    /// Where its votes come in.
    pub(super) fn tally(&self) -> &Arc<Tally> {
        self.round().tally()
    }

    /// Whether the client was shut down meanwhile.
    pub(super) fn is_closed(&self) -> bool {
        self.engine.is_closed()
    }

    pub(super) fn votes(&self) -> Arc<[Vote]> {
        self.round().votes()
    }

    /// The error of an attempt that was not granted.
    pub(super) fn denied(&self) -> Error {
        verdict::denied(&self.hold.name, self.hold.permits(), self.votes())
    }

    /// Whether a round that was granted has its token, so that there is nothing more to ask.
    pub(super) fn has_token(&self) -> bool {
        self.confirmed.is_some() || self.state.holds > 0 || matches!(self.round().tokens(), Tokens::Agreed(_))
    }

    /// Makes a grant of a round that was granted, once a majority has the same token. Where it has
    /// not, for the last grant came to some of the masters only, or to several at the same time,
    /// the highest is written to all that granted.
    pub(super) async fn agree_and_grant(mut self) -> Result<Grant, Error> {
        if !self.has_token() {
            let patience = slowest(&self.votes()) * 2;
            let _ = tokio::time::timeout(patience, self.round().finish()).await; // there may be a higher one
        }
        if !self.has_token()
            && let Tokens::Split(highest) = self.round().tokens()
        {
            let hold = &self.hold;
            let engine = &self.engine;
            let kept = self.kept();
            let op = Op::Extend {
                holds: 1,
                kept,
                label: self.ask.label.clone(),
                token: highest,
                heals: false,
                first: self.first_round,
            };
            let call_kind = CallKind::Vote { timeout: self.ask.timeout };
            let epoch = Some(Epoch::of(hold));
            // Where a clock is off the grant does not count, and so it is not confirmed.
            let on = self.round().masters_with(|outcome| !is_off(outcome));
            let confirming =
                engine.dispatcher.ask_some(on, hold, engine.dispatcher.next_round(), &op, call_kind, epoch);
            let decision = confirming.decision().await;
            self.state.note_keys(confirming.may_have_run(), lease::expires_by(confirming.sent, kept));
            if decision != Decision::Granted {
                confirming.withdraw();
                return Err(verdict::no_quorum(&self.hold.name, confirming.votes(), false));
            }
            self.confirmed = Some(highest);
        }
        self.grant()
    }

    /// The token of what was granted.
    fn token(&self) -> u64 {
        match (self.confirmed, self.round().tokens()) {
            (Some(token), _) | (None, Tokens::Agreed(token) | Tokens::Split(token)) => token,
        }
    }

    /// Makes a grant of a round that was granted, and [has its token](Attempt::has_token).
    pub(super) fn grant(mut self) -> Result<Grant, Error> {
        self.check_that_it_counts()?;
        let token = self.token();
        let round = self.round.take().expect("it was there");
        let before = self.before.take().map(QueuePlace::into_undo);
        self.note_keys(&round);
        self.settle_places(&round);
        self.engine.dispatcher.trust().watched.forget(&self.hold.site);
        let sent = round.sent;
        let ttl = self.ask.ttl;
        let renewal = self.ask.renewal.take();
        let generation = if self.state.holds == 0 {
            self.state.begin(self.first_round);
            let tell = self.tell_later(before);
            round.deal_with(LateVotes { token, tell });
            let terms = LeaseTerms { token, delay: self.ask.delay, label: self.ask.label.clone() };
            self.engine.leases.begin(&self.hold, LeaseTimer::new(sent, ttl, renewal), terms)
        } else {
            self.state.holds += 1;
            self.engine.leases.prolong(&self.hold, sent, ttl, renewal)
        };
        Ok(Grant::new(self.engine.clone(), self.hold.clone(), generation, round.record()))
    }

    /// Looks whether a lease can begin by what was granted, or the one that stands can be entered
    /// again: time has passed since the votes.
    fn check_that_it_counts(&mut self) -> Result<(), Error> {
        let no_quorum = |late| Err(verdict::no_quorum(&self.hold.name, self.votes(), late));
        if !self.round().clocks_agree() {
            return no_quorum(false);
        }
        if self.engine.clock().now() >= lease::deadline(self.round().sent, self.ask.ttl) {
            return no_quorum(true);
        }
        // The lease that was to be re-entered may have lapsed meanwhile: what it has no new token
        // for is no new lease.
        let enters_again = self.state.holds > 0;
        give_up_if_lapsed(&self.engine, &self.hold, &mut self.state);
        if enters_again && self.state.holds == 0 {
            return Err(verdict::no_quorum(&self.hold.name, self.votes(), true));
        }
        Ok(())
    }

    /// Gives up the places in queues that are left, or notes them for the release.
    fn settle_places(&mut self, round: &Round) {
        self.note_left_places(round);
        self.give_up_place_on(self.stood.or(round.masters_with(|outcome| self.is_stray_place(outcome))));
        self.state.note_places(round.masters_with(has_place));
    }

    /// Undoes grants that are none of the lease's, and gives up the place of the acquire before
    /// where it was not taken over.
    fn tell_later(&self, before: Option<(Undo, MasterSet)>) -> Arc<dyn Fn(Due) + Send + Sync> {
        let engine = self.engine.clone();
        let undo = self.engine.undo_of_strays(&self.hold, &self.state);
        Arc::new(move |Due { strays, left }| {
            engine.tell(strays, undo.clone(), Effort::UntilAcknowledged, None);
            if let Some((leave, on)) = &before {
                engine.tell(on.and(left), leave.clone(), Effort::UntilAcknowledged, None);
            }
        })
    }

    /// A waiter was refused: it hears the other masters out, or until a quorum calls it; and by the
    /// votes that are there then it asks again where the vote was split and it is the one that goes
    /// on.
    pub(super) async fn settle(&mut self, bell: &WakeHandle) -> Decision {
        self.hear_out(bell).await;
        for _ in 0..PERSISTENCE {
            let votes = self.votes();
            if rule(&votes, &self.hold.owner.to_string()) == Ruling::Withdraw {
                break;
            }
            tokio::time::sleep(slowest(&votes)).await; // for as long as the others need to withdraw
            let round = self.round.take().expect("it is taken at the end");
            round.withdraw();
            self.note_keys(&round);
            let may_stand = round.masters_with(|outcome| has_place(outcome) || self.is_stray_place(outcome));
            self.stood = self.stood.or(may_stand);
            self.ask_masters(self.ask.place.map(|place| place.ticket)); // it takes over its own place
            if self.decision().await == Decision::Granted {
                return Decision::Granted;
            }
            self.hear_out(bell).await;
        }
        Decision::Denied
    }

    /// Waits for the votes that are missing. What is granted must not be kept from others for long.
    async fn hear_out(&self, bell: &WakeHandle) {
        let votes = self.votes();
        let patience = if votes.iter().any(|vote| vote.outcome == Outcome::Granted) {
            slowest(&votes) * 2
        } else {
            self.ask.timeout
        };
        let hearing = async {
            tokio::select! {
                biased;
                () = bell.woken_by_quorum() => {}
                () = self.round().finish() => {}
            }
        };
        let _ = tokio::time::timeout(patience, hearing).await;
    }

    /// Whether it was granted nowhere, and another permit may be free: there is nothing to settle.
    pub(super) fn is_elsewhere(&self) -> bool {
        let votes = self.votes();
        let has_some = votes.iter().any(|vote| vote.outcome == Outcome::Granted);
        !has_some && has_free(&votes, self.hold.permits())
    }

    /// Takes back what was granted without being a lock, and keeps the place in the queue.
    pub(super) fn withdraw(mut self) -> Option<QueuePlace> {
        // Otherwise its drop takes everything back, but for the holds of a lease that stands.
        let place = self.ask.place.filter(|_| self.state.holds == 0)?;
        let round = self.round.take()?;
        round.withdraw();
        self.note_keys(&round);
        let from = round.granted();
        self.note_left_places(&round);
        self.undo(&round, Some(Withdrawal { place, from }));
        let stands = round.masters_with(|outcome| has_place(outcome) || *outcome == Outcome::Granted);
        let strays = round.masters_with(|outcome| self.is_stray_place(outcome));
        self.give_up_place_on(self.stood.or(strays).without(stands));
        self.standing_on(stands)
    }

    /// Tells the masters what the owner has without this round.
    fn undo(&mut self, round: &Round, withdrawal: Option<Withdrawal>) {
        let once = round.masters_with(|outcome| Effort::to_undo(outcome) == Some(Effort::Once));
        if !once.is_empty() || !self.state.maybe_held_on.is_empty() {
            let leaving = Leaving::Undone(self.first_round);
            drop(self.engine.sync_hold(&self.hold, &mut self.state, leaving, withdrawal, once));
        }
    }

    /// Its place on these masters.
    fn standing_on(&self, on: MasterSet) -> Option<QueuePlace> {
        let ticket = self.ask.place?.ticket;
        let Hold { kind, name, permit, .. } = &*self.hold;
        let engine = self.engine.clone();
        let name = name.clone();
        Some(QueuePlace { engine, kind: *kind, name, permit: *permit, ticket, on })
    }

    /// Gives up its place on these masters.
    fn give_up_place_on(&self, on: MasterSet) {
        drop(self.standing_on(on));
    }

    /// Where an earlier round of it has left a place that this one, its last, did not take over:
    /// what gives up the owner's own ticket is to be told to those masters, and `stood` has them
    /// for another one.
    fn note_left_places(&mut self, round: &Round) {
        self.stood = self.stood.without(round.masters_with(Outcome::takes_over));
        if self.ask.place.is_some_and(|place| place.ticket == self.hold.owner) {
            self.state.note_places(std::mem::take(&mut self.stood));
        }
    }

    /// Whether there may be a place that nothing else gives up: a release gives up that of an owner
    /// which is its own ticket.
    fn is_stray_place(&self, outcome: &Outcome) -> bool {
        let own = self.ask.place.is_some_and(|place| place.ticket == self.hold.owner);
        !own && (has_place(outcome) || matches!(outcome, Outcome::Pending | Outcome::Unknown(_)))
    }

    /// Remembers which masters may have an entry now, and until when. The place before is left
    /// where it was not taken over.
    fn note_keys(&mut self, round: &Round) {
        if let Some(before) = self.before.take() {
            // What is pending may not have been sent, and is not any more.
            before.leave_where(round, |outcome| !outcome.takes_over());
        }
        let expires_by = lease::expires_by(round.sent, self.kept());
        self.state.note_keys(round.may_have_run(), expires_by);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let Some(round) = self.round.take() else { return };
        round.withdraw();
        self.note_keys(&round);
        self.note_left_places(&round);
        self.undo(&round, None);
        let on = round.masters_with(|outcome| has_place(outcome) || self.is_stray_place(outcome));
        self.give_up_place_on(self.stood.or(on));
    }
}

/// The place in the masters' queues of a waiter that is not asking at the moment. Dropping it gives
/// it up.
pub(super) struct QueuePlace {
    engine: Arc<Engine>,
    kind: Kind,
    name: Arc<str>,
    /// Which permit was asked for.
    permit: Option<Permit>,
    ticket: Owner,
    /// The masters where it may have a place.
    on: MasterSet,
}

impl QueuePlace {
    /// What gives it up, and on which masters. From here on the caller sees to it.
    fn into_undo(mut self) -> (Undo, MasterSet) {
        let hold = Hold::new(self.name.clone(), self.ticket, self.kind, self.permit);
        (self.engine.undo_of_place(hold), std::mem::take(&mut self.on))
    }

    /// An attempt took it over, but not on the masters with such an outcome.
    fn leave_where(mut self, round: &Round, not_taken_over: impl Fn(&Outcome) -> bool) {
        self.on = self.on.and(round.masters_with(not_taken_over));
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if !self.on.is_empty() {
            let hold = Hold::new(self.name.clone(), self.ticket, self.kind, self.permit);
            self.engine.leave(hold, self.on);
        }
    }
}

fn is_off(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused { reason: Refusal::Clock, .. })
}

fn has_place(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Held { ahead: Some(_), .. })
}

/// Where the lease is over or given up, its guards have lost their holds, and what follows is a new
/// lease.
fn give_up_if_lapsed(engine: &Engine, hold: &Arc<Hold>, state: &mut HoldState) {
    if state.holds > 0 && !hold.stands(engine.clock().now()) {
        hold.give_up(state);
        engine.leases.supersede(hold);
    }
}

/// How long the slowest master took that has voted.
fn slowest(votes: &[Vote]) -> Duration {
    let answered =
        votes.iter().filter(|vote| matches!(vote.outcome, Outcome::Granted | Outcome::Held { .. }));
    answered.map(|vote| vote.latency).max().unwrap_or_default()
}
