//! The watchdog: looks after every lease of a client on one schedule, renews those that are due together, and tells the
//! guards of those that are lost before they are over.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use tokio_util::sync::CancellationToken;

use super::Coordinator;
use super::extend::{Extension, Hearing};
use super::hold::{Hold, Lease, Title};
use crate::clock::Moment;
use crate::error::{Error, Loss};
use crate::renewal::{Course, Renewal, Schedule, Step};

/// How many leases are renewed together, at most.
const TOGETHER: usize = 32;

/// How many renewals are under way at once, at most: 20,000 a second where a quorum is 100 ms away. Each is a round, of a
/// kilobyte.
pub(super) const AT_ONCE: usize = 2_048;

/// When to look again at a lease whose hold is busy: something else is under way that will not take long.
const BUSY: Duration = Duration::from_millis(2);

impl Coordinator {
    /// A lease begins.
    pub(super) fn begin_lease(&self, hold: &Arc<Hold>, course: Course, title: Title) -> u64 {
        let generation = self.change(hold, |lease| {
            let before = lease.begin(course, title);
            (lease.generation, before)
        });
        hold.tell_begun();
        generation
    }

    /// The lease goes on for `ttl` after `sent`, or as long as it did if that is later. One that was not to be renewed
    /// may be from here on.
    pub(super) fn prolong(
        &self,
        hold: &Arc<Hold>,
        sent: Moment,
        ttl: Duration,
        renewal: Option<Arc<Renewal>>,
    ) -> u64 {
        self.change(hold, |lease| {
            lease.course.prolong(sent, ttl);
            if let (None, Some(renewal)) = (&lease.course.renewal, renewal) {
                let Course { deadline, ttl, .. } = lease.course;
                lease.course = Course { deadline, ttl, ..Course::new(sent, ttl, Some(renewal)) };
            }
            (lease.generation, None)
        })
    }

    /// The lease is over: released, or lost for certain.
    pub(super) fn end_lease(&self, hold: &Arc<Hold>) {
        self.change(hold, |lease| ((), lease.end()));
    }

    /// The lease is no more, and its guards have lost it, whatever comes next.
    pub(super) fn supersede(&self, hold: &Arc<Hold>) {
        self.change(hold, |lease| ((), lease.begin(Course::default(), Title::default())));
    }

    /// The lease is lost for certain, as `error` tells if there is one, and over: whoever hears of it finds it so.
    pub(super) fn lose(&self, hold: &Arc<Hold>, cause: Loss, error: Option<Error>) {
        self.change(hold, |lease| {
            let _ = lease.lose(cause); // its token is also that of the end
            lease.trouble = error.map(Box::new);
            ((), lease.end())
        });
    }

    /// Changes a lease, puts it on the schedule where it belongs now, and tells whoever has to know.
    fn change<T>(
        &self,
        hold: &Arc<Hold>,
        change: impl FnOnce(&mut Lease) -> (T, Option<CancellationToken>),
    ) -> T {
        let mut lease = hold.lease();
        if let Some(entry) = lease.entry.take() {
            self.schedule.remove(entry);
        }
        let (value, token) = change(&mut lease);
        self.put_on_schedule(hold, &mut lease);
        drop(lease);
        if let Some(token) = token {
            token.cancel(); // unlocked: it wakes others
        }
        value
    }

    fn put_on_schedule(&self, hold: &Arc<Hold>, lease: &mut Lease) {
        if lease.is_over() {
            return;
        }
        let now = self.clock.now();
        let at = match lease.course.step(now) {
            Step::Wait(at) => at,
            Step::Renew(_) | Step::GiveUp(_) => now,
        };
        lease.entry = Some(self.schedule.put(at, hold.clone()));
    }

    /// Looks after the leases until the client is gone.
    pub(super) async fn watch(engine: Weak<Self>, schedule: Arc<Schedule<Arc<Hold>>>) {
        while let Some(due) = schedule.due(TOGETHER).await {
            let Some(engine) = engine.upgrade() else { return };
            engine.look_after(due);
        }
    }

    fn look_after(self: &Arc<Self>, due: Vec<Arc<Hold>>) {
        let mut batch = Vec::with_capacity(due.len());
        for hold in due {
            if let Some(extension) = self.look_at(hold) {
                batch.push(extension);
            }
        }
        let engine = self.clone();
        // A shutdown does not wait for it: there is always a next one while guards live.
        self.executor.spawn(async move {
            // It is never closed. After the machine stood still all leases are due at once, in the order in which they
            // end; sent at once, the last of them would time out in our own queues.
            let _turn = engine.renewing.acquire_many(batch.len() as u32).await;
            join_all(batch.into_iter().map(|extension| engine.renew(extension))).await;
        });
    }

    /// Does what is due about one lease, but for its renewal, which it answers.
    fn look_at(&self, hold: Arc<Hold>) -> Option<Extension> {
        let now = self.clock.now();
        let mut lease = hold.lease();
        // It may have been put on the schedule again, or be over, since it was taken off.
        if let Some(entry) = lease.entry.take() {
            self.schedule.remove(entry);
        }
        if lease.is_over() {
            return None;
        }
        let generation = lease.generation;
        let (next, renewal, token) = match lease.course.step(now) {
            Step::Wait(at) => (Some(at), None, None),
            Step::GiveUp(cause) => (None, None, lease.lose(cause)),
            Step::Renew(ttl) => match hold.turn.clone().try_lock_owned() {
                // It is looked at again when it has to be given up, should the renewal take that long.
                Ok(count) => (Some(lease.course.given_up()), Some((ttl, count)), None),
                Err(_) => (Some((now + BUSY).min(lease.course.given_up())), None, None),
            },
        };
        lease.entry = next.map(|at| self.schedule.put(at, hold.clone()));
        drop(lease);
        if let Some(token) = token {
            token.cancel(); // unlocked: it wakes others
        }
        let (ttl, count) = renewal?;
        Some(Extension { hold, generation, ttl, count })
    }

    async fn renew(self: &Arc<Self>, extension: Extension) {
        let (hold, generation) = (extension.hold.clone(), extension.generation);
        let timeout = self.settings.timeout_within(extension.ttl);
        let end = self.extend_one(extension, timeout, Hearing::Full).await;
        self.renewed(&hold, generation, end);
    }

    fn renewed(&self, hold: &Arc<Hold>, generation: u64, end: Result<Moment, Error>) {
        let name = &*hold.name;
        self.change(hold, |lease| {
            if lease.generation == generation {
                match end {
                    Ok(sent) => {
                        lease.course.succeeded(sent);
                        lease.trouble = None;
                    }
                    Err(error) => {
                        tracing::debug!(name, %error, "a lease was not renewed");
                        lease.course.failed(self.clock.now());
                        lease.trouble = Some(Box::new(error));
                    }
                }
            }
            ((), None)
        });
    }
}
