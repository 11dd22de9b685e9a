//! One master's rules, as the scripts of the next layout will have them: what each message does to
//! the one hash that is everything this master knows of a name. H1 to H8 are the design's numbers.

use super::variants::Flaw::{self, *};

/// A fencing token, or a number that may become one. Zero is none.
pub(crate) type Token = i32;

/// A moment or a duration. A tick is the band, 0.25 s: clocks that count are as close as that.
pub(crate) type Time = i32;
pub(crate) const BAND: Time = 1;

/// A client's T is at most this far behind a master's TIME, or ahead of it, or the call is refused.
pub(crate) const BEHIND: Time = 8;
pub(crate) const AHEAD: Time = 2;

/// What a client knows of the time: T is `lag` from the true time, and the high end is `width`
/// above T.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) lag: Time,
    pub(crate) width: Time,
}

impl Estimate {
    /// How far T is from the true time, and the width that is sent with it.
    pub(crate) fn sent(self, flaw: Option<Flaw>) -> (Time, Time) {
        match flaw {
            Some(MiddleOfTime) => (self.lag + self.width / 2, 0),
            _ => (self.lag, self.width),
        }
    }

    /// Whether a client may take this clock for right: its estimate of that clock is as wide.
    pub(crate) fn trusts(self, clock: Time) -> bool {
        let slack = BAND + self.width;
        (self.lag - slack..=self.lag + self.width + slack).contains(&clock)
    }
}

/// How long an entry is kept, and for how long its holder may believe in it.
pub(crate) const KEPT: Time = 16;
pub(crate) const VALID: Time = KEPT - 2 * BAND;

/// A quarantine, the largest step of a clock, and how long a name without entries is remembered.
pub(crate) const QUARANTINE: Time = KEPT + BEHIND + AHEAD + 2 * BAND + 4;
pub(crate) const STEP: Time = 2 * QUARANTINE + 2;
pub(crate) const REMEMBERED: Time = QUARANTINE + STEP;

/// The same of a name that its first owner released: what is under way is over after 2.5 s.
const RELEASED: Time = STEP + 16;

/// How long the word of a reader that left stands in its field.
const WORD: Time = BEHIND + AHEAD + 2;

/// A proposal rises by this much in a tick: more than grants of one tick add.
pub(crate) const PER_TICK: Token = 8;

/// An owner, and what it wants of a name: to be alone (`reads` is false) or to read. `kind` 0 is an
/// exclusive lock or a read-write lock; 1 is another kind of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) owner: u8,
    pub(crate) reads: bool,
    pub(crate) kind: u8,
}

impl Who {
    /// Whether two leases of different owners exclude each other.
    pub(crate) fn excludes(self, other: Self) -> bool {
        self.owner != other.owner && (!self.reads || !other.reads || self.kind != other.kind)
    }

    /// Whether an entry of `other` keeps a grant away. An owner's own reader keeps its writer away;
    /// its own writer does not keep its reader away.
    fn conflicts(self, other: Self) -> bool {
        let upgrades = self.owner == other.owner && !self.reads && other.reads;
        self.excludes(other) || upgrades || self.kind != other.kind
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verb {
    Acquire,
    /// Takes over the entry of an owner that handed the lock on.
    Transfer,
    Confirm,
    Extend,
    /// Acquires again what the owner holds.
    Reenter,
    Release,
    /// A release that somebody else sends.
    Break,
    Undo,
}

/// One message to one master.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) lease: usize,
    pub(crate) at: usize,
    pub(crate) verb: Verb,
    pub(crate) who: Who,
    /// Whose entry a transfer takes over.
    pub(crate) from: Option<Who>,
    /// T: the low end of the masters' median, as the client knew it when it sent this.
    pub(crate) time: Time,
    /// By how much the entry is kept for longer.
    pub(crate) width: Time,
    /// What the client knew of the time.
    pub(crate) estimate: Estimate,
    pub(crate) token: Token,
    pub(crate) round: u32,
    /// The first round of the lease.
    pub(crate) first: u32,
    /// Which of the lease's extends this is.
    pub(crate) turn: u32,
    /// An undo leaves the entry there: only a re-entry came to nothing.
    pub(crate) still_held: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) who: Who,
    pub(crate) token: Token,
    pub(crate) until: Time,
    round: u32,
    /// The word of a reader that left, instead of an entry.
    pub(crate) left: bool,
    /// For the checks only: which lease this entry is of.
    pub(crate) lease: usize,
    /// For broken variants only: `fence`, `last` and its owner before this grant.
    before: (Token, Token, Option<u8>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Master {
    /// How far TIME is from the true time.
    pub(crate) clock: Time,
    pub(crate) fence: Token,
    pub(crate) last: Token,
    pub(crate) last_owner: Option<u8>,
    pub(crate) last_read: Token,
    pub(crate) kind: u8,
    pub(crate) entries: Vec<Entry>,
    /// When Redis deletes the name, by this master's clock.
    pub(crate) forget_at: Option<Time>,
    pub(crate) silent_until: Time,
    pub(crate) flaw: Option<Flaw>,
}

impl Master {
    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// Runs a message. Answers a number for what was granted or done.
    pub(crate) fn run(&mut self, call: &Call, now: Time) -> Option<Token> {
        let here = now + self.clock;
        self.collect_garbage(here);
        let ends = self.is_released_by(call);
        let fresh = (here - BEHIND..=here + AHEAD).contains(&call.time) || self.has(AnyTime);
        let reply = match call.verb {
            Verb::Release | Verb::Break => Some(self.release(call, here)),
            Verb::Undo => Some(self.undo(call, here)),
            _ if !fresh || self.is_silent(call.time, here) => None,
            Verb::Acquire => self.acquire(call, here),
            Verb::Transfer => self.transfer(call, here),
            Verb::Confirm => self.confirm(call, here),
            Verb::Extend | Verb::Reenter => self.extend(call, here),
        };
        self.set_expiry(call.verb, here, ends);
        reply
    }

    /// Whether this is the release of the one lease that this master knows of, by its owner: what
    /// was sent before is all that may still come.
    fn is_released_by(&self, call: &Call) -> bool {
        let is_its = |entry: &Entry| {
            entry.who == call.who && !entry.left && entry.token == call.token && entry.round <= call.round
        };
        call.verb == Verb::Release
            && !call.who.reads
            && (self.fence, self.last) == (call.token, 0)
            && self.entries.iter().any(is_its)
    }

    fn is_silent(&self, time: Time, here: Time) -> bool {
        self.silent_until != 0 && time.min(here) <= self.silent_until
    }

    /// H1: an end is written as the later of both clocks says, and is over when both say so.
    fn end(&self, call: &Call, here: Time) -> Time {
        let later = match self.flaw {
            Some(EndByEarlier) => call.time.min(here),
            Some(EndByT) => call.time,
            _ => call.time.max(here),
        };
        later + KEPT + if self.has(KeptWithoutWidth) { 0 } else { call.width }
    }

    fn is_over(&self, entry: &Entry, time: Time, here: Time) -> bool {
        let time = if self.has(OverByLater) { time.max(here) } else { time.min(here) };
        entry.left || time > entry.until
    }

    /// H3 and H8: Redis deletes a name without entries when it was remembered for long enough.
    fn set_expiry(&mut self, verb: Verb, here: Time, is_released: bool) {
        let remembered = match self.flaw {
            Some(ForgetsAtOnce) => 3,
            Some(ForgetsAfterQuarantine) => QUARANTINE,
            Some(FirstForgottenSooner) if is_released => RELEASED - STEP,
            _ if is_released => RELEASED,
            _ => REMEMBERED,
        };
        let spared = verb == Verb::Acquire && self.has(AcquireSparesExpiry);
        if self.entries.iter().all(|entry| entry.left) {
            self.forget_at = Some(here + remembered);
        } else if !spared {
            self.forget_at = None;
        }
    }

    pub(crate) fn collect_garbage(&mut self, here: Time) {
        if self.forget_at.is_some_and(|at| at <= here) {
            let Self { clock, silent_until, flaw, .. } = *self;
            *self = Self { clock, silent_until, flaw, ..Self::default() };
        }
    }

    /// Loses everything, and does not vote before what it granted is over. A client writes when
    /// that is, by its own T.
    pub(crate) fn restart(&mut self, now: Time, Estimate { lag, width }: Estimate) {
        let Self { clock, flaw, .. } = *self;
        let silent_until = match flaw {
            Some(NoQuarantine) => 0,
            Some(QuarantineByTime) => now + clock + QUARANTINE,
            _ => now + lag.max(clock) + QUARANTINE + width,
        };
        *self = Self { clock, flaw, silent_until, ..Self::default() };
    }

    fn own(&self, who: Who) -> Option<usize> {
        self.entries.iter().position(|entry| entry.who == who)
    }

    fn acquire(&mut self, call: &Call, here: Time) -> Option<Token> {
        let own = self.own(call.who);
        let stale = own.map(|at| self.entries[at]).is_some_and(|entry| {
            entry.round > call.round || (entry.left && entry.round == call.round && here <= entry.until)
        });
        let kept_away =
            |entry: &Entry| call.who.conflicts(entry.who) && !self.is_over(entry, call.time, here);
        if stale || self.entries.iter().any(kept_away) {
            return None;
        }
        if let Some(at) = own.filter(|&at| !self.entries[at].left && self.entries[at].round == call.round) {
            return Some(self.entries[at].token);
        }
        let before = (self.fence, self.last, self.last_owner);
        self.remove_conflicting(call.who, Who::conflicts);
        if let Some(at) = self.own(call.who) {
            let replaced = self.entries.swap_remove(at);
            if replaced.round < call.first || self.has(AskedAgainRaises) {
                self.note_end(&replaced, None, GrantForgetsOwn);
            }
        }
        let token = (call.time * PER_TICK).max(self.fence + 1);
        self.fence = token;
        self.insert(call, token, self.end(call, here), before);
        Some(token)
    }

    /// H7: a transfer never makes an entry, or it would adopt a lock that is gone.
    fn transfer(&mut self, call: &Call, here: Time) -> Option<Token> {
        // A number above the token was granted later, to an owner that had lost the lock by then.
        let is_handed_on = |entry: &Entry| {
            let later = entry.token > call.token && !self.has(TransferAnyToken);
            call.from == Some(entry.who) && !entry.left && !later
        };
        match self.entries.iter().position(is_handed_on) {
            Some(at) => {
                let handed = self.entries.swap_remove(at);
                self.raise_last(handed.token, None);
            }
            None if !self.has(TransferMakesEntry) => return None,
            None => {}
        }
        self.acquire(call, here)
    }

    fn insert(&mut self, call: &Call, token: Token, until: Time, before: (Token, Token, Option<u8>)) {
        let Call { who, round, lease, .. } = *call;
        self.entries.push(Entry { who, token, until, round, left: false, lease, before });
    }

    /// H4: a grant or a heal removes what it conflicts with, which is over; another kind conflicts
    /// with everything, and takes every `last` over without an owner.
    fn remove_conflicting(&mut self, who: Who, conflicts: fn(Who, Who) -> bool) {
        for at in (0..self.entries.len()).rev() {
            let entry = self.entries[at];
            let in_the_way = !entry.left && conflicts(who, entry.who);
            let spared = match (entry.who.reads, who.kind == entry.who.kind) {
                (_, false) => self.has(GrantLeavesOtherKind),
                (true, true) => self.has(GrantLeavesReader),
                (false, true) => self.has(GrantLeavesWriter),
            };
            if in_the_way && !spared {
                self.entries.swap_remove(at);
                let owner = (!self.has(EndedWithoutOwner)).then_some(entry.who.owner);
                self.note_end(
                    &entry,
                    owner,
                    if entry.who.reads { GrantForgetsReader } else { GrantForgetsWriter },
                );
            }
        }
        if self.kind != who.kind {
            if !self.has(KindForgetsLast) {
                self.raise_last(self.last_read.max(self.last), None);
            }
            (self.kind, self.last_read) = (who.kind, 0);
        }
    }

    /// H6: notes that a lease ended that was not released. `forgets` is the variant that does not.
    fn note_end(&mut self, entry: &Entry, owner: Option<u8>, forgets: Flaw) {
        if self.has(forgets) || entry.left {
            return;
        }
        let (reader_forgotten, reader_raises_last) = match forgets {
            GrantForgetsOwn => (OwnReaderForgotten, OwnReaderRaisesLast),
            SweepForgets => (SweepForgets, SweepRaisesLast),
            UndoWithoutFirst => (UndoneReaderForgotten, UndoneReaderRaisesLast),
            _ => (GrantForgetsReader, EndedReaderRaisesLast),
        };
        if entry.who.reads && self.has(reader_forgotten) {
            return;
        }
        if entry.who.reads && !self.has(reader_raises_last) {
            self.last_read = self.last_read.max(entry.token);
        } else {
            self.raise_last(entry.token, owner);
        }
    }

    /// Raises `last`, also where it is equal: then no owner is left but one that both name.
    fn raise_last(&mut self, token: Token, owner: Option<u8>) {
        if token > self.last {
            (self.last, self.last_owner) = (token, owner);
        } else if token == self.last && owner != self.last_owner && !self.has(EqualKeepsOwner) {
            self.last_owner = None;
        }
    }

    fn confirm(&mut self, call: &Call, here: Time) -> Option<Token> {
        let until = self.end(call, here);
        let Some(at) = self.own(call.who).filter(|&at| !self.entries[at].left) else {
            let free = !self.entries.iter().any(|entry| !entry.left && call.who.conflicts(entry.who));
            if self.has(ConfirmHeals) && free {
                self.fence = self.fence.max(call.token);
                self.insert(call, call.token, until, (0, 0, None));
                return Some(call.token);
            }
            return None;
        };
        let Entry { token, round, .. } = self.entries[at];
        let later = token > call.token && !self.has(ConfirmAnyNumber);
        let earlier_lease = round < call.first && !self.has(ConfirmAnyLease);
        if later || earlier_lease {
            return None;
        }
        let entry = &mut self.entries[at];
        (entry.token, entry.until) = (call.token, entry.until.max(until));
        if !self.has(ConfirmKeepsFence) {
            self.fence = self.fence.max(call.token);
        }
        Some(call.token)
    }

    fn extend(&mut self, call: &Call, here: Time) -> Option<Token> {
        let until = self.end(call, here);
        if let Some(at) = self.own(call.who).filter(|&at| !self.entries[at].left) {
            let over = self.is_over(&self.entries[at], call.time, here);
            let entry = &mut self.entries[at];
            let stale = match call.verb {
                Verb::Reenter => entry.round >= call.round,
                _ => false,
            };
            if stale || (entry.token > call.token && self.flaw != Some(ExtendAnyToken)) {
                return None;
            }
            if !over {
                entry.until = entry.until.max(until);
                entry.token = call.token;
                entry.round = entry.round.max(call.round);
                self.fence = self.fence.max(call.token);
                return Some(call.token);
            }
        }
        self.heal(call, here, until)
    }

    /// H7: makes the entry again, where nothing that conflicts came later.
    fn heal(&mut self, call: &Call, here: Time, until: Time) -> Option<Token> {
        let conflicts: fn(Who, Who) -> bool = match self.flaw {
            Some(OwnKeepsFromHealing) => Who::conflicts,
            _ => |who, other| who.excludes(other) || who.kind != other.kind,
        };
        let in_the_way = |entry: &Entry| {
            let lives = !self.is_over(entry, call.time, here);
            let later = entry.token >= call.token && !self.has(HealsBelowEnded);
            !entry.left && conflicts(call.who, entry.who) && (lives || later)
        };
        let word = |entry: &Entry| {
            entry.left && entry.who == call.who && entry.round >= call.round && here <= entry.until
        };
        if self.entries.iter().any(in_the_way) || self.entries.iter().any(word) || !self.is_last(call) {
            return None;
        }
        let before = (self.fence, self.last, self.last_owner);
        self.remove_conflicting(call.who, conflicts);
        self.entries.retain(|entry| entry.who != call.who);
        self.fence = self.fence.max(call.token);
        self.insert(call, call.token, until, before);
        Some(call.token)
    }

    fn is_last(&self, call: &Call) -> bool {
        let equal = self.last_owner == Some(call.who.owner) || self.has(HealsAtLast);
        let above = call.token > self.last || (call.token == self.last && equal);
        let above = above || self.has(HealsBelowLast);
        let minds_readers = !call.who.reads || self.has(ReaderMindsReaders);
        let readers = !minds_readers || call.token > self.last_read || self.has(HealsBelowRead);
        above && readers && (call.token >= self.fence || !self.has(HealsByFence))
    }

    /// H6. It leaves its word whatever entry is there: an extend that comes later would heal.
    fn release(&mut self, call: &Call, here: Time) -> Token {
        let own = self.own(call.who);
        let removed = own.filter(|&at| {
            let Entry { token, round, left, .. } = self.entries[at];
            if left && call.verb == Verb::Break && !self.has(BreakAsRelease) {
                return false; // it passes a word by
            }
            // Who breaks a lease knows its token; its owner may have entered again since.
            let named = call.verb == Verb::Break && token <= call.token && !self.has(BreakByRound);
            round <= call.round || named || self.has(ReleaseAnyRound)
        });
        if let Some(at) = removed {
            self.entries.swap_remove(at);
        }
        let others = self.entries.iter().any(|entry| !entry.left && entry.who != call.who);
        if (self.has(ReleaseNeedsEntry) && own.is_none()) || (self.has(ReleaseNeedsRoom) && others) {
            return call.token;
        }
        if !self.has(ReleaseKeepsFence) {
            self.fence = self.fence.max(call.token);
        }
        let by_itself = call.verb == Verb::Release || self.has(BreakAsRelease);
        if call.who.reads && by_itself {
            if !self.has(ReaderForgotten) {
                self.last_read = self.last_read.max(call.token);
            }
            if (removed.is_some() || own.is_none()) && !self.has(NoWord) {
                self.leave_word(call, here);
            }
        }
        if !call.who.reads || !by_itself || self.has(ReaderRaisesLast) {
            self.raise_last(call.token, None);
        }
        call.token
    }

    /// A reader's extends of this round and of earlier ones are late.
    fn leave_word(&mut self, call: &Call, here: Time) {
        let Call { who, token, round, lease, .. } = *call;
        let (until, before) = (here + WORD, (0, 0, None));
        self.entries.push(Entry { who, token, until, round, left: true, lease, before });
    }

    /// H5. It removes what this lease was granted, and restores nothing.
    fn undo(&mut self, call: &Call, here: Time) -> Token {
        let Some(at) = self.own(call.who).filter(|&at| !self.entries[at].left) else { return 0 };
        let entry = self.entries[at];
        if entry.round > call.round && !self.has(UndoAnyRound) {
            return 0;
        }
        if call.still_held && !self.has(UndoEndsHold) {
            self.entries[at].round = call.round;
            return 0;
        }
        self.entries.swap_remove(at);
        // The grant took the place of a word that may still be needed.
        if call.who.reads && !self.has(UndoTakesWord) {
            self.leave_word(call, here);
        }
        if entry.round < call.first {
            self.note_end(&entry, None, UndoWithoutFirst);
        }
        match self.flaw {
            Some(UndoLowersFence) => self.fence = entry.before.0,
            Some(UndoRestoresLast) => (self.last, self.last_owner) = (entry.before.1, entry.before.2),
            Some(UndoRaisesLast) => self.raise_last(entry.token, None),
            _ => {}
        }
        entry.token
    }

    /// H4: removes an ended reader that nobody asked about.
    pub(crate) fn sweep(&mut self, time: Time) -> bool {
        let here = time + self.clock;
        let ended = |entry: &Entry| entry.who.reads && !entry.left && self.is_over(entry, time, here);
        let Some(at) = self.entries.iter().position(ended) else { return false };
        let entry = self.entries.swap_remove(at);
        self.note_end(&entry, None, SweepForgets);
        self.set_expiry(Verb::Release, here, false);
        true
    }
}
