//! [`Set`]: what one client knows of the masters of its set, and the answers to questions about
//! it. Pure.

use std::sync::Arc;

use super::peer::{Peer, PeerState, Reading};
use super::proposer::Proposer;
use super::record::{MasterRecord, MemberState, Members, SetTerms};
use super::terms::Terms;
use super::voters::Voters;
use crate::wire::{ByMaster, MasterIndex, MasterSet};

/// What one client knows of the masters of its set. It decides which of them may vote, and which
/// records the client writes.
///
/// It is a state machine without clock, randomness and I/O. What masters answer goes into
/// [`handle`](Set::handle), which returns what to do next. An operator's command goes into
/// [`begin`](Set::begin), [`recover`](Set::recover) or [`join`](Set::join). All other methods only
/// answer questions. docs/SET.md draws it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Set {
    /// The masters of the client's list first, in its order, and then those that joined the set
    /// later.
    pub(super) peers: ByMaster<Peer>,
    /// The masters of the client's list.
    pub(super) listed: MasterSet,
    pub(super) terms: Terms,
    /// The generation that this client follows; `None` until a master shows one.
    pub(super) view: Option<View>,
    /// How many sets this client has left for another one that began with the same masters.
    pub(super) sets_left: u64,
    pub(super) proposer: Proposer,
    /// Set while an `init` runs.
    pub(super) beginning: Option<Beginning>,
    /// Set while an operator recovers the set: the masters that have had time to answer. Those that
    /// have not answered are gone for good, as the operator says.
    pub(super) awaited: Option<MasterSet>,
    pub(super) joining: Option<Joining>,
    /// How many state losses this client has seen, of all masters.
    pub(super) losses: u64,
    /// Grows whenever a master answers something new.
    pub(super) news: u64,
}

/// The generation that a client follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct View {
    /// The record of one of its masters.
    pub(super) newest: MasterRecord,
    /// Whether the client came to this set with the newest list of the set before, which is not the
    /// list that it was given.
    pub(super) by_newest_list: bool,
    /// Set while the generation was only chosen here, and no master has shown it.
    pub(super) unconfirmed: Option<UnconfirmedView>,
}

/// A generation that was chosen, and that no master has shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct UnconfirmedView {
    /// The record of the generation before.
    pub(super) before: MasterRecord,
    /// Until when (us) the client may write it on masters. If most acceptors lose their state,
    /// they may choose another value a quarantine later.
    pub(super) until: u64,
}

/// The master that an operator adds to the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Joining {
    pub(super) index: MasterIndex,
    /// Whether it has answered since the proposer asked it last.
    pub(super) has_answered: bool,
}

/// How an `init` begins a set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Beginning {
    /// The id of the set, unless another `init` begins one with the same list.
    pub(crate) id: Arc<str>,
    /// The processes that no client ever used, as the operator says. A process is taken out when it
    /// has a record.
    pub(crate) never_used: Option<Vec<Arc<str>>>,
}

impl Set {
    pub(crate) fn new(names: Vec<Arc<str>>, terms: Terms) -> Self {
        Self {
            listed: MasterSet::first(names.len()),
            peers: names.into_iter().map(Peer::new).collect(),
            terms,
            view: None,
            sets_left: 0,
            proposer: Proposer::default(),
            beginning: None,
            awaited: None,
            joining: None,
            losses: 0,
            news: 0,
        }
    }

    /// The record of a master of the newest generation that any master showed.
    pub(crate) fn newest(&self) -> Option<&MasterRecord> {
        self.view.as_ref().map(|view| &view.newest)
    }

    /// The record that a master showed last.
    pub(crate) fn record_of(&self, index: MasterIndex) -> Option<&MasterRecord> {
        self.peers[index].record()
    }

    /// The masters of the client's list.
    pub(crate) fn listed(&self) -> MasterSet {
        self.listed
    }

    /// The masters whose votes count.
    pub(crate) fn voters(&self) -> Voters {
        let Some(newest) = self.newest() else {
            let names: Vec<_> = self.listed_peers().map(|peer| peer.name.clone()).collect();
            return Voters::given(&names);
        };
        let masters: MasterSet = self.members().map(|(index, _)| index).collect();
        let names = self.members().map(|(_, peer)| peer.name.clone()).collect();
        let numbers = self.members().filter_map(|(_, peer)| peer.member).collect();
        Voters { view: self.view_of(newest), masters, names, numbers }
    }

    /// The number of a generation of the client's set. No generation of a set that the client has
    /// left has the same number.
    pub(crate) fn view_of(&self, record: &MasterRecord) -> u64 {
        self.sets_left << 48 | record.generation
    }

    /// What names the client's set for ever: its id, or the masters if it has none.
    pub(crate) fn identity(&self) -> Vec<Arc<str>> {
        match self.newest() {
            Some(newest) if *newest.set != *UNNAMED_SET => vec![newest.set.clone()],
            _ => self.listed_peers().map(|peer| peer.name.clone()).collect(),
        }
    }

    /// Grows whenever a master answers something new.
    pub(crate) fn news(&self) -> u64 {
        self.news
    }

    /// Whether each master of the list, and each member, has answered.
    pub(crate) fn all_answered(&self) -> bool {
        self.list_and_members().all(|peer| peer.reading.is_some())
    }

    /// Whether a master showed what it knows of its set a moment before this time (us).
    pub(crate) fn answered_recently(&self, index: MasterIndex, now: u64) -> bool {
        recent(self.peers[index].reading.as_ref(), now).is_some()
    }

    /// Why this client's list is not that of a set, if it is not.
    pub(crate) fn other_list(&self) -> Option<Arc<str>> {
        let mut misfits = self.peers.values().filter_map(|peer| peer.misfit.as_ref());
        misfits.find(|misfit| misfit.is_list).map(|misfit| misfit.why.clone())
    }

    /// Why a master refuses this client's list or terms.
    pub(crate) fn misfit(&self) -> Option<Arc<str>> {
        self.peers.values().find_map(|peer| peer.misfit.as_ref()).map(|misfit| misfit.why.clone())
    }

    /// A master that showed a record.
    pub(crate) fn has_record(&self) -> Option<Arc<str>> {
        self.records().next().map(|(index, _)| self.peers[index].name.clone())
    }

    /// The processes of the masters of the list, if each has answered and none has a record.
    pub(crate) fn unrecorded(&self) -> Option<Vec<Arc<str>>> {
        let run_id = |peer: &Peer| {
            let reading = peer.reading.as_ref().filter(|reading| reading.record.is_none())?;
            Some(reading.run_id.clone())
        };
        self.listed_peers().map(run_id).collect()
    }

    /// Whether each master of the list has answered, and none has a record of a set.
    pub(crate) fn knows_no_set(&self) -> bool {
        self.view.is_none() && self.unrecorded().is_some()
    }

    /// Whether a master is not a member, and is not to become one.
    pub(crate) fn is_no_member(&self, index: MasterIndex) -> bool {
        self.view.is_some() && self.peers[index].member.is_none() && !self.joins(index)
    }

    /// Whether a master was removed, is not to join again, and shows that it knows.
    pub(crate) fn has_left(&self, index: MasterIndex) -> bool {
        let knows = self.record_of(index).is_some_and(|record| record.state == MemberState::Removed);
        knows && self.is_no_member(index)
    }

    /// The set's name of a master that is or was a member, which the client may have another name
    /// for.
    pub(crate) fn own_name(&self, name: &Arc<str>) -> Option<Arc<str>> {
        let newest = self.newest()?;
        if newest.members.id_of(name).is_some() {
            return Some(name.clone());
        }
        let peer = self.peers.values().find(|peer| peer.name == *name);
        let is_identified = |peer: &&Peer| peer.history.member.is_some() || peer.record().is_some();
        // The number of a master that was never heard is certain only if it is the only such one.
        let unidentified = self.listed_peers().filter(|peer| !is_identified(peer)).count();
        let certain = peer.filter(|peer| is_identified(peer) || unidentified == 1);
        let by_number = certain.and_then(|peer| newest.members.name_of(peer.member?));
        let was_member = || newest.earlier.iter().any(|members| members.id_of(name).is_some());
        let shows_set = || peer.and_then(Peer::record).is_some_and(|record| record.set == newest.set);
        by_number.or_else(|| (was_member() || shows_set()).then(|| name.clone()))
    }

    /// The index of the member with this name.
    pub(crate) fn index_of_member(&self, name: &str) -> Option<MasterIndex> {
        let id = self.newest()?.members.id_of(name)?;
        self.peers.position(|peer| peer.member == Some(id))
    }

    /// Whether an operator adds this master.
    pub(super) fn joins(&self, index: MasterIndex) -> bool {
        self.joining.is_some_and(|joining| joining.index == index)
    }

    /// The record of the master that an operator adds, if it is a candidate of the set, and has
    /// answered since the last [`join`](Set::join).
    pub(crate) fn joining(&self) -> Option<&MasterRecord> {
        let joining = self.joining.filter(|joining| joining.has_answered)?;
        match self.peers[joining.index].state(self.newest()) {
            PeerState::Candidate(record) if self.is_of_view(record) => Some(record),
            _ => None,
        }
    }

    pub(super) fn listed_peers(&self) -> impl Iterator<Item = &Peer> {
        self.listed.iter().map(|index| &self.peers[index])
    }

    /// The members of the view.
    pub(super) fn members(&self) -> impl Iterator<Item = (MasterIndex, &Peer)> {
        self.peers.iter().filter(|(_, peer)| peer.member.is_some())
    }

    pub(super) fn list_and_members(&self) -> impl Iterator<Item = &Peer> {
        let peers = self.peers.iter();
        peers.filter(|(index, peer)| self.listed.has(*index) || peer.member.is_some()).map(|(_, peer)| peer)
    }

    /// The records that the masters showed last.
    pub(super) fn records(&self) -> impl Iterator<Item = (MasterIndex, &MasterRecord)> {
        self.peers.iter().filter_map(|(index, peer)| Some((index, peer.record()?)))
    }

    /// The records of all masters except this one.
    pub(super) fn records_except(
        &self,
        index: MasterIndex,
    ) -> impl Iterator<Item = (MasterIndex, &MasterRecord)> {
        self.records().filter(move |(other, _)| *other != index)
    }

    /// How many masters except this one show that they are members of a set.
    pub(super) fn count_members(&self, set: &str, except: MasterIndex) -> usize {
        let is_member = |record: &MasterRecord| record.state == MemberState::Member && *record.set == *set;
        self.records_except(except).filter(|(_, record)| is_member(record)).count()
    }

    /// The newest generation of the set of this record, if this client follows that set.
    pub(super) fn newest_of(&self, record: &MasterRecord) -> Option<&MasterRecord> {
        self.newest().filter(|newest| newest.set == record.set)
    }

    /// Whether a record is of the set that this client follows.
    pub(super) fn is_of_view(&self, record: &MasterRecord) -> bool {
        self.newest_of(record).is_some()
    }

    /// Whether this client has the terms of a record's set.
    pub(super) fn fits(&self, record: &MasterRecord) -> bool {
        record.terms == SetTerms::of(&self.terms)
    }

    /// The names of the client's list, as a part of a sentence.
    pub(super) fn list_names(&self) -> String {
        let names: Vec<&str> = self.listed_peers().map(|peer| &*peer.name).collect();
        names.join(", ")
    }

    /// The members of a set that begins with the client's list.
    pub(super) fn first_members(&self) -> Members {
        let names: Vec<_> = self.listed_peers().map(|peer| peer.name.clone()).collect();
        Members::first(&names)
    }
}

/// For how long (us) an answer counts as evidence about other masters. It must be shorter than a
/// quarantine by more than a write takes. Then a master that rejoins within that time, and loses
/// its state again, has neither voted nor accepted in between.
pub(super) const MAX_EVIDENCE_AGE: u64 = 2_000_000;

/// The id of a set whose masters live in one process. It begins without `init`.
pub(super) const UNNAMED_SET: &str = "new";

/// Whether what was read at one of these times (us) counts as evidence at the other.
pub(super) fn is_recent(time: u64, now: u64) -> bool {
    time.abs_diff(now) < MAX_EVIDENCE_AGE
}

/// Whether a reading counts as evidence at this time (us).
pub(super) fn recent(reading: Option<&Reading>, now: u64) -> Option<&Reading> {
    reading.filter(|reading| is_recent(reading.time, now))
}
