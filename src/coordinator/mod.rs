//! The engine: rounds on all masters, quorum, leases, and the clean-up behind them. One implementation for every lock
//! kind; what is asked of a master, and in which words, is `protocol`.
//!
//! A round is `round.rs`; whether it is decided is `quorum.rs`; what its votes mean is `verdict.rs`, and to a waiter
//! `arbitration.rs`. The operations, a file each, are [`acquire`](Coordinator::acquire), [`extend`](Coordinator::extend),
//! [`release`](Coordinator::release), [`inspect`](Coordinator::inspect) and [`list`](Coordinator::list). Their rounds are counted on the client's own
//! thread, and what has to go on by itself is a task there, so that a caller that goes away leaves nothing half done.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::config::Settings;
use crate::error::Error;
use crate::executor::Executor;
use crate::master::{Master, Words};
use crate::owner::Owner;
use crate::protocol::{Kind, Op, Subject, Wakes};
use crate::random::Random;
use crate::renewal::{Renewal, Schedule};
use crate::trust::{MasterStatus, Trust};
use crate::wake::{Lines, Switchboard};

mod acquire;
mod arbitration;
mod attempt;
mod clean_up;
mod era;
mod extend;
mod first;
mod foreign;
mod grant;
mod hand_over;
mod hold;
mod inspect;
mod list;
mod outbox;
mod permits;
mod places;
mod quorum;
mod relay;
mod release;
mod round;
mod sibling;
mod tokens;
mod verdict;
mod wait;
mod watchdog;

pub(crate) use acquire::{Polling, Request};
pub(crate) use grant::Grant;
pub(crate) use hand_over::Adoption;
pub(crate) use inspect::Sighting;
pub(crate) use list::Progress;
use outbox::Outbox;
pub(crate) use quorum::quorum;
use relay::Relay;

/// One client's engine.
pub(crate) struct Coordinator {
    masters: Vec<Arc<dyn Master>>,
    /// Their names.
    names: Box<[Arc<str>]>,
    /// The way to them.
    outbox: Outbox,
    /// The way back to whoever waits.
    relay: Arc<Relay>,
    /// Which of them may vote.
    trust: Arc<Trust>,
    /// Whether somebody has waited for the masters to be connected.
    introduced: AtomicBool,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    settings: Settings,
    executor: Executor,
    tasks: TaskTracker,
    /// How many clean-ups each master has not confirmed.
    untold: Box<[AtomicUsize]>,
    /// Cancelled when the client is shut down.
    closing: CancellationToken,
    client: Uuid,
    /// The last number given to an owner.
    owners: AtomicU64,
    /// The last number given to a round.
    rounds: AtomicU64,
    holds: hold::Registry,
    /// Which permits of semaphores this client has or asks for.
    permits: Arc<permits::Pool>,
    /// Where waiters of this process stand.
    lines: Arc<Lines>,
    /// Where they are woken.
    wakes: Arc<Switchboard>,
    /// When to look at each lease.
    schedule: Arc<Schedule<Arc<hold::Hold>>>,
    /// How leases of the client's own TTL are renewed where nothing else is said.
    usual_renewal: Arc<Renewal>,
    /// Permits for renewals.
    renewing: Semaphore,
}

impl Coordinator {
    pub(crate) fn new(
        masters: Vec<Arc<dyn Master>>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        settings: Settings,
        executor: Executor,
    ) -> Arc<Self> {
        let client = fresh_uuid(&*random);
        let channel = format!("{}{}", Wakes(&settings.prefix), client.hyphenated()).into();
        let trust = Trust::new(settings.terms(masters.len()), clock.clone());
        let places = masters.iter().enumerate();
        places.for_each(|(place, master)| master.introduce(trust.handshake(place)));
        let untold = masters.iter().map(|_| AtomicUsize::new(0)).collect();
        let names = masters.iter().map(|master| master.name().clone()).collect();
        let (outbox, delivering) = Outbox::new(masters.clone());
        executor.spawn(delivering);
        let (relay, relaying) = Relay::new();
        executor.spawn(relaying);
        let wakes = Switchboard::new(masters.clone(), channel, quorum(masters.len()), executor.clone());
        let schedule = Schedule::new(clock.clone());
        let engine = Arc::new(Self {
            schedule: schedule.clone(),
            usual_renewal: Arc::new(Renewal::every_third_of(settings.ttl)),
            renewing: Semaphore::new(watchdog::AT_ONCE),
            lines: Lines::new(settings.max_waiters),
            wakes,
            masters,
            names,
            outbox,
            relay,
            trust,
            introduced: AtomicBool::new(false),
            clock,
            random,
            settings,
            executor,
            tasks: TaskTracker::new(),
            untold,
            closing: CancellationToken::new(),
            client,
            owners: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
            holds: hold::Registry::default(),
            permits: Arc::default(),
        });
        engine.executor.spawn(Self::watch(Arc::downgrade(&engine), schedule));
        engine
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn usual_renewal(&self) -> &Arc<Renewal> {
        &self.usual_renewal
    }

    pub(crate) fn client(&self) -> Uuid {
        self.client
    }

    /// The words of an operation of the owner of `hold`. `trusted` is what it takes for the time.
    fn words(&self, hold: &hold::Hold, round: u64, op: &Op, trusted: u64) -> Words {
        let hold::Hold { name, owner, kind, permit, .. } = hold;
        let subject = Subject { prefix: &self.settings.prefix, kind: *kind, name, permit: *permit };
        op.words(subject, *owner, round, trusted)
    }

    /// The time (us) that an operation goes by: for a new grant, what it proposes as the token.
    fn trusted_for(&self, op: &Op) -> u64 {
        match op {
            Op::Acquire { .. } | Op::Transfer { renews: true, .. } => self.trust.propose(),
            _ => self.trust.time(),
        }
    }

    /// What time it is (since 1970), as most masters show.
    fn time(&self) -> Duration {
        Duration::from_micros(self.trust.time())
    }

    /// How the masters stand with this client.
    pub(crate) fn standings(&self) -> Vec<MasterStatus> {
        let masters = self.masters.iter().map(|master| (master.name(), master.contact()));
        self.trust.status(masters)
    }

    /// What tells these masters, and this key prefix, from others.
    fn fingerprint(&self) -> String {
        let mut words: Vec<&str> = self.names.iter().map(|name| &**name).collect();
        words.sort_unstable();
        words.push(&self.settings.prefix);
        let digest = sha1_smol::Sha1::from(words.join("\n")).digest().to_string();
        digest[..16].to_owned()
    }

    /// An owner that was never given out before.
    pub(crate) fn fresh_owner(&self) -> Owner {
        Owner::new(self.client, self.owners.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Who has a lock on the masters where this owner has it.
    pub(crate) fn owner_on_masters(&self, kind: Kind, name: &Arc<str>, owner: Owner) -> Owner {
        self.holds.find(kind, name, owner).map_or(owner, |hold| hold.owner)
    }

    /// A round number above all before.
    fn next_round(&self) -> u64 {
        self.rounds.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Runs `operation` to its end on the client's own runtime, whether or not the caller still waits for it.
    async fn run<T, F>(self: &Arc<Self>, operation: impl FnOnce(Arc<Self>) -> F) -> Result<T, Error>
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

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.executor.spawn(self.tasks.track_future(task));
    }

    /// Runs `task` on the client's own runtime until it is done, or the client is shut down.
    pub(crate) fn spawn_until_closed(&self, task: impl Future<Output = ()> + Send + 'static) {
        let closing = self.closing.clone();
        self.spawn(async move {
            tokio::select! {
                biased;
                () = closing.cancelled_owned() => {}
                () = task => {}
            }
        });
    }

    /// A time between half of `full` and all of it, so that clients which began together part.
    pub(crate) fn jittered(&self, full: Duration) -> Duration {
        Backoff::new(full, full).delay(self.random.next_u64())
    }

    /// Refuses every acquire, ends those that wait, and resolves when everything else that is under way and every
    /// clean-up is done.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.wakes.close();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// How many operations and clean-ups are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.tasks.len()
    }

    /// The masters that have not confirmed every clean-up, and how many they have not.
    pub(crate) fn untold(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        let counts = self.untold.iter().map(|count| count.load(Ordering::Relaxed));
        self.names.iter().zip(counts).filter(|(_, left)| *left > 0)
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}

fn fresh_uuid(random: &dyn Random) -> Uuid {
    let bits = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
    uuid::Builder::from_random_bytes(bits.to_ne_bytes()).into_uuid()
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.schedule.close();
        self.relay.end();
    }
}

impl fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let masters: Vec<_> = self.masters.iter().map(|master| &**master.name()).collect();
        f.debug_struct("Coordinator")
            .field("client", &self.client)
            .field("masters", &masters)
            .finish_non_exhaustive()
    }
}
