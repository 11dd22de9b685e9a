//! Wake-ups by other libraries: while somebody waits for a lock that they may hold, too, the client
//! subscribes to the lock's own channel on every master. Each message there is a hint to ask.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::DropGuard;

use super::hub::{GRACE, WakeHub};
use crate::link::{Subscriber, SubscriptionEvent};
use crate::set::Voters;
use crate::sync::Mutex;
use crate::wire::{MasterIndex, MasterSet};

/// Subscribes to the channel of one lock, for as long as it lives.
pub(crate) struct ForeignWakes {
    state: Arc<ForeignState>,
    _subscriptions: Vec<DropGuard>,
}

struct ForeignState {
    /// The masters that this client is subscribed to.
    subscribed: Mutex<MasterSet>,
    voters: Arc<Voters>,
    /// Notified of a message, and when this client is subscribed to a quorum: a message before that
    /// may have been missed.
    wakes: Notify,
}

impl WakeHub {
    /// Subscribes to the channel of a lock.
    pub(crate) fn listen_for_foreign(self: &Arc<Self>, channel: &Arc<str>) -> ForeignWakes {
        let voters = self.voters();
        let subscribed = Mutex::default();
        let state = Arc::new(ForeignState { subscribed, voters: voters.clone(), wakes: Notify::new() });
        let listen = |index: MasterIndex| {
            let subscriber = state.clone().subscriber(index.into());
            Some(self.spawn(self.masters.get(index)?.listen(channel.clone(), subscriber)))
        };
        let subscriptions = voters.masters.iter().filter_map(listen).collect();
        ForeignWakes { state, _subscriptions: subscriptions }
    }
}

impl ForeignState {
    fn subscriber(self: Arc<Self>, master: MasterSet) -> Subscriber {
        Arc::new(move |event| match event {
            SubscriptionEvent::Message(_) => self.wakes.notify_one(),
            SubscriptionEvent::Subscribed => {
                self.change(|subscribed| subscribed.or(master));
                if self.hears() {
                    self.wakes.notify_one();
                }
            }
            SubscriptionEvent::Disconnected => self.change(|subscribed| subscribed.without(master)),
        })
    }

    fn change(&self, change: impl FnOnce(MasterSet) -> MasterSet) {
        let mut subscribed = self.subscribed.lock();
        *subscribed = change(*subscribed);
    }

    fn hears(&self) -> bool {
        self.voters.have_majority(*self.subscribed.lock())
    }
}

impl ForeignWakes {
    /// Whether these are the masters that it subscribes to.
    pub(crate) fn are_of(&self, voters: &Voters) -> bool {
        self.state.voters.masters == voters.masters
    }

    /// Whether this client is subscribed to a quorum of the masters.
    pub(crate) fn hears(&self) -> bool {
        self.state.hears()
    }

    /// Resolves [`GRACE`] after a message, when the release that it tells of has reached the other
    /// masters, too.
    pub(crate) async fn until_woken(&self) {
        self.state.wakes.notified().await;
        if self.state.voters.len() > 1 {
            tokio::time::sleep(GRACE).await;
        }
    }
}
