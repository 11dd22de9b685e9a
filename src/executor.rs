//! The executor seam: what runs the engine's tasks.

use tokio::runtime::Handle;

/// Runs tasks, so that a simulation can decide when.
#[cfg(feature = "unstable-testing")]
pub trait Spawn: std::fmt::Debug + Send + Sync + 'static {
    /// Runs `task` to its end, one task at a time, within a tokio runtime that has timers, and not
    /// before this returns.
    fn spawn(&self, task: futures::future::BoxFuture<'static, ()>);
}

/// What runs the tasks of one client.
#[derive(Clone, Debug)]
pub(crate) enum Executor {
    /// A tokio runtime.
    Runtime(Handle),
    /// A simulation's.
    #[cfg(feature = "unstable-testing")]
    Custom(std::sync::Arc<dyn Spawn>),
}

impl Executor {
    /// Runs `task` to its end.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Runtime(runtime) => drop(runtime.spawn(task)),
            #[cfg(feature = "unstable-testing")]
            Self::Custom(custom) => custom.spawn(Box::pin(task)),
        }
    }
}
