//! What a client process does, recording every call: several tasks take locks, write to what they
//! protect, and release them; or one lock is acquired and released by order.
//!
//! `subject.rs` is what is locked by, `kind.rs` the locks of Quorate, `store.rs` what locks
//! protect, `cycle.rs` one lock from the acquire to the end, `votes.rs` which masters had no vote
//! in it, `patient.rs` what clients do whose set changes.

mod cycle;
mod kind;
pub mod lock_set;
pub mod patient;
mod store;
mod subject;
mod votes;

pub use cycle::patience;
pub use kind::Kind;
pub use subject::Subject;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quorate::config::MAX_TTL;
use quorate::seam::Random;
use quorate::{Builder, Init, Redlock, SetError};
use quorate_testkit::Dice;
use rslock::LockManager;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::history::{Event, Outcome, Recorder};
use crate::naive::NaiveClient;
use cycle::Cycle;
use store::Store;
use subject::{Locks, Refused};

/// How long a process may take to give everything back.
const FLUSH: Duration = Duration::from_secs(20);

/// How long one that strays leaves its masters to be heard. Until the other server is heard, most
/// masters of the set may vote: it is their quorum, so nobody else has the lock.
const HEARD: Duration = Duration::from_secs(1);

/// The longest pause (ms) between two tries of one that strays.
const STRAYS: u64 = 100;

/// What a process is started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// The masters, as this process reaches them.
    pub masters: Vec<String>,
    /// The server whose values the locks protect. It is no master, and nothing strikes it.
    pub store: String,
    /// The file that the history is written to.
    pub history: PathBuf,
    /// The name of the process there.
    pub process: String,
    /// What decides what is done.
    pub seed: u64,
    /// What is locked by.
    pub subject: Subject,
    /// How many tasks take locks.
    pub tasks: usize,
    /// How long leases last.
    pub ttl: Duration,
    /// Whether masters without a record vote at once: those of a run that begins with it are new,
    /// unless they were [introduced](introduce).
    pub new_masters: bool,
    /// What decides the randomness of its locks, where it is a copy of other processes: they have
    /// the same.
    pub copied: Option<u64>,
}

/// An order to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// To ask for a lock: always the same one.
    Acquire {
        /// For how long (ms).
        ttl: u64,
        /// How long to wait for it (ms); 0 is to try once.
        wait: u64,
        /// To read, if it has readers.
        reads: bool,
    },
    /// To give it back, if it was granted.
    Release,
}

impl Workload {
    /// Works until it is stopped, then releases everything, and acquires every lock once more.
    ///
    /// # Errors
    ///
    /// When the history cannot be written, or the masters' URLs are none.
    pub async fn run(self, stop: CancellationToken) -> io::Result<()> {
        let cycle = Arc::new(self.open().await?);
        cycle.locks.connect().await;
        let tasks = self.tasks(&cycle, &stop, |cycle, dice, stop| async move {
            while !stop.is_cancelled() {
                cycle.turn(&dice, &stop).await?;
            }
            Ok(())
        });
        end(cycle, tasks).await
    }

    /// Begins the tasks of this client, each with dice of its own.
    fn tasks<F>(
        &self,
        cycle: &Arc<Cycle>,
        stop: &CancellationToken,
        work: impl Fn(Arc<Cycle>, Dice, CancellationToken) -> F,
    ) -> JoinSet<io::Result<()>>
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let dice = |number| Dice::new(self.seed, "task", number as u64);
        (0..self.tasks).map(|number| work(cycle.clone(), dice(number), stop.clone())).collect()
    }

    /// Asks for locks until it is stopped, and writes down what it is told.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn stray(self, stop: CancellationToken) -> io::Result<()> {
        let cycle = self.open().await?;
        cycle.locks.connect().await;
        sleep(HEARD).await;
        let dice = Dice::new(self.seed, "stranger", 0);
        while !stop.is_cancelled() {
            sleep(dice.millis(0, STRAYS)).await;
            let why = match cycle.locks.draw(&dice).acquire(self.ttl, Duration::ZERO).await {
                Ok(held) => {
                    drop(held);
                    None
                }
                Err(Refused { outcome: Outcome::Failed { why } | Outcome::Unknown { why }, .. }) => Some(why),
                Err(_) => continue,
            };
            cycle.recorder.record(Event::Stranger { why })?;
        }
        cycle.locks.close(FLUSH).await;
        Ok(())
    }

    /// Follows orders, one after the other, until there are no more, and then releases what it has.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn obey(self, mut orders: UnboundedReceiver<Order>) -> io::Result<()> {
        let cycle = self.open().await?;
        let mut held = None;
        while let Some(order) = orders.recv().await {
            match order {
                Order::Acquire { ttl, wait, reads } => {
                    let ttl = Duration::from_millis(ttl);
                    let wait = Duration::from_millis(wait);
                    held = cycle.acquire(&cycle.locks.lock(0, 0, reads), ttl, wait).await?;
                }
                Order::Release => {
                    if let Some((hold, held)) = held.take() {
                        cycle.release(hold, held).await?;
                    }
                }
            }
        }
        if let Some((hold, held)) = held {
            cycle.release(hold, held).await?;
        }
        cycle.locks.close(FLUSH).await;
        Ok(())
    }

    async fn open(&self) -> io::Result<Cycle> {
        self.open_with(|builder| builder).await
    }

    /// Opens it with these settings of Quorate.
    async fn open_with(&self, settings: impl FnOnce(Builder) -> Builder) -> io::Result<Cycle> {
        let recorder = Recorder::open(&self.history, &*self.process)?;
        let store = Store::open(&self.store).await.map_err(io::Error::other)?;
        Ok(Cycle { locks: self.locks(settings)?, store, recorder, ttl: self.ttl })
    }

    /// What it locks by.
    fn locks(&self, settings: impl FnOnce(Builder) -> Builder) -> io::Result<Locks> {
        Ok(match &self.subject {
            Subject::Quorate(kinds) => {
                let builder = Redlock::builder().masters(&self.masters).ttl(self.ttl);
                let builder = match self.copied {
                    Some(seed) => builder.random(Arc::new(Copied(Dice::new(seed, "copy", 0)))),
                    None => builder,
                };
                let builder = if self.new_masters {
                    builder.all_new().max_ttl(MAX_TTL)
                } else {
                    builder.max_ttl(self.ttl)
                };
                Locks::Quorate(settings(builder).build().map_err(io::Error::other)?, kinds.clone())
            }
            Subject::Rslock => {
                let mut manager = LockManager::new(self.masters.clone());
                manager.set_retry(1, Duration::from_millis(subject::POLL));
                Locks::Rslock(manager)
            }
            Subject::Naive(naive) => {
                let client = NaiveClient::open(*naive, &self.masters, &self.process);
                Locks::Naive(client.map_err(io::Error::other)?, *naive)
            }
        })
    }
}

/// Waits until these tasks have ended, acquires every lock once more, and releases everything.
async fn end(cycle: Arc<Cycle>, mut tasks: JoinSet<io::Result<()>>) -> io::Result<()> {
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    if let Some(cycle) = Arc::into_inner(cycle) {
        cycle.once_more().await?;
        cycle.locks.close(FLUSH).await;
    }
    Ok(())
}

/// Randomness that copies of a process share.
#[derive(Debug)]
struct Copied(Dice);

impl Random for Copied {
    fn next_u64(&self) -> u64 {
        self.0.number()
    }
}

/// Begins new masters as a set, for workloads that have this TTL. What it returns has the masters'
/// own names: as long as it is there, a master that was emptied gets its record again, which
/// clients cannot give it that have other names for it.
///
/// # Errors
///
/// When the masters' URLs are none, or there are too many.
pub async fn introduce(masters: &[String], ttl: Duration) -> io::Result<Redlock> {
    let redlock =
        Redlock::builder().masters(masters).ttl(ttl).max_ttl(ttl).build().map_err(io::Error::other)?;
    begin(&redlock).await.map_err(io::Error::other)?;
    Ok(redlock)
}

/// Begins a client's masters as a set: they are this process's own, so no client ever used them.
///
/// # Errors
///
/// Those of [`Redlock::fingerprint`] and [`Redlock::init`].
pub async fn begin(redlock: &Redlock) -> Result<(), SetError> {
    let fingerprint = redlock.fingerprint().await?;
    redlock.init(Init::new().never_used(fingerprint)).await
}
