//! What clients do: take locks, work under them, give them back, or change their minds.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::ready;
use std::time::Duration;

use quorate::{Error, Guard, Lock};

use crate::history::AttemptOutcome;
use crate::plan::{Ask, End, Step, Task};
use crate::recorder::Held;
use crate::stage::{Client, Stage};

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
    lock: String,
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
        Self { busy: task.busy, ..Self::on(stage, task.client, task.lock) }
    }

    pub(crate) fn on(stage: Arc<Stage>, client: usize, lock: usize) -> Self {
        Self { stage, client, lock: format!("l{lock}"), busy: Duration::ZERO }
    }

    /// The client's handle of the lock.
    pub(crate) fn lock(&self) -> Lock {
        self.stage.locks.of(&self.client().redlock, &self.lock)
    }

    fn client(&self) -> &Client {
        &self.stage.clients[self.client]
    }

    fn note(&self, what: impl FnOnce() -> String) {
        self.stage.world.note(|| format!("c{}     {} {}", self.client, self.lock, what()));
    }

    async fn perform(&self, task: &Task) {
        let lock = self.lock();
        let lock = if task.end == End::RunOut { lock.lease(self.stage.ttl) } else { lock };
        let holding = match task.ask {
            Ask::Try => self.acquire(lock, Duration::ZERO).await,
            Ask::Wait(wait) => self.acquire(lock, wait).await,
            Ask::Named(wait) => self.acquire(lock.owned_by(&self.client().named), wait).await,
            Ask::Cancel(after) => self.acquire_for(lock, after).await,
        };
        let Some(holding) = holding else { return };
        for (pause, step) in &task.steps {
            tokio::time::sleep(*pause).await;
            self.step(&holding, *step).await;
        }
        self.end(holding, task.end).await;
    }

    /// Asks for the lock, for so long; with no time at all, once.
    pub(crate) async fn acquire(&self, lock: Lock, wait: Duration) -> Option<Holding> {
        let attempt = self.stage.world.recorder.ask(&self.lock, self.client, self.stage.world.now(), wait);
        self.note(|| format!("acquire #{attempt}, waits {wait:?}"));
        let asking =
            async { if wait.is_zero() { lock.try_acquire().await } else { lock.wait(wait).acquire().await } };
        let granted = busily(self.busy, asking).await;
        self.outcome(attempt, granted)
    }

    /// Asks for the lock, and drops that after a while.
    pub(crate) async fn acquire_for(&self, lock: Lock, after: Duration) -> Option<Holding> {
        let attempt =
            self.stage.world.recorder.ask(&self.lock, self.client, self.stage.world.now(), Duration::ZERO);
        self.note(|| format!("acquire #{attempt}, given up after {after:?}"));
        let asking = Box::pin(busily(self.busy, async move { lock.acquire().await }));
        match tokio::time::timeout(after, asking).await {
            Ok(granted) => self.outcome(attempt, granted),
            Err(_) => {
                self.note(|| format!("#{attempt} is given up"));
                self.stage.world.recorder.answer(attempt, self.stage.world.now(), AttemptOutcome::Cancelled);
                None
            }
        }
    }

    fn outcome(&self, attempt: usize, granted: Result<Guard, Error>) -> Option<Holding> {
        let now = self.stage.world.now();
        let guard = match granted {
            Ok(guard) => guard,
            Err(error) => {
                self.note(|| format!("#{attempt} failed: {error}"));
                self.stage.world.recorder.answer(attempt, now, AttemptOutcome::Failed);
                return None;
            }
        };
        let lost = guard.lost_token();
        let clock = self.client().clock.clone();
        self.note(|| {
            let (owner, deadline) = (guard.owner(), clock.time_of(guard.deadline()));
            format!("#{attempt} GRANTED to {owner} until {:.6}", deadline.as_secs_f64())
        });
        if guard.fence() > 0 {
            self.stage.resource.is_written_to(&self.lock, guard.fence(), self.stage.ttl);
        }
        let held = Held::new(self.client, clock, guard);
        let number = self.stage.world.recorder.grant(attempt, &held, now);
        let (stage, client, lock) = (self.stage.clone(), self.client, self.lock.clone());
        self.client().process.run(async move {
            lost.cancelled().await;
            let what = if stage.world.recorder.lose(number, stage.world.now()) { "LOST" } else { "over" };
            stage.world.note(|| format!("c{client}     {lock} #{attempt} is {what}"));
        });
        Some(Holding { held, number })
    }

    async fn step(&self, holding: &Holding, step: Step) {
        match step {
            Step::Extend(ttl) => {
                let Some(guard) = holding.held.guard() else { return };
                self.note(|| format!("extend by {ttl:?}"));
                let extended = guard.extend(ttl).await;
                self.note(|| format!("extended: {}", outcome_of(&extended)));
            }
            Step::Reenter(time) => {
                let lock = self.lock().owned_by(&self.client().named);
                if let Some(inner) = self.acquire(lock, Duration::ZERO).await {
                    tokio::time::sleep(time).await;
                    self.end(inner, End::Release).await;
                }
            }
        }
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

/// Does something by a runtime that has other things to do: whenever it is woken, it is run so much later.
async fn busily<T>(busy: Duration, doing: impl Future<Output = T>) -> T {
    let (mut doing, mut rest, mut has_begun) = (pin!(doing), None, false);
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
        Err(error) => error.to_string(),
    }
}
