//! The leases of a client: what is held, until when, and when to look at it next.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedMutexGuard, Semaphore};

use super::hold::{Hold, HoldState, Lease, LeaseTerms, Registry};
use super::permits::Pool;
use crate::error::{Error, Loss};
use crate::renewal::{LeaseTimer, Renewal, Step};
use crate::time::{Clock, Moment, Schedule};

/// How many renewals are under way at once, at most: 20,000 a second where a quorum is 100 ms away.
/// Each is a round of a kilobyte.
const MOST_RENEWING: usize = 2_048;

/// How many leases are given to masters that were not asked for them at once, at most.
const MOST_FILLING_UP: usize = 256;

/// How soon to look again at a lease whose hold is locked: the operation that is under way does not
/// take long.
const BUSY: Duration = Duration::from_millis(2);

/// The leases of one client.
pub(super) struct Leases {
    clock: Arc<dyn Clock>,
    /// The holds of named owners.
    pub(super) holds: Registry,
    /// Which permits of semaphores this client has or asks for.
    pub(super) permits: Arc<Pool>,
    /// When to look at each lease.
    pub(super) schedule: Arc<Schedule<Arc<Hold>>>,
    /// How leases of the client's own TTL are renewed where nothing else is said.
    pub(super) usual_renewal: Arc<Renewal>,
    /// Bounds the renewals that are under way.
    pub(super) renewing: Semaphore,
    /// Bounds what is given to masters that were not asked. If none is free, it is tried later.
    pub(super) filling_up: Arc<Semaphore>,
}

/// One lease to extend. Its hold is locked meanwhile.
pub(super) struct Extension {
    pub(super) hold: Arc<Hold>,
    pub(super) generation: u64,
    pub(super) ttl: Duration,
    pub(super) hold_state: OwnedMutexGuard<HoldState>,
}

/// What is to be done about a lease.
pub(super) enum Due {
    Renewal(Extension),
    /// The masters that were not asked for it are to have it, too.
    FillUp(Extension),
}

impl Leases {
    /// No leases, of a client whose own TTL is this.
    pub(super) fn new(clock: Arc<dyn Clock>, ttl: Duration) -> Self {
        Self {
            holds: Registry::default(),
            permits: Arc::default(),
            schedule: Schedule::new(clock.clone()),
            usual_renewal: Arc::new(Renewal::every_third_of(ttl)),
            renewing: Semaphore::new(MOST_RENEWING),
            filling_up: Arc::new(Semaphore::new(MOST_FILLING_UP)),
            clock,
        }
    }

    /// Begins a lease, and returns its generation.
    pub(super) fn begin(&self, hold: &Arc<Hold>, timer: LeaseTimer, terms: LeaseTerms) -> u64 {
        let generation = self.change(hold, |lease| {
            lease.begin(timer, terms);
            lease.generation
        });
        hold.notify_lease_begun();
        generation
    }

    /// Prolongs the lease to `ttl` after `sent`, unless it ends later already, and returns its
    /// generation. A lease without a renewal gets this one. A lease that is lost or over does not
    /// come back: somebody may have seen it end.
    pub(super) fn prolong(
        &self,
        hold: &Arc<Hold>,
        sent: Moment,
        ttl: Duration,
        renewal: Option<Arc<Renewal>>,
    ) -> Option<u64> {
        self.change(hold, |lease| {
            if lease.loss(self.clock.now()).is_some() {
                return None;
            }
            lease.timer.prolong(sent, ttl);
            if let Some(renewal) = &renewal {
                lease.timer.renew_by(sent, renewal);
            }
            Some(lease.generation)
        })
    }

    /// Ends the lease: it was released, or is lost for certain.
    pub(super) fn end(&self, hold: &Arc<Hold>) {
        self.change(hold, Lease::end);
    }

    /// Ends a lease that has lapsed: its guards have lost it, also when another lease begins.
    pub(super) fn supersede(&self, hold: &Arc<Hold>) {
        self.change(hold, |lease| lease.begin(LeaseTimer::default(), LeaseTerms::default()));
    }

    /// Marks the lease lost and ends it before waking listeners, so that they observe the final
    /// state. `error` is what was found, if there was an error.
    pub(super) fn lose(&self, hold: &Arc<Hold>, cause: Loss, error: Option<Error>) {
        self.change(hold, |lease| {
            lease.mark_lost(cause);
            lease.trouble = error.map(Box::new);
            lease.end();
        });
    }

    /// Changes a lease, schedules it anew, and wakes the guards that wait for its loss.
    pub(super) fn change<T>(&self, hold: &Arc<Hold>, change: impl FnOnce(&mut Lease) -> T) -> T {
        let mut lease = hold.lease();
        let generation = lease.generation;
        let ended = lease.ended.take();
        if let Some(entry) = lease.entry.take() {
            self.schedule.remove(entry);
        }
        let value = change(&mut lease);
        if !lease.is_over() {
            let now = self.clock.now();
            let at = match lease.timer.step(now) {
                Step::Wait(at) => at,
                Step::Renew(_) | Step::FillUp | Step::GiveUp(_) => now,
            };
            lease.entry = Some(self.schedule.put(at, hold.clone()));
        }
        if !lease.is_over() && lease.generation == generation {
            lease.ended = ended;
            return value;
        }
        drop(lease);
        if let Some(ended) = ended {
            ended.cancel(); // unlocked: it wakes others
        }
        value
    }

    /// Gives one lease up, or puts it on the schedule again. Returns it if there is more to do.
    pub(super) fn look_at(&self, hold: Arc<Hold>) -> Option<Due> {
        let now = self.clock.now();
        self.change(&hold, |lease| {
            // Since the lease was taken off the schedule it may have ended.
            if lease.is_over() {
                return None;
            }
            let locked = || hold.state.clone().try_lock_owned().ok();
            let generation = lease.generation;
            let extension = |ttl, hold_state| Extension { hold: hold.clone(), generation, ttl, hold_state };
            let timer = &mut lease.timer;
            match timer.step(now) {
                Step::Wait(_) => None,
                Step::GiveUp(cause) => {
                    lease.mark_lost(cause);
                    None
                }
                Step::Renew(ttl) => {
                    timer.due = now + BUSY;
                    let hold_state = locked()?;
                    // Should the renewal take that long, look again when the lease is given up.
                    timer.due = timer.given_up();
                    Some(Due::Renewal(extension(ttl, hold_state)))
                }
                Step::FillUp => {
                    timer.fills_up = Some(now + BUSY);
                    let hold_state = locked()?;
                    timer.fills_up = None;
                    Some(Due::FillUp(extension(timer.ttl, hold_state)))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::Owner;
    use crate::wire::{Kind, LockId};
    use std::sync::atomic::{AtomicU64, Ordering};
    use uuid::Uuid;

    /// Milliseconds since the origin.
    #[derive(Debug, Default)]
    struct SetClock(AtomicU64);

    impl Clock for SetClock {
        fn now(&self) -> Moment {
            Moment::from_origin(Duration::from_millis(self.0.load(Ordering::Relaxed)))
        }

        fn wall(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[test]
    fn a_lease_that_is_lost_or_over_is_not_prolonged() {
        const TTL: Duration = Duration::from_secs(30);
        let clock = Arc::new(SetClock::default());
        clock.0.store(1_000, Ordering::Relaxed);
        let leases = Leases::new(clock.clone(), TTL);
        let owner = Owner::new(Uuid::from_u128(1), 1);
        let hold = Hold::new(LockId { name: "l".into(), kind: Kind::Lock, permit: None, owner });
        let begin = || leases.begin(&hold, LeaseTimer::new(clock.now(), TTL, None), LeaseTerms::default());
        let prolong = || leases.prolong(&hold, clock.now(), TTL, None);
        let generation = begin();
        assert_eq!(prolong(), Some(generation));
        let deadline = hold.lease().timer.deadline;
        clock.0.store(32_000, Ordering::Relaxed);
        assert_eq!(prolong(), None, "it is over");
        assert_eq!(hold.lease().timer.deadline, deadline);
        begin();
        leases.change(&hold, |lease| lease.mark_lost(Loss::Capped));
        assert_eq!(prolong(), None, "it was told to be lost, though it is not over");
    }
}
