//! What the world of a walk may do: the rules must hold in each of these.

use super::master::{Time, Who};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    pub(crate) whos: &'static [Who],
    /// How often each of them asks at most.
    pub(crate) leases: usize,
    pub(crate) steps: usize,
    /// Entries end by clocks, and leases exclude each other. Otherwise an entry may be over at any
    /// instant, and the order of tokens must hold all the same.
    pub(crate) timed: bool,
    /// How many masters may have a wrong clock at a time.
    pub(crate) clocks: usize,
    /// A client's T may be old, or a little ahead.
    pub(crate) lags: bool,
    /// A client knows the time to within this, and T is the low end.
    pub(crate) widest: Time,
    /// Clients count no vote of a master whose clock is off.
    pub(crate) checks_clocks: bool,
    /// How many masters may lose what they knew.
    pub(crate) restarts: u8,
    pub(crate) breaks: bool,
    pub(crate) reenters: bool,
    /// Who has no majority may ask again.
    pub(crate) asks_again: bool,
    /// An acquire may run twice.
    pub(crate) repeats: bool,
    pub(crate) sweeps: bool,
    /// Leases are handed on to other owners.
    pub(crate) hands_on: bool,
}

impl Profile {
    pub(crate) fn is_wide(&self) -> bool {
        self.widest > 0
    }
}

const fn writes(owner: u8) -> Who {
    Who { owner, reads: false, kind: 0 }
}

const fn reads(owner: u8) -> Who {
    Who { owner, reads: true, kind: 0 }
}

const fn other_kind(owner: u8) -> Who {
    Who { owner, reads: false, kind: 1 }
}

/// An exclusive lock.
pub(crate) const LOCK: Profile = Profile {
    whos: &[writes(0), writes(1), writes(2)],
    leases: 2,
    steps: 100,
    timed: false,
    clocks: 0,
    lags: false,
    widest: 0,
    checks_clocks: true,
    restarts: 0,
    breaks: true,
    reenters: true,
    asks_again: true,
    repeats: true,
    sweeps: false,
    hands_on: false,
};

/// An exclusive lock that two want again and again: what is rare happens more often.
pub(crate) const LOCK_OF_TWO: Profile = Profile {
    whos: &[writes(0), writes(1)],
    leases: 3,
    steps: 160,
    breaks: false,
    asks_again: false,
    ..LOCK
};

/// An exclusive lock that is handed on, also by a token that was used.
pub(crate) const HANDED_ON: Profile = Profile {
    whos: &[writes(0), writes(1), writes(2), writes(3)],
    leases: 3,
    steps: 160,
    reenters: false,
    asks_again: false,
    hands_on: true,
    ..LOCK
};

/// A read-write lock. One owner writes and reads.
pub(crate) const RW: Profile =
    Profile { whos: &[writes(0), reads(1), reads(2), writes(3), reads(0)], steps: 200, sweeps: true, ..LOCK };

/// A read-write lock of two writers and a reader.
pub(crate) const RW_OF_THREE: Profile =
    Profile { whos: &[writes(0), reads(1), writes(2)], leases: 3, steps: 160, asks_again: false, ..RW };

/// A name that is locked as one kind and as another.
pub(crate) const KINDS: Profile =
    Profile { whos: &[writes(0), reads(1), other_kind(2), reads(3)], steps: 160, ..RW };

/// An exclusive lock that ends by clocks: one may be wrong, T may be old, and a master may restart.
pub(crate) const LOCK_TIMED: Profile = Profile {
    timed: true,
    clocks: 1,
    lags: true,
    restarts: 1,
    reenters: false,
    repeats: false,
    ..LOCK_OF_TWO
};

/// The same of a read-write lock, and of a name that is locked as two kinds.
pub(crate) const RW_TIMED: Profile = Profile { whos: RW.whos, breaks: true, sweeps: true, ..LOCK_TIMED };
pub(crate) const KINDS_TIMED: Profile = Profile { whos: KINDS.whos, ..RW_TIMED };

/// Old T, and clocks that are right: what a master does without the client's look at its clock.
pub(crate) const LOCK_LAGS: Profile =
    Profile { clocks: 0, checks_clocks: false, restarts: 0, breaks: true, ..LOCK_TIMED };

/// Wrong clocks, and a T that is right.
pub(crate) const LOCK_CLOCKS: Profile = Profile { clocks: 1, lags: false, ..LOCK_LAGS };

/// A T that is known to within 2.5 s, beside clocks that are wrong, also those of a majority.
pub(crate) const LOCK_WIDE: Profile =
    Profile { clocks: 2, lags: false, widest: 10, restarts: 0, ..LOCK_TIMED };

/// The same of a read-write lock, and of masters that restart.
pub(crate) const RW_WIDE: Profile = Profile { whos: RW.whos, restarts: 1, sweeps: true, ..LOCK_WIDE };
