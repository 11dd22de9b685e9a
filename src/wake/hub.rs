//! Where the wake-ups of one client arrive, and which waiters they wake.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::executor::Executor;
use crate::master::{Master, Subscriber, SubscriptionEvent};
use crate::sync::{Mutex, MutexGuard};

/// How long to listen on when nobody waits any more: a client of a contended lock soon waits again.
const LINGER: Duration = Duration::from_secs(2);

/// How long the first master to call a waiter is ahead of the others, at most: then the waiter asks
/// though no quorum has called it. A release reaches its masters within a round trip.
pub(super) const GRACE: Duration = Duration::from_millis(5);

/// Where one client's wake-ups arrive.
pub(crate) struct WakeHub {
    pub(super) masters: Vec<Arc<dyn Master>>,
    channel: Arc<str>,
    pub(super) quorum: u32,
    executor: Executor,
    /// Told when the last waiter has left.
    idle: Notify,
    state: Mutex<Listeners>,
}

#[derive(Default)]
struct Listeners {
    /// The masters whose messages arrive, by their index.
    heard: u16,
    /// By the number that a master calls, which is that of one attempt's ticket.
    bells: BTreeMap<u64, Arc<watch::Sender<Signals>>>,
    waiters: usize,
    /// Ends the listening that is under way.
    stop: Option<CancellationToken>,
}

/// What has happened since the waiter got its handle.
#[derive(Clone, Copy, Debug, Default)]
struct Signals {
    /// The masters that have called it, by their index.
    calls: u16,
    /// The masters whose call it may have missed: those that were not heard at the start, and those
    /// that were lost since. It says nothing of the present: one that is heard again stays missed.
    missed: u16,
    /// It is to ask even if it was not called: calls may have been missed on too many masters and
    /// would arrive now, or too few masters are left that could call it.
    again: bool,
}

impl WakeHub {
    pub(crate) fn new(
        masters: Vec<Arc<dyn Master>>,
        channel: Arc<str>,
        quorum: usize,
        executor: Executor,
    ) -> Arc<Self> {
        let quorum = u32::try_from(quorum).expect("there are few masters");
        Arc::new(Self { masters, channel, quorum, executor, idle: Notify::new(), state: Default::default() })
    }

    /// Whether messages arrive from a quorum of the masters.
    pub(crate) fn hears(&self) -> bool {
        self.lock().heard.count_ones() >= self.quorum
    }

    /// Somebody waits, for as long as this lives: the client listens.
    pub(crate) fn attend(self: &Arc<Self>) -> Subscription {
        let mut state = self.lock();
        state.waiters += 1;
        if state.stop.is_none() {
            let stop = CancellationToken::new();
            state.stop = Some(stop.clone());
            for index in 0..self.masters.len() {
                let listening = self.masters[index].listen(self.channel.clone(), self.subscriber(index));
                self.listen_until(&stop, listening);
            }
            let hub = self.clone();
            self.listen_until(&stop, async move { hub.end_when_idle().await });
        }
        Subscription { hub: self.clone() }
    }

    pub(super) fn listen_until(
        &self,
        stop: &CancellationToken,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = stop.clone().run_until_cancelled_owned(task);
        self.executor.spawn(async move {
            let _ = task.await; // to its end, or to that of the listening
        });
    }

    /// A handle for the waiter with this ticket number. Get it before asking the masters.
    pub(crate) fn bell(self: &Arc<Self>, number: u64) -> WakeHandle {
        let mut state = self.lock();
        let signals = Signals { missed: !state.heard, ..Signals::default() };
        let signals = Arc::new(watch::Sender::new(signals));
        state.bells.insert(number, signals.clone());
        WakeHandle { hub: self.clone(), number, signals }
    }

    /// Stops listening.
    pub(crate) fn close(&self) {
        self.lock().stop_listening();
    }

    async fn end_when_idle(&self) {
        loop {
            self.idle.notified().await;
            // A waiter that came and left meanwhile may come again.
            while tokio::time::timeout(LINGER, self.idle.notified()).await.is_ok() {}
            let mut state = self.lock();
            if state.waiters == 0 {
                return state.stop_listening();
            }
        }
    }

    fn subscriber(self: &Arc<Self>, index: usize) -> Subscriber {
        let hub = Arc::downgrade(self);
        let bit = 1 << index;
        Arc::new(move |heard| {
            let Some(hub) = hub.upgrade() else { return };
            match heard {
                SubscriptionEvent::Message(number) => hub.call(bit, &number),
                SubscriptionEvent::Subscribed => hub.subscribed(bit),
                SubscriptionEvent::Disconnected => hub.disconnected(bit),
            }
        })
    }

    fn call(&self, bit: u16, number: &str) {
        let state = self.lock();
        if let Some(bell) = number.parse().ok().and_then(|number: u64| state.bells.get(&number)) {
            bell.send_modify(|signals| signals.calls |= bit);
        }
    }

    fn subscribed(&self, bit: u16) {
        let mut state = self.lock();
        state.heard |= bit;
        let heard = state.heard;
        if heard.count_ones() < self.quorum {
            return;
        }
        for bell in state.bells.values() {
            // The masters whose calls it cannot have missed, and those that can call it now.
            bell.send_if_modified(|signals| {
                signals.again |= (heard & !signals.missed).count_ones() < self.quorum;
                signals.again
            });
        }
    }

    fn disconnected(&self, bit: u16) {
        let mut state = self.lock();
        let enough = |heard: u16| heard.count_ones() >= self.quorum;
        let before = state.heard;
        state.heard &= !bit;
        for bell in state.bells.values() {
            bell.send_modify(|signals| signals.missed |= bit);
        }
        if enough(before) && !enough(state.heard) {
            state.ring_all(); // those that stand in the queues would sleep on: from now on it polls
        }
    }

    fn lock(&self) -> MutexGuard<'_, Listeners> {
        self.state.lock()
    }
}

impl Listeners {
    /// Makes everybody ask.
    fn ring_all(&self) {
        for bell in self.bells.values() {
            bell.send_modify(|signals| signals.again = true);
        }
    }

    fn stop_listening(&mut self) {
        self.heard = 0;
        self.ring_all(); // somebody may have come just now
        if let Some(stop) = self.stop.take() {
            stop.cancel();
        }
    }
}

/// A waiter that makes the client listen.
pub(crate) struct Subscription {
    hub: Arc<WakeHub>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.hub.lock();
        state.waiters -= 1;
        if state.waiters == 0 {
            self.hub.idle.notify_one();
        }
    }
}

/// What one waiter is rung by.
pub(crate) struct WakeHandle {
    hub: Arc<WakeHub>,
    number: u64,
    signals: Arc<watch::Sender<Signals>>,
}

impl WakeHandle {
    /// Resolves when a quorum of the masters has called, or calls may have been missed.
    pub(crate) async fn rung_by_quorum(&self) {
        let quorum = self.hub.quorum;
        self.until(|signals| signals.again || signals.calls.count_ones() >= quorum).await;
    }

    /// The same, or some time after the first call.
    pub(crate) async fn rung(&self) {
        self.until(|signals| signals.again || signals.calls != 0).await;
        let _ = tokio::time::timeout(GRACE, self.rung_by_quorum()).await;
    }

    async fn until(&self, wanted: impl Fn(&Signals) -> bool) {
        // The sender is ours, so this cannot fail.
        let _ = self.signals.subscribe().wait_for(|signals| wanted(signals)).await;
    }
}

impl Drop for WakeHandle {
    fn drop(&mut self) {
        self.hub.lock().bells.remove(&self.number);
    }
}
