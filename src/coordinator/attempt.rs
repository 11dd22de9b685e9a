//! One attempt to acquire: a round, and what it leaves on the masters, owned until there is a grant.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::MutexGuard;
use tokio_util::sync::CancellationToken;

use super::arbitration::{Ruling, rule};
use super::clean_up::{Effort, Withdrawal};
use super::grant::Grant;
use super::hold::{Count, Hold};
use super::kind::{Keys, Kind, Place};
use super::quorum::Decision;
use super::round::Round;
use super::{Coordinator, verdict};
use crate::error::Error;
use crate::lease;
use crate::master::Terms;
use crate::renewal::{Course, Renewal};
use crate::vote::{Outcome, Vote};
use crate::wake::Bell;

/// How often a waiter that has most masters of a split vote asks again before it withdraws after all: the others may
/// have died.
const PERSISTENCE: u32 = 3;

/// What an attempt asks for.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) ttl: Duration,
    /// The per-master time-out.
    pub(super) timeout: Duration,
    /// How the lease is renewed, if it is.
    pub(super) renewal: Option<Renewal>,
    /// The place to take in the queue where it is refused.
    pub(super) place: Option<Place>,
}

/// One attempt, from before anything is sent until a grant exists. Dropped before that, at any moment, it undoes on the
/// masters whatever it did or may yet have done.
pub(super) struct Attempt<'a> {
    engine: &'a Arc<Coordinator>,
    hold: &'a Arc<Hold>,
    count: MutexGuard<'a, Count>,
    ask: Ask,
    withdrawn: CancellationToken,
    /// The place to take over, until it is known where that came through.
    before: Option<Standing>,
    /// `None` when its votes have been dealt with.
    round: Option<Round>,
}

impl<'a> Attempt<'a> {
    /// Begins an attempt for the owner of `hold`. Where it is refused it takes over the place of `before`.
    pub(super) fn begin(
        engine: &'a Arc<Coordinator>,
        hold: &'a Arc<Hold>,
        mut count: MutexGuard<'a, Count>,
        ask: Ask,
        before: Option<Standing>,
    ) -> Self {
        give_up_if_lapsed(engine, hold, &mut count);
        let withdrawn = count.standing.child_token();
        let ticket = before.as_ref().map(|before| before.ticket.clone());
        let mut attempt = Self { engine, hold, count, ask, withdrawn, before, round: None };
        attempt.ask_masters(ticket.as_ref());
        attempt
    }

    fn ask_masters(&mut self, before: Option<&Arc<str>>) {
        let mut operation = self.hold.operation(self.count.holds + 1, self.ask.ttl, self.engine.next_round());
        (operation.place, operation.before) = (self.ask.place.as_ref(), before);
        let terms = Terms::Vote { timeout: self.ask.timeout, withdrawn: self.withdrawn.clone() };
        self.round = Some(self.engine.ask(&self.hold.kind.acquire(&operation), terms));
    }

    fn round(&mut self) -> &mut Round {
        self.round.as_mut().expect("it is taken at the end")
    }

    pub(super) async fn decision(&mut self) -> Decision {
        self.round().decision().await
    }

    pub(super) fn votes(&mut self) -> Arc<[Vote]> {
        self.round().votes()
    }

    /// Makes a grant of a round that was granted.
    pub(super) fn grant(mut self) -> Result<Grant, Error> {
        let round = self.round.as_ref().expect("it is taken at the end");
        let votes = round.votes();
        let deadline = lease::deadline(round.sent, self.ask.ttl);
        if self.engine.clock.now() >= deadline {
            return Err(verdict::no_quorum(&self.hold.name, votes, true));
        }
        // The lease that was to be re-entered may have lapsed meanwhile, and another owner come and gone.
        give_up_if_lapsed(self.engine, self.hold, &mut self.count);
        let round = self.round.take().expect("it was there");
        self.note_keys(&round);
        drop(self.standing_where(&round, |outcome| self.is_stray_place(outcome)));
        let Ask { ttl, renewal, .. } = self.ask;
        let generation = match self.count.holds {
            0 => {
                self.count.begin();
                self.engine.begin_lease(self.hold, Course::new(round.sent, ttl, renewal))
            }
            _ => {
                self.count.holds += 1;
                self.engine.prolong(self.hold, round.sent, ttl, renewal)
            }
        };
        self.engine.let_finish([round]);
        Ok(Grant::new(self.engine.clone(), self.hold.clone(), generation, votes))
    }

    /// A waiter was refused: it hears the other masters out, unless it is rung before, and where the vote was split it
    /// asks again if it is the one that goes on.
    pub(super) async fn settle(&mut self, bell: &Bell) -> Decision {
        self.hear_out(bell).await;
        for _ in 0..PERSISTENCE {
            let votes = self.votes();
            if rule(&votes, &self.hold.field) == Ruling::Withdraw {
                break;
            }
            tokio::time::sleep(slowest(&votes)).await; // for as long as the others need to withdraw
            let round = self.round.take().expect("it is taken at the end");
            self.note_keys(&round);
            self.engine.let_finish([round]);
            let ticket = self.ask.place.as_ref().map(|place| place.ticket.clone());
            self.ask_masters(ticket.as_ref()); // it may stand in some queues already
            if self.decision().await == Decision::Granted {
                return Decision::Granted;
            }
            self.hear_out(bell).await;
        }
        Decision::Denied
    }

    /// Waits for the votes that are missing. What is granted must not be kept from others for long.
    async fn hear_out(&mut self, bell: &Bell) {
        let votes = self.votes();
        let patience = match votes.iter().any(|vote| vote.outcome == Outcome::Granted) {
            true => slowest(&votes) * 2,
            false => self.ask.timeout,
        };
        let hearing = async {
            tokio::select! {
                () = bell.rung_by_quorum() => {}
                () = self.round().finish() => {}
            }
        };
        let _ = tokio::time::timeout(patience, hearing).await;
    }

    /// Takes back what was granted without being a lock, and keeps the place in the queue.
    pub(super) fn withdraw(mut self) -> Option<Standing> {
        let place = self.ask.place.clone()?; // otherwise its drop takes everything back
        let round = self.round.take()?;
        self.withdrawn.cancel();
        self.note_keys(&round);
        let efforts: Vec<_> = round.outcomes().map(Effort::to_undo).collect();
        if efforts.iter().any(Option::is_some) || self.count.touched != 0 {
            let from = masters_where(&round, |outcome| *outcome == Outcome::Granted);
            let withdrawal = Some(Withdrawal { place, from });
            self.engine.mirror(self.hold, &mut self.count, withdrawal, |master| efforts[master]);
        }
        drop(self.standing_where(&round, |outcome| self.is_stray_place(outcome) && !has_place(outcome)));
        let standing =
            self.standing_where(&round, |outcome| has_place(outcome) || *outcome == Outcome::Granted);
        self.engine.let_finish([round]);
        standing
    }

    /// Its place on the masters with such an outcome.
    fn standing_where(&self, round: &Round, wanted: impl Fn(&Outcome) -> bool) -> Option<Standing> {
        let ticket = self.ask.place.as_ref()?.ticket.clone();
        let (kind, keys) = (self.hold.kind, self.hold.keys.clone());
        Some(Standing { engine: self.engine.clone(), kind, keys, ticket, on: masters_where(round, wanted) })
    }

    /// Whether there may be a place that nothing else gives up: a release gives up that of an owner which is its own
    /// ticket.
    fn is_stray_place(&self, outcome: &Outcome) -> bool {
        let own = self.ask.place.as_ref().is_some_and(|place| place.ticket == self.hold.field);
        !own && (has_place(outcome) || matches!(outcome, Outcome::Pending | Outcome::Unknown(_)))
    }

    /// Remembers which masters may have the key now, and until when. The place before is left where it was not taken
    /// over.
    fn note_keys(&mut self, round: &Round) {
        if let Some(before) = self.before.take() {
            before.leave_where(round, is_not_taken_over);
        }
        for (place, outcome) in round.outcomes().enumerate() {
            if Effort::to_undo(outcome) == Some(Effort::UntilDone) {
                self.count.touch(place);
            }
        }
        let keys_end = lease::keys_end(round.sent, self.ask.ttl, self.ask.timeout);
        self.count.keys_end = self.count.keys_end.max(keys_end);
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let Some(round) = self.round.take() else { return };
        self.withdrawn.cancel();
        if let Some(before) = self.before.take() {
            // What is pending may not have been sent.
            before.leave_where(&round, |outcome| is_not_taken_over(outcome) || *outcome == Outcome::Pending);
        }
        self.note_keys(&round);
        let efforts: Vec<_> = round.outcomes().map(Effort::to_undo).collect();
        self.engine.mirror(self.hold, &mut self.count, None, |place| efforts[place]);
        drop(self.standing_where(&round, |outcome| has_place(outcome) || self.is_stray_place(outcome)));
        // Stragglers are listened to, so that a silent master is noticed; what they grant is undone already.
        self.engine.let_finish([round]);
    }
}

/// The place in the masters' queues of a waiter that is not asking at the moment. Dropping it gives it up.
pub(super) struct Standing {
    engine: Arc<Coordinator>,
    kind: &'static dyn Kind,
    keys: Keys,
    ticket: Arc<str>,
    /// The masters where it may have a place, by theirs among the masters.
    on: u16,
}

impl Standing {
    /// An attempt took it over, but not on the masters with such an outcome.
    fn leave_where(mut self, round: &Round, not_taken_over: impl Fn(&Outcome) -> bool) {
        self.on &= masters_where(round, not_taken_over);
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        if self.on != 0 {
            self.engine.leave(self.kind, &self.keys, &self.ticket, self.on);
        }
    }
}

/// The masters with such an outcome, by their place.
fn masters_where(round: &Round, wanted: impl Fn(&Outcome) -> bool) -> u16 {
    round.outcomes().enumerate().fold(0, |on, (i, outcome)| on | u16::from(wanted(outcome)) << i)
}

fn has_place(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Held { ahead: Some(_), .. })
}

/// Whether the master may not have heard that the place before is given up, or not have done it: one that refuses writes
/// still says who holds the lock.
fn is_not_taken_over(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Granted | Outcome::Pending) && !has_place(outcome)
}

/// Where the lease is over or given up, its guards have lost their holds, and what follows is a new lease.
fn give_up_if_lapsed(engine: &Coordinator, hold: &Arc<Hold>, count: &mut Count) {
    if count.holds > 0 && !hold.stands(engine.clock.now()) {
        count.give_up();
        engine.supersede(hold);
    }
}

/// How long the slowest master took that has voted.
fn slowest(votes: &[Vote]) -> Duration {
    let answered =
        votes.iter().filter(|vote| matches!(vote.outcome, Outcome::Granted | Outcome::Held { .. }));
    answered.map(|vote| vote.latency).max().unwrap_or_default()
}
