//! What one owner holds of one lock, in the process that counts it.
//!
//! Three numbers say what is stale:
//!
//! | number | rises | who compares it |
//! |---|---|---|
//! | `epoch` | when the last hold is given up, or is about to be handed over; of a kind that another library shares, also before a new acquire | an operation that was not sent yet: it is not sent any more |
//! | `generation` | when a lease begins, or is superseded because it lapsed | a guard: it can neither use nor release the next lease |
//! | `surplus` | when a hold is released without its guard | a guard: it has nothing left to release |

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::permits::Picked;
use crate::error::{Error, Loss};
use crate::owner::Owner;
use crate::renewal::LeaseTimer;
use crate::round::EpochCounter;
use crate::sync::{Mutex, MutexGuard};
use crate::time::{Clock, Moment, Scheduled};
use crate::vote::Vote;
use crate::wire::{Kind, LockId, MasterSet, Ticket};

/// One owner's hold of one lock. Its operations run one at a time, each with `state` locked, but a
/// release is over for the next one when it was sent. Guards read its lease at any moment.
#[derive(Debug)]
pub(crate) struct Hold {
    /// Which lock it is, and whose; of a semaphore, which permit.
    pub(crate) lock: LockId,
    /// While this lives, this client rather asks for another permit.
    _picked: Option<Picked>,
    /// Locked for as long as an operation of this owner runs, a release until it was sent.
    pub(crate) state: Arc<tokio::sync::Mutex<HoldState>>,
    lease: Mutex<Lease>,
    epoch: EpochCounter,
    /// Notified when a lease begins. Only of a named owner: others have no second caller.
    lease_begun: Option<Box<Notify>>,
}

/// How many holds there are, and what a release has to reach.
#[derive(Debug, Default)]
pub(crate) struct HoldState {
    /// How many holds the owner has. The masters are sent the same number.
    pub(crate) holds: u32,
    /// How many guards exist whose holds were released without them.
    pub(crate) surplus: u32,
    /// The masters that may have an entry of this owner, or its place in the queue.
    pub(super) maybe_held_on: MasterSet,
    /// When the last of these entries is surely over.
    pub(crate) expires_by: Moment,
    /// The number of the first round of the lease.
    pub(super) first_round: u64,
    /// The generation of the set that granted the lease, or extended it last.
    pub(super) granted_under: u64,
    /// The owner's own ticket, if it may have a place in a queue.
    pub(super) ticket: Option<Ticket>,
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
    /// The masters that were not asked for it, and do not have it yet.
    pub(crate) unasked: MasterSet,
}

/// The lease of a hold, which its guards read.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// Rises when a lease begins or is superseded, so that a guard cannot take the next lease for
    /// its own.
    pub(crate) generation: u64,
    pub(crate) timer: LeaseTimer,
    pub(crate) terms: LeaseTerms,
    /// Why the lease is lost, once it is: then it is not renewed any more.
    pub(crate) lost: Option<Loss>,
    /// Why the last renewal failed, if it did.
    pub(crate) trouble: Option<Box<Error>>,
    /// Where the lease is on the schedule.
    pub(super) entry: Option<Scheduled>,
    /// Cancelled when the lease is lost or over. Made on first use.
    pub(super) ended: Option<CancellationToken>,
}

impl Hold {
    pub(crate) fn new(lock: LockId) -> Arc<Self> {
        Arc::new(Self::with(lock))
    }

    /// The hold of the permit that an acquire asks for.
    pub(super) fn of_picked(lock: LockId, picked: Picked) -> Arc<Self> {
        let permit = Some(picked.permit);
        Arc::new(Self { _picked: Some(picked), ..Self::with(LockId { permit, ..lock }) })
    }

    /// The hold of a named owner: several callers may wait for it, and one gets it for all.
    fn of_named(lock: LockId) -> Arc<Self> {
        Arc::new(Self { lease_begun: Some(Box::default()), ..Self::with(lock) })
    }

    fn with(lock: LockId) -> Self {
        let (state, lease, epoch) = Default::default();
        Self { lock, _picked: None, state, lease, epoch, lease_begun: None }
    }

    /// How many permits there are, of a semaphore.
    pub(super) fn permits(&self) -> Option<u32> {
        self.lock.permit.map(|permit| permit.of)
    }

    pub(crate) fn lease(&self) -> MutexGuard<'_, Lease> {
        self.lease.lock()
    }

    /// Whether there is a lease that is neither over nor given up.
    pub(crate) fn stands(&self, now: Moment) -> bool {
        let lease = self.lease();
        lease.lost.is_none() && now < lease.timer.deadline
    }

    /// Waits until there is a lease that stands, of a named owner.
    pub(crate) async fn until_it_stands(&self, clock: &dyn Clock) {
        let lease_begun = self.lease_begun.as_ref().expect("the owner is named");
        loop {
            let begun = lease_begun.notified();
            if self.stands(clock.now()) {
                return;
            }
            begun.await;
        }
    }

    /// Wakes the callers that wait for a lease to stand.
    pub(super) fn notify_lease_begun(&self) {
        if let Some(begun) = &self.lease_begun {
            begun.notify_waiters();
        }
    }

    /// Drops every hold, so that nothing about this lease is sent any more but its clean-up.
    pub(super) fn give_up(&self, hold_state: &mut HoldState) {
        hold_state.holds = 0;
        self.end_epoch();
    }

    /// Ends the present epoch: what was not sent yet is not sent any more.
    pub(super) fn end_epoch(&self) {
        self.epoch.end_epoch();
    }

    /// Cancelled when the lease of `generation` is lost or over.
    pub(super) fn ended(&self, generation: u64) -> CancellationToken {
        let mut lease = self.lease();
        if lease.generation == generation {
            return lease.ended();
        }
        let over = CancellationToken::new();
        over.cancel();
        over
    }

    /// How the lease of `generation` ended, as an error; `None` while it stands at `now`.
    pub(crate) fn loss(&self, generation: u64, now: Moment) -> Option<Error> {
        let lease = self.lease();
        if lease.generation != generation {
            return Some(self.lost_error(Loss::Expired, &[]));
        }
        let cause = lease.loss(now)?;
        Some(self.lost_error(cause, lease.trouble.as_ref().map_or(&[], |error| error.votes())))
    }

    /// The error of a lease that was lost by this cause.
    pub(crate) fn lost_error(&self, cause: Loss, votes: &[Vote]) -> Error {
        Error::Lost { name: self.lock.name.clone(), cause, work_ended: false, votes: votes.into() }
    }
}

impl AsRef<EpochCounter> for Hold {
    fn as_ref(&self) -> &EpochCounter {
        &self.epoch
    }
}

impl Lease {
    /// Cancelled when the lease is lost or over.
    pub(super) fn ended(&mut self) -> CancellationToken {
        let over = self.is_over();
        let token = self.ended.get_or_insert_with(CancellationToken::new);
        if over {
            token.cancel();
        }
        token.clone()
    }

    /// How the lease ended; `None` while it stands at `now`.
    pub(super) fn loss(&self, now: Moment) -> Option<Loss> {
        match self.lost {
            Some(cause) => Some(cause),
            None if self.timer.deadline == Moment::default() => Some(Loss::Released),
            None => (now >= self.timer.deadline).then_some(Loss::Expired),
        }
    }

    /// Whether the lease was released or lost, or never began.
    pub(super) fn is_over(&self) -> bool {
        self.lost.is_some() || self.timer.deadline == Moment::default()
    }

    /// Begins a lease.
    pub(super) fn begin(&mut self, timer: LeaseTimer, terms: LeaseTerms) {
        let timer = if terms.unasked.is_empty() { timer } else { timer.filled_up_later() };
        *self = Self { generation: self.generation + 1, timer, terms, ..Self::default() };
    }

    /// These masters have it, too.
    pub(super) fn note_given_to(&mut self, masters: MasterSet) {
        self.terms.unasked = self.terms.unasked.without(masters);
        if self.terms.unasked.is_empty() {
            self.timer.fills_up = None;
        }
    }

    /// Marks the lease lost, though it may not be over yet.
    pub(super) fn mark_lost(&mut self, cause: Loss) {
        self.lost.get_or_insert(cause);
    }

    /// Ends the lease: it was released, or is known to be lost. Its guards may still try to
    /// release.
    pub(super) fn end(&mut self) {
        self.timer.deadline = Moment::default();
    }
}

impl HoldState {
    /// Notes which masters may have an entry after a round, and when the entry is surely over.
    pub(super) fn note_entries(&mut self, on: MasterSet, expires_by: Moment) {
        self.maybe_held_on = self.maybe_held_on.or(on);
        self.expires_by = self.expires_by.max(expires_by);
    }

    /// Notes masters where the owner, as its own ticket, has a place in the queue although a quorum
    /// granted. The release gives that place up, too, and is repeated until it is acknowledged.
    pub(super) fn note_places(&mut self, on: MasterSet) {
        if self.ticket.is_some() {
            self.maybe_held_on = self.maybe_held_on.or(on);
        }
    }

    /// Begins a lease with one hold.
    pub(crate) fn begin(&mut self, first_round: u64) {
        self.holds = 1;
        self.surplus = 0;
        self.first_round = first_round;
    }
}

/// The holds of named owners, so that an owner re-enters the hold it has. It has at most twice as
/// many entries as holds that live.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<Holds>);

type Holds = HashMap<(Arc<str>, Owner, Kind), Weak<Hold>>;

impl Registry {
    /// The hold of `owner` on the lock `name` of this kind, if there is one.
    pub(crate) fn find(&self, kind: Kind, name: &Arc<str>, owner: Owner) -> Option<Arc<Hold>> {
        self.lock().get(&(name.clone(), owner, kind)).and_then(Weak::upgrade)
    }

    /// The hold of `owner`; makes one if there is none, for the owner that `on_masters` returns.
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
            holds.reserve(live + 1); // the next sweep comes after as many entries as live now
        }
        let hold = Hold::of_named(LockId { name: name.clone(), kind, permit: None, owner: on_masters() });
        holds.insert(key, Arc::downgrade(&hold));
        hold
    }

    fn lock(&self) -> MutexGuard<'_, Holds> {
        self.0.lock()
    }
}
