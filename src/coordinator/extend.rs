//! Extend: make a lease that still stands last longer.

use std::sync::Arc;
use std::time::Duration;

use super::clean_up::Effort;
use super::hold::Hold;
use super::quorum::Decision;
use super::{Coordinator, verdict};
use crate::error::Error;
use crate::lease;
use crate::master::Terms;

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
        self.run(|engine| async move { engine.extend_now(&hold, generation, ttl, timeout).await }).await
    }

    async fn extend_now(
        &self,
        hold: &Arc<Hold>,
        generation: u64,
        ttl: Duration,
        timeout: Duration,
    ) -> Result<(), Error> {
        let mut count = hold.turn.lock().await;
        if self.clock.now() >= hold.deadline(generation) {
            return Err(Error::Lost { name: hold.name.clone(), votes: Arc::new([]) });
        }
        let withdrawn = count.standing.child_token();
        let operation = hold.operation(count.holds, ttl, self.next_round());
        let mut round = self.ask(&hold.kind.extend(&operation), Terms::Vote { timeout, withdrawn });
        count.keys_end = count.keys_end.max(lease::keys_end(round.sent, ttl, timeout));
        let decision = round.decision().await;
        for (place, outcome) in round.outcomes().enumerate() {
            if Effort::to_undo(outcome) == Some(Effort::UntilDone) {
                count.touch(place); // its key lives longer now, or may
            }
        }
        let votes = round.votes();
        let deadline = lease::deadline(round.sent, ttl);
        self.let_finish(round);
        if decision != Decision::Granted {
            let error = verdict::not_ours(&hold.name, votes);
            if matches!(error, Error::Lost { .. }) {
                hold.end();
            }
            return Err(error);
        }
        let now = self.clock.now();
        if now >= hold.deadline(generation) {
            hold.end(); // somebody may have looked in between: a lease that ended does not come back
            return Err(Error::Lost { name: hold.name.clone(), votes: Arc::new([]) });
        }
        if now >= deadline {
            return Err(verdict::no_quorum(&hold.name, votes, true));
        }
        hold.prolong(deadline);
        Ok(())
    }
}
