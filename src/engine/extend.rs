//! Extend: makes a lease that still stands last longer, for a caller or for the watchdog.

use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::hold::Hold;
use super::leases::Extension;
use crate::error::{Error, Loss};
use crate::round::{Decision, Epoch, Round, verdict};
use crate::time::{Moment, lease};
use crate::wire::Op;

/// How often in a row to ask again because the set of masters has changed.
pub(super) const MOVES: u32 = 3;

impl Engine {
    /// Extends the lease of `generation` to `ttl` from now on. If that fails, the lease stands as
    /// before, unless a majority said for certain that it is gone.
    pub(crate) async fn extend(
        self: &Arc<Self>,
        hold: &Arc<Hold>,
        generation: u64,
        ttl: Duration,
    ) -> Result<(), Error> {
        let timeout = self.settings.timeout_for(ttl)?;
        self.settings.check_delay(hold.lease().terms.delay, ttl)?;
        let hold = hold.clone();
        self.run(|engine| async move {
            let hold_state = hold.state.clone().lock_owned().await;
            if let Some(loss) = hold.loss(generation, engine.clock().now()) {
                return Err(loss);
            }
            let extension = Extension { hold, generation, ttl, hold_state };
            engine.extend_one(extension, timeout).await.map(|_| ())
        })
        .await
    }

    /// Extends one lease. Returns the moment at which its round was sent. Where that fails, it is
    /// known for certain that the lease is lost, or every vote is in.
    pub(super) async fn extend_one(
        self: &Arc<Self>,
        extension: Extension,
        timeout: Duration,
    ) -> Result<Moment, Error> {
        let Extension { hold, generation, ttl, mut hold_state } = extension;
        let terms = hold.lease().terms.clone();
        let holds = hold_state.holds;
        let token = terms.token;
        let granted_under = hold_state.granted_under;
        // Where the lock is given up before this is sent, it must not follow the release, and take
        // the lock back.
        let epoch = Epoch::of(&hold);
        self.dispatcher.ask_for_time(&hold.lock.name, hold.lock.kind).await;
        let mut moves = 0;
        let kept = lease::kept(ttl, lease::delay_within(self.settings.max_ttl, ttl, terms.delay));
        let op = Op::Extend { holds, kept, label: terms.label.clone(), token, heals: true, first: 0 };
        let (round, decision) = loop {
            let round_number = self.dispatcher.next_round_number();
            let epoch = Some(epoch.clone());
            let round = self.dispatcher.ask(&hold.lock, round_number, &op, timeout, epoch);
            let decision = round.decision().await;
            if decision == Decision::Granted || moves == MOVES || !round.has_moved() {
                break (round, decision);
            }
            moves += 1;
            hold_state.note_entries(round.may_have_run(), round.expires_by(kept));
        };
        if decision != Decision::Granted {
            round.until_certain().await;
        }
        // The entries may live longer now.
        hold_state.note_entries(round.may_have_run(), round.expires_by(kept));
        // If the acquire's grant arrived after its vote was given up, that master has a higher
        // token than the lease and refuses each extend. Undo it; the next extend heals.
        let strays = round.stale_by_token(token);
        if !strays.is_empty() {
            self.clean_up_on(strays, self.clean_up_of_strays(&hold, &hold_state));
        }
        if decision == Decision::Granted {
            hold_state.granted_under = round.voters.view;
        }
        match decision {
            Decision::Granted => self.extended(&hold, generation, &round, ttl).map(|()| round.sent),
            // A master that joined since has not the lock yet, and may have given it to somebody
            // who asked for it in vain.
            _ if round.voters.view != granted_under => {
                Err(verdict::no_quorum(&hold.lock.name, round.votes(), false))
            }
            _ => Err(self.not_extended(&hold, &round)),
        }
    }

    fn extended(&self, hold: &Arc<Hold>, generation: u64, round: &Round, ttl: Duration) -> Result<(), Error> {
        let unless_lost = || hold.loss(generation, self.clock().now()).map_or(Ok(()), Err);
        unless_lost()?;
        round.check_that_it_counts(&hold.lock.name, ttl)?;
        hold.lease().note_given_to(round.granted());
        match self.leases.prolong(hold, round.sent, ttl, None) {
            Some(_) => Ok(()),
            None => unless_lost(), // it ended just now, and is lost for good
        }
    }

    /// The error of a round that did not extend the lease, or hand it over: it is lost where that
    /// is certain.
    pub(super) fn not_extended(&self, hold: &Arc<Hold>, round: &Round) -> Error {
        let error = verdict::not_ours(&hold.lock.name, round.votes());
        if matches!(error, Error::Lost { .. }) {
            self.leases.lose(hold, Loss::NotOurs, Some(error.clone()));
        }
        error
    }
}
