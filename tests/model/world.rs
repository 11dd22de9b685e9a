//! All there is: masters, attempts, and what is under way between them. What may happen next, and what comes of it.
//!
//! A message that was sent stays under way for ever. It may run at any time, or never, and that is how one is lost; all
//! but acquires may run again and again. One that would be refused stays under way too: a refusal changes nothing, and
//! nobody waits for one.

use std::array;

use crate::client::{Attempt, Call, Phase, Verdict, countings, majority, verdict};
use crate::master::{Master, Owner, PER_TICK, Tick, Token};
use crate::profiles::{Broken, Profile, Proposals};
use crate::variants::Flaw;

/// A master, and what each attempt has to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place<const K: usize> {
    pub(crate) master: Master,
    pub(crate) calls: [Call; K],
}

/// A state of `N` masters and `K` attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct World<const N: usize, const K: usize> {
    pub(crate) places: [Place<K>; N],
    pub(crate) attempts: [Attempt; K],
    pub(crate) now: Tick,
    /// How often a master may still forget.
    pub(crate) losses: u8,
    /// How many acquires may still run twice.
    pub(crate) duplicates: u8,
    /// What the last step broke. Nothing happens after that.
    pub(crate) broken: Option<Broken>,
}

/// What may happen next: `who` is an attempt, `at` a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<const N: usize> {
    Begin { who: usize, proposal: Token },
    Acquire { who: usize, at: usize },
    Count { who: usize, grants: [Option<Token>; N] },
    Confirm { who: usize, at: usize },
    Extend { who: usize, at: usize, counted: bool },
    Renew { who: usize },
    Release { who: usize, at: usize },
    Expire { at: usize },
    Forget { at: usize, counter: Token, holder: Option<Owner> },
    Tick,
}

impl<const N: usize, const K: usize> World<N, K> {
    /// The worlds to begin with: one of those that differ in the masters' names only.
    pub(crate) fn first(profile: &Profile) -> Vec<Self> {
        let choices = profile.counters;
        let all = (0..choices.len().pow(N as u32)).map(|number| {
            let place = |at: usize| {
                let counter = choices[number / choices.len().pow(at as u32) % choices.len()];
                Place { master: Master { counter, ..Master::default() }, calls: [Call::default(); K] }
            };
            Self {
                places: array::from_fn(place),
                attempts: [Attempt::default(); K],
                now: 0,
                losses: profile.losses,
                duplicates: profile.duplicates,
                broken: None,
            }
        });
        all.filter(|world| world.places.is_sorted()).collect()
    }

    /// What may happen. Some of it may come to nothing.
    pub(crate) fn steps(&self, profile: &Profile, mut may: impl FnMut(Step<N>)) {
        if self.broken.is_some() {
            return;
        }
        for who in 0..K {
            self.steps_of(who, profile, &mut may);
        }
        for at in 0..N {
            if self.places[at].master.holder.is_some() {
                may(Step::Expire { at });
            }
            if self.losses > 0 {
                self.losses_of(at, profile, &mut may);
            }
        }
        if self.now < profile.last_tick {
            may(Step::Tick);
        }
    }

    fn steps_of(&self, who: usize, profile: &Profile, may: &mut impl FnMut(Step<N>)) {
        let Attempt { phase, confirms, .. } = self.attempts[who];
        match phase {
            Phase::Idle => return self.begins_of(who, profile, may),
            Phase::Asking => {
                let replies = self.places.map(|place| place.calls[who].replies);
                countings(replies).into_iter().for_each(|grants| may(Step::Count { who, grants }));
            }
            Phase::Holding if profile.lease.is_some() => may(Step::Renew { who }),
            Phase::Holding | Phase::Confirming => {}
        }
        let holding = phase == Phase::Holding;
        for at in 0..N {
            if self.places[at].calls[who].runs <= self.duplicates.min(1) {
                may(Step::Acquire { who, at });
            }
            if confirms {
                may(Step::Confirm { who, at });
            }
            if holding && profile.extends {
                may(Step::Extend { who, at, counted: true });
                may(Step::Extend { who, at, counted: false });
            }
            if holding && profile.releases {
                may(Step::Release { who, at });
            }
        }
    }

    fn begins_of(&self, who: usize, profile: &Profile, may: &mut impl FnMut(Step<N>)) {
        match profile.proposals {
            Proposals::Any(all) => all.iter().for_each(|&proposal| may(Step::Begin { who, proposal })),
            Proposals::Clock { skew } => (self.now.saturating_sub(skew)..=self.now + skew)
                .for_each(|tick| may(Step::Begin { who, proposal: tick * PER_TICK })),
        }
    }

    fn losses_of(&self, at: usize, profile: &Profile, may: &mut impl FnMut(Step<N>)) {
        let Place { master, calls } = &self.places[at];
        // Without extends nobody asks a master in quarantine for its hold.
        let rolls_back = profile.rolls_back && profile.extends;
        let most = if profile.rolls_back { master.counter } else { 0 };
        for counter in 0..=most {
            may(Step::Forget { at, counter, holder: None });
            for owner in (0..K).filter(|&owner| rolls_back && calls[owner].runs > 0) {
                may(Step::Forget { at, counter, holder: Some(owner as Owner) });
            }
        }
    }

    /// The world after a step, if the step came to anything.
    pub(crate) fn after(&self, step: Step<N>, profile: &Profile) -> Option<Self> {
        let mut world = *self;
        let taken = match step {
            Step::Begin { who, proposal } => world.begin(who, proposal),
            Step::Acquire { who, at } => world.acquire(who, at, profile),
            Step::Count { who, grants } => world.count(who, grants, profile),
            Step::Confirm { who, at } => world.confirm(who, at, profile),
            Step::Extend { who, at, counted } => world.extend(who, at, counted, profile),
            Step::Renew { who } => world.renew(who, profile),
            Step::Release { who, at } => world.release(who, at, profile),
            Step::Expire { at } => world.places[at].master.holder.take().is_some(),
            Step::Forget { at, counter, holder } => world.forget(at, counter, holder, profile),
            Step::Tick => world.tick(),
        };
        (taken && world != *self).then_some(world)
    }

    fn begin(&mut self, who: usize, proposal: Token) -> bool {
        let (before, leased) = (self.greatest_token(), self.now);
        self.attempts[who] = Attempt { phase: Phase::Asking, proposal, before, leased, ..Attempt::default() };
        true
    }

    fn acquire(&mut self, who: usize, at: usize, profile: &Profile) -> bool {
        let Attempt { phase, proposal, .. } = self.attempts[who];
        let Place { master, calls } = &mut self.places[at];
        let Some(token) = master.acquire(who as Owner, proposal, self.now, profile) else { return false };
        let call = &mut calls[who];
        if phase == Phase::Asking {
            call.replies[usize::from(call.runs)] = token;
        }
        self.duplicates -= call.runs;
        call.runs += 1;
        true
    }

    fn count(&mut self, who: usize, grants: [Option<Token>; N], profile: &Profile) -> bool {
        let Some(verdict) = verdict(grants, profile) else { return false };
        if self.lease_is_over(who, profile) {
            return false;
        }
        self.places.iter_mut().for_each(|place| place.calls[who].replies = [0; 2]);
        match verdict {
            Verdict::Token(token) => self.give(who, token, profile),
            Verdict::Confirm(token) => {
                let attempt = &mut self.attempts[who];
                (attempt.phase, attempt.token, attempt.confirms) = (Phase::Confirming, token, true);
            }
        }
        true
    }

    fn confirm(&mut self, who: usize, at: usize, profile: &Profile) -> bool {
        let Attempt { token, phase, .. } = self.attempts[who];
        let Place { master, calls } = &mut self.places[at];
        if !master.confirm(who as Owner, token, self.now, profile) {
            return false;
        }
        if phase == Phase::Confirming {
            calls[who].agreed = true;
            if self.agreed(who) >= majority(N) && !self.lease_is_over(who, profile) {
                self.give(who, token, profile);
            }
        }
        true
    }

    /// An attempt gets its token, at the earliest moment at which it can: later, fewer have to be greater.
    fn give(&mut self, who: usize, token: Token, profile: &Profile) {
        let has = |attempt: &Attempt| attempt.phase == Phase::Holding && attempt.token == token;
        if self.attempts.iter().any(has) {
            self.broken = Some(Broken::Unique);
        } else if token <= self.attempts[who].before {
            self.broken = Some(Broken::Rising);
        }
        let Attempt { confirms, leased, proposal, .. } = self.attempts[who];
        self.attempts[who] = Attempt {
            phase: Phase::Holding,
            token,
            proposal,
            leased,
            sent: self.now,
            // An extend that is not counted does what a late confirm does.
            confirms: confirms && !profile.extends,
            ..Attempt::default()
        };
        self.forget_votes(who);
    }

    /// An extend runs. It counts, or nobody counts it any more: it was sent with earlier ones, or the lease is over.
    fn extend(&mut self, who: usize, at: usize, counted: bool, profile: &Profile) -> bool {
        if counted && self.lease_is_over(who, profile) && !profile.has(Flaw::LateVotes) {
            return false;
        }
        let (first, greatest) = (self.agreed(who) == 0, self.greatest_token());
        let attempt = &mut self.attempts[who];
        let Place { master, calls } = &mut self.places[at];
        if !master.extend(who as Owner, attempt.token, self.now, profile) {
            return false;
        }
        if calls[who].released {
            self.broken = Some(Broken::Resurrected);
        }
        if counted {
            if first {
                (attempt.overtaken, attempt.revived) = (greatest > attempt.token, attempt.released);
            }
            calls[who].agreed = true;
            if self.agreed(who) >= majority(N) {
                self.extended(who);
            }
        }
        true
    }

    fn extended(&mut self, who: usize) {
        let attempt = &mut self.attempts[who];
        if attempt.overtaken {
            self.broken = Some(Broken::Overtaken);
        } else if attempt.revived {
            self.broken = Some(Broken::Revived);
        }
        attempt.leased = attempt.sent;
        (attempt.overtaken, attempt.revived) = (false, false);
        self.forget_votes(who);
    }

    /// Sends new extends, of a later time.
    fn renew(&mut self, who: usize, profile: &Profile) -> bool {
        if self.lease_is_over(who, profile) || self.attempts[who].sent == self.now {
            return false;
        }
        let attempt = &mut self.attempts[who];
        (attempt.sent, attempt.overtaken, attempt.revived) = (self.now, false, false);
        self.forget_votes(who);
        true
    }

    /// A release runs. Whoever sent it, the holder need not know, and goes on to extend.
    fn release(&mut self, who: usize, at: usize, profile: &Profile) -> bool {
        let Place { master, calls } = &mut self.places[at];
        master.release(who as Owner, self.attempts[who].token, profile);
        calls[who].released = true;
        let released = self.places.iter().filter(|place| place.calls[who].released).count();
        self.attempts[who].released |= released >= majority(N);
        true
    }

    fn forget(&mut self, at: usize, counter: Token, holder: Option<Owner>, profile: &Profile) -> bool {
        self.losses -= 1;
        let Place { master, calls } = &mut self.places[at];
        master.forget(counter, holder, self.now, profile);
        calls.iter_mut().for_each(|call| call.released = false);
        true
    }

    fn tick(&mut self) -> bool {
        self.now += 1;
        self.places.iter_mut().for_each(|place| place.master.wake(self.now));
        true
    }

    fn lease_is_over(&self, who: usize, profile: &Profile) -> bool {
        profile.lease.is_some_and(|lease| self.now - self.attempts[who].leased > lease)
    }

    fn greatest_token(&self) -> Token {
        let holding = self.attempts.iter().filter(|attempt| attempt.phase == Phase::Holding);
        holding.map(|attempt| attempt.token).max().unwrap_or(0)
    }

    fn agreed(&self, who: usize) -> usize {
        self.places.iter().filter(|place| place.calls[who].agreed).count()
    }

    fn forget_votes(&mut self, who: usize) {
        self.places.iter_mut().for_each(|place| place.calls[who].agreed = false);
    }
}
