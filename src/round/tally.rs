//! A [`Round`] counts the votes of all masters on one operation. The first decision stands. Nothing
//! here sends, except to the [`Deferred`] masters of a round that asks a quorum first.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use super::caller_waker::CallerWaker;
use super::epoch::Epoch;
use super::preference::{Patience, Preference};
use super::quorum::{Decision, Tokens, agree, decide, quorum, surely_lost};
use super::verdict;
use crate::error::Error;
use crate::set::{Trust, Voters};
use crate::sync::{Mutex, MutexGuard};
use crate::time::{Clock, Moment, Schedule, lease};
use crate::vote::{Outcome, Record, Refusal, Silence, Vote};
use crate::wire::{Decoded, Failure, MasterIndex, MasterSet, ReplySink, Seen, Value, decode};

/// What all rounds of a client share.
pub(super) struct RoundContext {
    /// Which masters may vote.
    pub(super) trust: Arc<Trust>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Wakes the callers whose rounds are decided.
    pub(crate) caller_waker: Arc<CallerWaker>,
    /// Whom rounds ask first.
    pub(super) preference: Preference,
    /// When to ask the rest of a round.
    pub(super) hedges: Arc<Schedule<Weak<Round>>>,
}

impl RoundContext {
    /// What time it is (since 1970), as most masters show.
    pub(super) fn time(&self) -> Duration {
        Duration::from_micros(self.trust.time())
    }
}

/// A round under way: counts its votes, whether or not a caller still waits for them. The caller
/// may wait for the decision, or drop it, at any moment.
pub(crate) struct Round {
    context: Arc<RoundContext>,
    /// The masters whose votes count.
    pub(crate) voters: Arc<Voters>,
    /// Before anything was sent. Leases count from here.
    pub(crate) sent: Moment,
    /// What was not sent yet is not sent any more.
    cancelled: AtomicBool,
    epoch: Option<Epoch>,
    counted: Mutex<Counted>,
}

struct Counted {
    masters: MasterSet,
    /// Of each of these, in their order.
    cast: Box<[CastVote]>,
    granted: usize,
    not_yours: usize,
    /// How many have not answered of those that were asked.
    pending: usize,
    /// The masters that were not asked.
    unasked: MasterSet,
    /// What asks them, until the set of asked masters is closed.
    deferred: Option<Deferred>,
    /// The masters that were asked late, and when.
    asked_late: Option<(MasterSet, Moment)>,
    /// The masters that may have the lease, where this is the release of one that not all masters
    /// were asked for.
    released_by: Option<MasterSet>,
    decision: Decision,
    /// How much later it may have been by the masters' clocks than T says.
    width: Duration,
    /// The caller that waits, and what it waits for.
    waiter: Option<(Until, Awaiting)>,
    /// What to do about the votes once the lease has begun.
    vote_clean_up: Option<VoteCleanUp>,
}

/// The masters that a round asks only if those that it asked first do not decide it.
pub(crate) struct Deferred {
    pub(crate) masters: MasterSet,
    /// Of the release of a lease that these were not asked for: the masters that may have it. It
    /// asks the deferred ones as soon as one of those has not released it. An acquire asks them
    /// when all that it asked have answered.
    pub(crate) released_by: Option<MasterSet>,
    pub(crate) ask: Box<dyn FnOnce(MasterSet) + Send>,
    /// For how long to wait for the others.
    pub(crate) patience: Patience,
}

/// What to do about the votes of an acquire once its lease has begun, also about those to come.
pub(crate) struct VoteCleanUp {
    /// The lease's token.
    pub(crate) token: u64,
    /// Cleans up on these masters.
    pub(crate) clean_up: Arc<dyn Fn(CleanUpDue) + Send + Sync>,
}

/// The masters where an acquire leaves something that its lease does not cover.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CleanUpDue {
    /// Masters with a grant that is none of the lease's: its token is higher, or their clock is
    /// off.
    pub(crate) strays: MasterSet,
    /// Masters that did not take over the place of the attempt before.
    pub(crate) places_left: MasterSet,
}

/// How a caller is notified that what it waits for is reached.
enum Awaiting {
    Task(Waker),
    /// Called at once: on the thread where the deciding vote comes in, or on the caller's where it
    /// is in already.
    Callback(Box<dyn FnOnce(Decision) + Send>),
}

/// One master's part.
struct CastVote {
    said: Decoded,
    latency: Duration,
}

/// What a caller waits for.
#[derive(Clone, Copy)]
enum Until {
    /// A quorum has granted or can no longer be reached.
    Decision,
    /// So many masters say "not yours" that the rest are no quorum, or every vote is in.
    Certainty,
    /// Every vote of those that were asked is in.
    End,
}

impl Round {
    /// A round of which nothing was sent to these voters yet. What was not sent when `epoch` is
    /// over is not sent any more.
    pub(super) fn new(context: &Arc<RoundContext>, voters: Arc<Voters>, epoch: Option<Epoch>) -> Arc<Self> {
        let pending = || CastVote { said: Outcome::Pending.into(), latency: Duration::ZERO };
        let cast: Box<[CastVote]> = std::iter::repeat_with(pending).take(voters.len()).collect();
        let counted = Counted {
            masters: voters.masters,
            pending: voters.len(),
            unasked: MasterSet::default(),
            deferred: None,
            asked_late: None,
            released_by: None,
            decision: Decision::Open,
            cast,
            granted: 0,
            not_yours: 0,
            width: Duration::ZERO,
            waiter: None,
            vote_clean_up: None,
        };
        context.preference.begin();
        Arc::new(Self {
            context: context.clone(),
            voters,
            sent: context.clock.now(),
            cancelled: AtomicBool::new(false),
            epoch,
            counted: Mutex::new(counted),
        })
    }

    /// The time that it goes by is known to within this.
    pub(super) fn set_width(&self, width: Duration) {
        self.counted().width = width;
    }

    /// Checks that a round which granted `ttl` grants it now: time has passed since the votes.
    pub(crate) fn check_that_it_counts(&self, name: &Arc<str>, ttl: Duration) -> Result<(), Error> {
        let is_late = self.context.clock.now() >= lease::deadline(self.sent, ttl);
        if is_late || !self.clocks_agree() {
            return Err(verdict::no_quorum(name, self.votes(), is_late));
        }
        Ok(())
    }

    /// Whether a quorum had granted `ttl` before that was over.
    pub(crate) fn was_granted_within(&self, ttl: Duration) -> bool {
        let limit = lease::deadline(self.sent, ttl).since(self.sent);
        let in_time = |vote: &CastVote| vote.said.outcome == Outcome::Granted && vote.latency < limit;
        self.counted().masters_with(in_time).len() >= quorum(self.voters.len())
    }

    /// Whether a quorum granted whose clocks agree. A clock may have been found to be off since its
    /// master's vote.
    fn clocks_agree(&self) -> bool {
        let granted = self.granted();
        self.context.trust.how_many_agree(granted.iter()) >= quorum(self.voters.len())
    }

    /// When the entry of this round has surely ended, which was to be kept for `kept`.
    pub(crate) fn expires_by(&self, kept: Duration) -> Moment {
        lease::expires_by(self.sent, kept + self.counted().width)
    }

    /// Waits until a quorum has granted or can no longer be reached. Dropping the future loses no
    /// vote.
    pub(crate) async fn decision(&self) -> Decision {
        self.wait_for(Until::Decision).await;
        self.counted().decision
    }

    /// Waits for every vote of those that were asked.
    pub(crate) async fn until_all(&self) {
        self.wait_for(Until::End).await;
    }

    /// Waits until the masters that did not say "not yours" are no quorum, or for every vote.
    pub(crate) async fn until_certain(&self) {
        self.wait_for(Until::Certainty).await;
    }

    async fn wait_for(&self, until: Until) {
        poll_fn(|cx| {
            self.context.caller_waker.wake_rest();
            let mut counted = self.counted();
            if counted.is_reached(until) {
                return Poll::Ready(());
            }
            counted.waiter = Some((until, Awaiting::Task(cx.waker().clone())));
            Poll::Pending
        })
        .await;
    }

    /// Whether some of the votes are.
    pub(crate) fn is_outdated(&self) -> bool {
        !self.masters_with(is_outdated).is_empty()
    }

    /// Whether masters were not asked because the set has changed.
    pub(crate) fn has_moved(&self) -> bool {
        let has_moved =
            |outcome: &Outcome| matches!(outcome, Outcome::Refused { reason: Refusal::Moved, .. });
        !self.masters_with(has_moved).is_empty()
    }

    /// Cancels what was not sent yet.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.close();
    }

    /// Leaves some of the voters unasked, for as long as the others may decide it.
    pub(crate) fn defer(self: &Arc<Self>, deferred: Deferred) {
        let hedge_at = self.sent + deferred.patience.usual;
        self.context.preference.note_deferred();
        self.counted().defer(deferred);
        self.context.hedges.put(hedge_at, Arc::downgrade(self));
    }

    /// Closes the set of masters that are asked. Each acquire that defers masters has to be closed,
    /// as what asks them holds the round.
    pub(crate) fn close(&self) {
        let deferred = self.counted().deferred.take();
        drop(deferred); // unlocked
    }

    /// Asks the deferred masters, unless the set of masters that are asked is closed.
    pub(crate) fn ask_deferred(&self) {
        let deferred = self.counted().take_deferred(self.context.clock.now());
        ask(deferred);
    }

    /// Asks the deferred masters if one of the others is silent, or at the latest moment.
    pub(super) fn hedge(self: &Arc<Self>) {
        let now = self.context.clock.now();
        let deferred = {
            let mut counted = self.counted();
            let Some(Deferred { patience, .. }) = counted.deferred else { return };
            let latest = self.sent + patience.latest;
            if counted.decision != Decision::Open {
                return;
            }
            let slow = counted.masters_with(|vote| vote.said.outcome == Outcome::Pending);
            let silent = self.context.preference.mark_silent(slow, patience.usual, now);
            if now < latest && silent.is_empty() {
                let again = latest.min(now + patience.usual);
                self.context.hedges.put(again, Arc::downgrade(self));
                return;
            }
            self.context.preference.note_hedge();
            counted.take_deferred(now)
        };
        ask(deferred);
    }

    /// The masters that never had the lease, and have nothing to release: as good as those that
    /// released it. None if one that may have had it has it no more: then somebody took it away.
    pub(crate) fn never_had(&self) -> MasterSet {
        self.counted().never_had()
    }

    /// The masters that were not asked.
    pub(crate) fn unasked(&self) -> MasterSet {
        self.counted().unasked
    }

    /// The votes so far; the others are pending since the round began.
    pub(crate) fn votes(&self) -> Arc<[Vote]> {
        let waited = self.context.clock.now().since(self.sent);
        let counted = self.counted();
        let vote = |(master, vote): (&Arc<str>, &CastVote)| Vote {
            master: master.clone(),
            outcome: vote.said.outcome.clone(),
            latency: vote.latency(waited),
        };
        self.voters.names.iter().zip(&counted.cast).map(vote).collect()
    }

    /// The votes, in the form in which a guard keeps them.
    pub(crate) fn record(&self) -> Record {
        let waited = self.context.clock.now().since(self.sent);
        let counted = self.counted();
        Record::new(counted.cast.iter().map(|vote| (&vote.said.outcome, vote.latency(waited))))
    }

    /// Whether the grants agree on a token.
    pub(crate) fn tokens(&self) -> Tokens {
        let counted = self.counted();
        let granted = counted.cast.iter().filter(|vote| vote.said.outcome == Outcome::Granted);
        agree(counted.cast.len(), granted.map(|vote| vote.said.token))
    }

    /// What each master replied to an inspection.
    pub(crate) fn seen(&self) -> Vec<Option<Arc<Seen>>> {
        self.counted().cast.iter().map(|vote| vote.said.seen.clone()).collect()
    }

    /// The masters that granted.
    pub(crate) fn granted(&self) -> MasterSet {
        self.masters_with(|outcome| *outcome == Outcome::Granted)
    }

    /// The masters that refuse because they have a higher token than this. A `stale` reply carries
    /// a round or a token; tokens are times, far above any round, so a number above `token` is one.
    pub(crate) fn stale_by_token(&self, token: u64) -> MasterSet {
        self.counted().masters_with(|CastVote { said, .. }| {
            matches!(said.outcome, Outcome::Refused { reason: Refusal::Stale, .. }) && said.token > token
        })
    }

    /// The masters whose grants do not count because their clocks are off.
    pub(super) fn discounted(&self) -> MasterSet {
        self.counted().masters_with(|vote| vote.said.is_discounted)
    }

    /// The masters that may have run an acquire or an extend: each has to acknowledge an undo.
    pub(crate) fn may_have_run(&self) -> MasterSet {
        let may_have = |outcome: &Outcome| match outcome {
            Outcome::Granted | Outcome::Unknown(_) | Outcome::Pending => true,
            Outcome::Held { .. } | Outcome::Absent | Outcome::Answered(_) => false,
            Outcome::Refused { .. } | Outcome::Unreachable(_) | Outcome::NotAsked => false,
        };
        // A vote that was discounted does not count, but the master has granted.
        self.masters_with(may_have).or(self.discounted())
    }

    /// The masters that refused, and may have written something: Lua does not roll back. An undo is
    /// sent to them once.
    pub(crate) fn may_have_written(&self) -> MasterSet {
        let may_have = |outcome: &Outcome| match outcome {
            Outcome::Refused { reason, .. } => !reason.comes_first(),
            _ => false,
        };
        self.masters_with(may_have)
    }

    /// Once the lease has begun: cleans up after the votes that are there, and after each to come.
    pub(crate) fn clean_up_after(&self, vote_clean_up: VoteCleanUp) {
        let clean_up = vote_clean_up.clean_up.clone();
        let due = {
            let mut counted = self.counted();
            counted.vote_clean_up = Some(vote_clean_up);
            counted.clean_up_due(counted.masters)
        };
        if let Some(due) = due {
            clean_up(due); // unlocked
        }
    }

    /// The masters with such an outcome.
    pub(crate) fn masters_with(&self, wanted: impl Fn(&Outcome) -> bool) -> MasterSet {
        self.counted().masters_with(|vote| wanted(&vote.said.outcome))
    }

    /// Counts a master's vote, if it is the first of this master.
    pub(crate) fn vote(&self, index: MasterIndex, said: Decoded, heard: Moment) {
        self.count(index, said, heard, true);
    }

    fn count(&self, index: MasterIndex, said: Decoded, heard: Moment, was_asked: bool) {
        let vote = CastVote { said, latency: heard.since(self.sent) };
        let (waiter, clean_up, deferred) = {
            let mut counted = self.counted();
            if was_asked {
                let asked = counted.asked(index, self.sent);
                self.context.preference.note(index, &vote.said.outcome, asked, heard);
            }
            if !counted.vote(index, vote) {
                return;
            }
            if counted.note_decision() {
                self.context.preference.end();
            }
            let deferred =
                if counted.is_to_ask_deferred(index) { counted.take_deferred(heard) } else { None };
            let due = counted.clean_up_due(index.into());
            let clean_up = due.zip(counted.vote_clean_up.as_ref().map(|late| late.clean_up.clone()));
            (counted.take_waiter(), clean_up, deferred)
        };
        ask(deferred); // unlocked
        self.notify(waiter);
        if let Some((due, clean_up)) = clean_up {
            clean_up(due);
        }
    }

    /// Counts a master that is not asked.
    pub(crate) fn count_unasked(&self, index: MasterIndex, reason: Refusal, why: &str) {
        let said = Outcome::Refused { reason, detail: why.into() }.into();
        self.count(index, said, self.sent, false);
    }

    /// What a master's reply counts for: a grant counts only if the master's clock can be trusted.
    fn weigh(&self, index: MasterIndex, mut said: Decoded, time: Option<u64>, heard: Moment) -> Decoded {
        if let Some(time) = time.filter(|time| *time > 0)
            && let Err(astray) = self.context.trust.hear_time(index, self.sent, heard, time)
            && said.outcome == Outcome::Granted
        {
            let detail = astray.to_string().into();
            said.outcome = Outcome::Refused { reason: Refusal::Clock, detail };
            said.is_discounted = true;
        }
        said
    }

    /// Calls `callback` with the decision, on the thread where the deciding vote comes in, or on
    /// this one where it is in already.
    pub(crate) fn call_on_decision(&self, callback: impl FnOnce(Decision) + Send + 'static) {
        let waiter = {
            let mut counted = self.counted();
            counted.waiter = Some((Until::Decision, Awaiting::Callback(Box::new(callback))));
            counted.take_waiter()
        };
        self.notify(waiter);
    }

    fn notify(&self, waiter: Option<Awaiting>) {
        match waiter {
            Some(Awaiting::Task(waker)) => self.context.caller_waker.wake(waker),
            Some(Awaiting::Callback(callback)) => {
                let decision = self.counted().decision;
                callback(decision);
            }
            None => {}
        }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock()
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        if self.counted().decision == Decision::Open {
            self.context.preference.end();
        }
    }
}

/// Asks the deferred masters of a round, with nothing locked.
fn ask(deferred: Option<Deferred>) {
    if let Some(Deferred { masters, ask, .. }) = deferred {
        ask(masters);
    }
}

impl ReplySink for Round {
    fn is_wanted(&self, index: MasterIndex) -> bool {
        let is_given_up =
            self.cancelled.load(Ordering::Relaxed) || self.epoch.as_ref().is_some_and(Epoch::is_over);
        !is_given_up && self.context.trust.votes_under(index, self.voters.view)
    }

    fn receive(&self, index: MasterIndex, answer: Result<Value, Failure>, time: Option<u64>) {
        let heard = self.context.clock.now();
        let forgot = answer.is_ok() && time.is_none();
        let mut said = self.weigh(index, decode(answer), time, heard);
        said.outcome.set_held_for(said.token, || self.context.time());
        if forgot {
            self.context.trust.doubt(index);
        }
        if forgot && said.seen.is_some() {
            let detail =
                "FORGOT this master restarted, or lost keys: what it tells may be what is left".into();
            said = Outcome::Refused { reason: Refusal::Forgot, detail }.into();
        }
        self.vote(index, said, heard);
    }
}

impl CastVote {
    /// How long the answer took; `waited` while there is none.
    fn latency(&self, waited: Duration) -> Duration {
        if self.said.outcome == Outcome::Pending { waited } else { self.latency }
    }

    /// Whether the master has a grant that is none of a lease with this token.
    fn is_stray(&self, token: u64) -> bool {
        match self.said.outcome {
            Outcome::Granted => self.said.token > token,
            _ => self.said.is_discounted && self.said.token > 0,
        }
    }

    /// Whether the place of the attempt before may still be in this master's queue.
    fn leaves_place(&self) -> bool {
        !matches!(self.said.outcome, Outcome::Pending | Outcome::NotAsked) && !self.said.outcome.takes_over()
    }
}

impl Counted {
    /// Counts a master's first vote. Returns whether it was the first, of a voter: no other counts.
    fn vote(&mut self, index: MasterIndex, vote: CastVote) -> bool {
        if !self.masters.has(index) {
            return false;
        }
        let known = &mut self.cast[self.masters.before(index)];
        if known.said.outcome != Outcome::Pending {
            return false;
        }
        self.granted += usize::from(vote.said.outcome == Outcome::Granted);
        self.not_yours += usize::from(vote.said.outcome.is_definite_no());
        self.pending -= 1;
        *known = vote;
        true
    }

    /// Leaves these masters unasked for now.
    fn defer(&mut self, deferred: Deferred) {
        self.set_outcomes(deferred.masters, &Outcome::NotAsked);
        self.pending -= deferred.masters.len();
        self.unasked = deferred.masters;
        self.released_by = deferred.released_by;
        self.deferred = Some(deferred);
    }

    /// Whether to ask the deferred masters after the vote of this one: it had none, or the round is
    /// not decided by those that were asked.
    fn is_to_ask_deferred(&self, index: MasterIndex) -> bool {
        if self.deferred.is_none() || self.decision != Decision::Open {
            return false;
        }
        let is_at_once = match self.cast[self.masters.before(index)].said.outcome {
            Outcome::Granted => false,
            Outcome::Held { .. } | Outcome::Absent => self.released_by.is_some(),
            _ => true,
        };
        is_at_once || self.pending == 0
    }

    /// Takes the deferred masters, to be asked at this moment. From here on they are pending.
    fn take_deferred(&mut self, now: Moment) -> Option<Deferred> {
        let deferred = self.deferred.take()?;
        self.set_outcomes(deferred.masters, &Outcome::Pending);
        self.pending += deferred.masters.len();
        self.unasked = MasterSet::default();
        self.asked_late = Some((deferred.masters, now));
        Some(deferred)
    }

    fn set_outcomes(&mut self, of: MasterSet, outcome: &Outcome) {
        for index in of.iter() {
            self.cast[self.masters.before(index)].said = outcome.clone().into();
        }
    }

    /// See [`Round::never_had`].
    fn never_had(&self) -> MasterSet {
        let Some(had) = self.released_by else { return MasterSet::default() };
        let no = self.masters_with(|vote| vote.said.outcome.is_definite_no());
        if no.and(had).is_empty() { no } else { MasterSet::default() }
    }

    /// When this master was asked, in a round that was sent at `sent`.
    fn asked(&self, index: MasterIndex, sent: Moment) -> Moment {
        self.asked_late.filter(|(masters, _)| masters.has(index)).map_or(sent, |(_, at)| at)
    }

    /// Notes the decision. Returns whether it is decided just now.
    fn note_decision(&mut self) -> bool {
        if self.decision != Decision::Open {
            return false;
        }
        let masters = self.cast.len();
        let granted = self.granted + self.never_had().len();
        let against = masters - granted - self.pending - self.unasked.len();
        self.decision = decide(masters, granted, against);
        self.decision != Decision::Open
    }

    /// The masters whose vote matches.
    fn masters_with(&self, wanted: impl Fn(&CastVote) -> bool) -> MasterSet {
        let cast = self.masters.iter().zip(&self.cast);
        cast.filter(|(_, vote)| wanted(vote)).map(|(index, _)| index).collect()
    }

    /// Which of these masters need a clean-up, if the lease has begun.
    fn clean_up_due(&self, masters: MasterSet) -> Option<CleanUpDue> {
        let token = self.vote_clean_up.as_ref()?.token;
        let strays = masters.and(self.masters_with(|vote| vote.is_stray(token)));
        let places_left = masters.and(self.masters_with(CastVote::leaves_place));
        (!strays.or(places_left).is_empty()).then_some(CleanUpDue { strays, places_left })
    }

    /// Takes the waiting caller, if what it waits for is reached.
    fn take_waiter(&mut self) -> Option<Awaiting> {
        let (until, _) = self.waiter.as_ref()?;
        if self.is_reached(*until) { self.waiter.take().map(|(_, waiter)| waiter) } else { None }
    }

    fn is_reached(&self, until: Until) -> bool {
        let enough = match until {
            Until::Decision => self.decision != Decision::Open,
            Until::Certainty => surely_lost(self.cast.len(), self.not_yours),
            Until::End => false,
        };
        enough || self.pending == 0
    }
}

/// Whether a master was not asked because the set has changed, or it or this client was told of a
/// change before it answered.
pub(crate) fn is_outdated(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Refused { reason, .. } => matches!(reason, Refusal::Moved | Refusal::Forgot),
        Outcome::Unknown(silence) => matches!(silence, Silence::ConnectionLost(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandom;
    use crate::set::Terms;
    use crate::time::BootClock;

    /// Of a client of so many masters.
    fn context(masters: usize) -> Arc<RoundContext> {
        let names = (0..masters).map(|index| format!("m{index}").into()).collect();
        let terms =
            Terms { record: "r".into(), decree: "d".into(), max_ttl: Duration::from_secs(9), all_new: false };
        let clock = Arc::new(BootClock);
        let trust = Trust::new(names, terms, clock.clone(), Arc::new(SystemRandom));
        let (caller_waker, _waking) = CallerWaker::new();
        let preference = Preference::new(0);
        let hedges = Schedule::new(clock.clone());
        Arc::new(RoundContext { trust, clock, caller_waker, preference, hedges })
    }

    /// It was right when its master voted.
    #[test]
    fn a_grant_does_not_count_once_a_clock_of_its_quorum_is_found_to_be_off() {
        let context = context(3);
        let trust = context.trust.clone();
        let round = Round::new(&context, trust.voters(), None);
        let shows = |master: usize, time: u64| {
            trust.hear_time(master.into(), BootClock.now(), BootClock.now(), time).is_ok()
        };
        let time = 1_800_000_000_000_000;
        for master in [0, 1] {
            assert!(shows(master, time));
            round.vote(master.into(), Outcome::Granted.into(), BootClock.now());
        }
        assert!(shows(2, time));
        let counts = || round.check_that_it_counts(&"l".into(), Duration::from_secs(9)).is_ok();
        assert!(counts());
        assert!(!shows(1, time + 10_000_000));
        assert!(!counts(), "one of two grants is by a wrong clock");
    }

    /// A round of five masters, of which the first three are asked first.
    fn deferring(released_by: Option<MasterSet>) -> Arc<Round> {
        let context = context(5);
        let round = Round::new(&context, context.trust.voters(), None);
        let all = MasterSet::first(5);
        let masters = all.without(MasterSet::first(3));
        let patience = Patience { usual: Duration::from_secs(1), latest: Duration::from_secs(2) };
        round.defer(Deferred { masters, released_by, ask: Box::new(|_| {}), patience });
        round
    }

    fn says(round: &Round, master: usize, outcome: Outcome) {
        round.vote(master.into(), outcome.into(), BootClock.now());
    }

    fn decided(round: &Round) -> Decision {
        round.counted().decision
    }

    fn gone() -> Outcome {
        Outcome::Unreachable("gone".into())
    }

    fn held() -> Outcome {
        Outcome::held_by("a", None, None, None)
    }

    #[test]
    fn the_deferred_masters_are_asked_where_the_others_do_not_decide() {
        let round = deferring(None);
        (0..3).for_each(|master| says(&round, master, Outcome::Granted));
        assert_eq!((decided(&round), round.unasked().len()), (Decision::Granted, 2));
        let round = deferring(None);
        says(&round, 0, held());
        assert_eq!(round.unasked().len(), 2, "the others may have answered soon");
        says(&round, 1, Outcome::Granted);
        says(&round, 2, Outcome::Granted);
        assert_eq!((round.unasked().len(), round.may_have_run().len()), (0, 4));
        let round = deferring(None);
        says(&round, 0, gone());
        assert_eq!(round.unasked().len(), 0, "it has no vote");
        let round = deferring(None);
        (0..3).for_each(|master| says(&round, master, held()));
        assert_eq!((decided(&round), round.unasked().len()), (Decision::Denied, 2));
    }

    #[test]
    fn nobody_is_asked_once_the_round_is_closed() {
        let round = deferring(None);
        round.close();
        says(&round, 0, gone());
        round.ask_deferred();
        assert_eq!(round.unasked().len(), 2);
    }

    #[test]
    fn a_lease_is_released_where_a_quorum_released_it_or_never_had_it() {
        let had = Some(MasterSet::first(3));
        let round = deferring(had);
        says(&round, 0, gone());
        says(&round, 1, Outcome::Granted);
        says(&round, 3, Outcome::Absent);
        assert_eq!(decided(&round), Decision::Open);
        says(&round, 4, held());
        assert_eq!(decided(&round), Decision::Granted, "three are not its owner's any more");
        says(&round, 2, Outcome::Absent);
        assert_eq!(decided(&round), Decision::Granted, "the first decision stands");
    }

    #[test]
    fn a_lease_that_was_taken_away_is_not_released() {
        let round = deferring(Some(MasterSet::first(3)));
        says(&round, 0, Outcome::Absent);
        assert_eq!(round.unasked().len(), 0);
        [3, 4].into_iter().for_each(|master| says(&round, master, Outcome::Absent));
        says(&round, 1, Outcome::Granted);
        says(&round, 2, Outcome::Granted);
        assert_eq!(decided(&round), Decision::Denied);
        assert!(round.never_had().is_empty());
    }
}
