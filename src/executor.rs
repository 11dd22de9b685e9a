//! The executor seam: what runs the engine's tasks.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::runtime::Handle;

/// Runs tasks, where a simulation has to decide when they are run.
pub trait Spawn: fmt::Debug + Send + Sync + 'static {
    /// Has `task` run to its end, one task at a time, within a tokio runtime that has timers. It
    /// must not run it before it returns.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// What runs the tasks of one client.
#[derive(Clone, Debug)]
pub(crate) enum Executor {
    /// Tokio, as it comes.
    Runtime(Handle),
    /// Somebody's own.
    Custom(Arc<dyn Spawn>),
}

impl Executor {
    /// Has `task` run to its end.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Runtime(runtime) => drop(runtime.spawn(task)),
            Self::Custom(custom) => custom.spawn(Box::pin(task)),
        }
    }
}
