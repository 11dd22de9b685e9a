//! Extend: make leases that still stand last longer; one by hand, or many at once for the watchdog.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use super::clean_up::Effort;
use super::hold::{Count, Hold};
use super::kind::Errand;
use super::quorum::Decision;
use super::round::Round;
use super::{Coordinator, verdict};
use crate::clock::Moment;
use crate::error::{Error, Loss};
use crate::lease;
use crate::master::Terms;

/// One lease to extend. Nothing else happens to its hold meanwhile.
pub(super) struct Extension {
    pub(super) hold: Arc<Hold>,
    pub(super) generation: u64,
    pub(super) ttl: Duration,
    pub(super) count: OwnedMutexGuard<Count>,
}

/// Whether to wait for votes that can change nothing but what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hearing {
    /// The first decision will do.
    Short,
    /// A lease that was not extended may be lost for certain: every master is heard, or so many that it is.
    Full,
}

impl Coordinator {
    /// Extends the lease of `generation` to `ttl` from now on. Where that fails, the lease stands as it did, unless a
    /// majority said for certain that it is gone.
    pub(crate) async fn extend(
        self: &Arc<Self>,
        hold: &Arc<Hold>,
        generation: u64,
        ttl: Duration,
    ) -> Result<(), Error> {
        let timeout = self.settings.timeout_for(ttl)?;
        let hold = hold.clone();
        self.run(|engine| async move {
            let count = hold.turn.clone().lock_owned().await;
            if let Some(loss) = hold.loss(generation, engine.clock.now()) {
                return Err(loss);
            }
            let extension = Extension { hold, generation, ttl, count };
            let end = |_: &Arc<Hold>, _, end| end;
            let mut ends = engine.extend_together(vec![extension], timeout, Hearing::Short, end).await;
            ends.remove(0).map(|_| ())
        })
        .await
    }

    /// Extends many leases with one call to each master. `after` hears of each, at once and whatever the others still
    /// wait for, when its round was sent, or what is wrong.
    pub(super) async fn extend_together<T>(
        &self,
        extensions: Vec<Extension>,
        timeout: Duration,
        hearing: Hearing,
        after: impl Fn(&Arc<Hold>, u64, Result<Moment, Error>) -> T,
    ) -> Vec<T> {
        let errand = |extension: &Extension| -> Errand {
            let Extension { hold, ttl, count, .. } = extension;
            hold.kind.extend(&hold.operation(count.holds, *ttl, self.next_round()))
        };
        let errands: Vec<_> = extensions.iter().map(errand).collect();
        // Nothing withdraws it: an extend that comes late finds the lock gone, and makes none.
        let terms = Terms::Vote { timeout, withdrawn: CancellationToken::new() };
        let rounds = self.ask_together(&errands, &terms);
        let after = &after;
        let concluding = extensions.into_iter().zip(rounds).map(|(extension, round)| async move {
            let (hold, generation) = (extension.hold.clone(), extension.generation);
            let (end, round) = self.conclude(extension, round, timeout, hearing).await;
            (after(&hold, generation, end), round)
        });
        let (ends, rounds): (Vec<_>, Vec<_>) = join_all(concluding).await.into_iter().unzip();
        self.let_finish(rounds);
        ends
    }

    async fn conclude(
        &self,
        extension: Extension,
        mut round: Round,
        timeout: Duration,
        hearing: Hearing,
    ) -> (Result<Moment, Error>, Round) {
        let Extension { hold, generation, ttl, mut count } = extension;
        count.keys_end = count.keys_end.max(lease::keys_end(round.sent, ttl, timeout));
        let decision = round.decision().await;
        if decision != Decision::Granted && hearing == Hearing::Full {
            round.certainty().await;
        }
        for (place, outcome) in round.outcomes().enumerate() {
            if Effort::to_undo(outcome) == Some(Effort::UntilDone) {
                count.touch(place); // its key lives longer now, or may
            }
        }
        let end = match decision {
            Decision::Granted => self.extended(&hold, generation, &round, ttl),
            _ => Err(self.not_extended(&hold, &round)),
        };
        (end, round)
    }

    fn extended(
        &self,
        hold: &Arc<Hold>,
        generation: u64,
        round: &Round,
        ttl: Duration,
    ) -> Result<Moment, Error> {
        let now = self.clock.now();
        if let Some(loss) = hold.loss(generation, now) {
            return Err(loss); // somebody may have looked in between: a lease that ended does not come back
        }
        if now >= lease::deadline(round.sent, ttl) {
            return Err(verdict::no_quorum(&hold.name, round.votes(), true));
        }
        self.prolong(hold, round.sent, ttl, None);
        Ok(round.sent)
    }

    fn not_extended(&self, hold: &Arc<Hold>, round: &Round) -> Error {
        let error = verdict::not_ours(&hold.name, round.votes());
        if matches!(error, Error::Lost { .. }) {
            self.lose(hold, Loss::NotOurs, Some(error.clone()));
        }
        error
    }
}
