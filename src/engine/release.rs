//! Release: gives back one hold, and with the last one the lock.
//!
//! `give_back` counts down, `send_what_is_left` ends the lease with the last hold,
//! `send_holds_left` (`clean_up.rs`) sends the holds that are left, and `until_released` waits for
//! the votes.

use std::sync::Arc;
use tokio::sync::MutexGuard;

use super::engine::Engine;
use super::extend::MOVES;
use super::hold::{Hold, HoldState};
use crate::config::check_permits;
use crate::error::{Error, Loss};
use crate::owner::Owner;
use crate::round::{Decision, Round, quorum, verdict};
use crate::set::Standing;
use crate::time::Moment;
use crate::vote::{Outcome, Vote, Votes};
use crate::wire::{Kind, Leaving, LockId, Op, Permit};

/// What is to be given back.
struct ReleaseRequest {
    /// The lease of a guard; `None` for one hold of the owner, whichever guard has it.
    generation: Option<u64>,
    /// How the lease was lost when this was asked for, if it was.
    loss: Option<Error>,
}

/// A release that was sent to the masters.
struct Release {
    round: Arc<Round>,
    /// When the lease would have ended.
    deadline: Moment,
    /// How the lease was lost before, if it was.
    loss: Option<Error>,
    /// In which generation of the set it was granted.
    granted_under: u64,
    /// When the last of its entries is surely over.
    expires_by: Moment,
}

impl Engine {
    /// Gives back one hold of the lease of `generation`; without that, one of its owner, whichever
    /// guard has it. Once begun, the release goes on whether or not the caller waits.
    pub(crate) async fn release(
        self: &Arc<Self>,
        hold: &Arc<Hold>,
        generation: Option<u64>,
    ) -> Result<(), Error> {
        let asked = self.asked_now(hold, generation);
        let begun = match hold.state.try_lock() {
            Ok(hold_state) => self.give_back(hold, hold_state, asked)?,
            Err(_) => {
                let hold = hold.clone();
                self.run(|engine| async move {
                    let hold_state = hold.state.lock().await;
                    engine.give_back(&hold, hold_state, asked)
                })
                .await?
            }
        };
        self.until_released(hold, begun).await
    }

    /// Gives back the hold of a guard that is dropped, at once and on any thread. A failure is only
    /// logged.
    pub(crate) fn release_in_background(self: &Arc<Self>, hold: &Arc<Hold>, generation: u64) {
        let log_failure = |hold: &Hold, outcome: Result<Release, Error>| {
            if let Err(error) = outcome {
                tracing::debug!(name = &*hold.lock.name, %error, "a dropped guard had nothing to release");
            }
        };
        let asked = self.asked_now(hold, Some(generation));
        if let Ok(hold_state) = hold.state.try_lock() {
            return log_failure(hold, self.give_back(hold, hold_state, asked));
        }
        let engine = self.clone();
        let hold = hold.clone();
        self.spawn(async move {
            let hold_state = hold.state.lock().await;
            log_failure(&hold, engine.give_back(&hold, hold_state, asked));
        });
    }

    /// Gives back one hold of `owner`, whichever guard has it.
    pub(crate) async fn release_by_owner(
        self: &Arc<Self>,
        kind: Kind,
        name: Arc<str>,
        owner: Owner,
    ) -> Result<(), Error> {
        kind.check_name(&name)?;
        match self.leases.holds.find(kind, &name, owner) {
            Some(hold) => self.release(&hold, None).await,
            None => Err(Error::NotHeld { name, owner, votes: Votes::default() }),
        }
    }

    /// What is asked for at this moment: an operation that has the hold locked may keep it from
    /// being done before the lease is over.
    fn asked_now(&self, hold: &Hold, generation: Option<u64>) -> ReleaseRequest {
        let lease = generation.unwrap_or_else(|| hold.lease().generation);
        ReleaseRequest { generation, loss: hold.loss(lease, self.clock().now()) }
    }

    /// Counts one hold less, and sends the masters the holds that are left. Where the lease was
    /// lost and has a lock delay, nothing is sent, as that would end the delay.
    fn give_back(
        self: &Arc<Self>,
        hold: &Arc<Hold>,
        mut hold_state: MutexGuard<'_, HoldState>,
        asked: ReleaseRequest,
    ) -> Result<Release, Error> {
        let ReleaseRequest { generation, loss } = asked;
        let (current, deadline, has_delay) = {
            let lease = hold.lease();
            (lease.generation, lease.timer.deadline, !lease.terms.delay.is_zero())
        };
        if generation.is_some_and(|generation| generation != current) {
            // Its lease lapsed, and is no more.
            return Err(loss.unwrap_or_else(|| hold.lost_error(Loss::Expired, &[])));
        }
        let is_guard = generation.is_some();
        if hold_state.holds == 0 || (is_guard && hold_state.surplus > 0) {
            hold_state.surplus = hold_state.surplus.saturating_sub(u32::from(is_guard));
            let told = loss.filter(|loss| is_guard && !is_by(loss, Loss::Released));
            return Err(told.unwrap_or_else(|| Error::NotHeld {
                name: hold.lock.name.clone(),
                owner: hold.lock.owner,
                votes: Votes::default(),
            }));
        }
        hold_state.holds -= 1;
        hold_state.surplus += u32::from(!is_guard);
        // Of a lease that the masters deny there is nothing left to delay others with.
        if let Some(loss) = loss.clone().filter(|loss| has_delay && !is_by(loss, Loss::NotOurs)) {
            if hold_state.holds == 0 {
                self.end_lease(hold, &mut hold_state);
            }
            return Err(loss);
        }
        let granted_under = hold_state.granted_under;
        let expires_by = hold_state.expires_by;
        let round = self.send_what_is_left(hold, &mut hold_state);
        Ok(Release { round, deadline, loss, granted_under, expires_by })
    }

    /// Waits for the votes on a release.
    async fn until_released(&self, hold: &Hold, release: Release) -> Result<(), Error> {
        let Release { round, deadline, loss, granted_under, expires_by } = release;
        let is_late = round.sent >= deadline;
        if let Some(loss) = loss.clone().filter(|_| is_late) {
            return Err(loss);
        }
        if round.decision().await == Decision::Granted {
            return Ok(());
        }
        round.until_all().await; // to know who has the lock takes more votes
        // Where the set has changed since, not all of those that were asked had it, or may answer;
        // one that joined may have given it to somebody who asked for it in vain.
        let has_moved = self.dispatcher.voters().view != granted_under;
        let released = round.granted();
        let is_nowhere = released.or(round.masters_with(Outcome::is_definite_no));
        let is_free = !released.is_empty() && !verdict::is_held(&round.votes());
        if has_moved && is_free && round.voters.have_majority(is_nowhere) {
            return Ok(());
        }
        let mut not_ours = round.masters_with(|outcome| matches!(outcome, Outcome::Held { .. }));
        if !has_moved {
            // A master that may have lost its state cannot tell whether the lock was taken away,
            // and its quarantine kept others out.
            let trust = self.dispatcher.trust();
            let absent = round.masters_with(|outcome| *outcome == Outcome::Absent);
            let trusted = absent.iter().filter(|index| trust.standing_of(*index) == Standing::Trusted);
            not_ours = not_ours.or(trusted.collect());
        }
        not_ours = not_ours.without(round.never_had());
        let votes = round.votes();
        // A loss that the holder was told of stays the reason. Where this was asked for in time and
        // sent when the lease was over, somebody else may have the lock since: that is no loss.
        let denied = verdict::lost(not_ours.len(), &hold.lock.name, &votes).filter(|_| !is_late);
        Err(loss.or(denied).unwrap_or_else(|| Error::ReleaseUnconfirmed {
            name: hold.lock.name.clone(),
            confirmed: released.len(),
            needed: quorum(votes.len()),
            free_within: expires_by.since(self.clock().now()),
            votes: votes.into(),
        }))
    }

    /// Sends the masters the holds that are left, and ends the lease with the last.
    fn send_what_is_left(self: &Arc<Self>, hold: &Arc<Hold>, hold_state: &mut HoldState) -> Arc<Round> {
        if hold_state.holds == 0 {
            self.end_lease(hold, hold_state);
        }
        let leaving = Leaving::Lease(hold.lease().terms.token);
        self.send_holds_left(hold, hold_state, leaving, None, self.dispatcher.voters().masters)
    }

    /// Ends a lease of which no hold is left.
    fn end_lease(&self, hold: &Arc<Hold>, hold_state: &mut HoldState) {
        hold.give_up(hold_state);
        self.leases.end(hold);
    }

    /// Takes the lock away from `owner`, of this client or another, however many holds it has.
    /// Waits for every master, each within its time-out.
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
            if let Some(hold) = own {
                let round = engine.give_all_back(&hold).await;
                round.until_all().await;
                return broken(&hold.lock, &round);
            }
            let mut moves = 0;
            let mut was_there = false;
            loop {
                let (lock, round) = engine.take_away(name.clone(), owner, kind, permits).await?;
                round.until_all().await;
                match broken(&lock, &round) {
                    Err(Error::NotHeld { .. }) if was_there => return Ok(()),
                    Err(_) if round.has_moved() && moves < MOVES => {
                        moves += 1;
                        was_there |= !round.granted().is_empty();
                    }
                    done => return done,
                }
            }
        })
        .await
    }

    /// Releases all holds of an owner of this client, whose guards have lost the lock then.
    async fn give_all_back(self: &Arc<Self>, hold: &Arc<Hold>) -> Arc<Round> {
        let mut hold_state = hold.state.lock().await;
        if hold_state.holds > 0 {
            self.leases.change(hold, |lease| lease.mark_lost(Loss::NotOurs));
        }
        hold_state.surplus += hold_state.holds;
        hold_state.holds = 0;
        self.send_what_is_left(hold, &mut hold_state)
    }

    /// Releases an owner of another client. That client goes on renewing until it learns of the
    /// release, and must not recreate the lock on a master that never had it: so masters note its
    /// token as released. If a quorum has the name as another kind, nothing is sent.
    async fn take_away(
        self: &Arc<Self>,
        name: Arc<str>,
        owner: Owner,
        kind: Kind,
        permits: Option<u32>,
    ) -> Result<(LockId, Arc<Round>), Error> {
        let looks = self.look(&name, kind).await;
        let votes: Vec<Vote> = looks.iter().map(|look| look.about(kind, permits)).collect();
        if let Some(misuse) = verdict::misuse(&name, permits, &votes) {
            return Err(misuse);
        }
        let words = owner.to_string();
        let all = || looks.iter().flat_map(|look| look.entries(kind, permits));
        let of_owner = || all().filter(|entry| *entry.owner == *words);
        // An earlier grant of the same owner, on a few masters, may be of another permit.
        let latest = of_owner().max_by_key(|entry| entry.token);
        let number = latest.and_then(|entry| entry.field.strip_prefix("p:")?.parse().ok()).unwrap_or(0);
        let permit = permits.map(|of| Permit { number, of });
        let lock = LockId { name, kind, permit, owner };
        let token = latest.map_or(0, |entry| entry.token);
        let round_number = of_owner().map(|entry| entry.round).max().unwrap_or(0);
        let op = Op::Release { holds: 0, leaving: Leaving::Broken(token), place: None };
        let round = self.dispatcher.ask(&lock, round_number, &op, self.dispatcher.timeout(), None);
        Ok((lock, round))
    }
}

/// Whether this is a loss by `cause`.
fn is_by(loss: &Error, cause: Loss) -> bool {
    matches!(loss, Error::Lost { cause: its, .. } if *its == cause)
}

/// How it went to take a lock away.
fn broken(lock: &LockId, round: &Round) -> Result<(), Error> {
    // Half of an even number would do for now, and no more when another master joins.
    let most = quorum(round.voters.len());
    let released = round.granted().len();
    let not_theirs = round.masters_with(Outcome::is_definite_no).len();
    let name = &lock.name;
    if released + not_theirs >= most && released > 0 {
        Ok(()) // a quorum can no longer be this owner's
    } else if not_theirs >= most {
        Err(Error::NotHeld { name: name.clone(), owner: lock.owner, votes: round.votes().into() })
    } else {
        Err(verdict::no_quorum(name, round.votes(), false))
    }
}
