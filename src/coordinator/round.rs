//! One round: the same question to all masters at once, and the first decision wins.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use super::Coordinator;
use super::clean_up::{Effort, Notice};
use super::era::Era;
use super::first::Slot;
use super::hold::Hold;
use super::outbox::Parcel;
use super::places::Places;
use super::quorum::{Decision, decide, quorum, surely_lost};
use super::tokens::{Tokens, agree};
use crate::clock::Moment;
use crate::master::{Failure, Hears, Terms, Value};
use crate::protocol::{Op, Said, Seen, said};
use crate::sync::{Mutex, MutexGuard};
use crate::vote::{Outcome, Record, Refusal, Vote};

impl Coordinator {
    /// The same question of the owner of `hold` to all masters. What was not sent yet when the round is withdrawn, or when
    /// `era` is over, is not sent any more.
    pub(super) fn ask(
        self: &Arc<Self>,
        hold: &Hold,
        number: u64,
        op: &Op,
        terms: Terms,
        era: Option<Era>,
    ) -> Round {
        self.ask_some(Places::all(self.masters.len()), hold, number, op, terms, era)
    }

    /// The same, to some of the masters.
    pub(super) fn ask_some(
        self: &Arc<Self>,
        places: Places,
        hold: &Hold,
        number: u64,
        op: &Op,
        terms: Terms,
        era: Option<Era>,
    ) -> Round {
        let (round, trusted) = (self.round(&hold.site, era), self.trusted_for(op));
        let send = |op: &Op, places| {
            let words = Arc::new(self.words(hold, number, op, trusted));
            self.outbox.send(Parcel::new(hold.kind.script(), words, terms, round.ballots.clone(), places));
        };
        match op {
            // What was watched on one master says nothing of another.
            Op::Acquire { .. } if self.trust.is_strict() => {
                for place in places.iter() {
                    let watched = self.trust.watched.over(place, &hold.site);
                    send(&op.clone().watched(watched), [place].into_iter().collect());
                }
            }
            _ => send(op, places),
        }
        for place in Places::all(self.masters.len()).without(places).iter() {
            round.ballots.need_not_ask(place, "its clock is off");
        }
        round
    }

    /// Whether a quorum granted whose clocks agree: one may have been seen to be off since its master's vote.
    pub(super) fn is_granted_in_time(&self, round: &Round) -> bool {
        self.trust.how_many_agree(round.granted().iter()) >= quorum(self.masters.len())
    }

    /// A round in which nobody was asked yet.
    pub(super) fn round(self: &Arc<Self>, name: &Arc<str>, era: Option<Era>) -> Round {
        let masters = self.names.len();
        let pending = || Ballot { outcome: Outcome::Pending, token: 0, seen: None, latency: Duration::ZERO };
        let ballots: Box<[Ballot]> = std::iter::repeat_with(pending).take(masters).collect();
        let counted =
            Counted { ballots, granted: 0, not_yours: 0, pending: masters, waiter: None, later: None };
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
    /// What is done about votes that come when a lease has begun.
    later: Option<Later>,
}

/// What becomes of the votes of an acquire when its lease has begun, of those to come, too.
pub(super) struct Later {
    /// The lease's token.
    pub(super) token: u64,
    /// Undoes a grant that is none of the lease's: of a higher token, or by a clock that is off.
    pub(super) undo: Notice,
    /// Gives up the place of the acquire before, and on which masters it was to be taken over.
    pub(super) before: Option<(Notice, Places)>,
}

/// Who is told that what it waits for is reached.
enum Waiter {
    Task(Waker),
    /// A first attempt, which has to know at once.
    First(Arc<Slot>),
}

/// One master's part.
struct Ballot {
    outcome: Outcome,
    /// The token of a new grant, or of the one that the lock is held by; 0 where it is not told.
    token: u64,
    seen: Option<Arc<Seen>>,
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

    /// What each master told, that was asked about a name.
    pub(super) fn seen(&self) -> Vec<Option<Arc<Seen>>> {
        self.ballots.counted().ballots.iter().map(|ballot| ballot.seen.clone()).collect()
    }

    /// The masters that granted.
    pub(super) fn granted(&self) -> Places {
        self.places(|outcome| *outcome == Outcome::Granted)
    }

    /// The masters where a higher token than this is in the way. No round of a client is as high.
    pub(super) fn stale_by_token(&self, token: u64) -> Places {
        self.ballots.counted().places(|ballot| {
            matches!(ballot.outcome, Outcome::Refused { reason: Refusal::Stale, .. }) && ballot.token > token
        })
    }

    /// A lease has begun: deals with the votes that are there, and with those to come.
    pub(super) fn deal_with(&self, later: Later) {
        let due = {
            let mut counted = self.ballots.counted();
            counted.later = Some(later);
            counted.due(Places::all(counted.ballots.len()))
        };
        self.ballots.see_to(due);
    }

    /// How many masters have such an outcome.
    pub(super) fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        self.places(wanted).len()
    }

    /// The masters with such an outcome.
    pub(super) fn places(&self, wanted: impl Fn(&Outcome) -> bool) -> Places {
        self.ballots.counted().places(|ballot| wanted(&ballot.outcome))
    }
}

impl BallotBox {
    /// Counts a master's vote, its first one.
    pub(super) fn vote(&self, place: usize, said: Said, heard: Moment) {
        let Said { outcome, token, seen, .. } = said;
        let ballot = Ballot { outcome, token, seen, latency: heard.since(self.sent) };
        let (waiter, due) = {
            let mut counted = self.counted();
            if !counted.vote(place, ballot) {
                return;
            }
            (counted.reached(), counted.due([place].into_iter().collect()))
        };
        self.tell(waiter); // unlocked
        self.see_to(due);
    }

    fn see_to(&self, due: Vec<(Places, Notice)>) {
        for (places, notice) in due {
            self.engine.tell(places, notice, Effort::UntilDone, None);
        }
    }

    /// There is nothing to ask this master.
    pub(super) fn need_not_ask(&self, place: usize, why: &str) {
        self.vote(place, Outcome::Unreachable(why.into()).into(), self.sent);
    }

    /// What a master said, as far as its clock lets it be trusted.
    fn weigh(&self, place: usize, mut said: Said, time: Option<u64>, heard: Moment) -> Said {
        let trust = &self.engine.trust;
        // One that does not know this connection any more has forgotten what was watched there.
        let Some(time) = time else { return said };
        if time > 0
            && let Err(astray) = trust.hear_time(place, self.sent, heard, time)
            && said.outcome == Outcome::Granted
        {
            let detail = astray.to_string().into();
            said.outcome = Outcome::Refused { reason: Refusal::Clock, detail };
        }
        if let Some((version, watch)) = said.watch.as_ref().filter(|_| trust.is_strict()) {
            let left = trust.watched.see(place, &self.name, version, *watch);
            if let Outcome::Held { remaining, .. } = &mut said.outcome {
                *remaining = Some(left); // no clock of a master ends it
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
        self.counted.lock()
    }
}

impl Hears for BallotBox {
    fn wants(&self) -> bool {
        !self.withdrawn.load(Ordering::Relaxed) && !self.era.as_ref().is_some_and(Era::is_over)
    }

    fn hear(&self, place: usize, answer: Result<Value, Failure>, time: Option<u64>) {
        let heard = self.engine.clock.now();
        let forgot = answer.is_ok() && time.is_none();
        let mut said = self.weigh(place, said(answer), time, heard);
        said.outcome.since(said.token, || self.engine.time());
        if forgot {
            self.engine.trust.doubt(place);
        }
        if forgot && said.seen.is_some() {
            let detail =
                "FORGOT this master restarted, or lost keys: what it tells may be what is left".into();
            said = Outcome::Refused { reason: Refusal::Forgot, detail }.into();
        }
        self.vote(place, said, heard);
    }
}

impl Ballot {
    /// Whether it is a grant, or was one, that is none of a lease with this token.
    fn is_stray(&self, token: u64) -> bool {
        match self.outcome {
            Outcome::Granted => self.token > token,
            Outcome::Refused { reason: Refusal::Clock, .. } => self.token > 0,
            _ => false,
        }
    }

    /// Whether a place in the queue that it was to take over is there still.
    fn leaves_place(&self) -> bool {
        self.outcome != Outcome::Pending && !self.outcome.takes_over()
    }
}

impl Counted {
    /// Whether it is this master's first vote: no other counts.
    fn vote(&mut self, place: usize, ballot: Ballot) -> bool {
        let known = &mut self.ballots[place];
        if known.outcome != Outcome::Pending {
            return false;
        }
        self.granted += usize::from(ballot.outcome == Outcome::Granted);
        self.not_yours += usize::from(ballot.outcome.is_definite_no());
        self.pending -= 1;
        *known = ballot;
        true
    }

    /// The masters with such a ballot.
    fn places(&self, wanted: impl Fn(&Ballot) -> bool) -> Places {
        self.ballots.iter().enumerate().filter(|(_, ballot)| wanted(ballot)).map(|(place, _)| place).collect()
    }

    /// What these masters are to be told of their votes, if a lease has begun.
    fn due(&self, masters: Places) -> Vec<(Places, Notice)> {
        let Some(Later { token, undo, before }) = &self.later else { return Vec::new() };
        let strays = Some((self.places(|ballot| ballot.is_stray(*token)), undo));
        let left = before.as_ref().map(|(leave, on)| (on.and(self.places(Ballot::leaves_place)), leave));
        let due = [strays, left].into_iter().flatten().map(|(on, notice)| (on.and(masters), notice));
        due.filter(|(on, _)| !on.is_empty()).map(|(on, notice)| (on, notice.clone())).collect()
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
