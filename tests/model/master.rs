//! One master's rules: what each message does to its record and to its hold. Functions of values, as the scripts are.

use crate::profiles::Profile;
use crate::variants::Flaw;

/// A fencing token, or what may become one. Zero is none.
pub(crate) type Token = u8;

/// A moment on a clock so coarse that a search can end.
pub(crate) type Tick = u8;

/// Who asks: the number of an attempt. No owner makes a second one.
pub(crate) type Owner = u8;

/// By how much the clock's proposal rises in a tick: more than there can be grants in one.
pub(crate) const PER_TICK: Token = 8;

/// What a master knows.
///
/// The token that it keeps in the hold is left out, for no rule reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Master {
    /// The record: the greatest number that it gave or was told. Zero is no record.
    pub(crate) counter: Token,
    /// The record: who was granted that number, and has not released it.
    pub(crate) held: Option<Owner>,
    /// The hold, which may be gone at any instant.
    pub(crate) holder: Option<Owner>,
    /// When its quarantine ends, or zero.
    pub(crate) silent_until: Tick,
}

impl Master {
    /// Grants the lock where it is free, and again to whoever has it: its own acquire may run twice.
    pub(crate) fn acquire(
        &mut self,
        owner: Owner,
        proposal: Token,
        now: Tick,
        profile: &Profile,
    ) -> Option<Token> {
        let free = self.holder.is_none_or(|holder| holder == owner);
        let fresh = profile.band.is_none_or(|band| now.abs_diff(proposal / PER_TICK) <= band);
        if !free || !fresh || self.is_silent(now) {
            return None;
        }
        self.write(proposal.max(self.counter + 1), owner);
        self.holder = Some(owner);
        Some(self.counter)
    }

    /// Makes `token` the number of the hold, unless it gave a greater one since.
    pub(crate) fn confirm(&mut self, owner: Owner, token: Token, now: Tick, profile: &Profile) -> bool {
        let mine = match self.holder {
            Some(holder) => holder == owner || profile.has(Flaw::ConfirmWithoutHold),
            None => profile.has(Flaw::ConfirmWithoutHold) || profile.has(Flaw::ConfirmHeals),
        };
        let last = self.counter <= token || profile.has(Flaw::ConfirmByOwner);
        let agreed = mine && last && !self.is_silent(now);
        if agreed {
            self.write(token, owner);
        }
        agreed
    }

    /// Extends the hold, or heals it: gives it again where it is gone and no greater number was given since.
    pub(crate) fn extend(&mut self, owner: Owner, token: Token, now: Tick, profile: &Profile) -> bool {
        let agreed = match self.holder {
            Some(holder) => holder == owner && self.may_extend(token, now, profile),
            None => self.may_heal(owner, token, now, profile),
        };
        if agreed {
            self.write(token, owner);
            self.holder = Some(owner);
        }
        agreed
    }

    fn may_extend(&self, token: Token, now: Tick, profile: &Profile) -> bool {
        let last = self.counter <= token || profile.has(Flaw::ExtendByOwner);
        let silent = self.is_silent(now) && !profile.has(Flaw::ExtendInQuarantine);
        last && !silent
    }

    fn may_heal(&self, owner: Owner, token: Token, now: Tick, profile: &Profile) -> bool {
        // Another attempt can have the same number here, for it is no token there.
        let unreleased = match self.held {
            Some(held) => held == owner || profile.has(Flaw::HealByNumber),
            None => profile.has(Flaw::HealReleased),
        };
        let last = self.counter < token
            || (self.counter == token && unreleased)
            || (self.counter > token && profile.has(Flaw::HealAboveCounter));
        let silent = self.is_silent(now) && !profile.has(Flaw::HealInQuarantine);
        last && !silent
    }

    /// Takes the hold away, and leaves word that this token is over. It does so where there is no hold as well, and where
    /// there never was one: an extend that comes later would heal, and whoever breaks a lock cannot make its holder's extends
    /// come first.
    pub(crate) fn release(&mut self, owner: Owner, token: Token, profile: &Profile) {
        let (holds, granted) = (self.holder == Some(owner), self.held == Some(owner));
        let (by_hold, by_grant) = (profile.has(Flaw::ReleaseByHold), profile.has(Flaw::ReleaseByGrant));
        if holds {
            self.holder = None;
        }
        if granted && (holds || !by_hold) {
            self.held = None;
        }
        if self.counter < token && !by_hold && !by_grant {
            (self.counter, self.held) = (token, None);
        }
    }

    /// Restarts with an older record and an older hold, or with none.
    pub(crate) fn forget(&mut self, counter: Token, holder: Option<Owner>, now: Tick, profile: &Profile) {
        let silent_until = if profile.quarantine == 0 { 0 } else { now + profile.quarantine };
        *self = Self { counter, held: holder, holder, silent_until };
    }

    /// Votes again when its quarantine is over. No hold from before is left then: the quarantine is longer than any TTL,
    /// and nobody could extend it.
    pub(crate) fn wake(&mut self, now: Tick) {
        if self.silent_until != 0 && !self.is_silent(now) {
            self.silent_until = 0;
            self.holder = None;
        }
    }

    /// Writes a grant. It never lowers the counter, not even where a check is missing.
    fn write(&mut self, token: Token, owner: Owner) {
        self.counter = self.counter.max(token);
        self.held = Some(owner);
    }

    fn is_silent(&self, now: Tick) -> bool {
        now < self.silent_until
    }
}
