//! Release: give back one hold, and with the last one the lock.
//!
//! `give_back` counts down, `tell_of` ends the lease with the last hold, `sync_hold` (`undo.rs`)
//! sends what is left, and `released` waits for the votes.

use std::sync::Arc;
use tokio::sync::MutexGuard;

use super::hold::{Hold, HoldState};
use super::master_set::MasterSet;
use super::parts::Engine;
use super::quorum::{Decision, surely_lost};
use super::tally::Round;
use super::verdict;
use crate::clock::Moment;
use crate::config::check_permits;
use crate::error::{Error, Loss};
use crate::owner::Owner;
use crate::protocol::{Kind, Leaving, Op, Permit};
use crate::vote::{Outcome, Vote, Votes};

/// A release that was sent to the masters.
struct Release {
    round: Round,
    /// When the lease would have ended.
    deadline: Moment,
    /// How it was lost already.
    loss: Option<Error>,
}

impl Engine {
    /// Gives back one hold of the lease of `generation`. Once begun it runs to its end, whether or
    /// not the caller waits.
    pub(crate) async fn release(self: &Arc<Self>, hold: &Arc<Hold>, generation: u64) -> Result<(), Error> {
        let begun = match hold.op_lock.try_lock() {
            Ok(state) => self.give_back(hold, state, Some(generation))?,
            Err(_) => {
                let hold = hold.clone();
                self.run(|engine| async move {
                    let state = hold.op_lock.lock().await;
                    engine.give_back(&hold, state, Some(generation))
                })
                .await?
            }
        };
        self.released(hold, begun).await
    }

    /// The same, for a guard that is dropped: from any thread, at once, with nobody to tell how it
    /// went.
    pub(crate) fn release_in_background(self: &Arc<Self>, hold: &Arc<Hold>, generation: u64) {
        let told = |hold: &Hold, outcome: Result<Release, Error>| {
            if let Err(error) = outcome {
                tracing::debug!(name = &*hold.name, %error, "a dropped guard had nothing to release");
            }
        };
        if let Ok(state) = hold.op_lock.try_lock() {
            return told(hold, self.give_back(hold, state, Some(generation)));
        }
        let engine = self.clone();
        let hold = hold.clone();
        self.spawn(async move {
            let state = hold.op_lock.lock().await;
            told(&hold, engine.give_back(&hold, state, Some(generation)));
        });
    }

    /// Gives back one hold of `owner`, whichever guard it is out with.
    pub(crate) async fn release_by_owner(
        self: &Arc<Self>,
        kind: Kind,
        name: Arc<str>,
        owner: Owner,
    ) -> Result<(), Error> {
        kind.check_name(&name)?;
        let Some(hold) = self.leases.holds.find(kind, &name, owner) else {
            return Err(Error::NotHeld { name, owner, votes: Votes::default() });
        };
        let its = hold.clone();
        let begun = self.run(|engine| async move {
            let state = its.op_lock.lock().await;
            engine.give_back(&its, state, None)
        });
        let begun = begun.await?;
        self.released(&hold, begun).await
    }

    /// Counts one hold less, and sends the masters the rest.
    fn give_back(
        self: &Arc<Self>,
        hold: &Arc<Hold>,
        mut state: MutexGuard<'_, HoldState>,
        generation: Option<u64>,
    ) -> Result<Release, Error> {
        let (current, deadline) = {
            let lease = hold.lease();
            (lease.generation, lease.timer.deadline)
        };
        if generation.is_some_and(|generation| generation != current) {
            return Err(hold.lost(Loss::Expired, &[])); // its lease lapsed, and is no more
        }
        let is_guard = generation.is_some();
        if state.holds == 0 || (is_guard && state.surplus > 0) {
            state.surplus = state.surplus.saturating_sub(u32::from(is_guard));
            return Err(Error::NotHeld {
                name: hold.name.clone(),
                owner: hold.owner,
                votes: Votes::default(),
            });
        }
        let loss = hold.loss(current, self.clock().now());
        state.holds -= 1;
        state.surplus += u32::from(!is_guard);
        let round = self.tell_of(hold, &mut state);
        Ok(Release { round, deadline, loss })
    }

    /// How it went.
    async fn released(&self, hold: &Hold, Release { round, deadline, loss }: Release) -> Result<(), Error> {
        if round.sent >= deadline {
            return Err(loss.unwrap_or_else(|| hold.lost(Loss::Expired, &[])));
        }
        if round.decision().await == Decision::Granted {
            return Ok(());
        }
        round.finish().await; // whose it is takes more votes
        Err(verdict::not_released(&hold.name, round.votes()))
    }

    /// Tells the masters of the holds that are left, and ends the lease with the last.
    fn tell_of(self: &Arc<Self>, hold: &Arc<Hold>, state: &mut HoldState) -> Round {
        if state.holds == 0 {
            hold.give_up(state);
            self.leases.end(hold);
        }
        let leaving = Leaving::Lease(hold.lease().terms.token);
        self.sync_hold(hold, state, leaving, None, MasterSet::all(self.dispatcher.masters()))
    }

    /// Takes the lock away from `owner`, whoever that is and however many holds it has. Waits for
    /// every master, each within its time-out.
    pub(crate) async fn break_lock(
        self: &Arc<Self>,
        name: Arc<str>,
        owner: Owner,
        kind: Kind,
        permits: Option<u32>,
    ) -> Result<(), Error> {
        kind.check_name(&name)?;
        check_permits(permits)?;
        self.run(|engine| async move {
            let own = engine.leases.holds.find(kind, &name, owner);
            let (hold, round) = match own {
                Some(hold) => {
                    let round = engine.give_all_back(&hold).await;
                    (hold, round)
                }
                None => engine.take_away(name, owner, kind, permits).await?,
            };
            round.finish().await;
            broken(&hold, &round)
        })
        .await
    }

    /// Releases an owner of our own, whose guards come to nothing.
    async fn give_all_back(self: &Arc<Self>, hold: &Arc<Hold>) -> Round {
        let mut state = hold.op_lock.lock().await;
        state.surplus += state.holds;
        state.holds = 0;
        self.tell_of(hold, &mut state)
    }

    /// Releases an owner of another client. That client keeps renewing until it learns of it, and
    /// must not recreate the lock on a master that never had it: so masters note its token as
    /// released. If a quorum has the name as another kind, nothing is sent.
    async fn take_away(
        self: &Arc<Self>,
        name: Arc<str>,
        owner: Owner,
        kind: Kind,
        permits: Option<u32>,
    ) -> Result<(Arc<Hold>, Round), Error> {
        let looks = self.look(&name, kind).await;
        let votes: Vec<Vote> = looks.iter().map(|look| look.about(kind, permits)).collect();
        if let Some(misuse) = verdict::misuse(&name, permits, &votes) {
            return Err(misuse);
        }
        let words = owner.to_string();
        let all = || looks.iter().flat_map(|look| look.entries(kind, permits));
        let its = || all().filter(|entry| *entry.owner == *words);
        // An earlier grant of the same owner, on a few masters, may be of another permit.
        let latest = its().max_by_key(|entry| entry.token);
        let number = latest.and_then(|entry| entry.field.strip_prefix("p:")?.parse().ok()).unwrap_or(0);
        let hold = Hold::new(name, owner, kind, permits.map(|of| Permit { number, of }));
        let token = latest.map_or(0, |entry| entry.token);
        let round = its().map(|entry| entry.round).max().unwrap_or(0);
        let op = Op::Release { holds: 0, leaving: Leaving::Broken(token), place: None };
        let round = self.dispatcher.ask(&hold, round, &op, self.unconditional(), None);
        Ok((hold, round))
    }
}

fn broken(hold: &Hold, round: &Round) -> Result<(), Error> {
    let masters = round.count(|_| true);
    let released = round.count(|outcome| *outcome == Outcome::Granted);
    let not_theirs = round.count(Outcome::is_definite_no);
    let name = &hold.name;
    if surely_lost(masters, released + not_theirs) && released > 0 {
        Ok(()) // a quorum can no longer be this owner's
    } else if surely_lost(masters, not_theirs) {
        Err(Error::NotHeld { name: name.clone(), owner: hold.owner, votes: round.votes().into() })
    } else {
        Err(verdict::no_quorum(name, round.votes(), false))
    }
}
