//! What one owner holds of one lock, in the process that counts it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

use super::kind::{Kind, Operation};
use crate::clock::Moment;
use crate::owner::Owner;

/// One owner's hold of one lock. Rounds about it run one at a time, in `turn`; guards read its lease at any moment.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) name: Arc<str>,
    pub(crate) key: Arc<str>,
    pub(crate) channel: Arc<str>,
    pub(crate) owner: Owner,
    /// The owner as it stands on the masters.
    pub(crate) field: Arc<str>,
    pub(crate) kind: &'static dyn Kind,
    pub(crate) turn: tokio::sync::Mutex<Count>,
    lease: Mutex<Lease>,
}

/// The count, and what a release has to reach. Whoever has the turn may change it.
#[derive(Debug, Default)]
pub(crate) struct Count {
    /// How many holds the owner has: the number that the masters mirror.
    pub(crate) holds: u32,
    /// How many of its guards have nothing left to give back, because their holds were given back in another way.
    pub(crate) owed: u32,
    /// The masters that may have the key, by their place.
    pub(crate) touched: u16,
    /// When the last key that was asked for is surely gone.
    pub(crate) keys_end: Moment,
    /// Cancelled when the last hold is given up: from then on no straggler of this lease may reach a master.
    pub(crate) standing: CancellationToken,
}

/// What guards go by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lease {
    /// Rises when a lease begins or ends, so that the guards of one cannot take the next one for theirs.
    pub(crate) generation: u64,
    pub(crate) deadline: Moment,
}

impl Hold {
    pub(crate) fn new(
        name: Arc<str>,
        (key, channel): (Arc<str>, Arc<str>),
        owner: Owner,
        kind: &'static dyn Kind,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            key,
            channel,
            owner,
            field: owner.to_string().into(),
            kind,
            turn: Default::default(),
            lease: Default::default(),
        })
    }

    pub(crate) fn operation(&self, count: u32, ttl: std::time::Duration, round: u64) -> Operation<'_> {
        Operation { key: &self.key, channel: &self.channel, owner: &self.field, count, ttl, round }
    }

    pub(crate) fn lease(&self) -> Lease {
        *self.lock()
    }

    /// When the lease of `generation` ends; the origin of time if it is over.
    pub(crate) fn deadline(&self, generation: u64) -> Moment {
        let lease = self.lease();
        if lease.generation == generation { lease.deadline } else { Moment::default() }
    }

    /// A lease begins, and the guards of the one before have lost theirs.
    pub(crate) fn begin(&self, deadline: Moment) -> u64 {
        let mut lease = self.lock();
        *lease = Lease { generation: lease.generation + 1, deadline };
        lease.generation
    }

    /// The lease is no more, and its guards have lost it, whatever comes next.
    pub(crate) fn supersede(&self) {
        self.begin(Moment::default());
    }

    /// The lease goes on until `deadline`, or as long as it did if that is later.
    pub(crate) fn prolong(&self, deadline: Moment) -> u64 {
        let mut lease = self.lock();
        lease.deadline = lease.deadline.max(deadline);
        lease.generation
    }

    /// The lease is over before its time: released, or known to be lost. Its guards may still come to give back.
    pub(crate) fn end(&self) {
        self.lock().deadline = Moment::default();
    }

    fn lock(&self) -> MutexGuard<'_, Lease> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Count {
    /// Whether the master at this place may have the key.
    pub(crate) fn touched(&self, place: usize) -> bool {
        self.touched & (1 << place) != 0
    }

    /// Notes that the master at this place may have the key.
    pub(crate) fn touch(&mut self, place: usize) {
        self.touched |= 1 << place;
    }

    /// The last hold is gone: no straggler of this lease may reach a master any more.
    pub(crate) fn give_up(&mut self) {
        self.holds = 0;
        self.standing.cancel();
        self.standing = CancellationToken::new();
    }

    /// A lease begins with its first hold.
    pub(crate) fn begin(&mut self) {
        self.holds = 1;
        self.owed = 0;
    }
}

/// The holds of named owners, by which they re-enter. It has as many entries as twice the holds that live, or fewer.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<Holds>);

type Holds = HashMap<(Arc<str>, Owner), Weak<Hold>>;

impl Registry {
    /// The hold of `owner` on `name`, if there is one.
    pub(crate) fn find(&self, name: &Arc<str>, owner: Owner) -> Option<Arc<Hold>> {
        self.lock().get(&(name.clone(), owner)).and_then(Weak::upgrade)
    }

    /// The hold of `owner` on `name`, made by `new` if there is none.
    pub(crate) fn find_or(
        &self,
        name: &Arc<str>,
        owner: Owner,
        new: impl FnOnce() -> Arc<Hold>,
    ) -> Arc<Hold> {
        let mut holds = self.lock();
        if let Some(hold) = holds.get(&(name.clone(), owner)).and_then(Weak::upgrade) {
            return hold;
        }
        if holds.len() == holds.capacity() {
            holds.retain(|_, hold| hold.strong_count() > 0);
            let live = holds.len();
            holds.reserve(live + 1); // so that the next sweep is as many entries away as there are
        }
        let hold = new();
        holds.insert((name.clone(), owner), Arc::downgrade(&hold));
        hold
    }

    fn lock(&self) -> MutexGuard<'_, Holds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
