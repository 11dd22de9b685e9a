//! This library, by its public API.

use std::time::{Duration, Instant};

use quorate::{Builder, ColdStart, Outcome, Redlock};
use tokio::runtime::Runtime;

use super::{Client, TTL, Worker, lock};
use crate::measure::Cycle;

/// The library's own default for how long one master may take.
pub(crate) const PATIENCE: Duration = quorate::config::DEFAULT_TIMEOUT;

pub(crate) struct Quorate {
    pub(crate) redlock: Redlock,
}

pub(crate) struct Caller {
    redlock: Redlock,
    name: String,
}

/// A client of masters that are new, and vote at once.
pub(crate) fn new(masters: &[String]) -> Builder {
    Redlock::builder().masters(masters).ttl(TTL).cold_start(ColdStart::None)
}

impl Quorate {
    /// The name of one whose engine has no thread of its own.
    pub(crate) const LENT: &'static str = "quorate, lent";

    /// The name of one without guards.
    pub(crate) const UNGUARDED: &'static str = "quorate, unguarded";

    pub(crate) fn connect(masters: &[String], patience: Duration) -> Self {
        Self { redlock: new(masters).timeout(patience).build().unwrap() }
    }

    /// One without guards: plain Redlock.
    pub(crate) fn unguarded(masters: &[String]) -> Self {
        Self { redlock: new(masters).prefix("unguarded:").unguarded().build().unwrap() }
    }

    /// One whose engine runs on the workers' own runtime.
    pub(crate) fn lent(masters: &[String], runtime: &Runtime) -> Self {
        Self { redlock: new(masters).runtime(runtime.handle().clone()).build().unwrap() }
    }

    /// Waits until the client has an answer from so many masters, and knows that the others are out of reach.
    pub(crate) async fn knows(&self, answering: usize) {
        loop {
            let seen = self.redlock.lock("look").inspect().await;
            let votes = seen.iter().flat_map(|seen| seen.votes());
            let unreachable = votes.filter(|vote| matches!(vote.outcome, Outcome::Unreachable(_))).count();
            if seen.is_ok_and(|seen| {
                seen.answered() == answering && unreachable == seen.votes().len() - answering
            }) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Client for Quorate {
    const NAME: &'static str = "quorate";
    type Worker = Caller;

    fn worker(&self, place: usize) -> Caller {
        Caller { redlock: self.redlock.clone(), name: lock(place) }
    }
}

impl Worker for Caller {
    async fn cycle(&mut self) -> Option<Cycle> {
        let began = Instant::now();
        let guard = self.redlock.lock(&*self.name).try_acquire().await.ok()?;
        let granted = Instant::now();
        guard.release().await.ok()?;
        Some(Cycle { acquire: granted - began, release: granted.elapsed() })
    }
}
