//! rslock, the Redlock crate that is there already. It waits for every master, and releases without
//! saying whether.

use std::time::Instant;

use rslock::LockManager;

use super::{Client, TTL};
use crate::measure::Cycle;

#[derive(Clone)]
pub(crate) struct Rslock {
    manager: LockManager,
}

impl Rslock {
    pub(crate) fn connect(masters: &[String]) -> Self {
        Self { manager: LockManager::new(masters.to_vec()) }
    }
}

impl Client for Rslock {
    const NAME: &'static str = "rslock";
    const REUSED: &'static str = "rslock, names reused";
    const ONE_THREAD: &'static str = "rslock, one thread";

    async fn cycle(&self, name: String) -> Option<Cycle> {
        let name = format!("rslock-{name}");
        let began = Instant::now();
        let lock = self.manager.lock(&*name, TTL).await.ok()?;
        let granted = Instant::now();
        self.manager.unlock(&lock).await;
        Some(Cycle { acquire: granted - began, release: granted.elapsed() })
    }
}
