//! One round: the same question to all masters at once, and the first decision wins.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use super::Coordinator;
use super::era::Era;
use super::first::Slot;
use super::outbox::Parcel;
use super::places::Places;
use super::quorum::{Decision, decide, surely_lost};
use super::reply::{self, Said};
use super::tokens::{Tokens, agree};
use crate::clock::Moment;
use crate::master::{Failure, Hears, Script, Terms, Value, Words};
use crate::vote::{Outcome, Record, Refusal, Vote};

impl Coordinator {
    /// The same question to all masters. What was not sent yet when the round is withdrawn, or when `era` is over, is not
    /// sent any more.
    pub(super) fn ask(
        self: &Arc<Self>,
        name: &Arc<str>,
        script: &'static Script,
        words: Words,
        terms: Terms,
        era: Option<Era>,
    ) -> Round {
        let round = self.round(name, era);
        let places = Places::all(self.masters.len());
        self.outbox.send(Parcel::new(script, Arc::new(words), terms, round.ballots.clone(), places));
        round
    }

    /// A round in which nobody was asked yet.
    pub(super) fn round(self: &Arc<Self>, name: &Arc<str>, era: Option<Era>) -> Round {
        let masters = self.names.len();
        let pending = || Ballot { outcome: Outcome::Pending, token: 0, latency: Duration::ZERO };
        let ballots: Box<[Ballot]> = std::iter::repeat_with(pending).take(masters).collect();
        let counted = Counted { ballots, granted: 0, not_yours: 0, pending: masters, waiter: None };
        let (sent, engine, name) = (self.clock.now(), self.clone(), name.clone());
        let (withdrawn, counted) = (AtomicBool::new(false), Mutex::new(counted));
        Round { ballots: Arc::new(BallotBox { engine, name, sent, withdrawn, era, counted }), sent }
    }
}

/// A round under way. It can be asked for its decision, or dropped, at any moment.
pub(crate) struct Round {
    /// Before anything was sent. Leases count from here.
    pub(crate) sent: Moment,
    ballots: Arc<BallotBox>,
}

/// Where the votes of one round come in, whether or not somebody still waits for them.
pub(super) struct BallotBox {
    engine: Arc<Coordinator>,
    name: Arc<str>,
    sent: Moment,
    withdrawn: AtomicBool,
    era: Option<Era>,
    counted: Mutex<Counted>,
}

struct Counted {
    ballots: Box<[Ballot]>,
    granted: usize,
    not_yours: usize,
    pending: usize,
    /// Who waits, and for what.
    waiter: Option<(Until, Waiter)>,
}

/// Who is told that what it waits for is reached.
enum Waiter {
    Task(Waker),
    /// A first attempt, which has to know at once.
    First(Arc<Slot>),
}

/// One master's part.
#[derive(Clone)]
struct Ballot {
    outcome: Outcome,
    /// The token of a new grant, or of the one that the lock is held by; 0 where it is not told.
    token: u64,
    latency: Duration,
}

/// What to wait for.
#[derive(Clone, Copy)]
enum Until {
    /// A quorum has granted or can no longer be reached.
    Decision,
    /// So many masters say "not yours" that the rest are no quorum, or every vote is in.
    Certainty,
    /// Every vote is in.
    End,
}

impl Round {
    /// Waits until a quorum has granted or can no longer be reached. Dropping the future loses no vote.
    pub(crate) async fn decision(&self) -> Decision {
        self.reach(Until::Decision).await;
        self.ballots.counted().decision()
    }

    /// Waits for every vote.
    pub(crate) async fn finish(&self) {
        self.reach(Until::End).await;
    }

    /// Waits until so many masters say "not yours" that the rest are no quorum, or for every vote.
    pub(super) async fn certainty(&self) {
        self.reach(Until::Certainty).await;
    }

    async fn reach(&self, until: Until) {
        poll_fn(|context| {
            self.ballots.engine.relay.pass_on();
            let mut counted = self.ballots.counted();
            if counted.has_reached(until) {
                return Poll::Ready(());
            }
            counted.waiter = Some((until, Waiter::Task(context.waker().clone())));
            Poll::Pending
        })
        .await;
    }

    /// Nothing of it that was not sent yet may be sent any more.
    pub(super) fn withdraw(&self) {
        self.ballots.withdrawn.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_withdrawn(&self) -> bool {
        self.ballots.withdrawn.load(Ordering::Relaxed)
    }

    /// Where its votes come in.
    pub(super) fn ballots(&self) -> &Arc<BallotBox> {
        &self.ballots
    }

    /// The votes as they stand; those that have not come in are pending since the round began.
    pub(crate) fn votes(&self) -> Arc<[Vote]> {
        let waited = self.ballots.engine.clock.now().since(self.sent);
        let counted = self.ballots.counted();
        let vote = |(master, ballot): (&Arc<str>, &Ballot)| Vote {
            master: master.clone(),
            outcome: ballot.outcome.clone(),
            latency: if ballot.outcome == Outcome::Pending { waited } else { ballot.latency },
        };
        self.ballots.engine.names.iter().zip(&counted.ballots).map(vote).collect()
    }

    /// The same, to be kept for long.
    pub(super) fn record(&self) -> Record {
        let waited = self.ballots.engine.clock.now().since(self.sent);
        let counted = self.ballots.counted();
        Record::new(counted.ballots.iter().map(|Ballot { outcome, latency, .. }| match outcome {
            Outcome::Pending => (outcome, waited),
            _ => (outcome, *latency),
        }))
    }

    /// What the grants say about their token.
    pub(super) fn tokens(&self) -> Tokens {
        let counted = self.ballots.counted();
        let granted = counted.ballots.iter().filter(|ballot| ballot.outcome == Outcome::Granted);
        agree(counted.ballots.len(), granted.map(|ballot| ballot.token))
    }

    /// The highest token by which an owner has the lock, of those that were told.
    pub(super) fn token_of(&self, owner: &str) -> u64 {
        let counted = self.ballots.counted();
        let its = counted.ballots.iter().filter(|ballot| match &ballot.outcome {
            Outcome::Held { owner: other, .. } => **other == *owner,
            _ => false,
        });
        its.map(|ballot| ballot.token).max().unwrap_or(0)
    }

    /// How many masters have such an outcome.
    pub(super) fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        self.places(wanted).len()
    }

    /// The masters with such an outcome.
    pub(super) fn places(&self, wanted: impl Fn(&Outcome) -> bool) -> Places {
        let counted = self.ballots.counted();
        let places = counted.ballots.iter().enumerate().filter(|(_, ballot)| wanted(&ballot.outcome));
        places.map(|(place, _)| place).collect()
    }
}

impl BallotBox {
    /// Counts a master's vote, its first one.
    pub(super) fn vote(&self, place: usize, said: Said, heard: Moment) {
        let Said { outcome, token, .. } = said;
        let latency = heard.since(self.sent);
        let waiter = self.counted().vote(place, Ballot { outcome, token, latency });
        self.tell(waiter); // unlocked
    }

    /// There is nothing to ask this master.
    pub(super) fn need_not_ask(&self, place: usize, why: &str) {
        self.vote(place, Outcome::Unreachable(why.into()).into(), self.sent);
    }

    /// What a master said, as far as its clock lets it be trusted.
    fn weigh(&self, place: usize, mut said: Said, time: Option<u64>, heard: Moment) -> Said {
        let Some(trust) = &self.engine.trust else { return said };
        if let Some(time) = time
            && let Err(astray) = trust.hear_time(place, self.sent, heard, time)
            && said.outcome == Outcome::Granted
        {
            let detail = astray.to_string().into();
            said.outcome = Outcome::Refused { reason: Refusal::Clock, detail };
        }
        if let Some((version, watch)) = said.watch.as_ref().filter(|_| trust.is_strict()) {
            let left = trust.watched.see(&self.name, version, *watch);
            if let Outcome::Held { count: 0, remaining, .. } = &mut said.outcome {
                *remaining = Some(left);
            }
        }
        said
    }

    /// Tells the decision to `slot` when it is there.
    pub(super) fn tell_decision(&self, slot: Arc<Slot>) {
        let waiter = {
            let mut counted = self.counted();
            counted.waiter = Some((Until::Decision, Waiter::First(slot)));
            counted.reached()
        };
        self.tell(waiter);
    }

    fn tell(&self, waiter: Option<Waiter>) {
        match waiter {
            Some(Waiter::Task(waker)) => self.engine.relay.wake(waker),
            Some(Waiter::First(slot)) => {
                let decision = self.counted().decision();
                slot.decide(decision, &self.engine.relay);
            }
            None => {}
        }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hears for BallotBox {
    fn wants(&self) -> bool {
        !self.withdrawn.load(Ordering::Relaxed) && !self.era.as_ref().is_some_and(Era::is_over)
    }

    fn hear(&self, place: usize, answer: Result<Value, Failure>, time: Option<u64>) {
        let heard = self.engine.clock.now();
        if let (Some(trust), Ok(_), None) = (&self.engine.trust, &answer, time) {
            trust.doubt(place);
        }
        self.vote(place, self.weigh(place, reply::said(answer), time, heard), heard);
    }
}

impl Counted {
    /// Answers whom to tell.
    fn vote(&mut self, place: usize, ballot: Ballot) -> Option<Waiter> {
        let known = &mut self.ballots[place];
        if known.outcome != Outcome::Pending {
            return None;
        }
        self.granted += usize::from(ballot.outcome == Outcome::Granted);
        self.not_yours += usize::from(ballot.outcome.is_definite_no());
        self.pending -= 1;
        *known = ballot;
        self.reached()
    }

    /// Whoever waits, if what it waits for is reached.
    fn reached(&mut self) -> Option<Waiter> {
        let (until, _) = self.waiter.as_ref()?;
        match self.has_reached(*until) {
            true => self.waiter.take().map(|(_, waiter)| waiter),
            false => None,
        }
    }

    fn decision(&self) -> Decision {
        let masters = self.ballots.len();
        decide(masters, self.granted, masters - self.granted - self.pending)
    }

    fn has_reached(&self, until: Until) -> bool {
        let enough = match until {
            Until::Decision => self.decision() != Decision::Open,
            Until::Certainty => surely_lost(self.ballots.len(), self.not_yours),
            Until::End => false,
        };
        enough || self.pending == 0
    }
}
