//! What all handles of one client share: its engine, and the I/O thread that runs it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::executor::Executor;
use crate::sync::Mutex;

/// The inside of a [`Redlock`](crate::Redlock), which locks and guards share: the thread ends with
/// the last of them.
pub(crate) struct Inner {
    pub(crate) engine: Arc<Engine>,
    pub(crate) host: Host,
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

/// How long the engine goes on after the last handle was dropped, to send releases and clean-ups.
const LONGEST_WIND_UP: Duration = Duration::from_secs(5);

/// How long the drop of the last handle waits for that, so that a program which ends right
/// afterwards has released. Masters that answer take much less.
const LONGEST_DROP: Duration = Duration::from_millis(250);

/// A runtime for the engine, on a thread of its own or lent by the user.
pub(crate) struct Host {
    pub(crate) executor: Executor,
    /// Cancelled when all tasks on this host have to end.
    pub(crate) stop: CancellationToken,
    /// Its sender is dropped when the thread is done.
    ended: Option<Mutex<mpsc::Receiver<()>>>,
}

impl Host {
    /// A thread of its own, so that the engine does not depend on the user's runtimes.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let executor = Executor::Runtime(runtime.handle().clone());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let (alive, ended) = mpsc::channel();
        std::thread::Builder::new().name("quorate-io".into()).spawn(move || {
            runtime.block_on(stopped.cancelled());
            runtime.shutdown_background();
            drop(alive);
        })?;
        Ok(Self { executor, stop, ended: Some(Mutex::new(ended)) })
    }

    /// For tasks that `executor` runs, in a simulation for example.
    pub(crate) fn on(executor: Executor) -> Self {
        Self { executor, stop: CancellationToken::new(), ended: None }
    }

    /// Whether it runs while the user's threads wait.
    pub(crate) fn has_own_thread(&self) -> bool {
        self.ended.is_some()
    }

    /// Lets `engine` finish what it has begun, then ends. If there is anything, waits a moment for
    /// it.
    pub(crate) fn wind_up(&self, engine: Arc<Engine>) {
        // A shutdown has waited already.
        let wait = engine.under_way() > 0 && !engine.is_closed();
        let stop = self.stop.clone();
        self.executor.spawn(async move {
            let _ = tokio::time::timeout(LONGEST_WIND_UP, engine.close()).await; // what is left dies with its TTL
            stop.cancel();
        });
        if let (true, Some(ended)) = (wait, &self.ended) {
            let ended = ended.lock();
            let _ = ended.recv_timeout(LONGEST_DROP); // never sends: returns at the hang-up or the time-out
        }
    }
}
