//! Six masters and their clients: what each of them is doing, and which states must never be
//! reached.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::super::change::Promises;
use super::super::super::proposer::{AcceptorState, Ballot, Proposal};
use super::super::super::record::{MasterRecord, MemberState, Members};
use super::super::super::terms::Terms;
use super::super::super::write::{FreshIds, id};
use super::super::basics::terms;
use super::super::client::{Client, FakeConnection};
use super::super::fake::FakeMaster;
use crate::wire::{MasterIndex, MasterSet};

/// The number of masters.
pub(super) const N: usize = 6;
/// A tick of all clocks (us).
pub(super) const TICK: u64 = 1_000_000;
/// How long (us) a lease is valid, and kept.
pub(super) const TTL: u64 = 4 * TICK;
/// How old (us) a call may be that a master grants.
pub(super) const FRESH: u64 = 2 * TICK;

pub(super) fn model_terms() -> Terms {
    terms(Duration::from_micros(TTL))
}

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Broken {
    /// Two clients hold the lock.
    TwoHold,
    /// Two lists were chosen for one generation.
    TwoLists,
    /// A token is not above that of a lease from before its acquire began.
    TokenFell,
}

/// A rule outside of [`Set`](super::super::super::state::Set) that is missing. A file in
/// `tests/mutants` leaves out a rule of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Flaw {
    /// The votes of a round count under any generation.
    CountsAnyGeneration,
    /// One master is replaced by another in one change.
    TwoAtOnce,
    /// Masters accept a ballot that they did not promise in this incarnation.
    AcceptsUnasked,
    /// All candidates have the same number, so a value does not tell them apart.
    SameIds,
    /// The id of a set is a digest of its first list.
    IdOfList,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ModelLease {
    pub(super) until: u64,
    pub(super) token: u64,
}

/// The one lock, as one master knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LockEntry {
    pub(super) actor: usize,
    pub(super) until: u64,
    pub(super) token: u64,
}

/// What a restart may bring back: the record, and the acceptor's state.
type Saved = (Option<MasterRecord>, Option<(Arc<str>, AcceptorState)>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LockMaster {
    pub(super) saved: Saved,
    pub(super) entry: Option<LockEntry>,
    /// The highest token that it gave.
    pub(super) fence: u64,
    /// How often a client wrote its record.
    pub(super) writes: u64,
}

/// What a master has when it restarts: no lock, and this record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Back {
    Empty,
    Last,
    Saved,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// Takes the lock.
    Locker { lease: Option<ModelLease> },
    /// Makes these the members, one master at a time. It adds first, or it removes first.
    Changer { to: Vec<usize>, removes_first: bool },
    /// Begins a set (`init`), of its list or of the current one.
    Beginner { of_current: bool },
}

/// A round of the lock, and the view that its votes count under.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LockRound {
    pub(super) sent: u64,
    pub(super) view: u64,
    pub(super) asked: MasterSet,
    /// The tokens of those that granted it.
    pub(super) votes: BTreeMap<MasterIndex, u64>,
    /// The highest token of a lease when the acquire began.
    pub(super) floor: u64,
}

/// The work of an actor: the masters that it asked, and their replies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Task {
    Idle,
    Done,
    Acquire(LockRound),
    /// Has one token known to a majority.
    Confirm(LockRound, u64),
    Extend(LockRound),
    /// Takes back, or releases, what may be at these.
    Undo(MasterSet),
    /// Asks how many of the previous list are in this generation.
    Barrier(AskedAcceptors),
    /// Makes this master a candidate.
    Prepare(usize),
    /// Proposes its own members, if it has any.
    Propose(AskedAcceptors, Option<Members>),
    /// Has a value accepted, since this time.
    Accept {
        of: AskedAcceptors,
        value: Members,
        since: u64,
        accepted: MasterSet,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AskedAcceptors {
    pub(super) newest: MasterRecord,
    pub(super) proposal: Proposal,
    pub(super) asked: MasterSet,
    pub(super) promises: Promises,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Actor {
    pub(super) role: Role,
    /// The masters that it was given.
    pub(super) list: Vec<usize>,
    pub(super) client: Client,
    pub(super) task: Task,
    /// Phase 1 for masters that lost their state, and who was not asked yet.
    pub(super) rejoin: Option<(Proposal, MasterSet)>,
    /// It does nothing before.
    pub(super) starts: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) now: u64,
    pub(super) fakes: Vec<FakeMaster>,
    pub(super) masters: Vec<LockMaster>,
    pub(super) actors: Vec<Actor>,
    /// How many ballots there were. Their order is this much another one.
    pub(super) ballots: u64,
    pub(super) disorder: u64,
    /// How many sets began.
    pub(super) sets: u64,
    /// How many masters may still forget.
    pub(super) losses: u8,
    /// Whether none forgot yet: one alone may come back with an older record.
    pub(super) none_forgot: bool,
    /// The highest token of a lease.
    pub(super) highest: u64,
    pub(super) broken: Option<Broken>,
    pub(super) flaw: Option<Flaw>,
    pub(super) done: Counts,
}

/// What came about, to see that a walk is not in vain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Counts {
    pub(super) leases: usize,
    pub(super) changes: usize,
    pub(super) finished: usize,
    pub(super) rejoined: usize,
    pub(super) begun: usize,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.leases += other.leases;
        self.changes += other.changes;
        self.finished += other.finished;
        self.rejoined += other.rejoined;
        self.begun += other.begun;
    }
}

impl Actor {
    pub(super) fn new(role: Role, list: &[usize]) -> Self {
        let client = Client::with_terms(list, model_terms());
        Self { role, list: list.to_vec(), client, task: Task::Idle, rejoin: None, starts: 0 }
    }

    pub(super) fn lease(&self) -> Option<ModelLease> {
        let Role::Locker { lease } = self.role else { return None };
        lease
    }

    pub(super) fn newest(&self) -> Option<&MasterRecord> {
        self.client.set.newest()
    }

    /// Whether it reaches this index.
    pub(super) fn reaches(&self, index: MasterIndex) -> bool {
        !self.client.cut_off.contains(&self.client.list[index])
    }

    /// It is killed, and starts anew.
    pub(super) fn restart(&mut self) {
        let role = match &self.role {
            Role::Locker { .. } => Role::Locker { lease: None },
            other => other.clone(),
        };
        let cut_off = std::mem::take(&mut self.client.cut_off);
        *self = Self { starts: self.starts, ..Self::new(role, &self.list) };
        self.client.cut_off = cut_off;
    }
}

impl World {
    pub(super) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    pub(super) fn breaks(&mut self, broken: Broken) {
        self.broken = self.broken.or(Some(broken));
    }

    /// The random part of a new ballot.
    pub(super) fn draw_ballot(&mut self) -> u64 {
        self.ballots += 1;
        (self.ballots + 8) ^ self.disorder
    }

    pub(super) fn new_ballot(&mut self) -> Ballot {
        Ballot::new(self.now, Ballot::default(), self.draw_ballot())
    }

    /// Ids for the next write of this actor on this master. Writes on other masters do not change
    /// them, so fewer states differ.
    pub(super) fn ids(&self, actor: usize, at: usize) -> FreshIds {
        let number = (actor * N + at) as u64 * 1_000 + self.masters[at].writes;
        let draw = |what: &str| format!("{what}{number}").into();
        let member = if self.has(Flaw::SameIds) { 16 } else { 16 + number as u32 };
        FreshIds { set: draw("s"), incarnation: draw("i"), stamp: draw("t"), member }
    }

    /// A new set's id, which may be lower than one before.
    pub(super) fn new_set(&mut self, list: &[usize]) -> Arc<str> {
        if self.has(Flaw::IdOfList) {
            return format!("{list:?}").into();
        }
        self.sets += 1;
        id((self.sets + 8) ^ self.disorder)
    }

    /// The lease that another client than this has now.
    pub(super) fn other_lease(&self, actor: usize) -> Option<ModelLease> {
        let others = self.actors.iter().enumerate().filter(|(other, _)| *other != actor);
        others.filter_map(|(_, actor)| actor.lease()).find(|lease| lease.until > self.now)
    }

    /// The generations that a master or client shows. One that was chosen, and that no client may
    /// write any more, does not count.
    fn shown(&self) -> impl Iterator<Item = &MasterRecord> + Clone {
        let records = self.fakes.iter().filter_map(|fake| fake.record.as_ref());
        let counts = records.filter(|record| record.state != MemberState::Candidate);
        counts.chain(self.actors.iter().filter_map(|actor| {
            let view = actor.client.set.view.as_ref()?;
            let is_over = view.unconfirmed.as_ref().is_some_and(|chosen| chosen.until < self.now);
            (!is_over).then_some(&view.newest)
        }))
    }

    /// Nobody knows two lists of one generation.
    pub(super) fn check_lists(&mut self) {
        let same = |one: &MasterRecord, other: &MasterRecord| {
            (&one.set, one.generation) == (&other.set, other.generation)
        };
        let differs =
            |one: &MasterRecord| self.shown().any(|other| same(one, other) && one.members != other.members);
        if self.shown().any(differs) {
            self.breaks(Broken::TwoLists);
        }
    }

    /// The newest generation of each set.
    pub(super) fn newest(&self) -> Vec<&MasterRecord> {
        let follows = |other: &MasterRecord, one: &MasterRecord| {
            other.set == one.set && other.generation > one.generation
        };
        self.shown().filter(|one| !self.shown().any(|other| follows(other, one))).collect()
    }

    /// The sets that live: more than half of the newest members have their records.
    pub(super) fn living(&self) -> impl Iterator<Item = &MasterRecord> {
        self.newest().into_iter().filter(|newest| {
            let keeps = |id: u32| {
                let records = self.fakes.iter().filter_map(|fake| fake.record.as_ref());
                let mut of_set = records.filter(|record| record.set == newest.set);
                of_set.any(|its| its.member == id && (its.state == MemberState::Member || its.begins_set()))
            };
            newest.members.iter().filter(|(id, _)| keeps(*id)).count() * 2 > newest.members.len()
        })
    }

    /// A master restarts.
    pub(super) fn forget(&mut self, at: usize, back: Back) {
        self.losses = if back == Back::Saved { 0 } else { self.losses - 1 };
        self.none_forgot = false;
        let fake = &mut self.fakes[at];
        fake.run_id += N as u64;
        match back {
            Back::Empty => (fake.record, fake.acceptor) = (None, None),
            Back::Last => {}
            Back::Saved => (fake.record, fake.acceptor) = self.masters[at].saved.clone(),
        }
        (self.masters[at].entry, self.masters[at].fence) = (None, 0);
        for actor in &mut self.actors {
            let indices = actor.client.list.values().zip(actor.client.connections.values_mut());
            indices.filter(|(its, _)| **its == at).for_each(|(_, open)| *open = FakeConnection::Closed);
        }
    }

    /// What a master has now is what a restart may bring back.
    pub(super) fn save(&mut self, at: usize) {
        let FakeMaster { record, acceptor, .. } = self.fakes[at].clone();
        self.masters[at].saved = (record, acceptor);
    }
}
