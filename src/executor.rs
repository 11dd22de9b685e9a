//! The executor seam: what runs the engine's tasks.

use tokio::runtime::Handle;

/// Runs tasks, where a simulation has to decide when they are run.
#[cfg(feature = "simulation")]
pub trait Spawn: std::fmt::Debug + Send + Sync + 'static {
    /// Has `task` run to its end, one task at a time, within a tokio runtime that has timers. It
    /// must not run it before it returns.
    fn spawn(&self, task: futures::future::BoxFuture<'static, ()>);
}

/// What runs the tasks of one client.
#[derive(Clone, Debug)]
pub(crate) enum Executor {
    /// Tokio, as it comes.
    Runtime(Handle),
    /// Somebody's own.
    #[cfg(feature = "simulation")]
    Custom(std::sync::Arc<dyn Spawn>),
}

impl Executor {
    /// Has `task` run to its end.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Runtime(runtime) => drop(runtime.spawn(task)),
            #[cfg(feature = "simulation")]
            Self::Custom(custom) => custom.spawn(Box::pin(task)),
        }
    }
}
