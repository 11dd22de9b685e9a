//! Extend: make leases that still stand last longer; one by hand, or many at once for the watchdog.

use std::sync::Arc;
use std::time::Duration;

use super::effort::Effort;
use super::hold::{Epoch, Hold};
use super::leases::Extension;
use super::parts::Engine;
use super::quorum::Decision;
use super::tally::Round;
use super::verdict;
use crate::clock::Moment;
use crate::error::{Error, Loss};
use crate::lease;
use crate::master::CallKind;
use crate::protocol::Op;

/// Whether to wait for votes that can change nothing but what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hearing {
    /// The first decision will do.
    Short,
    /// A lease that was not extended may be lost for certain: wait until that is known, or for
    /// every vote.
    Full,
}

impl Engine {
    /// Extends the lease of `generation` to `ttl` from now on. Where that fails, the lease stands
    /// as it did, unless a majority said for certain that it is gone.
    pub(crate) async fn extend(
        self: &Arc<Self>,
        hold: &Arc<Hold>,
        generation: u64,
        ttl: Duration,
    ) -> Result<(), Error> {
        let timeout = self.settings.timeout_for(ttl)?;
        let hold = hold.clone();
        self.run(|engine| async move {
            let state = hold.op_lock.clone().lock_owned().await;
            if let Some(loss) = hold.loss(generation, engine.clock().now()) {
                return Err(loss);
            }
            let extension = Extension { hold, generation, ttl, state };
            engine.extend_one(extension, timeout, Hearing::Short).await.map(|_| ())
        })
        .await
    }

    /// Extends one lease. Returns when its round was sent.
    pub(super) async fn extend_one(
        self: &Arc<Self>,
        extension: Extension,
        timeout: Duration,
        hearing: Hearing,
    ) -> Result<Moment, Error> {
        let Extension { hold, generation, ttl, mut state } = extension;
        let terms = hold.lease().terms.clone();
        let kept = lease::kept(ttl, terms.delay);
        let holds = state.holds;
        let token = terms.token;
        let label = terms.label;
        let op = Op::Extend { holds, kept, label, token, heals: true, first: 0 };
        // One that is not sent before the lock is given up must not come behind the release, and
        // take the lock back.
        let call_kind = CallKind::Vote { timeout };
        let epoch = Some(Epoch::of(&hold));
        let round = self.dispatcher.ask(&hold, self.dispatcher.next_round(), &op, call_kind, epoch);
        let decision = round.decision().await;
        if decision != Decision::Granted && hearing == Hearing::Full {
            round.certainty().await;
        }
        state.note_keys(round.may_have_run(), lease::expires_by(round.sent, kept)); // they live longer now, or may
        // If the acquire's grant arrived after its vote was given up, that master has a higher
        // token than the lease and refuses each extend. Undo it; the next extend heals.
        let strays = round.stale_by_token(token);
        if !strays.is_empty() {
            self.tell(strays, self.undo_of_strays(&hold, &state), Effort::UntilAcknowledged, None);
        }
        match decision {
            Decision::Granted => self.extended(&hold, generation, &round, ttl),
            _ => Err(self.not_extended(&hold, &round)),
        }
    }

    fn extended(
        &self,
        hold: &Arc<Hold>,
        generation: u64,
        round: &Round,
        ttl: Duration,
    ) -> Result<Moment, Error> {
        let now = self.clock().now();
        if let Some(loss) = hold.loss(generation, now) {
            return Err(loss); // somebody may have looked in between: a lease that ended does not come back
        }
        if now >= lease::deadline(round.sent, ttl) {
            return Err(verdict::no_quorum(&hold.name, round.votes(), true));
        }
        if !round.clocks_agree() {
            return Err(verdict::no_quorum(&hold.name, round.votes(), false));
        }
        self.leases.prolong(hold, round.sent, ttl, None);
        Ok(round.sent)
    }

    fn not_extended(&self, hold: &Arc<Hold>, round: &Round) -> Error {
        let error = verdict::not_ours(&hold.name, round.votes());
        if matches!(error, Error::Lost { .. }) {
            self.leases.lose(hold, Loss::NotOurs, Some(error.clone()));
        }
        error
    }
}
