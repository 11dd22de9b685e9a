//! What must never happen, and the conditions in which the protocol has to hold.

use crate::master::{Tick, Token};
use crate::variants::Flaw;

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Two attempts have the same token.
    Unique,
    /// A token is not greater than one that had been given out when its acquire began.
    Rising,
    /// An extend succeeds though a greater token had been given out before any master agreed to it.
    Overtaken,
    /// A master agrees to an extend after it ran the release of that token.
    Resurrected,
    /// An extend succeeds though a majority had released the lock before any master agreed to it.
    Revived,
}

/// What the world may do, and the settings of the protocol in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    /// What masters' counters may be at first: every combination is looked at.
    pub(crate) counters: &'static [Token],
    /// What an attempt may propose.
    pub(crate) proposals: Proposals,
    /// How many acquires may run twice.
    pub(crate) duplicates: u8,
    /// Whether holders extend.
    pub(crate) extends: bool,
    /// Whether locks are released, by their holders or by others.
    pub(crate) releases: bool,
    /// How often a master may forget.
    pub(crate) losses: u8,
    /// Whether it may forget a part: it then has an older record, and perhaps an older hold. Else it has neither.
    pub(crate) rolls_back: bool,
    /// When the clock stops.
    pub(crate) last_tick: Tick,
    /// How far from a master's clock a proposal may be. `None`: nobody looks.
    pub(crate) band: Option<Tick>,
    /// How long a master that forgot does not vote.
    pub(crate) quarantine: Tick,
    /// For how long after the last good round was sent a holder has the lock, and counts votes. `None`: for ever.
    pub(crate) lease: Option<Tick>,
    /// The check that is missing.
    pub(crate) flaw: Option<Flaw>,
}

/// What attempts propose.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Proposals {
    /// Any of these: without losses nothing depends on proposals.
    Any(&'static [Token]),
    /// What a clock says that is wrong by this much at most.
    Clock { skew: Tick },
}

impl Profile {
    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }
}

/// Nothing is lost, and there is no clock. What is acquired is never extended.
pub(crate) const PLAIN: Profile = Profile {
    counters: &[0, 1, 2],
    proposals: Proposals::Any(&[0, 2]),
    duplicates: 0,
    extends: false,
    releases: false,
    losses: 0,
    rolls_back: false,
    last_tick: 0,
    band: None,
    quarantine: 0,
    lease: None,
    flaw: None,
};

/// An acquire runs twice.
pub(crate) const TWICE: Profile = Profile { duplicates: 1, ..PLAIN };

/// Holders extend, which heals, for as long as they like.
pub(crate) const EXTENDED: Profile = Profile { extends: true, ..PLAIN };

/// Locks are released too, while extends are under way, or broken, and their holders go on to extend.
pub(crate) const RELEASED: Profile = Profile { releases: true, ..EXTENDED };

/// A master forgets, and nobody extends. The quarantine is longer than twice the band: a proposal that is accepted after it
/// is greater than any from before.
pub(crate) const LOSS: Profile = Profile {
    counters: &[0, 1],
    proposals: Proposals::Clock { skew: 1 },
    losses: 1,
    rolls_back: true,
    last_tick: 4,
    band: Some(1),
    quarantine: 3,
    ..PLAIN
};

/// A master forgets everything, and holders extend. The quarantine is longer than a lease and the band: a grant from before
/// it can become a token for a band, and whoever that overtakes counts votes for another lease.
pub(crate) const LOSS_EXTENDED: Profile = Profile {
    proposals: Proposals::Clock { skew: 0 },
    extends: true,
    rolls_back: false,
    last_tick: 3,
    band: Some(0),
    lease: Some(1),
    quarantine: 2,
    ..LOSS
};

/// The same with acquires that are late.
pub(crate) const LOSS_EXTENDED_LATE: Profile = Profile { band: Some(1), quarantine: 3, ..LOSS_EXTENDED };

/// A master forgets a part, and holders extend. A tick is all the time that a lease has, or a message: what is good within
/// it is so in every order.
pub(crate) const ROLLED_BACK_EXTENDED: Profile =
    Profile { rolls_back: true, last_tick: 1, lease: Some(0), quarantine: 1, ..LOSS_EXTENDED };

/// A master forgets everything, and locks are extended and released.
pub(crate) const LOSS_RELEASED: Profile =
    Profile { counters: &[0], releases: true, rolls_back: false, ..ROLLED_BACK_EXTENDED };
