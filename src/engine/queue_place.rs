//! A waiter's place in the masters' queues, from one attempt to the next.
//!
//! Each attempt takes over the place of the attempt before, and takes one with a ticket of its own
//! on the masters that refuse it. A master that did not answer may keep the previous place, or that
//! of an earlier round of the same attempt: the attempt gives those up. A grant ends with no place,
//! a refusal with a [`QueuePlace`] for the next attempt.

use std::sync::Arc;

use super::clean_up::CleanUpOp;
use super::engine::Engine;
use super::hold::{Hold, HoldState};
use crate::round::Round;
use crate::vote::Outcome;
use crate::wire::{LockId, MasterSet, Ticket};

/// The place of one ticket in the queues of some masters. Dropping it gives the place up.
pub(super) struct QueuePlace {
    engine: Arc<Engine>,
    /// What was asked for, with the ticket as its owner.
    lock: LockId,
    label: Arc<str>,
    /// The masters where the ticket may have a place.
    on: MasterSet,
}

/// The places that one attempt takes, takes over and gives up.
pub(super) struct Places {
    /// The place of this attempt's ticket, where its rounds may have left it; `None` if it takes
    /// none. What is not moved elsewhere is given up with the attempt.
    own: Option<QueuePlace>,
    /// Whether the ticket is the owner itself. Then its release gives up the place, too.
    is_owner: bool,
    /// The place to take over, until it is known which masters did.
    previous: Option<QueuePlace>,
}

impl Places {
    /// The places of an attempt for the owner of `hold`. Where it is refused, `ticket` takes a
    /// place.
    pub(super) fn new(
        engine: &Arc<Engine>,
        hold: &Hold,
        ticket: Option<&Ticket>,
        previous: Option<QueuePlace>,
    ) -> Self {
        let is_owner = ticket.is_some_and(|ticket| ticket.owner == hold.lock.owner);
        let own = ticket.map(|ticket| QueuePlace {
            engine: engine.clone(),
            lock: LockId { owner: ticket.owner, ..hold.lock.clone() },
            label: ticket.label.clone(),
            on: MasterSet::default(),
        });
        Self { own, is_owner, previous }
    }

    /// The ticket whose place the first round takes over.
    pub(super) fn previous_ticket(&self) -> Option<Ticket> {
        self.previous.as_ref().map(QueuePlace::ticket)
    }

    /// Gives up the previous place on the masters that did not take it over in this round. A vote
    /// that is pending did not: its call may not have been sent, and is not any more.
    pub(super) fn leave_previous(&mut self, round: &Round) {
        if let Some(mut previous) = self.previous.take() {
            previous.on = previous.on.and(round.masters_with(|outcome| !outcome.takes_over()));
        }
    }

    /// Notes where this round may have left its place: before the attempt sends another round, or
    /// gives up.
    pub(super) fn note_own(&mut self, round: &Round) {
        self.add(round.masters_with(|outcome| has_place(outcome) || self.is_stray(outcome)));
    }

    /// Forgets the places of earlier rounds that this one, the last, took over. Where the ticket is
    /// the owner itself, the others are noted for the owner's release.
    pub(super) fn note_left(&mut self, round: &Round, hold_state: &mut HoldState) {
        let Some(own) = &mut self.own else { return };
        own.on = own.on.without(round.masters_with(Outcome::takes_over));
        if self.is_owner {
            hold_state.note_places(std::mem::take(&mut own.on));
        }
    }

    /// After a grant: notes the places that are left, to be given up with the attempt or by the
    /// release. Returns what gives up the previous place, and where it was: late votes show where
    /// it is left.
    pub(super) fn settle(
        &mut self,
        round: &Round,
        hold_state: &mut HoldState,
    ) -> Option<(CleanUpOp, MasterSet)> {
        let previous = self.previous.take().map(QueuePlace::into_clean_up);
        self.note_left(round, hold_state);
        self.add(round.masters_with(|outcome| self.is_stray(outcome)));
        hold_state.note_places(round.masters_with(has_place));
        previous
    }

    /// After a refusal, when the grants of this round were withdrawn: returns the place for the
    /// next attempt. Where masters only may have it, it is given up with this one.
    pub(super) fn keep(&mut self, round: &Round) -> Option<QueuePlace> {
        let stands = round.masters_with(|outcome| has_place(outcome) || *outcome == Outcome::Granted);
        self.add(round.masters_with(|outcome| self.is_stray(outcome)));
        let own = self.own.as_mut()?;
        own.on = own.on.without(stands);
        let lock = own.lock.clone();
        Some(QueuePlace { engine: own.engine.clone(), lock, label: own.label.clone(), on: stands })
    }

    /// Whether a master with this outcome may have a place of the ticket that no release gives up.
    fn is_stray(&self, outcome: &Outcome) -> bool {
        !self.is_owner && (has_place(outcome) || matches!(outcome, Outcome::Pending | Outcome::Unknown(_)))
    }

    /// These masters may have the attempt's own place, too.
    fn add(&mut self, on: MasterSet) {
        if let Some(own) = &mut self.own {
            own.on = own.on.or(on);
        }
    }
}

impl QueuePlace {
    fn ticket(&self) -> Ticket {
        Ticket { owner: self.lock.owner, label: self.label.clone() }
    }

    fn clean_up(&self) -> CleanUpOp {
        self.engine.clean_up_of_place(&self.lock, self.ticket())
    }

    /// What gives the place up, and on which masters. The caller has to send it.
    fn into_clean_up(mut self) -> (CleanUpOp, MasterSet) {
        (self.clean_up(), std::mem::take(&mut self.on))
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if !self.on.is_empty() {
            self.engine.clean_up_on(self.on, self.clean_up());
        }
    }
}

fn has_place(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Held { ahead: Some(_), .. })
}
