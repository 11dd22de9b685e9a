//! Wake-ups by other libraries: while somebody waits for a lock that these have, too, the client
//! listens on the lock's own channel of every master. Whatever is heard there is a hint to ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::hub::{GRACE, WakeHub};
use crate::master::{Subscriber, SubscriptionEvent};

/// Listens for as long as it lives.
pub(crate) struct ForeignWakes {
    told: Arc<ForeignState>,
    is_alone: bool,
    _listening: DropGuard,
}

#[derive(Default)]
struct ForeignState {
    /// The masters that are heard, by their index.
    heard: AtomicU16,
    quorum: u32,
    /// Told of a release, or that a quorum is heard from now on: what was told before that may have
    /// been missed.
    news: Notify,
}

impl WakeHub {
    /// Listens on the channel of a lock.
    pub(crate) fn listen_for_foreign(self: &Arc<Self>, channel: &Arc<str>) -> ForeignWakes {
        let told = Arc::new(ForeignState { quorum: self.quorum, ..ForeignState::default() });
        let stop = CancellationToken::new();
        for (index, master) in self.masters.iter().enumerate() {
            let subscriber = told.clone().subscriber(1 << index);
            self.listen_until(&stop, master.listen(channel.clone(), subscriber));
        }
        ForeignWakes { told, is_alone: self.masters.len() == 1, _listening: stop.drop_guard() }
    }
}

impl ForeignState {
    fn subscriber(self: Arc<Self>, bit: u16) -> Subscriber {
        Arc::new(move |heard| match heard {
            SubscriptionEvent::Message(_) => self.news.notify_one(),
            SubscriptionEvent::Subscribed => {
                self.heard.fetch_or(bit, Ordering::Relaxed);
                if self.hears() {
                    self.news.notify_one();
                }
            }
            SubscriptionEvent::Disconnected => drop(self.heard.fetch_and(!bit, Ordering::Relaxed)),
        })
    }

    fn hears(&self) -> bool {
        self.heard.load(Ordering::Relaxed).count_ones() >= self.quorum
    }
}

impl ForeignWakes {
    /// Whether a quorum of the masters is heard.
    pub(crate) fn hears(&self) -> bool {
        self.told.hears()
    }

    /// Resolves when there is reason to ask: a release reaches its masters within a moment of the
    /// first.
    pub(crate) async fn rung(&self) {
        self.told.news.notified().await;
        if !self.is_alone {
            tokio::time::sleep(GRACE).await;
        }
    }
}
