//! Clients whose set of masters changes: they hold some leases all the time, ask again and again
//! for those that other clients hold, and wait for other locks, each for as long as it takes.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use quorate_testkit::Dice;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};
use tokio_util::sync::CancellationToken;

use super::cycle::{Cycle, LOOKS, protected};
use super::subject::Held;
use super::{Workload, end};
use crate::history::Event;

/// How long an acquire is ready to wait: others keep a lock for a small part of it.
const WAIT: Duration = Duration::from_secs(30);

/// The longest pause (ms) of a task between two locks.
const PAUSE: u64 = 100;

/// The longest time (ms) for which a task keeps a lock.
const KEEPS: u64 = 20;

/// How often a client asks for a lease that it does not hold.
const ASKS: Duration = Duration::from_millis(20);

/// The leases that clients hold all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leases {
    /// How many there are.
    pub all: usize,
    /// How many of them one client takes.
    pub each: usize,
}

impl Workload {
    /// Holds leases and waits for locks until it is stopped, then releases everything, and acquires
    /// every lock once more.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn hold_and_wait(self, leases: Leases, stop: CancellationToken) -> io::Result<()> {
        // While a master is replaced, all others have to answer, and a busy machine may stand still
        // for longer than the default time-out.
        let cycle = Arc::new(self.open_with(|builder| builder.timeout(self.ttl / 4)).await?);
        cycle.locks.connect().await;
        let mut tasks = self.tasks(&cycle, &stop, |cycle, dice, stop| async move {
            while !stop.is_cancelled() {
                cycle.wait_for_one(&dice).await?;
            }
            Ok(())
        });
        let first = Dice::new(self.seed, "leases", 0).below(leases.all.max(1));
        tasks.spawn(take(cycle.clone(), leases, first, stop));
        end(cycle, tasks).await
    }
}

impl Cycle {
    /// Waits for a lock, and keeps it for a moment.
    async fn wait_for_one(&self, dice: &Dice) -> io::Result<()> {
        sleep(dice.millis(0, PAUSE)).await;
        let lock = self.locks.draw(dice);
        let Some((hold, held)) = self.acquire(&lock, self.ttl, WAIT).await? else { return Ok(()) };
        let (resource, fence) = protected(&lock.named, &held);
        self.write(&resource, fence).await?;
        sleep(dice.millis(0, KEEPS)).await;
        self.release(hold, held).await
    }

    /// Holds a lease until it is to stop, or the lease is lost.
    async fn hold_on(&self, hold: u64, held: Held, stop: &CancellationToken) -> io::Result<()> {
        let mut looks = interval(self.ttl / LOOKS);
        loop {
            let is_over = tokio::select! {
                biased;
                () = held.lost() => return self.recorder.record(Event::Lost { hold }),
                () = stop.cancelled() => true,
                _ = looks.tick() => false,
            };
            if let Some(deadline) = held.deadline() {
                self.recorder.record(Event::Deadline { hold, deadline })?;
            }
            if is_over {
                return self.release(hold, held).await;
            }
        }
    }
}

/// Asks for one lease after the other, from the first on and over again. Holds as many as a client
/// is to hold, and gives back at once what it gets besides: others have it as soon as they ask.
async fn take(cycle: Arc<Cycle>, leases: Leases, first: usize, stop: CancellationToken) -> io::Result<()> {
    let mut mine = BTreeSet::new();
    let mut held = JoinSet::new();
    for number in (0..leases.all).cycle().skip(first) {
        if stop.is_cancelled() || mine.len() == leases.all {
            break;
        }
        if mine.contains(&number) {
            continue;
        }
        let lock = cycle.locks.lease(number);
        match cycle.acquire(&lock, cycle.ttl, Duration::ZERO).await? {
            Some((hold, guard)) if mine.len() < leases.each => {
                mine.insert(number);
                let cycle = cycle.clone();
                let stop = stop.clone();
                held.spawn(async move { cycle.hold_on(hold, guard, &stop).await });
            }
            Some((hold, guard)) => cycle.release(hold, guard).await?,
            None => {}
        }
        if mine.len() == leases.each {
            sleep(ASKS).await;
        }
    }
    while let Some(ended) = held.join_next().await {
        ended??;
    }
    Ok(())
}
