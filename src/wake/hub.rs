//! Receives one client's wake-ups, and wakes the waiters that they name.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::executor::Executor;
use crate::link::{Masters, Subscriber, SubscriptionEvent};
use crate::set::Voters;
use crate::sync::Mutex;
use crate::wire::{MasterIndex, MasterSet};

/// How long to stay subscribed when nobody waits any more: a client of a contended lock soon waits
/// again.
const STAY_SUBSCRIBED: Duration = Duration::from_secs(2);

/// How long a waiter that one master has woken waits for the others: then it asks even if no quorum
/// has woken it. A release reaches its masters within a round trip.
pub(super) const GRACE: Duration = Duration::from_millis(5);

/// Receives one client's wake-ups, and wakes the waiters that they name.
pub(crate) struct WakeHub {
    pub(super) masters: Arc<Masters>,
    channel: Arc<str>,
    executor: Executor,
    /// Notified when the last waiter has left.
    idle: Notify,
    state: Mutex<HubState>,
}

struct HubState {
    /// The masters that wake.
    voters: Arc<Voters>,
    /// What ends listening to each master, while this client does.
    listening: BTreeMap<MasterIndex, DropGuard>,
    /// The masters that this client is subscribed to.
    subscribed: MasterSet,
    /// The signals of each [`WakeHandle`], by the ticket number that a message carries.
    handles: BTreeMap<u64, Arc<watch::Sender<Signals>>>,
    waiters: usize,
    /// Ends the waiting for the last waiter, while this client listens.
    stop: Option<DropGuard>,
}

/// What has happened since a waiter got its handle.
#[derive(Clone, Copy, Debug, Default)]
struct Signals {
    /// The masters that have woken it.
    woken_by: MasterSet,
    /// The masters whose wake-up it may have missed: this client was not subscribed to them at the
    /// start, or lost the subscription since. None is ever taken out, also after a reconnect.
    missed: MasterSet,
    /// It must ask even if it is not woken: wake-ups of too many masters may have been missed, and
    /// a quorum can wake it from now on; or too few masters are left that could.
    must_ask: bool,
}

impl WakeHub {
    pub(crate) fn new(
        masters: Arc<Masters>,
        channel: Arc<str>,
        voters: Arc<Voters>,
        executor: Executor,
    ) -> Arc<Self> {
        let state = HubState {
            voters,
            listening: BTreeMap::new(),
            subscribed: MasterSet::default(),
            handles: BTreeMap::new(),
            waiters: 0,
            stop: None,
        };
        Arc::new(Self { masters, channel, executor, idle: Notify::new(), state: Mutex::new(state) })
    }

    /// The masters that wake are others from now on. They are read with the lock held, so that of
    /// two calls at once the last one has the newest.
    pub(crate) fn follow(self: &Arc<Self>, newest: impl FnOnce() -> Arc<Voters>) {
        let mut state = self.state.lock();
        state.voters = newest();
        if state.stop.is_some() {
            self.listen(&mut state);
        }
        state.all_must_ask(); // some have a place with masters that wake them no more
    }

    /// The masters that wake now.
    pub(crate) fn voters(&self) -> Arc<Voters> {
        self.state.lock().voters.clone()
    }

    /// Whether this client is subscribed to a quorum of the masters.
    pub(crate) fn is_subscribed(&self) -> bool {
        let state = self.state.lock();
        state.is_quorum(state.subscribed)
    }

    /// Keeps this client subscribed for as long as the [`Subscription`] lives.
    pub(crate) fn subscribe(self: &Arc<Self>) -> Subscription {
        let mut state = self.state.lock();
        state.waiters += 1;
        if state.stop.is_none() {
            self.listen(&mut state);
            let hub = self.clone();
            state.stop = Some(self.spawn(async move { hub.end_when_idle().await }));
        }
        Subscription { hub: self.clone() }
    }

    /// Listens to all voters, and to no other masters.
    fn listen(self: &Arc<Self>, state: &mut HubState) {
        let voters = state.voters.masters;
        state.listening.retain(|index, _| voters.has(*index));
        state.subscribed = state.subscribed.and(voters);
        for index in voters.iter() {
            if let Entry::Vacant(place) = state.listening.entry(index)
                && let Some(master) = self.masters.get(index)
            {
                place.insert(self.spawn(master.listen(self.channel.clone(), self.subscriber(index))));
            }
        }
    }

    /// Runs a task until it ends, or the guard is dropped.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> DropGuard {
        let stop = CancellationToken::new();
        let task = stop.clone().run_until_cancelled_owned(task);
        self.executor.spawn(async move {
            let _ = task.await; // it is over either way
        });
        stop.drop_guard()
    }

    /// A handle for the waiter with this ticket number. Get it before asking the masters.
    pub(crate) fn wake_handle(self: &Arc<Self>, number: u64) -> WakeHandle {
        let mut state = self.state.lock();
        let signals =
            Signals { missed: state.voters.masters.without(state.subscribed), ..Signals::default() };
        let signals = Arc::new(watch::Sender::new(signals));
        state.handles.insert(number, signals.clone());
        WakeHandle { hub: self.clone(), number, signals }
    }

    /// Ends the subscriptions.
    pub(crate) fn close(&self) {
        self.state.lock().unsubscribe();
    }

    async fn end_when_idle(&self) {
        loop {
            self.idle.notified().await;
            // Each waiter that comes and leaves in this time begins it anew.
            while tokio::time::timeout(STAY_SUBSCRIBED, self.idle.notified()).await.is_ok() {}
            let mut state = self.state.lock();
            if state.waiters == 0 {
                return state.unsubscribe();
            }
        }
    }

    fn subscriber(self: &Arc<Self>, index: MasterIndex) -> Subscriber {
        let hub = Arc::downgrade(self);
        let master = MasterSet::from(index);
        Arc::new(move |event| {
            let Some(hub) = hub.upgrade() else { return };
            match event {
                SubscriptionEvent::Message(number) => hub.on_wake(master, &number),
                SubscriptionEvent::Subscribed => hub.on_subscribed(master),
                SubscriptionEvent::Disconnected => hub.on_disconnected(master),
            }
        })
    }

    fn on_wake(&self, master: MasterSet, number: &str) {
        let state = self.state.lock();
        if let Some(handle) = number.parse().ok().and_then(|number: u64| state.handles.get(&number)) {
            handle.send_modify(|signals| signals.woken_by = signals.woken_by.or(master));
        }
    }

    fn on_subscribed(&self, master: MasterSet) {
        let mut state = self.state.lock();
        state.subscribed = state.subscribed.or(master).and(state.voters.masters);
        if !state.is_quorum(state.subscribed) {
            return;
        }
        for handle in state.handles.values() {
            // Without a quorum whose wake-ups it cannot have missed, the waiter must ask. Now is
            // the time: from now on a quorum can wake it.
            handle.send_if_modified(|signals| {
                signals.must_ask |= !state.is_quorum(state.subscribed.without(signals.missed));
                signals.must_ask
            });
        }
    }

    fn on_disconnected(&self, master: MasterSet) {
        let mut state = self.state.lock();
        let before = state.subscribed;
        state.subscribed = before.without(master);
        for handle in state.handles.values() {
            handle.send_modify(|signals| signals.missed = signals.missed.or(master));
        }
        if state.is_quorum(before) && !state.is_quorum(state.subscribed) {
            state.all_must_ask(); // no quorum can wake them any more: from now on waiters poll
        }
    }
}

impl HubState {
    /// Whether most of the voters are among these.
    fn is_quorum(&self, masters: MasterSet) -> bool {
        self.voters.have_majority(masters)
    }

    fn all_must_ask(&self) {
        for handle in self.handles.values() {
            handle.send_modify(|signals| signals.must_ask = true);
        }
    }

    fn unsubscribe(&mut self) {
        self.listening.clear();
        self.subscribed = MasterSet::default();
        self.all_must_ask(); // a waiter may have come just now
        self.stop = None;
    }
}

/// Keeps the client subscribed while a waiter has it.
pub(crate) struct Subscription {
    hub: Arc<WakeHub>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.hub.state.lock();
        state.waiters -= 1;
        if state.waiters == 0 {
            self.hub.idle.notify_one();
        }
    }
}

/// Resolves when one waiter is to ask the masters again.
pub(crate) struct WakeHandle {
    hub: Arc<WakeHub>,
    number: u64,
    signals: Arc<watch::Sender<Signals>>,
}

impl WakeHandle {
    /// Resolves when a quorum of the masters has woken this waiter, or it must ask.
    pub(crate) async fn until_woken_by_quorum(&self) {
        let voters = self.hub.voters();
        self.until(|signals| signals.must_ask || voters.have_majority(signals.woken_by)).await;
    }

    /// The same, or [`GRACE`] after the first master has woken it.
    pub(crate) async fn until_woken(&self) {
        self.until(|signals| signals.must_ask || !signals.woken_by.is_empty()).await;
        let _ = tokio::time::timeout(GRACE, self.until_woken_by_quorum()).await;
    }

    async fn until(&self, wanted: impl Fn(&Signals) -> bool) {
        // The sender is ours, so this cannot fail.
        let _ = self.signals.subscribe().wait_for(|signals| wanted(signals)).await;
    }
}

impl Drop for WakeHandle {
    fn drop(&mut self) {
        self.hub.state.lock().handles.remove(&self.number);
    }
}
