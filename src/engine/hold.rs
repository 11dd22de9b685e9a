//! What one owner holds of one lock, in the process that counts it.
//!
//! Three numbers say what is stale:
//!
//! | number | rises | who compares it |
//! |---|---|---|
//! | `epochs` | when the last hold is given up or given away | an operation that was not sent yet: it is not sent any more |
//! | `generation` | when a lease begins | a guard: it can neither use nor release the next lease |
//! | `surplus` | when a hold is given back without its guard | a guard: it has nothing left to give back |

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::master_set::MasterSet;
use super::permits::{Picked, site};
use crate::clock::{Clock, Moment};
use crate::error::{Error, Loss};
use crate::owner::Owner;
use crate::protocol::{Kind, Permit};
use crate::renewal::{LeaseTimer, Scheduled};
use crate::sync::{Mutex, MutexGuard};
use crate::vote::Vote;

/// One owner's hold of one lock. Rounds about it run one at a time, under the `op_lock`; guards
/// read its lease at any moment.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) name: Arc<str>,
    pub(crate) owner: Owner,
    pub(crate) kind: Kind,
    /// Which permit it is, of a semaphore.
    pub(crate) permit: Option<Permit>,
    /// What it is watched under, in strict mode.
    pub(super) site: Arc<str>,
    /// Keeps this client from asking for the permit again.
    _picked: Option<Picked>,
    pub(crate) op_lock: Arc<tokio::sync::Mutex<HoldState>>,
    lease: Mutex<Lease>,
    pub(super) epochs: Epochs,
    /// Told when a lease begins. Only a named owner has somebody to tell.
    begun: Option<Box<Notify>>,
}

/// The count, and what a release has to reach. It changes under the `op_lock`.
#[derive(Debug, Default)]
pub(crate) struct HoldState {
    /// How many holds the owner has: the number that the masters mirror.
    pub(crate) holds: u32,
    /// How many of its guards have nothing left to give back, because their holds were given back
    /// in another way.
    pub(crate) surplus: u32,
    /// The masters that may have an entry of it, or a place in the queue.
    pub(super) maybe_held_on: MasterSet,
    /// When what was asked for is surely over everywhere.
    pub(crate) expires_by: Moment,
    /// The first round of the lease.
    pub(super) first_round: u64,
    /// Whether the owner may have a place in a queue, as its own ticket.
    pub(super) is_queued: bool,
}

/// What a lease rests on, besides its time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaseTerms {
    /// The token of its grant; 0 in a layout of another library.
    pub(crate) token: u64,
    /// For how long the lock is kept from others should it end without a release.
    pub(crate) delay: Duration,
    /// The label that others see; may be empty.
    pub(crate) label: Arc<str>,
}

/// What guards go by.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// Rises when a lease begins or ends, so that the guards of one cannot take the next one for
    /// theirs.
    pub(crate) generation: u64,
    pub(crate) timer: LeaseTimer,
    pub(crate) terms: LeaseTerms,
    /// Why it is lost, once it is: then it is not renewed any more.
    pub(crate) lost: Option<Loss>,
    /// Why the last renewal failed, if it did.
    pub(crate) trouble: Option<Box<Error>>,
    /// Where it is on the schedule.
    pub(super) entry: Option<Scheduled>,
    /// Cancelled when the lease is lost or over. Made on first use.
    ended: Option<CancellationToken>,
}

impl Hold {
    pub(crate) fn new(name: Arc<str>, owner: Owner, kind: Kind, permit: Option<Permit>) -> Arc<Self> {
        Arc::new(Self::with(name, owner, kind, permit))
    }

    /// The hold of a permit that was picked to be asked for.
    pub(super) fn of_picked(name: Arc<str>, owner: Owner, kind: Kind, picked: Picked) -> Arc<Self> {
        let permit = Some(picked.permit);
        Arc::new(Self { _picked: Some(picked), ..Self::with(name, owner, kind, permit) })
    }

    /// The hold of an owner that was named, and may wait in several places for what it gets in one.
    fn of_named(name: Arc<str>, owner: Owner, kind: Kind) -> Arc<Self> {
        Arc::new(Self { begun: Some(Box::default()), ..Self::with(name, owner, kind, None) })
    }

    fn with(name: Arc<str>, owner: Owner, kind: Kind, permit: Option<Permit>) -> Self {
        let (op_lock, lease, epochs) = Default::default();
        let site = site(&name, permit);
        Self { name, owner, kind, permit, site, _picked: None, op_lock, lease, epochs, begun: None }
    }

    /// How many permits there are, of a semaphore.
    pub(super) fn permits(&self) -> Option<u32> {
        self.permit.map(|permit| permit.of)
    }

    pub(crate) fn lease(&self) -> MutexGuard<'_, Lease> {
        self.lease.lock()
    }

    /// When the lease of `generation` ends; the origin of time if it is over.
    pub(crate) fn deadline(&self, generation: u64) -> Moment {
        let lease = self.lease();
        if lease.generation == generation { lease.timer.deadline } else { Moment::default() }
    }

    /// Whether there is a lease that is neither over nor given up.
    pub(crate) fn stands(&self, now: Moment) -> bool {
        let lease = self.lease();
        lease.lost.is_none() && now < lease.timer.deadline
    }

    /// Waits until there is such a lease.
    pub(crate) async fn until_it_stands(&self, clock: &dyn Clock) {
        loop {
            let begun = self.begun.as_ref().map(|begun| begun.notified());
            if self.stands(clock.now()) {
                return;
            }
            match begun {
                Some(begun) => begun.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Tells that a lease has begun.
    pub(super) fn tell_begun(&self) {
        if let Some(begun) = &self.begun {
            begun.notify_waiters();
        }
    }

    /// The last hold is gone: no straggler of this lease may reach a master any more.
    pub(super) fn give_up(&self, state: &mut HoldState) {
        state.holds = 0;
        self.epochs.end();
    }

    /// A sign of life of the work under the lease of `generation`.
    pub(crate) fn touch(&self, generation: u64, now: Moment) {
        let mut lease = self.lease();
        if lease.generation == generation {
            lease.timer.touched = lease.timer.touched.max(now);
        }
    }

    /// Cancelled when the lease of `generation` is lost or over.
    pub(crate) fn ended(&self, generation: u64) -> CancellationToken {
        let mut lease = self.lease();
        if lease.generation == generation {
            return lease.ended();
        }
        let over = CancellationToken::new();
        over.cancel();
        over
    }

    /// How the lease of `generation` was lost, as an error; `None` while it stands at `now`.
    pub(crate) fn loss(&self, generation: u64, now: Moment) -> Option<Error> {
        let lease = self.lease();
        let same = lease.generation == generation;
        let over = !same || now >= lease.timer.deadline;
        let cause = lease.lost.filter(|_| same).or(over.then_some(Loss::Expired))?;
        Some(self.lost(cause, lease.trouble.as_ref().filter(|_| same).map_or(&[], |error| error.votes())))
    }

    /// The error for a lease that was lost so.
    pub(crate) fn lost(&self, cause: Loss, votes: &[Vote]) -> Error {
        Error::Lost { name: self.name.clone(), cause, votes: votes.into() }
    }
}

/// Counts the eras of one hold. One ends when the last hold is given up, or given away.
#[derive(Debug, Default)]
pub(super) struct Epochs(AtomicU64);

/// The era of a hold in which something was asked. What was not sent in it is not sent any more:
/// the owner gave up what it had.
#[derive(Clone)]
pub(super) struct Epoch {
    hold: Arc<Hold>,
    number: u64,
}

impl Epochs {
    /// The present one ends: what was not sent yet is not sent any more.
    pub(super) fn end(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    fn number(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

impl Epoch {
    /// The present one.
    pub(super) fn of(hold: &Arc<Hold>) -> Self {
        Self { hold: hold.clone(), number: hold.epochs.number() }
    }

    pub(super) fn is_over(&self) -> bool {
        self.hold.epochs.number() != self.number
    }
}

impl Lease {
    fn ended(&mut self) -> CancellationToken {
        let over = self.is_over();
        let token = self.ended.get_or_insert_with(CancellationToken::new);
        if over {
            token.cancel();
        }
        token.clone()
    }

    /// Whether there is none, or none that would be kept: it was released, lost, or never began.
    pub(super) fn is_over(&self) -> bool {
        self.lost.is_some() || self.timer.deadline == Moment::default()
    }

    /// A lease begins. The guards of the one before have lost theirs, and hear it by the token that
    /// is returned.
    #[must_use = "it is to be cancelled when the lease is unlocked"]
    pub(super) fn begin(&mut self, timer: LeaseTimer, terms: LeaseTerms) -> Option<CancellationToken> {
        let before = self.ended.take();
        *self = Self { generation: self.generation + 1, timer, terms, ..Self::default() };
        before
    }

    /// It is lost, though it may not be over yet.
    #[must_use = "it is to be cancelled when the lease is unlocked"]
    pub(super) fn lose(&mut self, cause: Loss) -> Option<CancellationToken> {
        self.lost.get_or_insert(cause);
        self.ended.clone()
    }

    /// It is over: released, or known to be lost. Its guards may still come to give back.
    #[must_use = "it is to be cancelled when the lease is unlocked"]
    pub(super) fn end(&mut self) -> Option<CancellationToken> {
        self.timer.deadline = Moment::default();
        self.ended.clone()
    }
}

impl HoldState {
    /// Notes which masters may have an entry after a round, and when it is surely over.
    pub(super) fn note_keys(&mut self, on: MasterSet, expires_by: Moment) {
        self.maybe_held_on = self.maybe_held_on.or(on);
        self.expires_by = self.expires_by.max(expires_by);
    }

    /// Notes masters where the owner, as its own ticket, has a place in the queue although a quorum
    /// granted. The release gives that place up, too, and is repeated until acknowledged.
    pub(super) fn note_places(&mut self, on: MasterSet) {
        if self.is_queued {
            self.maybe_held_on = self.maybe_held_on.or(on);
        }
    }

    /// A lease begins with its first hold, in this round.
    pub(crate) fn begin(&mut self, first: u64) {
        self.holds = 1;
        self.surplus = 0;
        self.first_round = first;
    }
}

/// The holds of named owners, by which they re-enter. It has as many entries as twice the holds
/// that live, or fewer.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<Holds>);

type Holds = HashMap<(Arc<str>, Owner, Kind), Weak<Hold>>;

impl Registry {
    /// The hold of `owner` on the lock `name` of this kind, if there is one.
    pub(crate) fn find(&self, kind: Kind, name: &Arc<str>, owner: Owner) -> Option<Arc<Hold>> {
        self.lock().get(&(name.clone(), owner, kind)).and_then(Weak::upgrade)
    }

    /// The same, made if there is none. `on_masters` is who has it there.
    pub(crate) fn find_or_make(
        &self,
        kind: Kind,
        name: &Arc<str>,
        owner: Owner,
        on_masters: impl FnOnce() -> Owner,
    ) -> Arc<Hold> {
        let mut holds = self.lock();
        let key = (name.clone(), owner, kind);
        if let Some(hold) = holds.get(&key).and_then(Weak::upgrade) {
            return hold;
        }
        if holds.len() == holds.capacity() {
            holds.retain(|_, hold| hold.strong_count() > 0);
            let live = holds.len();
            holds.reserve(live + 1); // so that the next sweep is as many entries away as there are
        }
        let hold = Hold::of_named(name.clone(), on_masters(), kind);
        holds.insert(key, Arc::downgrade(&hold));
        hold
    }

    fn lock(&self) -> MutexGuard<'_, Holds> {
        self.0.lock()
    }
}
