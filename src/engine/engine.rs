//! One client's engine: its parts, and how its tasks are run.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::leases::Leases;
use crate::backoff::jittered;
use crate::config::Settings;
use crate::error::Error;
use crate::executor::Executor;
use crate::link::Masters;
use crate::owner::Owner;
use crate::random::Random;
use crate::renewal::Renewal;
use crate::round::Dispatcher;
use crate::set::MasterStatus;
use crate::text::digest;
use crate::time::Clock;
use crate::wake::{LocalQueues, WakeHub};
use crate::wire::{ByMaster, Kind, MasterIndex, WakeChannelPrefix};

/// One client's engine.
pub(crate) struct Engine {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(super) leases: Leases,
    /// The lines of this client's waiters.
    pub(super) local_queues: Arc<LocalQueues>,
    /// Where masters wake the waiters of this client.
    pub(super) hub: Arc<WakeHub>,
    pub(super) random: Arc<dyn Random>,
    pub(crate) settings: Settings,
    pub(super) executor: Executor,
    pub(super) tasks: TaskTracker,
    /// Locked while this client changes its set: one change after the other.
    pub(crate) changing: tokio::sync::Mutex<()>,
    /// Locked by an `init` or a `recover`: whichever ends first ends what it said to the set.
    pub(crate) beginning: tokio::sync::Mutex<()>,
    /// Cancelled when the client is shut down, or its runtime has ended.
    pub(super) closing: CancellationToken,
    /// How many clean-ups each master has not acknowledged.
    pub(super) unacknowledged: ByMaster<AtomicUsize>,
    client: Uuid,
}

impl Engine {
    pub(crate) fn new(
        masters: Arc<Masters>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        settings: Settings,
        executor: Executor,
    ) -> Arc<Self> {
        let client = fresh_uuid(|| random.next_u64());
        let channel = format!("{}{}", WakeChannelPrefix(&settings.prefix), client.hyphenated()).into();
        let dispatcher =
            Dispatcher::new(masters.clone(), clock.clone(), random.clone(), &settings, &executor);
        let trust = dispatcher.trust().clone();
        let engine = Arc::new(Self {
            dispatcher,
            leases: Leases::new(clock, settings.ttl),
            hub: WakeHub::new(masters, channel, trust.voters(), executor.clone()),
            local_queues: LocalQueues::new(settings.max_waiters),
            random,
            settings,
            executor,
            tasks: TaskTracker::new(),
            changing: tokio::sync::Mutex::default(),
            beginning: tokio::sync::Mutex::default(),
            closing: CancellationToken::new(),
            unacknowledged: ByMaster::all(AtomicUsize::default),
            client,
        });
        let following = Arc::downgrade(&engine);
        trust.tell(move |voters| {
            if let Some(engine) = following.upgrade() {
                engine.dispatcher.follow(voters);
                engine.hub.follow(|| engine.dispatcher.voters());
            }
        });
        let gathering = engine.dispatcher.clone().gather_evidence();
        let closing = engine.closing.clone();
        engine.executor.spawn(async move {
            let _closes = closing.clone().drop_guard(); // a runtime that ends drops this
            closing.run_until_cancelled_owned(gathering).await;
        });
        engine.watch_leases();
        engine
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn usual_renewal(&self) -> &Arc<Renewal> {
        &self.leases.usual_renewal
    }

    pub(crate) fn client(&self) -> Uuid {
        self.client
    }

    /// How the masters stand with this client.
    pub(crate) fn master_status(&self) -> Vec<MasterStatus> {
        let masters = self.dispatcher.masters();
        self.dispatcher.trust().status(|index| masters.get(index).and_then(|master| master.contact()))
    }

    /// The same for all clients of this set of masters with this key prefix, whatever becomes of
    /// the set, and for no others.
    pub(super) fn fingerprint(&self) -> String {
        let set = self.dispatcher.trust().set().identity();
        let mut words: Vec<&str> = set.iter().map(|name| &**name).collect();
        words.sort_unstable();
        words.push(&self.settings.prefix);
        digest(&words.join("\n"), 16)
    }

    /// An owner that was never given out before, nor by a copy of this process.
    pub(crate) fn fresh_owner(&self) -> Owner {
        Owner::new(self.client, self.random.fresh_u64().max(1)) // 0 is nobody's
    }

    /// The owner that masters know as the holder when this owner has the lock.
    pub(crate) fn owner_on_masters(&self, kind: Kind, name: &Arc<str>, owner: Owner) -> Owner {
        self.leases.holds.find(kind, name, owner).map_or(owner, |hold| hold.lock.owner)
    }

    /// Whether a caller may attempt at once: no caller of this client is in line for the lock, and
    /// the client is not subscribed to a quorum of its masters. While it is, for whichever lock, a
    /// caller attempts as a waiter does, with a place in the queues, so that it is woken if it is
    /// refused. (That takes a task and the full script.)
    pub(super) fn may_attempt_at_once(&self, kind: Kind, name: &Arc<str>) -> bool {
        !self.hub.is_subscribed() && !self.local_queues.has(kind.word(), name)
    }

    /// Runs `operation` to its end on the client's own runtime, whether or not the caller still
    /// waits for it.
    pub(crate) async fn run<T, F>(
        self: &Arc<Self>,
        operation: impl FnOnce(Arc<Self>) -> F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let operation = operation(self.clone());
        self.spawn(async move {
            let _ = reply.send(operation.await); // the caller may have gone
        });
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// Runs `operation` as a task, from now on and for as long as the caller waits for it.
    pub(crate) fn run_while_wanted<T, F>(
        &self,
        operation: F,
    ) -> impl Future<Output = Result<T, Error>> + use<T, F>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let (mut reply, answer) = oneshot::channel();
        self.spawn(async move {
            let outcome = tokio::select! {
                biased;
                () = reply.closed() => return,
                outcome = operation => outcome,
            };
            let _ = reply.send(outcome);
        });
        async { answer.await.unwrap_or(Err(Error::Closed)) }
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.executor.spawn(self.tasks.track_future(task));
    }

    /// Runs `task` on the client's own runtime until it is done, or the client is shut down.
    pub(crate) fn spawn_until_closed(&self, task: impl Future<Output = ()> + Send + 'static) {
        let closing = self.closing.clone();
        self.spawn(async move {
            closing.run_until_cancelled_owned(task).await;
        });
    }

    /// A time between half of `full` and all of it, so that clients which began together spread
    /// out.
    pub(crate) fn jittered(&self, full: Duration) -> Duration {
        jittered(full, self.random.next_u64())
    }

    /// Refuses every acquire, and ends those that wait. Resolves when all other operations that are
    /// under way are done, and all clean-ups.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.hub.close();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Whether [`Engine::close`] was called, or the runtime has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// How many operations and clean-ups are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.tasks.len()
    }

    /// The masters that have not acknowledged every clean-up, with how many they have not.
    pub(crate) fn unacknowledged(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        let left = |index: MasterIndex| self.unacknowledged[index].load(Ordering::Relaxed);
        let masters = self.dispatcher.masters().iter();
        masters.map(move |(index, master)| (master.name(), left(index))).filter(|(_, left)| *left > 0)
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        self.dispatcher.clock()
    }
}

pub(super) fn fresh_uuid(draw: impl Fn() -> u64) -> Uuid {
    let bits = u128::from(draw()) << 64 | u128::from(draw());
    uuid::Builder::from_random_bytes(bits.to_ne_bytes()).into_uuid()
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.leases.schedule.close();
        self.dispatcher.end();
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("client", &self.client)
            .field("masters", &self.dispatcher.masters())
            .finish_non_exhaustive()
    }
}
