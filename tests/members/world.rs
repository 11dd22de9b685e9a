//! Six masters, and those who lock, change the set and begin one: what each is at, and what must
//! never happen.

use super::master::{Ballot, Decree, Generation, Master, Masters, N, Time, Token};
use super::variants::Flaw;

/// How long a lease is valid, and kept.
pub(crate) const TTL: Time = 4;
/// How old a message may be that a master grants.
pub(crate) const FRESH: Time = 2;
/// The quarantine: a lease, a message, and one for what is counted in whole ticks.
pub(crate) const Q: Time = TTL + FRESH + 1;
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
    /// A vain acquire is in the way of a lease that is held, where that has to be made anew.
    InTheWay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    /// The number of the generation that granted it.
    pub(crate) by: u8,
    pub(crate) until: Time,
    pub(crate) token: Token,
}

/// Who somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Takes the lock. It was given this list, and reaches these masters.
    Client { list: Masters, reaches: Masters, lease: Option<Lease> },
    /// Changes the members of this generation to these.
    Changer { from: u8, to: Masters },
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
        bare: Masters,
        stale: Masters,
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
    /// Gives the vote back to a master that forgot: the first phase of a decree.
    Readmit {
        at: usize,
        ballot: Ballot,
        asked: Masters,
        promised: Promised,
    },
    Write {
        at: usize,
        ballot: Ballot,
    },
    /// Writes records of candidates; these are ready.
    Prepare {
        asked: Masters,
        ready: Masters,
        named: [Option<u8>; N],
    },
    Propose {
        ballot: Ballot,
        asked: Masters,
        decree: Decree,
        promised: Promised,
    },
    Accept {
        ballot: Ballot,
        asked: Masters,
        decree: Decree,
        promised: Promised,
        accepted: Masters,
    },
    Carry {
        asked: Masters,
    },
    /// Waits until a majority of the old set has been in the joint generation for Q.
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
        asked: Masters,
        same: Masters,
        of: [u8; N],
    },
    Complete {
        begin: Begin,
        asked: Masters,
        of: [u8; N],
    },
}

/// What is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Begin {
    pub(crate) generation: Generation,
    pub(crate) again: bool,
}

/// Who promised to accept no earlier ballot, of which incarnation, and what they had accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Promised {
    pub(crate) by: Masters,
    pub(crate) of: [u8; N],
    pub(crate) found: Option<(Ballot, Decree)>,
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
    pub(crate) ballots: Ballot,
    /// How many masters may still forget.
    pub(crate) losses: u8,
    /// What was decided for each generation.
    pub(crate) decided: [Option<Decree>; 6],
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
    pub(crate) readmitted: usize,
    pub(crate) begun: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.leases += other.leases;
        self.changes += other.changes;
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
        self.ballots
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
