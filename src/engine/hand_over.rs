//! Hand-over: one process gives a lock away as a [`Handover`], and another process adopts it. In
//! between the lock belongs to an owner that no guard ever has, so that only the first to adopt it
//! gets it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use super::engine::{Engine, fresh_uuid};
use super::extend::MOVES;
use super::grant::Grant;
use super::hold::{Hold, HoldState, LeaseTerms};
use super::leases::Extension;
use super::wait::{has_moved, has_wrong_time};
use crate::config::check_label;
use crate::error::{Error, Loss};
use crate::handover::Handover;
use crate::invalid::Invalid;
use crate::owner::Owner;
use crate::renewal::{LeaseTimer, Renewal};
use crate::round::{Decision, Epoch, Round, Tokens, verdict};
use crate::set::Voters;
use crate::time::lease;
use crate::wire::{Kind, Leaving, LockId, MasterSet, Op};

/// What to adopt, and how to keep it.
#[derive(Clone, Debug)]
pub(crate) struct Adoption {
    pub(crate) handover: Handover,
    pub(crate) kind: Kind,
    pub(crate) ttl: Duration,
    /// For how long the lock is kept from others should its lease end without a release.
    pub(crate) delay: Duration,
    pub(crate) label: Arc<str>,
    pub(crate) renewal: Option<Arc<Renewal>>,
}

impl Engine {
    /// Gives the lock to an owner that is nobody, and returns the hand-over to adopt it by. Then
    /// the lease of `generation` is over; where this fails, it stands as it did.
    pub(crate) async fn hand_over(
        self: &Arc<Self>,
        hold: &Arc<Hold>,
        generation: u64,
    ) -> Result<Handover, Error> {
        let hold = hold.clone();
        self.run(|engine| async move { again_where_moved(|| engine.give_away(&hold, generation)).await })
            .await
    }

    /// Gives the lock to an owner that nobody was before: what is taken back of an earlier try may
    /// come late.
    async fn give_away(self: &Arc<Self>, hold: &Arc<Hold>, generation: u64) -> Result<Handover, Error> {
        let secret = fresh_uuid(|| self.random.fresh_u64()); // a copy of this process draws another one
        let handover = Handover {
            kind: hold.lock.kind,
            name: hold.lock.name.clone(),
            secret,
            masters: self.fingerprint(),
            permit: hold.lock.permit,
        };
        self.give_to(handover.owner(), hold, generation).await?;
        Ok(handover)
    }

    /// Gives the lock to an owner that is nobody.
    async fn give_to(
        self: &Arc<Self>,
        nobody: Owner,
        hold: &Arc<Hold>,
        generation: u64,
    ) -> Result<(), Error> {
        self.dispatcher.ask_for_time(&hold.lock.name, hold.lock.kind).await;
        let (mut hold_state, voters) = self.healed(hold, generation).await?;
        if hold_state.holds != 1 {
            return Err(Invalid::entered_again(&hold.lock.name, hold_state.holds).into());
        }
        if self.has_counterpart(hold) {
            return Err(Invalid::entered_again(&hold.lock.name, 2).into());
        }
        let (ttl, LeaseTerms { token, label, .. }) = {
            let lease = hold.lease();
            (lease.timer.ttl, lease.terms.clone())
        };
        let timeout = self.settings.timeout_within(ttl);
        let transit = Hold::new(LockId { owner: nobody, ..hold.lock.clone() });
        hold.end_epoch();
        let kept = lease::kept(ttl, Duration::ZERO);
        let way = Way { from: hold, to: &transit, kept, label, timeout, epoch: Epoch::of(hold) };
        let transfer = Transfer::begin(self, voters, way, Some(token));
        let expires_by = transfer.round().expires_by(kept);
        hold_state.expires_by = hold_state.expires_by.max(expires_by);
        if transfer.round().decision().await != Decision::Granted {
            return Err(self.not_extended(hold, transfer.round()));
        }
        // The adopter asks on other connections, and must not come before this.
        transfer.done().until_all().await;
        self.leases.lose(hold, Loss::HandedOver, None);
        hold.give_up(&mut hold_state);
        // A master that missed the transfer still has the owner's entry, or its place in the queue.
        let leaving = Leaving::Undone(hold_state.first_round);
        let all = self.dispatcher.voters().masters;
        drop(self.send_holds_left(hold, &mut hold_state, leaving, None, all));
        Ok(())
    }

    /// The state of a lease, and the masters that have it. One that joined the set since the lease
    /// was granted has it not, nor has one that was not asked; an extend gives it to these, a
    /// transfer would not.
    async fn healed(
        self: &Arc<Self>,
        hold: &Arc<Hold>,
        generation: u64,
    ) -> Result<(OwnedMutexGuard<HoldState>, Arc<Voters>), Error> {
        let mut extends = 0;
        loop {
            let hold_state = hold.state.clone().lock_owned().await;
            if let Some(loss) = hold.loss(generation, self.clock().now()) {
                return Err(loss);
            }
            let voters = self.dispatcher.voters();
            let was_asked = extends > 0 || hold.lease().terms.unasked.is_empty();
            if (hold_state.granted_under == voters.view && was_asked) || extends == MOVES {
                return Ok((hold_state, voters));
            }
            extends += 1;
            let ttl = hold.lease().timer.ttl;
            let extension = Extension { hold: hold.clone(), generation, ttl, hold_state };
            self.extend_one(extension, self.settings.timeout_within(ttl)).await?;
        }
    }

    /// Adopts a lock that was handed over. Where the caller goes away, the lock goes back to the
    /// hand-over.
    pub(crate) async fn adopt(self: &Arc<Self>, adoption: Adoption) -> Result<Grant, Error> {
        adoption.kind.check_name(adoption.handover.name())?;
        check_label(&adoption.label)?;
        let timeout = self.settings.timeout_for(adoption.ttl)?;
        self.settings.check_delay(adoption.delay, adoption.ttl)?;
        if let Some(renewal) = &adoption.renewal {
            renewal.check()?;
        }
        if self.is_closed() {
            return Err(Error::Closed);
        }
        self.until_the_time_is_known(adoption.handover.name(), adoption.kind, timeout).await?;
        let renewal = adoption.renewal.clone();
        let engine = self.clone();
        let adopting = async move {
            engine.check_masters(&adoption).await?;
            let adopt_now = || again_where_moved(|| engine.adopt_now(&adoption, timeout));
            match adopt_now().await {
                // The replies have told the time.
                Err(error) if has_wrong_time(&error) => adopt_now().await,
                decided => decided,
            }
        };
        let grant = self.run_while_wanted(adopting).await?.kept();
        grant.renew_by(&renewal); // not sooner, as in an acquire
        grant.unless_lost()
    }

    /// Checks that the lock is on this client's masters, which are known by their set. Where none
    /// of them has shown that, they are asked for the lock, which connects to them; where some do
    /// not answer, there is no telling then.
    async fn check_masters(self: &Arc<Self>, adoption: &Adoption) -> Result<(), Error> {
        let Adoption { handover, kind, .. } = adoption;
        let is_known = || self.dispatcher.trust().set().newest().is_some();
        if !is_known() {
            let votes = self.holders(handover.name().clone(), *kind).await?;
            // Masters of another kind have no records.
            let tells = is_known() || votes.iter().all(|vote| vote.outcome.is_answer());
            if !tells && handover.check(&self.fingerprint()).is_err() {
                return Err(verdict::denied(handover.name(), None, votes, self.client()));
            }
        }
        Ok(handover.check(&self.fingerprint())?)
    }

    async fn adopt_now(self: &Arc<Self>, adoption: &Adoption, timeout: Duration) -> Result<Adopted, Error> {
        let Adoption { handover, kind, ttl, delay, label, renewal: _ } = adoption;
        let name = handover.name();
        let permit = handover.permit;
        let hold = |owner| Hold::new(LockId { name: name.clone(), kind: *kind, permit, owner });
        let transit = hold(handover.owner());
        let hold = hold(self.fresh_owner());
        let mut hold_state = hold.state.lock().await;
        let ttl = *ttl;
        let delay = *delay;
        let epoch = Epoch::of(&hold);
        let kept = lease::kept(ttl, delay);
        let way = Way { from: &transit, to: &hold, kept, label: label.clone(), timeout, epoch };
        let voters = self.dispatcher.voters();
        let mut transfer = Transfer::begin(self, voters, way, None);
        if transfer.round().decision().await != Decision::Granted {
            transfer.round().until_all().await; // to know who has the lock takes more votes
            let votes = transfer.round().votes();
            let error = match verdict::misuse(&hold.lock.name, hold.permits(), &votes) {
                Some(misuse) => misuse,
                None if verdict::is_held(&votes) => {
                    verdict::denied(&hold.lock.name, hold.permits(), votes, self.client())
                }
                None => verdict::not_ours(&hold.lock.name, votes),
            };
            transfer.is_void = matches!(error, Error::Held { .. } | Error::Lost { .. });
            return Err(error);
        }
        let token = transfer.agree().await?;
        // Otherwise a soon release would leave the entry of the hand-over on a master not asked
        // yet.
        transfer.round().until_all().await;
        transfer.round().check_that_it_counts(&hold.lock.name, ttl)?;
        let first_round = transfer.round_number;
        let round = transfer.done();
        hold_state.note_entries(round.may_have_run(), round.expires_by(kept));
        hold_state.begin(first_round);
        hold_state.granted_under = round.voters.view;
        let terms = LeaseTerms { token, delay, label: label.clone(), unasked: MasterSet::default() };
        let generation = self.leases.begin(&hold, LeaseTimer::new(round.sent, ttl, None), terms);
        drop(hold_state);
        let grant = Grant::new(self.clone(), hold, generation, &round);
        Ok(Adopted { grant: Some(grant), engine: self.clone(), from: handover.owner() })
    }
}

/// Tries again where the set of masters had changed.
async fn again_where_moved<T, F>(attempt: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut moves = 0;
    loop {
        match attempt().await {
            Err(error) if has_moved(&error) && moves < MOVES => moves += 1,
            decided => return decided,
        }
    }
}

/// An adopted lock on its way to the caller. Dropped on the way, it goes back to its hand-over.
struct Adopted {
    grant: Option<Grant>,
    engine: Arc<Engine>,
    from: Owner,
}

impl Adopted {
    fn kept(mut self) -> Grant {
        self.grant.take().expect("it is taken once")
    }
}

impl Drop for Adopted {
    fn drop(&mut self) {
        let Some(grant) = self.grant.take() else { return };
        let engine = self.engine.clone();
        let from = self.from;
        self.engine.spawn(async move {
            // If this fails, the grant's own drop releases it.
            let _ = engine.give_to(from, &grant.hold, grant.generation).await;
        });
    }
}

/// A transfer under way. Dropped before it is done, it is taken back on every master where it may
/// have happened; where it is void, the new owner's entry is released there instead.
struct Transfer<'a> {
    engine: &'a Arc<Engine>,
    way: Way<'a>,
    round_number: u64,
    /// Whether another owner has the lock meanwhile, so that there is nothing to go back to.
    is_void: bool,
    round: Option<Arc<Round>>,
}

/// From whom to whom, and by when.
struct Way<'a> {
    from: &'a Arc<Hold>,
    to: &'a Arc<Hold>,
    /// For how long the masters keep the lock from others.
    kept: Duration,
    label: Arc<str>,
    timeout: Duration,
    /// Once this is over the transfer is not taken back: the owner that began it gave the lock up.
    epoch: Epoch,
}

impl<'a> Transfer<'a> {
    /// Begins the transfer of a lease with the token `handed`, which stays; or that of a lock which
    /// was handed over, and gets a new token.
    fn begin(engine: &'a Arc<Engine>, voters: Arc<Voters>, way: Way<'a>, handed: Option<u64>) -> Self {
        let from = way.from.lock.owner;
        let kept = way.kept;
        let label = way.label.clone();
        let round_number = engine.dispatcher.next_round_number();
        let op = Op::Transfer { from, kept, label, renews: handed.is_none(), handed };
        let round = way.ask(engine, voters, round_number, &op);
        Self { engine, way, round_number, is_void: false, round: Some(round) }
    }

    /// The token that a majority has; where they differ, the highest, once a majority confirms it.
    async fn agree(&self) -> Result<u64, Error> {
        let highest = match self.round().tokens() {
            Tokens::Agreed(token) => return Ok(token),
            Tokens::Split(highest) => highest,
        };
        let to = self.way.to;
        let kept = self.way.kept;
        let label = self.way.label.clone();
        let op = Op::Extend { holds: 1, kept, label, token: highest, heals: false, first: self.round_number };
        let round_number = self.engine.dispatcher.next_round_number();
        let voters = self.engine.dispatcher.voters();
        let confirming = self.way.ask(self.engine, voters, round_number, &op);
        match confirming.decision().await {
            Decision::Granted => Ok(highest),
            _ => Err(verdict::no_quorum(&to.lock.name, confirming.votes(), false)),
        }
    }

    fn round(&self) -> &Round {
        self.round.as_ref().expect("it is taken at the end")
    }

    fn done(mut self) -> Arc<Round> {
        self.round.take().expect("it is taken at the end")
    }
}

impl Way<'_> {
    fn ask(&self, engine: &Arc<Engine>, voters: Arc<Voters>, round_number: u64, op: &Op) -> Arc<Round> {
        let all = voters.masters;
        let round = engine.dispatcher.begin_round(voters, Some(self.epoch.clone()));
        engine.dispatcher.send_round(round, all, &self.to.lock, round_number, op, self.timeout)
    }
}

impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        let Some(round) = self.round.take() else { return };
        round.cancel(); // what was not sent yet needs no way back
        let engine = self.engine;
        let kept = self.way.kept;
        let Way { from, to, label, epoch, .. } = &self.way;
        let (hold, op) = if self.is_void {
            (to, Op::Release { holds: 0, leaving: Leaving::Undone(self.round_number), place: None })
        } else {
            let label = label.clone();
            (from, Op::Transfer { from: to.lock.owner, kept, label, renews: false, handed: None })
        };
        let expires_by = round.expires_by(kept);
        let undo = engine.clean_up_op(hold, op, expires_by, Some(epoch.clone()));
        engine.clean_up_on(round.may_have_run(), undo);
    }
}
