//! One round: the votes of all masters on one operation, and the first decision wins. Nothing here
//! sends.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use super::effort::Effort;
use super::hold::Epoch;
use super::master_set::MasterSet;
use super::quorum::{Decision, decide, quorum, surely_lost};
use super::tokens::{Tokens, agree};
use super::wake_batcher::WakeBatcher;
use crate::clock::{Clock, Moment};
use crate::master::{Failure, ReplySink, Value};
use crate::protocol::{Decoded, Seen, decode};
use crate::sync::{Mutex, MutexGuard};
use crate::trust::Trust;
use crate::vote::{Outcome, Record, Refusal, Vote};

/// What all rounds of a client go by.
pub(super) struct Common {
    /// The masters' names.
    pub(super) names: Box<[Arc<str>]>,
    /// Which of them may vote.
    pub(super) trust: Arc<Trust>,
    pub(super) clock: Arc<dyn Clock>,
    /// Wakes the callers.
    pub(super) wake_batcher: Arc<WakeBatcher>,
}

impl Common {
    /// What time it is (since 1970), as most masters show.
    pub(super) fn time(&self) -> Duration {
        Duration::from_micros(self.trust.time())
    }
}

/// A round under way. It can be asked for its decision, or dropped, at any moment.
pub(crate) struct Round {
    /// Before anything was sent. Leases count from here.
    pub(crate) sent: Moment,
    tally: Arc<Tally>,
}

/// Where the votes of one round come in, whether or not somebody still waits for them.
pub(super) struct Tally {
    common: Arc<Common>,
    /// What the lock, or the permit, is watched under in strict mode.
    site: Arc<str>,
    sent: Moment,
    withdrawn: AtomicBool,
    epoch: Option<Epoch>,
    counted: Mutex<Counted>,
}

struct Counted {
    ballots: Box<[Ballot]>,
    granted: usize,
    not_yours: usize,
    pending: usize,
    /// Who waits, and for what.
    waiter: Option<(Until, Awaiting)>,
    /// What is done about votes that come when a lease has begun.
    later: Option<LateVotes>,
}

/// What becomes of the votes of an acquire when its lease has begun, of those to come, too.
pub(super) struct LateVotes {
    /// The lease's token.
    pub(super) token: u64,
    /// Tells the masters of a grant that is none of the lease's, for its token is higher or its
    /// clock is off; and those where a place in the queue was not taken over.
    pub(super) tell: Arc<dyn Fn(Due) + Send + Sync>,
}

/// The masters whose votes call for a clean-up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    /// Those with a grant that is none of the lease's.
    pub(super) strays: MasterSet,
    /// Those that were to take over a place, and did not.
    pub(super) left: MasterSet,
}

/// What to do when the awaited point of the round is reached.
enum Awaiting {
    Task(Waker),
    /// It has to know at once, where the votes come in.
    Callback(Box<dyn FnOnce(Decision) + Send>),
}

/// One master's part.
struct Ballot {
    outcome: Outcome,
    /// The token of a new grant, or of the one that the lock is held by; 0 if the reply has none.
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
    /// A round in which nobody was asked yet. What was not sent when `epoch` is over is not sent
    /// any more.
    pub(super) fn new(common: &Arc<Common>, site: &Arc<str>, epoch: Option<Epoch>) -> Self {
        let masters = common.names.len();
        let pending = || Ballot { outcome: Outcome::Pending, token: 0, seen: None, latency: Duration::ZERO };
        let ballots: Box<[Ballot]> = std::iter::repeat_with(pending).take(masters).collect();
        let counted =
            Counted { ballots, granted: 0, not_yours: 0, pending: masters, waiter: None, later: None };
        let sent = common.clock.now();
        let tally = Tally {
            common: common.clone(),
            site: site.clone(),
            sent,
            withdrawn: AtomicBool::new(false),
            epoch,
            counted: Mutex::new(counted),
        };
        Self { tally: Arc::new(tally), sent }
    }

    /// Whether a quorum granted whose clocks agree: one may have been seen to be off since its
    /// master's vote.
    pub(super) fn clocks_agree(&self) -> bool {
        let common = &self.tally.common;
        let granted = self.granted();
        common.trust.how_many_agree(granted.iter()) >= quorum(common.names.len())
    }

    /// Waits until a quorum has granted or can no longer be reached. Dropping the future loses no
    /// vote.
    pub(crate) async fn decision(&self) -> Decision {
        self.reach(Until::Decision).await;
        self.tally.counted().decision()
    }

    /// Waits for every vote.
    pub(crate) async fn finish(&self) {
        self.reach(Until::End).await;
    }

    /// Waits until the masters that did not say "not yours" are no quorum, or for every vote.
    pub(super) async fn certainty(&self) {
        self.reach(Until::Certainty).await;
    }

    async fn reach(&self, until: Until) {
        poll_fn(|context| {
            self.tally.common.wake_batcher.wake_rest();
            let mut counted = self.tally.counted();
            if counted.has_reached(until) {
                return Poll::Ready(());
            }
            counted.waiter = Some((until, Awaiting::Task(context.waker().clone())));
            Poll::Pending
        })
        .await;
    }

    /// Nothing of it that was not sent yet may be sent any more.
    pub(super) fn withdraw(&self) {
        self.tally.withdrawn.store(true, Ordering::Relaxed);
    }

    /// Where its votes come in.
    pub(super) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// The votes as they stand; those that have not come in are pending since the round began.
    pub(crate) fn votes(&self) -> Arc<[Vote]> {
        let waited = self.tally.common.clock.now().since(self.sent);
        let counted = self.tally.counted();
        let vote = |(master, ballot): (&Arc<str>, &Ballot)| Vote {
            master: master.clone(),
            outcome: ballot.outcome.clone(),
            latency: if ballot.outcome == Outcome::Pending { waited } else { ballot.latency },
        };
        self.tally.common.names.iter().zip(&counted.ballots).map(vote).collect()
    }

    /// The same, to be kept for long.
    pub(super) fn record(&self) -> Record {
        let waited = self.tally.common.clock.now().since(self.sent);
        let counted = self.tally.counted();
        Record::new(counted.ballots.iter().map(|Ballot { outcome, latency, .. }| match outcome {
            Outcome::Pending => (outcome, waited),
            _ => (outcome, *latency),
        }))
    }

    /// What the grants say about their token.
    pub(super) fn tokens(&self) -> Tokens {
        let counted = self.tally.counted();
        let granted = counted.ballots.iter().filter(|ballot| ballot.outcome == Outcome::Granted);
        agree(counted.ballots.len(), granted.map(|ballot| ballot.token))
    }

    /// What each master replied to an inspection.
    pub(super) fn seen(&self) -> Vec<Option<Arc<Seen>>> {
        self.tally.counted().ballots.iter().map(|ballot| ballot.seen.clone()).collect()
    }

    /// The masters that granted.
    pub(super) fn granted(&self) -> MasterSet {
        self.masters_with(|outcome| *outcome == Outcome::Granted)
    }

    /// The masters where a higher token than this is in the way. No round of a client is as high.
    pub(super) fn stale_by_token(&self, token: u64) -> MasterSet {
        self.tally.counted().masters_with(|ballot| {
            matches!(ballot.outcome, Outcome::Refused { reason: Refusal::Stale, .. }) && ballot.token > token
        })
    }

    /// A lease has begun: deals with the votes that are there, and with those to come.
    pub(super) fn deal_with(&self, later: LateVotes) {
        let tell = later.tell.clone();
        let due = {
            let mut counted = self.tally.counted();
            counted.later = Some(later);
            counted.due(MasterSet::all(counted.ballots.len()))
        };
        if let Some(due) = due {
            tell(due); // unlocked
        }
    }

    /// The masters that may have run the operation. An undo has to be acknowledged by each.
    pub(super) fn may_have_run(&self) -> MasterSet {
        self.masters_with(|outcome| Effort::to_undo(outcome) == Some(Effort::UntilAcknowledged))
    }

    /// How many masters have such an outcome.
    pub(super) fn count(&self, wanted: impl Fn(&Outcome) -> bool) -> usize {
        self.masters_with(wanted).len()
    }

    /// The masters with such an outcome.
    pub(super) fn masters_with(&self, wanted: impl Fn(&Outcome) -> bool) -> MasterSet {
        self.tally.counted().masters_with(|ballot| wanted(&ballot.outcome))
    }
}

impl Tally {
    /// Counts a master's vote, its first one.
    pub(super) fn vote(&self, index: usize, said: Decoded, heard: Moment) {
        let Decoded { outcome, token, seen, .. } = said;
        let ballot = Ballot { outcome, token, seen, latency: heard.since(self.sent) };
        let (waiter, later) = {
            let mut counted = self.counted();
            if !counted.vote(index, ballot) {
                return;
            }
            let due = counted.due([index].into_iter().collect());
            let later = due.zip(counted.later.as_ref().map(|later| later.tell.clone()));
            (counted.reached(), later)
        };
        self.tell(waiter); // unlocked
        if let Some((due, tell)) = later {
            tell(due);
        }
    }

    /// There is nothing to ask this master.
    pub(super) fn need_not_ask(&self, index: usize, why: &str) {
        self.vote(index, Outcome::Unreachable(why.into()).into(), self.sent);
    }

    /// What a master said, as far as its clock lets it be trusted.
    fn weigh(&self, index: usize, mut said: Decoded, time: Option<u64>, heard: Moment) -> Decoded {
        let trust = &self.common.trust;
        // Without a time it did not run the call, or it forgot this connection, and what was
        // watched there with it.
        let Some(time) = time else { return said };
        if time > 0
            && let Err(astray) = trust.hear_time(index, self.sent, heard, time)
            && said.outcome == Outcome::Granted
        {
            let detail = astray.to_string().into();
            said.outcome = Outcome::Refused { reason: Refusal::Clock, detail };
        }
        if let Some((version, watch)) = said.watch.as_ref().filter(|_| trust.is_strict()) {
            let left = trust.watched.see(index, &self.site, version, *watch);
            if let Outcome::Held { remaining, .. } = &mut said.outcome {
                *remaining = Some(left); // no clock of a master ends it
            }
        }
        said
    }

    /// Calls back with the decision when it is there, on the thread where the votes come in.
    pub(super) fn on_decision(&self, callback: impl FnOnce(Decision) + Send + 'static) {
        let waiter = {
            let mut counted = self.counted();
            counted.waiter = Some((Until::Decision, Awaiting::Callback(Box::new(callback))));
            counted.reached()
        };
        self.tell(waiter);
    }

    fn tell(&self, waiter: Option<Awaiting>) {
        match waiter {
            Some(Awaiting::Task(waker)) => self.common.wake_batcher.wake(waker),
            Some(Awaiting::Callback(callback)) => {
                let decision = self.counted().decision();
                callback(decision);
            }
            None => {}
        }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock()
    }
}

impl ReplySink for Tally {
    fn is_wanted(&self) -> bool {
        !self.withdrawn.load(Ordering::Relaxed) && !self.epoch.as_ref().is_some_and(Epoch::is_over)
    }

    fn receive(&self, index: usize, answer: Result<Value, Failure>, time: Option<u64>) {
        let heard = self.common.clock.now();
        let forgot = answer.is_ok() && time.is_none();
        let mut said = self.weigh(index, decode(answer), time, heard);
        said.outcome.set_held_for(said.token, || self.common.time());
        if forgot {
            self.common.trust.doubt(index);
        }
        if forgot && said.seen.is_some() {
            let detail =
                "FORGOT this master restarted, or lost keys: what it tells may be what is left".into();
            said = Outcome::Refused { reason: Refusal::Forgot, detail }.into();
        }
        self.vote(index, said, heard);
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
    fn vote(&mut self, index: usize, ballot: Ballot) -> bool {
        let known = &mut self.ballots[index];
        if known.outcome != Outcome::Pending {
            return false;
        }
        self.granted += usize::from(ballot.outcome == Outcome::Granted);
        self.not_yours += usize::from(ballot.outcome.is_definite_no());
        self.pending -= 1;
        *known = ballot;
        true
    }

    /// The masters whose ballot matches.
    fn masters_with(&self, wanted: impl Fn(&Ballot) -> bool) -> MasterSet {
        self.ballots.iter().enumerate().filter(|(_, ballot)| wanted(ballot)).map(|(index, _)| index).collect()
    }

    /// Which of these masters need a clean-up, if a lease has begun.
    fn due(&self, masters: MasterSet) -> Option<Due> {
        let token = self.later.as_ref()?.token;
        let strays = masters.and(self.masters_with(|ballot| ballot.is_stray(token)));
        let left = masters.and(self.masters_with(Ballot::leaves_place));
        (!strays.or(left).is_empty()).then_some(Due { strays, left })
    }

    /// The one that waits, if what it waits for is reached.
    fn reached(&mut self) -> Option<Awaiting> {
        let (until, _) = self.waiter.as_ref()?;
        if self.has_reached(*until) { self.waiter.take().map(|(_, waiter)| waiter) } else { None }
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
