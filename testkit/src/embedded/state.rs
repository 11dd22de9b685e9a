//! What a server has: its keys and its subscribers.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use futures::channel::oneshot;
use quorate::seam::{Subscriber, SubscriptionEvent};

use super::store::Store;

/// A server's inside, behind its lock.
#[derive(Default)]
pub(super) struct State {
    pub(super) store: Store,
    /// How often it restarted, or got older keys.
    pub(super) lives: u64,
    /// Whether it has all that it ever had: it neither restarted, nor lost a key but by its TTL.
    pub(super) is_whole: bool,
    ears: BTreeMap<Vec<u8>, Vec<Listener>>,
    next: u64,
}

struct Listener {
    number: u64,
    ear: Subscriber,
    /// Dropped when the server has lost the subscription.
    _kept: oneshot::Sender<()>,
}

/// Events to deliver once the mutex is unlocked, because a subscriber may call the server again.
#[must_use = "subscribers wait for it"]
pub(super) struct Mail(Vec<(Subscriber, SubscriptionEvent)>);

impl Mail {
    pub(super) fn deliver(self) {
        self.0.into_iter().for_each(|(ear, event)| ear(event));
    }
}

/// A subscription to a channel, which ends when it is dropped.
#[must_use = "the subscription ends when it is dropped"]
pub struct Subscription {
    state: Weak<Mutex<State>>,
    channel: Vec<u8>,
    number: u64,
    lost: oneshot::Receiver<()>,
}

impl State {
    /// An empty server without subscribers.
    pub(super) fn new(run_id: String, started: u64) -> Self {
        let mut state = Self { is_whole: true, ..Self::default() };
        (state.store.run_id, state.store.started) = (run_id, started);
        state
    }

    /// What was published and not delivered yet, for the present subscribers.
    pub(super) fn mail(&mut self) -> Mail {
        if self.store.published.is_empty() {
            return Mail(Vec::new());
        }
        let published = std::mem::take(&mut self.store.published);
        let letters = published.into_iter().flat_map(|(channel, message)| {
            let event = SubscriptionEvent::Message(String::from_utf8_lossy(&message).into());
            let ears = self.ears.get(&channel).into_iter().flatten();
            ears.map(move |listener| (listener.ear.clone(), event.clone()))
        });
        Mail(letters.collect())
    }

    pub(super) fn subscribe(
        &mut self,
        state: Weak<Mutex<Self>>,
        channel: &str,
        ear: Subscriber,
    ) -> Subscription {
        let (kept, lost) = oneshot::channel();
        let channel = channel.as_bytes().to_vec();
        let number = self.next;
        self.next += 1;
        self.ears.entry(channel.clone()).or_default().push(Listener { number, ear, _kept: kept });
        *self.store.listeners.entry(channel.clone()).or_default() += 1;
        Subscription { state, channel, number, lost }
    }

    fn unsubscribe(&mut self, channel: &[u8], number: u64) {
        let Some(listeners) = self.ears.get_mut(channel) else { return };
        listeners.retain(|listener| listener.number != number);
        let left = listeners.len();
        match left {
            0 => {
                self.ears.remove(channel);
                self.store.listeners.remove(channel);
            }
            _ => drop(self.store.listeners.insert(channel.to_vec(), left)),
        }
    }

    /// Loses all subscriptions, as a server that ends does, and what was not handed out.
    pub(super) fn hang_up(&mut self) -> Mail {
        self.store.listeners.clear();
        self.store.published.clear();
        let listeners = std::mem::take(&mut self.ears).into_values().flatten();
        Mail(listeners.map(|listener| (listener.ear, SubscriptionEvent::Disconnected)).collect())
    }
}

impl Subscription {
    /// Resolves when the server has lost it, as it does when it restarts.
    pub async fn lost(&mut self) {
        // Nothing is ever sent: it ends with its sender.
        let _ = (&mut self.lost).await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(state) = self.state.upgrade() {
            lock(&state).unsubscribe(&self.channel, self.number);
        }
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let channel = String::from_utf8_lossy(&self.channel);
        f.debug_struct("Subscription").field("channel", &channel).finish_non_exhaustive()
    }
}

pub(super) fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
