//! What clients do: take locks, work under them, give them back, or change their minds.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::ready;
use std::time::Duration;

use quorate::{Error, compat};
use quorate_history::{Call, Lock, Outcome, Site};

use crate::locks::Wish;
use crate::plan::{Ask, End, Step, Task};
use crate::recorder::Held;
use crate::size::LOCKS;
use crate::stage::{Client, Stage};

/// How many of a thousand writers that begin to read do so for longer than they write.
const READS_ON: u64 = 500;

/// One actor: does its tasks, one after the other.
pub(crate) async fn act(stage: Arc<Stage>, tasks: Vec<Task>) {
    for task in tasks {
        tokio::time::sleep(task.think).await;
        Acting::new(stage.clone(), &task).perform(&task).await;
    }
}

/// One task of an actor.
pub(crate) struct Acting {
    stage: Arc<Stage>,
    client: usize,
    wish: Wish,
    /// See [`Task::busy`].
    busy: Duration,
}

/// A guard, and the number of its hold in the history.
pub(crate) struct Holding {
    held: Arc<Held>,
    number: usize,
}

impl Acting {
    fn new(stage: Arc<Stage>, task: &Task) -> Self {
        let wish = stage.wish(task.lock, "names of a task", task.number);
        Self { stage, client: task.client, wish, busy: task.busy }
    }

    /// What a client does in the calm, which was drawn the lock of this number.
    pub(crate) fn on(stage: Arc<Stage>, client: usize, lock: usize) -> Self {
        let wish = stage.wish(lock, "names in the calm", client * LOCKS + lock);
        Self::wishing(stage, client, wish)
    }

    /// The same, where it is not drawn what it asks for.
    pub(crate) fn wishing(stage: Arc<Stage>, client: usize, wish: Wish) -> Self {
        Self { stage, client, wish, busy: Duration::ZERO }
    }

    /// The client's handle of the lock.
    pub(crate) fn lock(&self) -> compat::UnfencedLock {
        self.wish.lock(&self.client().redlock, self.stage.permits)
    }

    /// The same for the client's named owner, where the kind has owners.
    fn named_lock(&self) -> compat::UnfencedLock {
        if self.wish.has_owners() { self.lock().owned_by(&self.client().named) } else { self.lock() }
    }

    fn client(&self) -> &Client {
        &self.stage.clients[self.client]
    }

    fn note(&self, what: impl FnOnce() -> String) {
        self.stage.world.note(|| format!("c{}     {} {}", self.client, self.wish, what()));
    }

    async fn perform(&self, task: &Task) {
        let lock = if matches!(task.ask, Ask::Named(_)) { self.named_lock() } else { self.lock() };
        let lock = if task.end == End::RunOut { lock.ttl(self.stage.ttl).no_renewal() } else { lock };
        let holding = match task.ask {
            Ask::Try => self.acquire(lock, Duration::ZERO).await,
            Ask::Wait(wait) | Ask::Named(wait) => self.acquire(lock, wait).await,
            Ask::Cancel(after) => self.acquire_for(lock, after).await,
        };
        let Some(holding) = holding else { return };
        let mut kept = Vec::new();
        for (pause, step) in &task.steps {
            tokio::time::sleep(*pause).await;
            kept.extend(self.step(&holding, *step).await);
        }
        self.end(holding, task.end).await;
        for (time, acting, inner) in kept {
            tokio::time::sleep(time).await;
            acting.end(inner, End::Release).await;
        }
    }

    /// What the history calls the lock.
    fn named(&self) -> Lock {
        self.wish.named(self.stage.permits)
    }

    /// An acquire begins: its number.
    fn ask(&self, wait: Duration) -> usize {
        let call = Call::Acquire { lock: self.named(), ttl: self.stage.ttl, wait };
        self.stage.world.recorder.ask(self.client, self.stage.world.now(), call)
    }

    /// Asks for the lock, for so long; with no time at all, once.
    pub(crate) async fn acquire(&self, lock: compat::UnfencedLock, wait: Duration) -> Option<Holding> {
        let attempt = self.ask(wait);
        self.note(|| format!("acquire #{attempt}, waits {wait:?}"));
        let asking =
            async { if wait.is_zero() { lock.try_acquire().await } else { lock.wait(wait).acquire().await } };
        let granted = busily(self.busy, asking).await;
        self.outcome(attempt, granted)
    }

    /// Asks for the lock, and drops that after a while.
    pub(crate) async fn acquire_for(&self, lock: compat::UnfencedLock, after: Duration) -> Option<Holding> {
        let attempt = self.ask(Duration::ZERO);
        self.note(|| format!("acquire #{attempt}, given up after {after:?}"));
        let asking = Box::pin(busily(self.busy, async move { lock.acquire().await }));
        match tokio::time::timeout(after, asking).await {
            Ok(granted) => self.outcome(attempt, granted),
            Err(_) => {
                self.note(|| format!("#{attempt} is given up"));
                self.stage.world.recorder.answer(attempt, self.stage.world.now(), Outcome::Cancelled);
                None
            }
        }
    }

    fn outcome(&self, attempt: usize, granted: Result<compat::UnfencedGuard, Error>) -> Option<Holding> {
        let now = self.stage.world.now();
        let guard = match granted {
            Ok(guard) => guard,
            Err(error) => {
                let why = format!("{error:#}");
                self.note(|| format!("#{attempt} failed: {why}"));
                self.stage.world.recorder.answer(attempt, now, Outcome::Failed { why });
                return None;
            }
        };
        let lost = guard.lost_token();
        let clock = self.client().clock.clone();
        self.note(|| {
            let owner = guard.owner();
            let deadline = clock.time_of(guard.deadline());
            format!("#{attempt} GRANTED to {owner} until {:.6}", deadline.as_secs_f64())
        });
        // Nobody writes who came to read.
        if let Some(fence) = guard.fencing_token_if_any().filter(|_| !self.wish.shared) {
            for name in &self.wish.names {
                let site = Site { name, permit: guard.permit() }.to_string();
                self.stage.resource.is_written_to(self.client, &site, fence.get(), self.stage.ttl);
            }
        }
        let held = Held::new(self.client, clock, guard);
        let number = self.stage.world.recorder.grant(attempt, self.named(), &held, now);
        let stage = self.stage.clone();
        let client = self.client;
        let lock = self.wish.to_string();
        self.client().process.run(async move {
            lost.cancelled().await;
            let what = if stage.world.recorder.lose(number, stage.world.now()) { "LOST" } else { "over" };
            stage.world.note(|| format!("c{client}     {lock} #{attempt} is {what}"));
        });
        Some(Holding { held, number })
    }

    /// Answers what is kept for so long when the guard is given back: who wrote may read on.
    async fn step(&self, holding: &Holding, step: Step) -> Option<(Duration, Self, Holding)> {
        match step {
            Step::Extend(ttl) => {
                let guard = holding.held.guard()?;
                self.note(|| format!("extend by {ttl:?}"));
                let extended = guard.extend(ttl).await;
                self.note(|| format!("extended: {}", outcome_of(&extended)));
            }
            Step::Reenter(time) => {
                let dice = self.stage.world.dice("again", holding.number as u64);
                let wish = self.wish.again(&dice);
                let reads_on = wish.shared && !self.wish.shared && dice.happens(READS_ON);
                let acting = Self { stage: self.stage.clone(), client: self.client, wish, busy: self.busy };
                let inner = acting.acquire(acting.named_lock(), Duration::ZERO).await?;
                if reads_on {
                    return Some((time, acting, inner));
                }
                tokio::time::sleep(time).await;
                acting.end(inner, End::Release).await;
            }
        }
        None
    }

    pub(crate) async fn end(&self, holding: Holding, end: End) {
        if end == End::RunOut {
            let lost = holding.held.guard().map(|guard| guard.lost_token());
            if let Some(lost) = lost {
                lost.cancelled().await;
            }
        }
        self.stage.world.recorder.give_back(holding.number, self.stage.world.now());
        let Some(guard) = holding.held.take() else { return };
        self.note(|| format!("gives back {}", guard.owner()));
        if end == End::Release {
            let released = guard.release().await;
            self.note(|| format!("released: {}", outcome_of(&released)));
        }
    }
}

/// Does something by a runtime that has other things to do: whenever it is woken, it is run so much
/// later.
async fn busily<T>(busy: Duration, doing: impl Future<Output = T>) -> T {
    let mut doing = pin!(doing);
    let mut rest = None;
    let mut has_begun = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_begun, true) && !busy.is_zero() {
            let rest = rest.get_or_insert_with(|| Box::pin(tokio::time::sleep(busy)));
            ready!(rest.as_mut().poll(context));
        }
        rest = None;
        doing.as_mut().poll(context)
    })
    .await
}

fn outcome_of(outcome: &Result<(), Error>) -> String {
    match outcome {
        Ok(()) => "yes".to_owned(),
        Err(error) => format!("{error:#}"),
    }
}
