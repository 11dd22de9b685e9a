//! rslock, the Redlock crate that is there already. It waits for every master, and releases without
//! saying whether.

use std::time::Instant;

use rslock::LockManager;

use super::{Client, TTL, Worker, lock};
use crate::measure::Cycle;

pub(crate) struct Rslock {
    manager: LockManager,
}

pub(crate) struct Caller {
    manager: LockManager,
    name: String,
}

impl Rslock {
    pub(crate) fn connect(masters: &[String]) -> Self {
        Self { manager: LockManager::new(masters.to_vec()) }
    }
}

impl Client for Rslock {
    const NAME: &'static str = "rslock";
    type Worker = Caller;

    fn worker(&self, place: usize) -> Caller {
        Caller { manager: self.manager.clone(), name: format!("rslock-{}", lock(place)) }
    }
}

impl Worker for Caller {
    async fn cycle(&mut self) -> Option<Cycle> {
        let began = Instant::now();
        let lock = self.manager.lock(&*self.name, TTL).await.ok()?;
        let granted = Instant::now();
        self.manager.unlock(&lock).await;
        Some(Cycle { acquire: granted - began, release: granted.elapsed() })
    }
}
