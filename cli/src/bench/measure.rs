//! Does the measuring: locks of its own, each with a new name, acquired and released, and every
//! master asked for its round trip.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use quorate::{Error, Lock, Moment, Outcome, Redlock, Vote};
use tokio::task::JoinSet;

use super::plan::Plan;
use super::rounds::Rounds;
use super::statistics::NEVER;
use crate::progress::Progress;
use crate::quarantine::Quarantine;
use crate::say::say;

/// Rounds before the measuring: they connect, and load the scripts.
const WARM_UP: usize = 3;

/// After a cycle that failed: masters that are out of reach fail at once, and must not be asked as
/// fast as that.
const PAUSE: Duration = Duration::from_millis(10);

/// A round trip beside which the time that a master takes for a script does not show.
const FAR: Duration = Duration::from_millis(2);

/// What was seen so far. It outlives a measurement that is ended early.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) masters: Vec<Seen>,
    pub(crate) rounds: Rounds,
    pub(crate) single: Tally,
    /// One for each concurrency, as far as it came.
    pub(crate) levels: Vec<(usize, SharedTally)>,
}

/// How often one master answered.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) master: String,
    pub(crate) answered: u64,
    pub(crate) unanswered: u64,
    /// Why it did not, the last time.
    pub(crate) detail: Option<String>,
}

/// A tally of tasks that run at the same time.
#[derive(Clone, Debug)]
pub(crate) struct SharedTally(Arc<Mutex<Tally>>);

/// Cycles of an acquire and a release, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) acquire: Histogram<u64>,
    pub(crate) release: Histogram<u64>,
    pub(crate) failed_acquires: BTreeMap<&'static str, u64>,
    pub(crate) failed_releases: BTreeMap<&'static str, u64>,
    began: Moment,
    ended: Moment,
    /// The last failure of an acquire.
    error: Option<Error>,
}

impl Measured {
    pub(crate) fn new() -> Self {
        let rounds = Rounds::new();
        let single = Tally::new(Moment::default());
        Self { masters: Vec::new(), rounds, single, levels: Vec::new() }
    }

    /// Whether there is anything to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.single.acquire.is_empty()
    }

    fn note_round(&mut self, votes: &[Vote]) {
        if self.masters.is_empty() {
            let seen = |vote: &Vote| Seen {
                master: vote.master.to_string(),
                answered: 0,
                unanswered: 0,
                detail: None,
            };
            self.masters = votes.iter().map(seen).collect();
        }
        for (seen, vote) in self.masters.iter_mut().zip(votes) {
            if has_answered(vote) {
                seen.answered += 1
            } else {
                seen.unanswered += 1;
                seen.detail = Some(vote.outcome.to_string());
            }
        }
        let time = |vote: &Vote| if has_answered(vote) { vote.latency.as_secs_f64() * 1e3 } else { NEVER };
        self.rounds.push(votes.iter().map(time).collect::<Box<[f64]>>());
    }
}

/// Whether the master could have voted.
fn has_answered(vote: &Vote) -> bool {
    matches!(vote.outcome, Outcome::Absent | Outcome::Held { .. })
}

impl SharedTally {
    pub(crate) fn new(tally: Tally) -> Self {
        Self(Arc::new(Mutex::new(tally)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    pub(crate) fn new(began: Moment) -> Self {
        let times = || Histogram::new(3).expect("three digits are allowed");
        let failed_acquires = BTreeMap::new();
        let failed_releases = BTreeMap::new();
        let acquire = times();
        let release = times();
        let ended = began;
        let error = None;
        Self { acquire, release, failed_acquires, failed_releases, began, ended, error }
    }

    /// From the start to the end of the last cycle.
    pub(crate) fn took(&self) -> Duration {
        self.ended.since(self.began)
    }

    /// The error of a step in which nothing was acquired.
    fn check(&self) -> Result<(), Error> {
        match &self.error {
            Some(error) if self.acquire.is_empty() => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

/// In a word, for a table of failures.
fn kind(error: &Error) -> &'static str {
    match error {
        Error::Held { .. } => "held",
        Error::NoQuorum { late: true, .. } => "late",
        Error::NoQuorum { .. } => "no quorum",
        Error::Refused { .. } => "refused",
        Error::Lost { .. } => "lost",
        _ => "other",
    }
}

/// What measures.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    locks: BenchLocks,
    plan: &'a Plan,
    progress: &'a Progress,
}

/// One client's locks, each with a name of its own.
#[derive(Clone, Debug)]
struct BenchLocks {
    redlock: Redlock,
    ttl: Duration,
    /// The client's UUID makes the locks' names unlike any other.
    names: Arc<str>,
    next: Arc<AtomicU64>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(redlock: &Redlock, plan: &'a Plan, progress: &'a Progress) -> Self {
        let owner = redlock.owner().to_string();
        let client = owner.split(':').next().unwrap_or(&owner);
        let names = format!("quorate-bench:{client}").into();
        let locks = BenchLocks { redlock: redlock.clone(), ttl: plan.ttl, names, next: Arc::default() };
        Self { locks, plan, progress }
    }

    /// Measures all that is planned. May be dropped at any moment: the library undoes what is under
    /// way.
    ///
    /// # Errors
    ///
    /// Those of the first acquire, and of a step in which no acquire succeeds.
    pub(crate) async fn measure(&self, measured: &mut Measured) -> Result<(), Error> {
        self.progress.step("connecting");
        self.warm_up().await?;
        self.progress.step("round trips, and one lock after the other");
        self.single(measured).await?;
        for locks in self.plan.concurrency.iter().copied() {
            self.progress.step(&format!("locks at a time: {locks}"));
            self.settle().await?;
            let tally = SharedTally::new(Tally::new(self.now()));
            measured.levels.push((locks, tally.clone()));
            self.level(locks, &tally).await?;
        }
        Ok(())
    }

    async fn warm_up(&self) -> Result<(), Error> {
        self.settle().await?;
        if let Some(quarantine) = Quarantine::keeps(&self.locks.redlock) {
            say(quarantine.advice(Duration::MAX));
            self.progress.step("waiting for masters that have no vote yet");
            tokio::time::sleep(quarantine.left).await;
        }
        for _ in 0..WARM_UP {
            self.settle().await?;
            let guard = self.locks.next().try_acquire().await?;
            let _ = guard.release().await; // it goes on in the background, and is said again if it lasts
        }
        Ok(())
    }

    /// Waits for what masters that were not waited for still have to do.
    async fn settle(&self) -> Result<(), Error> {
        self.locks.next().inspect().await.map(drop)
    }

    /// Each master's round trip and a cycle, in turn, so that both see the same network.
    async fn single(&self, measured: &mut Measured) -> Result<(), Error> {
        let mut far = false;
        let end = self.now() + self.plan.step();
        measured.single = Tally::new(self.now());
        while measured.single.took().is_zero() || self.now() < end {
            if !far {
                self.settle().await?;
            }
            let lock = self.locks.next();
            let seen = lock.inspect().await?;
            measured.note_round(seen.votes());
            far = seen.votes().iter().any(|vote| vote.latency > FAR);
            let cycle = self.locks.cycle(&lock).await;
            if measured.single.note(cycle) {
                tokio::time::sleep(PAUSE).await;
            }
        }
        measured.single.check()
    }

    /// `count` cycles at a time, by as many tasks.
    async fn level(&self, count: usize, tally: &SharedTally) -> Result<(), Error> {
        let end = self.now() + self.plan.step();
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            tasks.spawn(self.locks.clone().cycle_until(end, tally.clone()));
        }
        tasks.join_all().await;
        tally.lock().check()
    }

    fn now(&self) -> Moment {
        self.locks.redlock.now()
    }
}

/// What a cycle came to, and when it ended.
enum Cycle {
    NotAcquired(Error, Moment),
    Acquired([Moment; 3], Result<(), Error>),
}

impl BenchLocks {
    /// A lock that nobody ever had.
    fn next(&self) -> Lock {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.redlock.lock(format!("{}:{number}", self.names)).ttl(self.ttl)
    }

    async fn cycle_until(self, end: Moment, tally: SharedTally) {
        loop {
            let cycle = self.cycle(&self.next()).await;
            let failed = tally.lock().note(cycle);
            if failed {
                tokio::time::sleep(PAUSE).await;
            }
            if self.redlock.now() >= end {
                return;
            }
        }
    }

    async fn cycle(&self, lock: &Lock) -> Cycle {
        let began = self.redlock.now();
        let acquired = lock.try_acquire().await;
        let granted = self.redlock.now();
        match acquired {
            Err(error) => Cycle::NotAcquired(error, granted),
            Ok(guard) => {
                let released = guard.release().await;
                Cycle::Acquired([began, granted, self.redlock.now()], released)
            }
        }
    }
}

impl Tally {
    /// Takes note, and answers whether the acquire failed.
    fn note(&mut self, cycle: Cycle) -> bool {
        match cycle {
            Cycle::NotAcquired(error, ended) => {
                self.ended = self.ended.max(ended);
                *self.failed_acquires.entry(kind(&error)).or_default() += 1;
                self.error = Some(error);
                true
            }
            Cycle::Acquired([began, granted, ended], released) => {
                self.ended = self.ended.max(ended);
                let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                let _ = self.acquire.record(nanos(granted.since(began))); // the histogram grows as it has to
                match released {
                    Ok(()) => {
                        let _ = self.release.record(nanos(ended.since(granted)));
                    }
                    Err(error) => *self.failed_releases.entry(kind(&error)).or_default() += 1,
                }
                false
            }
        }
    }
}
