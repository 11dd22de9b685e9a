//! Six masters, and those who lock, change the set and begin one: what each is at, and what must
//! never happen.

use super::master::{Accepted, Ballot, Generation, Master, Masters, Members, N, Time, Token};
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
    /// Takes the lock. It was given this list, and reaches these masters.
    Client { list: Masters, reaches: Masters, lease: Option<Lease> },
    /// Makes these the members, one master at a time: first what is to be added, or removed.
    Changer { to: Masters, removes_first: bool },
    /// Begins a set of these masters (`init`).
    Beginner { list: Masters, set: u8 },
}

/// What somebody is at: whom it asked, and what it heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    Idle,
    Done,
    /// Looks for the set that its list is of.
    Look {
        asked: Masters,
        newest: Option<Generation>,
        agree: Masters,
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
    /// Gives the vote back to a master that forgot, in this incarnation: the first phase of a
    /// decree at the others.
    Readmit {
        at: usize,
        of: u8,
        ballot: Ballot,
        asked: Masters,
        read: Masters,
        remember: Masters,
        promised: Promised,
    },
    Write {
        at: usize,
        of: u8,
        ballot: Ballot,
        found: Accepted,
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
    /// The steps of beginning: of a set, or of a generation that most of its masters forgot.
    Begin {
        begin: Begin,
        asked: Masters,
        noted: Masters,
        of: [u8; N],
    },
    Settle {
        begin: Begin,
        since: Time,
        of: [u8; N],
    },
    Reread {
        begin: Begin,
        since: Time,
        asked: Masters,
        same: Masters,
        of: [u8; N],
    },
    Complete {
        begin: Begin,
        since: Time,
        asked: Masters,
        of: [u8; N],
    },
}

/// What is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Begin {
    pub(crate) generation: Generation,
    /// Where most of it forgot: the ballot of the first phase, and what that found.
    pub(crate) again: Option<(Ballot, Accepted)>,
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
    pub(crate) task: Task,
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
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) masters: [Master; N],
    pub(crate) actors: Vec<Actor>,
    /// How many ballots there were. Their order is this much another one.
    pub(crate) ballots: Ballot,
    pub(crate) disorder: Ballot,
    /// How many candidates there were.
    pub(crate) candidates: u8,
    /// How many masters may still forget.
    pub(crate) losses: u8,
    /// What one who changes the set knows when it is started.
    pub(crate) first: Option<Generation>,
    /// The highest token of a lease.
    pub(crate) highest: Token,
    pub(crate) broken: Option<Broken>,
    pub(crate) flaw: Option<Flaw>,
    /// Clients of the newest set are never killed, and readmit a master in time that somebody else
    /// begins to use.
    pub(crate) connected: bool,
    pub(crate) done: Counts,
}

/// What came about, to see that a walk is not in vain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Counts {
    pub(crate) leases: usize,
    pub(crate) changes: usize,
    pub(crate) finished: usize,
    pub(crate) readmitted: usize,
    pub(crate) begun: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.leases += other.leases;
        self.changes += other.changes;
        self.finished += other.finished;
        self.readmitted += other.readmitted;
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

    /// Somebody learns a newer generation of its set from a master. True where it is newer.
    pub(crate) fn learn(&mut self, actor: usize, at: usize) -> bool {
        let (Some(record), Some(known)) = (self.masters[at].record, self.actors[actor].knows) else {
            return false;
        };
        let newer = record.generation.set == known.set && record.generation.number > known.number;
        if newer {
            self.actors[actor].knows = Some(record.generation);
        }
        newer
    }
}
