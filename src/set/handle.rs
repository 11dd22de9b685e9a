//! [`Set::handle`]: one event in, the actions out. Pure.

use std::sync::Arc;

use super::peer::{Peer, Reading};
use super::proposer::{Accepted, Ballot, Proposal};
use super::record::{MasterRecord, Members};
use super::rules::{Case, Verdict};
use super::state::{Joining, Set};
use super::write::FreshIds;
use crate::vote::Refusal;
use crate::wire::{MasterIndex, MasterSet};

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A master answered a handshake.
    Hello {
        master: MasterIndex,
        reading: Reading,
        /// Whether the master never restarted, and never lost a key. Only a master in this process
        /// can be known that well.
        is_new: bool,
        ids: FreshIds,
    },
    /// A master cannot be reached: what it said of this client's list and terms does not count.
    Unreachable { master: MasterIndex },
    /// Phase 1 may begin, if a master waits for it. `draw` is random.
    Propose { draw: u64 },
    /// An acceptor promised this ballot, and had accepted this value before.
    Promised { master: MasterIndex, ballot: Ballot, accepted: Option<Accepted> },
    /// An acceptor had promised this higher ballot.
    Rejected { promised: Ballot },
    /// Handshakes that wait for news go on: no acceptor is left to ask, or an `init` reads all
    /// masters again.
    ReadAgain,
    /// Most acceptors accepted these members for the generation after `from`. The client had asked
    /// them now or later.
    Chosen { from: MasterRecord, members: Members },
}

/// What to do after an [`Event`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Actions {
    /// What to do about the master that answered: for each [`Event::Hello`].
    pub(crate) verdict: Option<Verdict>,
    /// Ask these acceptors to promise.
    pub(crate) ask: Option<Proposal>,
}

impl Set {
    /// Handles an event of this time (us). For an answer, that is the earlier of the master's clock
    /// and T.
    pub(crate) fn handle(&mut self, now: u64, event: Event) -> Actions {
        let mut actions = Actions::default();
        match event {
            Event::Hello { master, reading, is_new, ids } => {
                actions.verdict = Some(self.hello(now, master, reading, is_new, &ids));
            }
            Event::Unreachable { master } => self.unreachable(master),
            Event::Propose { draw } => actions.ask = self.propose(now, draw),
            Event::Promised { master, ballot, accepted } => {
                self.proposer.promised(master, ballot, accepted);
                self.news += 1;
            }
            Event::Rejected { promised } => {
                self.proposer.rejected(promised);
                self.news += 1;
            }
            Event::ReadAgain => self.news += 1,
            Event::Chosen { from, members } => self.chosen(&from, members, now),
        }
        actions
    }

    fn hello(
        &mut self,
        now: u64,
        index: MasterIndex,
        reading: Reading,
        is_new: bool,
        ids: &FreshIds,
    ) -> Verdict {
        let limit = self.latest_quarantine_end(&reading);
        let record = reading.record.clone();
        self.peers[index].history.bound(limit);
        let before = self.peers[index].reading.replace(reading.clone());
        if let Some(joining) = self.joining.as_mut().filter(|joining| joining.index == index) {
            joining.has_answered = true;
        }
        self.expire_unconfirmed(now);
        if let Some(record) = &record {
            self.follow(index, record);
        }
        self.leave_vanished_set(now);
        self.note_losses();
        self.peers[index].losses_seen = self.losses;
        let verdict = Case { set: self, index, reading: &reading, is_new, ids }.verdict();
        if record.is_some() || matches!(verdict, Verdict::Write(_)) {
            self.note_used(&reading.run_id, record.as_ref(), &ids.set);
        }
        if let (Verdict::Vote, Some(record)) = (&verdict, &record) {
            self.peers[index].history.note(record, limit);
        }
        self.note_who_waits(now, index, &verdict);
        self.news += u64::from(before.map(|before| before.stamp()) != Some(reading.stamp()));
        self.note_misfit(index, &verdict);
        self.assign_members();
        verdict
    }

    /// Notes whether a master waits for promises, or may give one.
    fn note_who_waits(&mut self, now: u64, index: MasterIndex, verdict: &Verdict) {
        let generation = self.newest().map_or(0, |newest| newest.generation + 1);
        match (&self.peers[index].loss, verdict) {
            (Some(loss), Verdict::AwaitPeers(_)) => self.proposer.want(generation, loss.number, now),
            _ => self.proposer.heard_from(index),
        }
    }

    /// Notes why a master refuses this client's list or terms, if it does.
    fn note_misfit(&mut self, index: MasterIndex, verdict: &Verdict) {
        let misfit = match verdict {
            Verdict::Refuse(Refusal::NoSet, _) if self.beginning.is_none() => None,
            Verdict::Refuse(reason, why) => {
                let is_list = *reason == Refusal::OtherMembers && self.is_other_list(index);
                self.peers[index].misfit(*reason, why, is_list)
            }
            _ => None,
        };
        self.peers[index].misfit = misfit;
    }

    /// Whether a master that is not of the set makes this client's list another one. Not if it
    /// voted with this client before, or if the client did not come to the set with its own list.
    /// If the master has no record, the client's names for the others have to be those of the set:
    /// otherwise it may have another name for this one, too.
    pub(super) fn is_other_list(&self, index: MasterIndex) -> bool {
        let has_record = self.peers[index].record().is_some();
        let is_named = |(other, record): (MasterIndex, &MasterRecord)| {
            record.members.id_of(&self.peers[other].name) == Some(record.member)
        };
        let came_with_list = !self.view.as_ref().is_some_and(|view| view.by_newest_list);
        let is_listed = self.listed.has(index) && self.peers[index].history.is_empty();
        is_listed && came_with_list && (has_record || self.records().all(is_named))
    }

    /// If it refused this client's list or terms, it is as one that was never heard.
    fn unreachable(&mut self, index: MasterIndex) {
        if self.peers[index].misfit.take().is_some() {
            self.peers[index].reading = None;
        }
    }

    /// Begins phase 1, if a master that lost its state waits for it.
    fn propose(&mut self, now: u64, draw: u64) -> Option<Proposal> {
        let newest = self.newest().filter(|_| self.proposer.is_wanted())?;
        let set = newest.set.clone();
        let generation = newest.generation + 1;
        let keep_state = self.members().filter(|(_, peer)| peer.loss.is_none());
        let masters: MasterSet = keep_state.map(|(index, _)| index).collect();
        let ballot = |highest| Ballot::new(now, highest, draw);
        Some(self.proposer.begin(set, generation, masters, self.losses, ballot))
    }

    /// From now on masters that lost their state rejoin without those among `awaited` that do not
    /// answer. With `None` not any more.
    pub(crate) fn recover(&mut self, awaited: Option<MasterSet>) {
        self.awaited = awaited;
    }

    /// An operator adds the master of this name, which has to answer from now on. Returns its
    /// index; `None` if there is no room.
    pub(crate) fn join(&mut self, name: &Arc<str>) -> Option<MasterIndex> {
        let known = self.peers.position(|peer| peer.name == *name);
        let index = known.or_else(|| self.peers.push(Peer::new(name.clone())))?;
        self.joining = Some(Joining { index, has_answered: false });
        Some(index)
    }

    /// The operator adds no master any more.
    pub(crate) fn end_joining(&mut self) {
        self.joining = None;
    }
}
