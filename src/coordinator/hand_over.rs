//! Hand-over: a lock leaves one process as a token, and another process takes it up. In between it belongs to an owner
//! that no guard ever has, so that whoever adopts it first is the only one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::clean_up::Effort;
use super::grant::Grant;
use super::hold::{Count, Hold};
use super::kind::Kind;
use super::quorum::{Decision, quorum};
use super::round::Round;
use super::{Coordinator, fresh_uuid, verdict};
use crate::config::check_name;
use crate::error::{Error, Invalid, Loss};
use crate::lease;
use crate::master::Terms;
use crate::owner::Owner;
use crate::renewal::{Course, Renewal};
use crate::token::Token;

/// What to adopt, and how to keep it.
#[derive(Clone, Debug)]
pub(crate) struct Adoption {
    pub(crate) token: Token,
    pub(crate) kind: &'static dyn Kind,
    pub(crate) ttl: Duration,
    pub(crate) renewal: Option<Renewal>,
}

impl Coordinator {
    /// Gives the lock to nobody, and tells the token by which it is to be had. The lease of `generation` is over then;
    /// where this fails, it stands as it did.
    pub(crate) async fn hand_over(
        self: &Arc<Self>,
        hold: &Arc<Hold>,
        generation: u64,
    ) -> Result<Token, Error> {
        let hold = hold.clone();
        let nobody = Owner::of_nobody(fresh_uuid(&*self.random));
        self.run(|engine| async move { engine.give_to(nobody, &hold, generation).await }).await
    }

    /// Gives the lock to an owner that is nobody.
    async fn give_to(
        self: &Arc<Self>,
        nobody: Owner,
        hold: &Arc<Hold>,
        generation: u64,
    ) -> Result<Token, Error> {
        let mut count = hold.turn.lock().await;
        if let Some(loss) = hold.loss(generation, self.clock.now()) {
            return Err(loss);
        }
        if count.holds != 1 {
            return Err(Invalid::EnteredAgain { name: hold.name.to_string(), holds: count.holds }.into());
        }
        let ttl = hold.lease().course.ttl;
        let timeout = self.settings.timeout_for(ttl).unwrap_or(ttl / 2);
        let transit = Hold::new(hold.name.clone(), hold.keys.clone(), nobody, hold.kind);
        count.withdraw_stragglers();
        let mut transfer = Transfer::begin(self, hold, &transit, ttl, timeout, &count);
        count.keys_end = count.keys_end.max(lease::keys_end(transfer.round().sent, ttl, timeout));
        if transfer.round().decision().await != Decision::Granted {
            let error = verdict::not_ours(&hold.name, transfer.round().votes());
            if matches!(error, Error::Lost { .. }) {
                self.lose(hold, Loss::NotOurs, Some(error.clone()));
            }
            return Err(error);
        }
        // Whoever adopts it comes on other connections, and must not be there first.
        let mut round = transfer.done();
        round.finish().await;
        self.lose(hold, Loss::HandedOver, None);
        count.give_up();
        count.touched = 0;
        Ok(Token::new(hold.name.clone(), nobody, self.fingerprint()))
    }

    /// Takes up the lock of a token. A caller that goes away leaves it to the token again.
    pub(crate) async fn adopt(self: &Arc<Self>, adoption: Adoption) -> Result<Grant, Error> {
        check_name(adoption.token.name())?;
        adoption.token.check(&self.fingerprint())?;
        let timeout = self.settings.timeout_for(adoption.ttl)?;
        if let Some(renewal) = &adoption.renewal {
            renewal.check()?;
        }
        if self.is_closed() {
            return Err(Error::Closed);
        }
        let (mut reply, answer) = oneshot::channel();
        let engine = self.clone();
        self.spawn(async move {
            let outcome = tokio::select! {
                biased;
                () = reply.closed() => return,
                outcome = engine.adopt_now(&adoption, timeout) => outcome,
            };
            let _ = reply.send(outcome);
        });
        let grant = answer.await.unwrap_or(Err(Error::Closed))?.kept();
        match grant.loss() {
            Some(loss) => Err(loss),
            None => Ok(grant),
        }
    }

    async fn adopt_now(self: &Arc<Self>, adoption: &Adoption, timeout: Duration) -> Result<Adopted, Error> {
        let Adoption { token, kind, ttl, renewal } = adoption;
        let hold = |owner| Hold::new(token.name().clone(), self.keys(token.name()), owner, *kind);
        let (transit, hold) = (hold(token.owner()), hold(self.fresh_owner()));
        let mut count = hold.turn.lock().await;
        let mut transfer = Transfer::begin(self, &transit, &hold, *ttl, timeout, &count);
        let decision = transfer.round().decision().await;
        if decision != Decision::Granted {
            transfer.round().finish().await; // whose it is takes more votes than that it is not ours
        }
        let (sent, votes) = (transfer.round().sent, transfer.round().votes());
        if decision != Decision::Granted {
            let has_it =
                verdict::holder(&votes).is_some_and(|holder| holder.masters >= quorum(self.masters.len()));
            let error = match has_it {
                true => verdict::denied(&hold.name, votes),
                false => verdict::not_ours(&hold.name, votes),
            };
            transfer.is_void = matches!(error, Error::Held { .. } | Error::Lost { .. });
            return Err(error);
        }
        if self.clock.now() >= lease::deadline(sent, *ttl) {
            return Err(verdict::no_quorum(&hold.name, votes, true));
        }
        let round = transfer.done();
        for (place, outcome) in round.outcomes().enumerate() {
            if Effort::to_undo(outcome) == Some(Effort::UntilDone) {
                count.touch(place);
            }
        }
        count.keys_end = lease::keys_end(sent, *ttl, timeout);
        count.begin();
        self.let_finish([round]);
        let generation = self.begin_lease(&hold, Course::new(sent, *ttl, *renewal));
        drop(count);
        let grant = Grant::new(self.clone(), hold, generation, votes);
        Ok(Adopted { grant: Some(grant), engine: self.clone(), from: token.owner() })
    }
}

/// An adopted lock on its way to the caller. Dropped on the way, it goes back to its token.
struct Adopted {
    grant: Option<Grant>,
    engine: Arc<Coordinator>,
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
        let (engine, from) = (self.engine.clone(), self.from);
        self.engine.spawn(async move {
            // If this fails, the grant's own drop releases it.
            let _ = engine.give_to(from, grant.hold(), grant.generation()).await;
        });
    }
}

/// A transfer under way. Dropped before it is done, it is taken back on every master where it may have happened; or the
/// lock is released there, where it is somebody else's meanwhile.
struct Transfer<'a> {
    engine: &'a Arc<Coordinator>,
    from: &'a Arc<Hold>,
    to: &'a Arc<Hold>,
    ttl: Duration,
    timeout: Duration,
    /// There is nothing to go back to.
    is_void: bool,
    withdrawn: CancellationToken,
    /// Cancelled when the owner that began it has given the lock up: then the way back leads nowhere.
    standing: CancellationToken,
    round: Option<Round>,
}

impl<'a> Transfer<'a> {
    fn begin(
        engine: &'a Arc<Coordinator>,
        from: &'a Arc<Hold>,
        to: &'a Arc<Hold>,
        ttl: Duration,
        timeout: Duration,
        count: &Count,
    ) -> Self {
        let withdrawn = count.standing.child_token();
        let terms = Terms::Vote { timeout, withdrawn: withdrawn.clone() };
        let operation = to.operation(1, ttl, engine.next_round());
        let round = engine.ask(&to.kind.transfer(&operation, &from.field), terms);
        Self {
            engine,
            from,
            to,
            ttl,
            timeout,
            is_void: false,
            withdrawn,
            standing: count.standing.clone(),
            round: Some(round),
        }
    }

    fn round(&mut self) -> &mut Round {
        self.round.as_mut().expect("it is taken at the end")
    }

    fn done(mut self) -> Round {
        self.round.take().expect("it is taken at the end")
    }
}

impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        let Some(round) = self.round.take() else { return };
        self.withdrawn.cancel(); // what was not sent yet needs no way back
        let number = self.engine.next_round();
        let back = match self.is_void {
            true => self.to.kind.release(&self.to.operation(0, self.ttl, number)),
            false => self.to.kind.transfer(&self.from.operation(1, self.ttl, number), &self.to.field),
        };
        let keys_end = lease::keys_end(round.sent, self.ttl, self.timeout);
        for (place, outcome) in round.outcomes().enumerate() {
            if Effort::to_undo(outcome) == Some(Effort::UntilDone) {
                let (effort, void) = (Some(Effort::UntilDone), self.standing.clone());
                drop(self.engine.tell(place, &back, keys_end, effort, void));
            }
        }
        self.engine.let_finish([round]);
    }
}
