//! Three masters, the leases of a few owners, and the messages between them: what may happen next,
//! what comes of it, and what must not.

use super::master::{BAND, Call, Estimate, KEPT, Master, PER_TICK, Time, Token, VALID, Verb, Who};
use super::profiles::Profile;
use super::variants::Flaw;

pub(crate) const N: usize = 3;
const MAJORITY: u32 = 2;

/// Where time begins: proposals are above every quarantine and step.
pub(crate) const START: Time = 100;

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Two leases have one token.
    Unique,
    /// A token is not above that of a conflicting lease from before its acquire began.
    Rising,
    /// Two conflicting leases are valid at once, by the true time.
    Exclusion,
    /// An extend or a transfer succeeds though a conflicting lease had a higher token before.
    Overtaken,
    /// A master agrees to an extend after it ran the release of that lease.
    Resurrected,
    /// An extend succeeds though a majority had released the lease before a master agreed.
    Revived,
    /// A master refuses the extend of a valid lease, though nothing that conflicts came after it.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Asking,
    Confirming,
    Holding,
    Done,
}

/// One lease, from the first message of its acquire to its end.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) who: Who,
    pub(crate) phase: Phase,
    pub(crate) token: Token,
    pub(crate) valid_until: Time,
    pub(crate) turn: u32,
    pub(crate) reenters: bool,
    /// What each master granted, as far as the client heard.
    pub(crate) grants: [Token; N],
    /// Whether it was ever held, and whether somebody broke it.
    given: bool,
    pub(crate) broken: bool,
    released: bool,
    round: u32,
    first: u32,
    /// The masters that agreed to what is under way, a bit each.
    agreed: u8,
    sent: Time,
    floor: Token,
    overtaken: bool,
    revived: bool,
    from: Option<Who>,
}

impl Lease {
    /// Its holder ended it without a message: somebody may take it over.
    pub(crate) fn is_handed_on(&self) -> bool {
        self.given && self.phase == Phase::Done && !self.released
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    // The owner asks for a lease. It takes over the lease `from`.
    Begin { who: Who, time: Estimate, from: Option<usize> },
    // The client counts the grants: it has its token, or confirms the highest.
    Count { lease: usize },
    // The client sends this to all masters, and goes on with the lease or not.
    Send { lease: usize, verb: Verb, time: Estimate },
    // The client ends the lease without a message.
    Stop { lease: usize },
    // A master runs a message; the client hears the reply or not.
    Run { call: Call, heard: bool, again: bool },
    Lose { call: Call },
    // An entry is over, whatever its end is.
    Lapse { at: usize, entry: usize },
    Clock { at: usize, clock: Time },
    Sweep { at: usize },
    Restart { at: usize, clock: Time, time: Estimate },
    Tick { by: Time },
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) masters: [Master; N],
    pub(crate) leases: Vec<Lease>,
    pub(crate) calls: Vec<Call>,
    pub(crate) broken: Option<Broken>,
    /// Whether leases exclude each other by time: not where entries lapse at any instant.
    timed: bool,
    checks_clocks: bool,
    is_wide: bool,
    /// The least time from the end of a lease that was not released to a later one.
    pub(crate) closest: Option<Time>,
    seen: [Seen; N],
}

/// What a master did, for the checks only.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// What it gave to which lease, except what was undone.
    numbers: Vec<(usize, Token)>,
    /// Which leases it released.
    released: Vec<usize>,
    /// The highest token that was broken here.
    broken: Token,
}

impl World {
    pub(crate) fn new(profile: &Profile, fences: [Token; N], flaw: Option<Flaw>) -> Self {
        let master = |fence| Master { fence: START * PER_TICK + fence, flaw, ..Master::default() };
        let masters = fences.map(master);
        let seen = Default::default();
        let Profile { timed, checks_clocks, .. } = *profile;
        Self {
            now: START,
            masters,
            leases: vec![],
            calls: vec![],
            broken: None,
            timed,
            checks_clocks,
            is_wide: profile.is_wide(),
            closest: None,
            seen,
        }
    }

    /// What is still to come of the latest lease of `who`.
    pub(crate) fn current(&self, who: Who) -> Option<usize> {
        self.leases.iter().rposition(|lease| lease.who == who && lease.phase != Phase::Done)
    }

    /// Takes a step. False where it cannot be taken.
    pub(crate) fn take(&mut self, step: &Step) -> bool {
        match *step {
            Step::Begin { who, time, from } => return self.begin(who, time, from),
            Step::Count { lease } => return lease < self.leases.len() && self.count(lease),
            Step::Send { lease, verb, time } => {
                return lease < self.leases.len() && self.act(lease, verb, time);
            }
            Step::Stop { lease } if lease < self.leases.len() => self.leases[lease].phase = Phase::Done,
            Step::Stop { .. } => return false,
            Step::Run { call, heard, again } => return self.deliver(&call, heard, again),
            Step::Lose { call } => return self.remove(&call),
            Step::Lapse { at, entry } => match self.masters[at].entries.get_mut(entry) {
                Some(entry) if !entry.left => entry.until = 0,
                _ => return false,
            },
            Step::Clock { at, clock } => {
                self.masters[at].clock = clock;
                let here = self.now + clock;
                self.masters[at].collect_garbage(here);
            }
            Step::Sweep { at } => return self.masters[at].sweep(self.now),
            Step::Restart { at, clock, time } => {
                self.masters[at].clock = clock;
                self.masters[at].restart(self.now, time);
                self.seen[at] = Seen::default();
            }
            Step::Tick { by } => self.now += by,
        }
        true
    }

    fn begin(&mut self, who: Who, time: Estimate, from: Option<usize>) -> bool {
        let mut own = self.leases.iter().filter(|lease| lease.who == who);
        if own.any(|lease| lease.phase != Phase::Done) {
            return false;
        }
        // What was not handed on is not there to take over.
        let from = from.filter(|&lease| self.leases.get(lease).is_some_and(Lease::is_handed_on));
        let gone = from.is_some_and(|lease| self.is_overtaken(lease));
        let round = 1 + self.leases.iter().map(|lease| lease.round).max().unwrap_or(0);
        let before = self.leases.iter().filter(|lease| lease.given && (!who.reads || !lease.who.reads));
        self.leases.push(Lease {
            who,
            phase: Phase::Asking,
            token: from.map_or(0, |lease| self.leases[lease].token),
            valid_until: self.now + VALID,
            turn: 0,
            reenters: false,
            grants: [0; N],
            given: false,
            broken: false,
            released: false,
            round,
            first: round,
            agreed: 0,
            sent: self.now,
            floor: before.map(|lease| lease.token).max().unwrap_or(0),
            overtaken: gone,
            revived: false,
            from: from.map(|lease| self.leases[lease].who),
        });
        let verb = if from.is_some() { Verb::Transfer } else { Verb::Acquire };
        self.send(self.leases.len() - 1, verb, time, false);
        true
    }

    fn send(&mut self, lease: usize, verb: Verb, estimate: Estimate, still_held: bool) {
        let Lease { who, token, round, first, turn, from, .. } = self.leases[lease];
        let (lag, width) = estimate.sent(self.masters[0].flaw);
        let time = self.now + lag;
        let first = if verb == Verb::Undo && self.masters[0].has(Flaw::UndoWithoutFirst) { 0 } else { first };
        let call = |at| Call {
            lease,
            at,
            verb,
            who,
            from,
            time,
            width,
            estimate,
            token,
            round,
            first,
            turn,
            still_held,
        };
        self.calls.extend((0..N).map(call));
    }

    fn count(&mut self, number: usize) -> bool {
        let lease = &mut self.leases[number];
        let grants = lease.grants;
        let count = |token: Token| grants.iter().filter(|&&grant| grant == token).count() as u32;
        let granted = N as u32 - count(0);
        if lease.phase != Phase::Asking || granted < MAJORITY || self.now >= lease.valid_until {
            return false;
        }
        let highest = grants.into_iter().max().unwrap_or(0);
        let agreed = grants.into_iter().find(|&token| token != 0 && count(token) >= MAJORITY);
        lease.token = agreed.unwrap_or(highest);
        if agreed.is_some() {
            self.give(number);
        } else {
            lease.phase = Phase::Confirming;
            self.send(number, Verb::Confirm, Estimate::default(), false);
        }
        true
    }

    /// The client goes on with a lease that it asks for or holds.
    fn act(&mut self, number: usize, verb: Verb, time: Estimate) -> bool {
        let now = self.now;
        let lease = &mut self.leases[number];
        let holds = lease.phase == Phase::Holding && now < lease.valid_until;
        match verb {
            Verb::Extend if holds => {
                (lease.turn, lease.sent, lease.agreed) = (lease.turn + 1, now, 0);
                (lease.overtaken, lease.revived) = (false, false);
            }
            Verb::Reenter if holds && !lease.reenters => {
                lease.reenters = true;
                lease.round += 1;
            }
            // The re-entry comes to nothing, and the lease goes on.
            Verb::Undo if holds && lease.reenters => {
                lease.reenters = false;
                self.send(number, verb, time, true);
                return true;
            }
            // Nobody has most masters: the client asks again.
            Verb::Acquire if lease.phase == Phase::Asking && lease.from.is_none() => {
                (lease.round, lease.grants) = (lease.round + 1, [0; N]);
                lease.valid_until = now + VALID;
            }
            Verb::Undo if matches!(lease.phase, Phase::Asking | Phase::Confirming) => {
                lease.phase = Phase::Done
            }
            Verb::Release if lease.phase == Phase::Holding => {
                (lease.phase, lease.released) = (Phase::Done, true);
            }
            Verb::Break if lease.phase == Phase::Holding => lease.broken = true,
            _ => return false,
        }
        self.send(number, verb, time, false);
        true
    }

    /// A client gets its token.
    fn give(&mut self, number: usize) {
        let token = self.leases[number].token;
        let who = self.leases[number].who;
        if self.leases.iter().any(|other| other.given && other.token == token && other.who.excludes(who)) {
            self.broken = Some(Broken::Unique);
        } else if token <= self.leases[number].floor {
            self.broken = Some(Broken::Rising);
        }
        let lease = &mut self.leases[number];
        if lease.overtaken {
            self.broken = Some(Broken::Overtaken);
        }
        (lease.phase, lease.given, lease.agreed) = (Phase::Holding, true, 0);
        self.note_distance(number);
        self.check_exclusion(number);
    }

    fn note_distance(&mut self, number: usize) {
        let who = self.leases[number].who;
        let ended = |other: &&Lease| {
            let is_last =
                self.leases.iter().all(|lease| lease.who != other.who || lease.round <= other.round);
            let is_kept = other.given && !other.released && !other.broken && other.from.is_none() && is_last;
            is_kept && other.who.excludes(who) && other.valid_until <= self.now
        };
        let ends = self.leases.iter().filter(ended).map(|other| self.now - other.valid_until);
        self.closest = self.closest.into_iter().chain(ends).min();
    }

    fn is_overtaken(&self, number: usize) -> bool {
        let lease = &self.leases[number];
        let later = |other: &Lease| other.given && other.token > lease.token && lease.who.excludes(other.who);
        self.leases.iter().any(later)
    }

    fn check_exclusion(&mut self, number: usize) {
        let lease = &self.leases[number];
        let both = |other: &Lease| {
            let valid = other.phase == Phase::Holding && self.now < other.valid_until && !other.broken;
            valid && lease.who.excludes(other.who)
        };
        let valid = self.now < lease.valid_until && !lease.broken;
        if self.timed && valid && self.broken.is_none() && self.leases.iter().any(both) {
            self.broken = Some(Broken::Exclusion);
        }
    }

    pub(crate) fn wrong_clocks(&self) -> usize {
        self.masters.iter().filter(|master| master.clock != 0).count()
    }

    fn remove(&mut self, call: &Call) -> bool {
        let at = self.calls.iter().position(|other| other == call);
        at.map(|at| self.calls.swap_remove(at)).is_some()
    }

    fn deliver(&mut self, call: &Call, heard: bool, again: bool) -> bool {
        if !self.remove(call) {
            return false;
        }
        if again {
            self.calls.push(*call);
        }
        let must_agree = self.must_agree(call);
        let own = self.masters[call.at].entries.iter().find(|entry| entry.who == call.who && !entry.left);
        let entry_of = own.map(|entry| entry.lease);
        let reply = self.masters[call.at].run(call, self.now);
        let seen = &mut self.seen[call.at];
        match (call.verb, reply) {
            // Of a lease that asks again, what it was granted before is no lease.
            (Verb::Acquire, Some(number)) if entry_of == Some(call.lease) => {
                let before = seen.numbers.iter_mut().rfind(|(lease, _)| *lease == call.lease);
                before.expect("it was granted").1 = number;
            }
            (Verb::Acquire | Verb::Transfer, Some(number)) => seen.numbers.push((call.lease, number)),
            (Verb::Extend | Verb::Reenter | Verb::Confirm, Some(_)) => {
                seen.numbers.push((call.lease, call.token));
            }
            (Verb::Undo, _) if entry_of == Some(call.lease) && !call.still_held => {
                let number = seen.numbers.iter().rposition(|&(lease, _)| lease == call.lease);
                number.map(|number| seen.numbers.remove(number));
            }
            (Verb::Release | Verb::Break, _) => {
                seen.released.push(call.lease);
                seen.numbers.push((call.lease, call.token));
                if call.verb == Verb::Break {
                    seen.broken = seen.broken.max(call.token);
                }
            }
            _ => {}
        }
        match reply {
            // It may have extended what its owner was granted since: nothing came back.
            Some(_) if entry_of.is_some_and(|lease| lease > call.lease) => {}
            Some(number) => self.agree(call, number, heard),
            None if must_agree => self.broken = Some(Broken::Refused),
            None => {}
        }
        true
    }

    /// Whether nothing that conflicts with this extend came after its lease on this master.
    fn must_agree(&self, call: &Call) -> bool {
        let (lease, master, seen) = (&self.leases[call.lease], &self.masters[call.at], &self.seen[call.at]);
        let current = call.verb == Verb::Extend && call.turn == lease.turn && lease.phase == Phase::Holding;
        let votes = master.clock == 0 && master.silent_until < self.now && call.time == self.now;
        let kinds = self.leases.iter().any(|other| other.who.kind != call.who.kind);
        if !current || !votes || kinds || lease.broken || self.now >= lease.valid_until {
            return false;
        }
        // Its own reader may still be there, or has left and keeps it from healing.
        let own_reader = |who: Who| who.owner == call.who.owner && who.reads && !call.who.reads;
        let there = master.entries.iter().any(|entry| own_reader(entry.who) && !entry.left);
        let read = seen.numbers.iter().filter(|&&(lease, _)| own_reader(self.leases[lease].who)).count();
        let conflicts = |who: Who| {
            let own = who.owner == call.who.owner && !(there && read == 1 && own_reader(who));
            own || who.excludes(call.who)
        };
        let later = |&(other, number): &(usize, Token)| {
            let above = number > call.token || (number == call.token && other != call.lease);
            above && conflicts(self.leases[other].who)
        };
        let lives = master.entries.iter().any(|entry| {
            !entry.left && entry.who != call.who && conflicts(entry.who) && entry.until >= self.now
        });
        seen.broken < call.token && !lives && !seen.numbers.iter().any(later)
    }

    /// A master agreed. The client counts it where it hears it, and the master's clock is right.
    fn agree(&mut self, call: &Call, number: Token, heard: bool) {
        let clock = self.masters[call.at].clock;
        let is_right = if self.is_wide { call.estimate.trusts(clock) } else { clock.abs() <= BAND };
        let heard = heard && (is_right || !self.checks_clocks);
        let bit = 1 << call.at;
        let lease = &mut self.leases[call.lease];
        match (call.verb, lease.phase) {
            (Verb::Acquire | Verb::Transfer, Phase::Asking)
                if heard && call.round == lease.round && lease.grants[call.at] == 0 =>
            {
                lease.grants[call.at] = number;
            }
            (Verb::Confirm, Phase::Confirming) if heard && self.now < lease.valid_until => {
                lease.agreed |= bit;
                if lease.agreed.count_ones() >= MAJORITY {
                    self.give(call.lease);
                }
            }
            (Verb::Extend, _) => self.agree_to_extend(call, heard),
            _ => {}
        }
    }

    fn agree_to_extend(&mut self, call: &Call, heard: bool) {
        // A wrong clock takes a reader's word away, and so does the next entry where it lapses at
        // once: a reader that left keeps writers away from one master, for a TTL at most.
        let asked_again =
            |&(lease, _): &(usize, Token)| lease > call.lease && self.leases[lease].who == call.who;
        let seen = &self.seen[call.at];
        let without_word = call.who.reads && (self.timed || seen.numbers.iter().any(asked_again));
        if seen.released.contains(&call.lease) && !without_word {
            self.broken = Some(Broken::Resurrected);
        }
        let released = self.seen.iter().filter(|seen| seen.released.contains(&call.lease)).count() as u32;
        let overtaken = self.is_overtaken(call.lease);
        let lease = &mut self.leases[call.lease];
        let late = self.now >= lease.valid_until;
        if lease.phase != Phase::Holding || call.turn != lease.turn || late {
            return;
        }
        if lease.agreed == 0 {
            (lease.overtaken, lease.revived) = (overtaken, released >= MAJORITY);
        }
        lease.agreed |= u8::from(heard) << call.at;
        if lease.agreed.count_ones() >= MAJORITY {
            if lease.overtaken {
                self.broken = Some(Broken::Overtaken);
            } else if lease.revived {
                self.broken = Some(Broken::Revived);
            }
            lease.valid_until = lease.valid_until.max(lease.sent + VALID);
            self.check_exclusion(call.lease);
        }
    }
}

const _: () = assert!(VALID < KEPT);
