//! The watchdog: looks at every lease of a client on one schedule. It renews together the leases
//! that are due together, gives those that last to the masters that were not asked for them, and
//! tells guards that their lease is lost before the lease is over.

use std::sync::Arc;

use futures::future::join_all;

use super::engine::Engine;
use super::hold::Hold;
use super::leases::{Due, Extension};
use crate::round::Epoch;
use crate::set::TimePrecision;
use crate::time::lease;
use crate::wire::{MasterSet, Op};

/// How many leases are renewed together, at most.
const TOGETHER: usize = 32;

impl Engine {
    /// Looks at the leases until the client is gone.
    pub(super) fn watch_leases(self: &Arc<Self>) {
        let engine = Arc::downgrade(self);
        let schedule = self.leases.schedule.clone();
        self.executor.spawn(async move {
            while let Some(due) = schedule.due(TOGETHER).await {
                let Some(engine) = engine.upgrade() else { return };
                engine.look_after(due);
            }
        });
    }

    fn look_after(self: &Arc<Self>, due: Vec<Arc<Hold>>) {
        let mut renewals = Vec::new();
        for due in due.into_iter().filter_map(|hold| self.leases.look_at(hold)) {
            match due {
                Due::Renewal(extension) => renewals.push(extension),
                Due::FillUp(extension) => self.fill_up(extension),
            }
        }
        if renewals.is_empty() {
            return;
        }
        let engine = self.clone();
        // A shutdown does not wait for renewals: while guards live there is always another one.
        self.executor.spawn(async move {
            // The semaphore is never closed. After the machine stood still all leases are due at
            // once, in the order in which they end. Were all sent at once, the last of them would
            // time out in our own queues.
            let _turn = engine.leases.renewing.acquire_many(renewals.len() as u32).await;
            join_all(renewals.into_iter().map(|extension| engine.renew(extension))).await;
        });
    }

    /// Gives a lease to the masters that lack it, for as long as it lasts by itself. Otherwise
    /// waiters would take these one by one, and once one of the lease's masters loses its state, no
    /// quorum could renew it. The hold is locked until it is sent.
    fn fill_up(self: &Arc<Self>, extension: Extension) {
        let Extension { hold, generation, ttl, mut hold_state } = extension;
        let voters = self.dispatcher.voters();
        let now = self.clock().now();
        let (to, left, terms) = {
            let lease = hold.lease();
            (lease.terms.unasked.and(voters.masters), lease.timer.deadline.since(now), lease.terms.clone())
        };
        let knows_the_time = self.dispatcher.trust().time_precision() == TimePrecision::Exact;
        let turn = self.leases.filling_up.clone().try_acquire_owned();
        let Some(turn) = turn.ok().filter(|_| knows_the_time && !to.is_empty() && hold.stands(now)) else {
            return self.note_filled_up(&hold, generation, MasterSet::default());
        };
        let kept = lease::kept(left + lease::shortfall(ttl), terms.delay);
        let holds = hold_state.holds;
        let op = Op::Extend { holds, kept, label: terms.label, token: terms.token, heals: true, first: 0 };
        let epoch = Epoch::of(&hold);
        let timeout = self.settings.timeout_within(ttl);
        let round = self.dispatcher.begin_round(voters, Some(epoch));
        let round_number = self.dispatcher.next_round_number();
        let round = self.dispatcher.send_round(round, to, &hold.lock, round_number, &op, timeout);
        hold_state.note_entries(round.may_have_run(), round.expires_by(kept));
        drop(hold_state);
        let engine = self.clone();
        self.executor.spawn(async move {
            round.until_all().await;
            engine.note_filled_up(&hold, generation, round.granted());
            drop(turn);
        });
    }

    /// Notes that these masters have a lease, too. The others are asked again later.
    fn note_filled_up(&self, hold: &Arc<Hold>, generation: u64, masters: MasterSet) {
        let now = self.clock().now();
        let voters = self.dispatcher.voters().masters;
        self.leases.change(hold, |lease| {
            if lease.generation == generation {
                lease.terms.unasked = lease.terms.unasked.and(voters);
                lease.timer.fill_up_again(now);
                lease.note_given_to(masters);
            }
        });
    }

    /// Renews a lease, and notes when the round was sent that did, or why none did.
    async fn renew(self: &Arc<Self>, extension: Extension) {
        let hold = extension.hold.clone();
        let generation = extension.generation;
        let ttl = extension.ttl;
        let timeout = self.settings.timeout_within(ttl);
        let extended = self.extend_one(extension, timeout).await;
        self.leases.change(&hold, |lease| {
            if lease.generation == generation {
                match extended {
                    Ok(sent) => {
                        lease.timer.succeeded(sent, ttl);
                        lease.trouble = None;
                    }
                    Err(error) => {
                        tracing::debug!(name = &*hold.lock.name, %error, "a lease was not renewed");
                        lease.timer.failed(self.clock().now());
                        lease.trouble = Some(Box::new(error));
                    }
                }
            }
        });
    }
}
