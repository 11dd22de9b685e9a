//! Wake-ups by other libraries: while somebody waits for a lock that they may hold, too, the client
//! subscribes to the lock's own channel on every master. Each message there is a hint to ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::hub::{GRACE, WakeHub};
use crate::master::{Subscriber, SubscriptionEvent};

/// Subscribes to the channel of one lock, for as long as it lives.
pub(crate) struct ForeignWakes {
    state: Arc<ForeignState>,
    has_one_master: bool,
    _subscriptions: DropGuard,
}

#[derive(Default)]
struct ForeignState {
    /// The masters that this client is subscribed to: bit `1 << index`.
    subscribed: AtomicU16,
    quorum: u32,
    /// Notified of a message, and when this client is subscribed to a quorum: a message before that
    /// may have been missed.
    wakes: Notify,
}

impl WakeHub {
    /// Subscribes to the channel of a lock.
    pub(crate) fn listen_for_foreign(self: &Arc<Self>, channel: &Arc<str>) -> ForeignWakes {
        let state = Arc::new(ForeignState { quorum: self.quorum, ..ForeignState::default() });
        let stop = CancellationToken::new();
        for (index, master) in self.masters.iter().enumerate() {
            let subscriber = state.clone().subscriber(1 << index);
            self.listen_until(&stop, master.listen(channel.clone(), subscriber));
        }
        ForeignWakes { state, has_one_master: self.masters.len() == 1, _subscriptions: stop.drop_guard() }
    }
}

impl ForeignState {
    fn subscriber(self: Arc<Self>, bit: u16) -> Subscriber {
        Arc::new(move |event| match event {
            SubscriptionEvent::Message(_) => self.wakes.notify_one(),
            SubscriptionEvent::Subscribed => {
                self.subscribed.fetch_or(bit, Ordering::Relaxed);
                if self.hears() {
                    self.wakes.notify_one();
                }
            }
            SubscriptionEvent::Disconnected => drop(self.subscribed.fetch_and(!bit, Ordering::Relaxed)),
        })
    }

    fn hears(&self) -> bool {
        self.subscribed.load(Ordering::Relaxed).count_ones() >= self.quorum
    }
}

impl ForeignWakes {
    /// Whether this client is subscribed to a quorum of the masters.
    pub(crate) fn hears(&self) -> bool {
        self.state.hears()
    }

    /// Resolves [`GRACE`] after a message, when the release that it tells of has reached the other
    /// masters, too.
    pub(crate) async fn until_woken(&self) {
        self.state.wakes.notified().await;
        if !self.has_one_master {
            tokio::time::sleep(GRACE).await;
        }
    }
}
