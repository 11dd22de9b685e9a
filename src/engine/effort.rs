//! How hard to try to undo what one master may have done: pure.

use crate::vote::{Outcome, Refusal};

/// How hard to try on one master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// It has nothing of ours that we know of: asked as for a vote, so not at all if it is known to
    /// be out of reach.
    Once,
    /// It may have our entry: across reconnects, until it has answered, or the entry is over.
    UntilAcknowledged,
}

impl Effort {
    /// What it takes to undo an acquire or an extend on a master with this outcome.
    pub(super) fn to_undo(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Granted | Outcome::Unknown(_) | Outcome::Pending => Some(Self::UntilAcknowledged),
            // Its vote does not count, whatever it did.
            Outcome::Refused { reason: Refusal::Clock, .. } => Some(Self::UntilAcknowledged),
            Outcome::Refused { reason, .. } if reason.comes_first() => None,
            // Lua does not roll back: something may have been written.
            Outcome::Refused { .. } => Some(Self::Once),
            Outcome::Held { .. } | Outcome::Absent | Outcome::Unreachable(_) => None,
        }
    }
}
