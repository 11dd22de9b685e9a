//! Six masters, and those who lock, change the set and begin one: what each is at, and what must
//! never happen.

use super::master::{
    Accepted, Ballot, Generation, Master, Masters, Members, N, Process, Record, State, Time, Token,
};
use super::variants::Flaw;

/// How long a lease is valid, and kept.
pub(crate) const TTL: Time = 4;
/// How old a message may be that a master grants.
pub(crate) const FRESH: Time = 2;
/// The quarantine: a lease, a message, and one for what is counted in whole ticks.
pub(crate) const Q: Time = TTL + FRESH + 1;
/// How long what was read or accepted may be acted on. A master that forgot it since has a
/// quarantine that ends later, by the age of a message.
pub(crate) const SOON: Time = Q - FRESH;
/// A token that is proposed is the time in these.
pub(crate) const PER_TICK: Token = 16;

/// The masters of the set that there is at first, and its id.
pub(crate) const OLD: Masters = Masters::of(&[0, 1, 2]);
pub(crate) const FIRST_SET: u16 = 1;

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Broken {
    /// Two clients hold the lock.
    TwoHold,
    /// Two members lists were decided for one generation.
    TwoDecrees,
    /// A token is not above that of a lease from before its acquire began.
    TokenFell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    pub(crate) until: Time,
    pub(crate) token: Token,
}

/// Who somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Takes the lock, and has masters that forgot rejoin. It reaches these.
    Client { reaches: Masters, lease: Option<Lease> },
    /// Makes these the members, one master at a time: first what is to be added, or removed.
    Changer { to: Masters, removes_first: bool },
    /// Begins a set (`init`), of its list or of the current one.
    Beginner { of_current: bool },
}

/// What somebody is at: whom it asked, and what it heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    Idle,
    Done,
    /// Looks for the set that its list is of.
    Look {
        asked: Masters,
    },
    Acquire {
        sent: Time,
        asked: Masters,
        numbers: [Token; N],
        floor: Token,
    },
    Confirm {
        sent: Time,
        asked: Masters,
        among: Masters,
        confirmed: Masters,
        token: Token,
        floor: Token,
    },
    Extend {
        sent: Time,
        asked: Masters,
        extended: Masters,
    },
    /// Takes back, or releases, what may be at these.
    Undo {
        at: Masters,
    },
    /// Has a master that forgot rejoin: the first phase of a decree at the others, of which some
    /// promise, and some forgot as well, with their records or without.
    Rejoin {
        at: usize,
        of: Process,
        ballot: Ballot,
        since: Time,
        asked: Masters,
        lost: Masters,
        kept: Masters,
        promised: Promised,
    },
    /// Writes its record, with these promises or with those that it has.
    Write {
        at: usize,
        of: Process,
        since: Time,
        decree: Option<(Ballot, Accepted)>,
    },
    /// Writes the records of candidates, or finds them.
    Prepare {
        asked: Masters,
        adds: Masters,
        ids: [Option<u8>; N],
    },
    /// Proposes these members, or only finishes what was accepted.
    Propose {
        ballot: Ballot,
        asked: Masters,
        value: Option<Members>,
        promised: Promised,
    },
    Accept {
        ballot: Ballot,
        since: Time,
        asked: Masters,
        value: Members,
        promised: Promised,
        accepted: Masters,
    },
    /// Writes what it decided, for a short time.
    Carry {
        decided: Generation,
        since: Time,
        asked: Masters,
    },
    /// Waits until a majority of the generation before the last has been past it for Q.
    Watch {
        asked: Masters,
        seen: Masters,
        of: [u8; N],
    },
    Wait {
        since: Time,
        seen: Masters,
        of: [u8; N],
    },
    Check {
        asked: Masters,
        seen: Masters,
        again: Masters,
        of: [u8; N],
    },
    /// Reads all masters again and again, and makes each a candidate of a set, or a member.
    Init {
        id: u16,
        write: Option<InitWrite>,
    },
}

/// What an `init` is about to write: a candidate of this set, or that it is a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InitWrite {
    pub(crate) at: usize,
    pub(crate) set: Option<u16>,
    pub(crate) since: Time,
}

/// What an `init` read on a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reading {
    pub(crate) time: Time,
    pub(crate) of: Process,
    pub(crate) record: Option<Record>,
}

/// Who promised to accept no earlier ballot, of which incarnation, and what they had accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Promised {
    pub(crate) by: Masters,
    pub(crate) of: [u8; N],
    pub(crate) found: Accepted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Actor {
    pub(crate) role: Role,
    /// The masters that it was given.
    pub(crate) list: Masters,
    pub(crate) task: Task,
    /// Of which set each master was when it showed a record last, and whether as a member.
    pub(crate) shown: [Option<(u16, bool)>; N],
    /// The newest generation that it knows.
    pub(crate) knows: Option<Generation>,
    /// It does nothing before.
    pub(crate) starts: Time,
}

impl Actor {
    pub(crate) fn lease(&self) -> Option<Lease> {
        let Role::Client { lease, .. } = self.role else { return None };
        lease
    }

    /// How many other masters than this showed themselves members of a set.
    pub(crate) fn members_of(&self, set: u16, at: usize) -> usize {
        (0..N).filter(|&other| other != at && self.shown[other] == Some((set, true))).count()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) masters: [Master; N],
    pub(crate) actors: Vec<Actor>,
    /// How many ballots there were. Their order is this much another one.
    pub(crate) ballots: Ballot,
    pub(crate) disorder: Ballot,
    /// How many candidates there were, and sets.
    pub(crate) candidates: u8,
    pub(crate) sets: u16,
    /// How many masters may still forget.
    pub(crate) losses: u8,
    /// Whether none forgot yet: one alone may come back with an older record.
    pub(crate) none_forgot: bool,
    /// What each who begins a set has read.
    pub(crate) readings: Vec<[Option<Reading>; N]>,
    /// The highest token of a lease.
    pub(crate) highest: Token,
    pub(crate) broken: Option<Broken>,
    pub(crate) flaw: Option<Flaw>,
    pub(crate) done: Counts,
}

/// What came about, to see that a walk is not in vain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Counts {
    pub(crate) leases: usize,
    pub(crate) changes: usize,
    pub(crate) finished: usize,
    pub(crate) rejoined: usize,
    pub(crate) begun: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.leases += other.leases;
        self.changes += other.changes;
        self.finished += other.finished;
        self.rejoined += other.rejoined;
        self.begun += other.begun;
    }
}

impl World {
    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    pub(crate) fn breaks(&mut self, broken: Broken) {
        self.broken = self.broken.or(Some(broken));
    }

    pub(crate) fn new_ballot(&mut self) -> Ballot {
        self.ballots += 1;
        (self.ballots + 8) ^ self.disorder
    }

    /// The id of a new candidate.
    pub(crate) fn new_id(&mut self) -> u8 {
        self.candidates += u8::from(!self.has(Flaw::SameIds) || self.candidates == 0);
        self.candidates
    }

    /// Somebody decided a generation: nobody may know another one of that number.
    pub(crate) fn decides(&mut self, decided: &Generation) {
        let records = self.masters.iter().filter_map(|master| Some(master.record?.generation));
        let mut known = records.chain(self.actors.iter().filter_map(|actor| actor.knows));
        if known.any(|known| {
            known.set == decided.set && known.number == decided.number && known.members != decided.members
        }) {
            self.breaks(Broken::TwoDecrees);
        }
    }

    /// The lease that another client than this has now.
    pub(crate) fn other_lease(&self, client: usize) -> Option<Lease> {
        let others = self.actors.iter().enumerate().filter(|(other, _)| *other != client);
        others.filter_map(|(_, actor)| actor.lease()).find(|lease| lease.until > self.now)
    }

    /// A new set's id, which may be lower than one before; not if that is a digest of the list.
    pub(crate) fn new_set(&mut self, list: Masters) -> u16 {
        if self.has(Flaw::IdOfList) {
            return if list == OLD { FIRST_SET } else { 2 };
        }
        self.sets += 1;
        (self.sets + 8) ^ self.disorder
    }

    /// The newest generation of each set that a master shows, or somebody knows.
    pub(crate) fn newest(&self) -> Vec<Generation> {
        let records = self.masters.iter().filter_map(|master| master.record);
        let counts = records.filter(|record| record.state != State::Candidate);
        let shown = counts.map(|record| record.generation);
        let all: Vec<_> = shown.chain(self.actors.iter().filter_map(|actor| actor.knows)).collect();
        let is_newest = |one: &Generation| !all.iter().any(|other| other.follows(one));
        all.iter().copied().filter(is_newest).collect()
    }

    /// A handshake: somebody hears of a newer generation of its set, or of a set that began in its
    /// place, and tells the master what it knows. Whether that is of its generation then.
    pub(crate) fn meet(&mut self, actor: usize, at: usize, heard: bool) -> bool {
        let who = &mut self.actors[actor];
        let before = who.knows.filter(|_| self.flaw == Some(Flaw::CarriesDown));
        if heard {
            let record = self.masters[at].record;
            who.shown[at] = record.map(|its| (its.generation.set, its.state == State::Member));
            if let Some(record) = record.filter(|record| is_news(who, at, record)) {
                who.knows = Some(record.generation);
            }
        }
        let Some(known) = before.or(who.knows) else { return false };
        self.masters[at].carry(at, &known, self.flaw);
        self.masters[at].record.is_some_and(|record| record.generation == known)
    }
}

/// Whether a record tells somebody of a newer generation of its set, or of another set that began
/// with the same masters: its own is no more, or what is left of that is no majority.
fn is_news(who: &Actor, at: usize, record: &Record) -> bool {
    let generation = &record.generation;
    let Some(known) = &who.knows else {
        return record.state != State::Candidate && generation.fits(who.list);
    };
    if generation.set == known.set {
        return record.state != State::Candidate && generation.follows(known);
    }
    let is_left = (0..N).any(|other| other != at && who.shown[other].is_some_and(|its| its.0 == known.set));
    let is_most = (who.members_of(generation.set, at) + 1) * 2 > generation.members.masters.len();
    let is_minor = who.members_of(known.set, at) * 2 <= known.members.masters.len();
    let fits = generation.fits(who.list) || generation.fits(known.members.masters);
    record.state == State::Member && fits && (!is_left || is_most && is_minor)
}
