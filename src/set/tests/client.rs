//! A client of fake masters: one [`Set`], and its connections.

use std::sync::Arc;
use std::time::Duration;

use super::super::change::{Choice, LeaseBarrier, Promises};
use super::super::handle::Event;
use super::super::peer::Reading;
use super::super::proposer::{Ballot, Proposal};
use super::super::record::{MasterRecord, Members};
use super::super::rules::Verdict;
use super::super::state::{Beginning, Set};
use super::super::terms::Terms;
use super::super::write::{FreshIds, RecordWrite};
use super::basics::{Dice, MAX_TTL, name, named, terms};
use super::fake::{FakeMaster, Reply};
use crate::time::Moment;
use crate::wire::{ByMaster, MasterIndex, MasterSet};

/// A client, and which masters its list names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client {
    pub(super) set: Set,
    /// The master of each index.
    pub(super) list: ByMaster<usize>,
    pub(super) connections: ByMaster<FakeConnection>,
    pub(super) barrier: Option<LeaseBarrier>,
    /// The masters that it does not reach for a while.
    pub(super) cut_off: Vec<usize>,
}

/// A connection to a master.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum FakeConnection {
    #[default]
    Closed,
    /// The handshake is about to write this. It read the record at this time (us).
    Writes(Box<RecordWrite>, u64),
    Open(FakeSession),
}

/// What each call names, and when the master's quarantine ends (us).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FakeSession {
    pub(super) stamp: Arc<str>,
    pub(super) quarantine: u64,
    pub(super) view: u64,
}

/// One answer to a handshake.
pub(super) fn hello(
    set: &mut Set,
    master: impl Into<MasterIndex>,
    reading: Reading,
    ids: FreshIds,
) -> Verdict {
    let now = reading.time;
    set.handle(now, Event::Hello { master: master.into(), reading, is_new: false, ids }).verdict.unwrap()
}

pub(super) fn moment(now: u64) -> Moment {
    Moment::from_origin(Duration::from_micros(now))
}

impl Client {
    pub(super) fn new(list: &[usize], begins: Option<Option<Vec<Arc<str>>>>) -> Self {
        let mut client = Self::with_terms(list, terms(MAX_TTL));
        let beginning = |never_used| Beginning { id: format!("{list:?}").into(), never_used };
        client.set.begin(begins.map(beginning));
        client
    }

    pub(super) fn with_terms(list: &[usize], terms: Terms) -> Self {
        let set = Set::new(list.iter().map(|&master| name(master)).collect(), terms);
        let connections = list.iter().map(|_| FakeConnection::Closed).collect();
        let list = list.iter().copied().collect();
        Self { set, list, connections, barrier: None, cut_off: vec![] }
    }

    /// Reads a master's record. The next [`write`](Client::write) writes what follows, if anything.
    pub(super) fn hello(
        &mut self,
        index: MasterIndex,
        masters: &[FakeMaster],
        now: u64,
        ids: FreshIds,
    ) -> Verdict {
        let reading = masters[self.list[index]].reading(now);
        let record = reading.record.clone();
        let verdict = hello(&mut self.set, index, reading, ids);
        self.connections[index] = match (&verdict, record) {
            (Verdict::Write(write), _) => FakeConnection::Writes(write.clone(), now),
            (Verdict::Vote, Some(MasterRecord { stamp, quarantine, .. })) => {
                let view = self.set.peers[index].record().map_or(0, |record| self.set.view_of(record));
                FakeConnection::Open(FakeSession { stamp, quarantine, view })
            }
            _ => FakeConnection::Closed,
        };
        self.meet();
        verdict
    }

    /// The masters that joined the set have their places, too.
    pub(super) fn meet(&mut self) {
        for peer in self.set.peers.values().skip(self.list.len()) {
            self.list.push(named(&peer.name));
            self.connections.push(FakeConnection::Closed);
        }
    }

    /// The indices of all masters that it has met.
    pub(super) fn met(&self) -> MasterSet {
        MasterSet::first(self.list.len())
    }

    /// The write of a handshake reaches its master.
    pub(super) fn write(&mut self, index: MasterIndex, masters: &mut [FakeMaster], now: u64) {
        if let FakeConnection::Writes(write, read_at) = std::mem::take(&mut self.connections[index]) {
            masters[self.list[index]].write(&write, read_at, now);
        }
    }

    pub(super) fn session(&self, index: MasterIndex) -> Option<&FakeSession> {
        match &self.connections[index] {
            FakeConnection::Open(session) => Some(session),
            _ => None,
        }
    }

    /// One acceptor hears of a proposal, and replies. `None` if it is not connected.
    pub(super) fn ask_one(
        &self,
        index: MasterIndex,
        masters: &mut [FakeMaster],
        proposal: &Proposal,
        value: Option<&str>,
        now: u64,
    ) -> Option<Reply> {
        let stamp = &self.session(index)?.stamp;
        Some(masters[self.list[index]].decree(stamp, proposal, value, now))
    }

    /// Asks those of the acceptors that are connected, and reached.
    pub(super) fn ask(
        &self,
        masters: &mut [FakeMaster],
        proposal: &Proposal,
        value: Option<&str>,
        now: u64,
    ) -> Vec<(MasterIndex, Reply)> {
        let is_cut_off = |index: &MasterIndex| self.cut_off.contains(&self.list[*index]);
        let asked = proposal.masters.and(self.met()).iter().filter(|index| !is_cut_off(index));
        asked.filter_map(|index| Some((index, self.ask_one(index, masters, proposal, value, now)?))).collect()
    }

    /// One handshake, from its first hello to a vote or a refusal.
    pub(super) fn connect(
        &mut self,
        index: impl Into<MasterIndex>,
        masters: &mut [FakeMaster],
        now: u64,
        dice: &Dice,
    ) -> Verdict {
        let index = index.into();
        for turn in 0..6 {
            let verdict = self.hello(index, masters, now, dice.ids());
            match &verdict {
                Verdict::AwaitPeers(_) if turn < 4 && self.ask_for_promises(masters, now, dice) => {}
                Verdict::Write(_) => self.write(index, masters, now),
                _ => return verdict,
            }
        }
        panic!("a handshake that writes for ever");
    }

    /// Runs phase 1 at the connected masters for one that lost its state.
    pub(super) fn ask_for_promises(&mut self, masters: &mut [FakeMaster], now: u64, dice: &Dice) -> bool {
        let Some(proposal) = self.set.handle(now, Event::Propose { draw: dice.draw() }).ask else {
            return false;
        };
        let ballot = proposal.ballot;
        for (master, reply) in self.ask(masters, &proposal, None, now) {
            self.hear(master, ballot, reply, now);
        }
        true
    }

    /// Hears a reply of phase 1 for a master that rejoins.
    pub(super) fn hear(&mut self, master: MasterIndex, ballot: Ballot, reply: Reply, now: u64) {
        let event = match reply {
            Reply::Promised(accepted) => Event::Promised { master, ballot, accepted },
            Reply::Rejected(promised) => Event::Rejected { promised },
            _ => return,
        };
        self.set.handle(now, event);
    }

    pub(super) fn connect_to_all(
        &mut self,
        masters: &mut [FakeMaster],
        now: u64,
        dice: &Dice,
    ) -> Vec<Verdict> {
        let is_reached = |index: &MasterIndex| !self.cut_off.contains(&self.list[*index]);
        let reached: MasterSet = self.met().iter().filter(is_reached).collect();
        reached.iter().map(|index| self.connect(index, masters, now, dice)).collect()
    }

    /// Which of the masters vote for it.
    pub(super) fn voters(&self, masters: &[FakeMaster], now: u64) -> Vec<usize> {
        let voters = self.set.voters();
        let votes = |index: MasterIndex| {
            let session = self.session(index)?;
            let master = self.list[index];
            let is_voter = voters.masters.has(index) && session.view == voters.view;
            let is_reached = !self.cut_off.contains(&master);
            let its = masters[master].record.as_ref()?;
            (is_voter && is_reached && its.stamp == session.stamp && session.quarantine <= now)
                .then_some(master)
        };
        self.met().iter().filter_map(votes).collect()
    }

    pub(super) fn quorum(&self) -> usize {
        self.set.voters().len() / 2 + 1
    }

    /// A proposal to all members.
    pub(super) fn proposal(&self, newest: &MasterRecord, now: u64, dice: &Dice) -> Proposal {
        self.set.proposal(newest, Ballot::new(now, Ballot::default(), dice.draw()))
    }

    /// What it would make of the set: one master more or less.
    fn next_members(
        &mut self,
        newest: &MasterRecord,
        masters: &mut [FakeMaster],
        now: u64,
        dice: &Dice,
    ) -> Option<Members> {
        let is_new = |master: &usize| newest.members.id_of(&name(*master)).is_none();
        let joins = (0..masters.len()).filter(is_new).find(|_| dice.below(3) == 0);
        match joins {
            Some(master) if newest.members.len() < 4 => {
                let id = self.prepare(master, masters, now, dice)?;
                Some(newest.members.with(id, name(master)))
            }
            _ if newest.members.len() > 2 => {
                let leaves = dice.below(newest.members.len());
                Some(newest.members.without(newest.members.iter().nth(leaves)?.0))
            }
            _ => None,
        }
    }

    /// Makes a master a candidate. Returns its number.
    pub(super) fn prepare(
        &mut self,
        master: usize,
        masters: &mut [FakeMaster],
        now: u64,
        dice: &Dice,
    ) -> Option<u32> {
        let index = self.set.join(&name(master))?;
        self.meet();
        self.connect(index, masters, now, dice);
        let id = self.set.joining().map(|candidate| candidate.member);
        self.set.end_joining();
        id
    }

    /// Goes on with a change of one master, as far as it comes: some masters are not reached. True
    /// if something was chosen.
    pub(super) fn change(&mut self, masters: &mut [FakeMaster], now: u64, dice: &Dice) -> bool {
        let Some(newest) = self.set.newest().cloned() else { return false };
        let proposal = self.proposal(&newest, now, dice);
        let reached: MasterSet = proposal.masters.iter().filter(|_| dice.below(5) > 0).collect();
        let proposal = Proposal { masters: reached, ..proposal };
        let promises = promises(self.ask(masters, &proposal, None, now));
        if self.set.barrier_left(&newest, self.barrier.as_ref(), moment(now)).is_none() {
            self.barrier = self.set.raise_barrier(&newest, &promises, moment(now)).ok();
        }
        let next = match self.set.choice(&newest, &promises, self.barrier.as_ref(), moment(now)) {
            Choice::Accepted(members) => Some(members),
            Choice::Own => self.next_members(&newest, masters, now, dice),
            Choice::NoBarrier => {
                self.barrier = None;
                None
            }
            Choice::NoMajority | Choice::Unreadable => None,
        };
        let Some(next) = next else { return false };
        let accepts = reached.iter().filter(|_| dice.below(4) > 0).collect();
        let proposal = Proposal { masters: accepts, ..proposal };
        let replies = self.ask(masters, &proposal, Some(&next.to_string()), now);
        let is_chosen = newest.members.have_majority(agreed(&replies));
        if is_chosen {
            self.set.handle(now, Event::Chosen { from: newest, members: next });
            self.meet();
        }
        is_chosen
    }
}

/// The replies to phase 1.
fn promises(replies: Vec<(MasterIndex, Reply)>) -> Promises {
    let mut promises = Promises::default();
    replies.into_iter().for_each(|(master, reply)| note_reply(&mut promises, master, reply));
    promises
}

pub(super) fn note_reply(promises: &mut Promises, master: MasterIndex, reply: Reply) {
    match reply {
        Reply::Promised(accepted) => drop(promises.by.insert(master, accepted)),
        Reply::Rejected(ballot) => {
            promises.highest = promises.highest.max(ballot);
            promises.later = promises.later.or(master.into());
        }
        _ => {}
    }
}

/// How many of the acceptors promised, or accepted.
pub(super) fn agreed(replies: &[(MasterIndex, Reply)]) -> usize {
    let agrees = |(_, reply): &&(MasterIndex, Reply)| matches!(reply, Reply::Promised(_) | Reply::Accepted);
    replies.iter().filter(agrees).count()
}
