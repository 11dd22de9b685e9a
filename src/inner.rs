//! What all handles of one client share: its engine, and the thread that runs it.

use std::fmt;
use std::sync::Arc;

use crate::engine::Engine;
use crate::executor::Executor;
use crate::host::Host;

/// The inside of a [`Redlock`](crate::Redlock). Every lock and guard has it as well: the thread
/// ends with the last of them.
pub(crate) struct Inner {
    engine: Arc<Engine>,
    host: Host,
}

impl Inner {
    pub(crate) fn new(engine: Arc<Engine>, host: Host) -> Arc<Self> {
        Arc::new(Self { engine, host })
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// What runs the engine's tasks.
    pub(crate) fn executor(&self) -> &Executor {
        self.host.executor()
    }

    /// Whether the engine runs while all of the user's threads wait.
    pub(crate) fn has_own_thread(&self) -> bool {
        self.host.has_own_thread()
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.engine.fmt(f)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.host.wind_up(self.engine.clone());
    }
}
