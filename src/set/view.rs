//! The view: the set and generation that a client follows, and the members of it. Pure.

use std::sync::Arc;
use std::time::Duration;

use super::peer::{Peer, VoteHistory};
use super::proposer::Proposer;
use super::record::{MasterRecord, MemberState, Members};
use super::state::{Set, UnconfirmedView, View, recent};
use super::terms::micros;
use crate::wire::MasterIndex;

/// A client stops to write a chosen generation this long before the quarantine ends: a write takes
/// at most that long.
const LATE: Duration = Duration::from_secs(3);

impl Set {
    /// Follows the generation of this record, if that is newer than the view.
    pub(super) fn follow(&mut self, index: MasterIndex, record: &MasterRecord) {
        if !self.is_news(index, record) {
            return;
        }
        let mut by_newest_list = false;
        if let Some(view) = &self.view {
            let is_other_set = view.newest.set != record.set;
            by_newest_list = if is_other_set { !self.follows_to(record) } else { view.by_newest_list };
            if is_other_set {
                self.leave();
            }
        }
        let unconfirmed = self.view.take().and_then(|view| view.unconfirmed);
        self.view = Some(View { newest: record.clone(), by_newest_list, unconfirmed });
        self.assign_members();
        self.forget_misfits(); // this generation may have what did not fit before
    }

    /// Whether this record tells of a newer generation, or of a set that has replaced the client's.
    fn is_news(&self, index: MasterIndex, record: &MasterRecord) -> bool {
        let is_acceptable = || match &self.view {
            // A candidate may be of a set that never begins.
            _ if record.state == MemberState::Candidate => false,
            None => self.inspects(record) || self.follows_to(record),
            Some(view) if view.newest.set == record.set => {
                let is_newer = record.generation > view.newest.generation;
                is_newer && (self.inspects(record) || self.follows_to(record))
            }
            Some(view) => {
                let is_member = record.state == MemberState::Member;
                let has_list = || self.has_newest_list(record) || self.follows_to(record);
                is_member && self.is_replaced_by(&view.newest, index, record) && has_list()
            }
        };
        self.fits(record) && is_acceptable()
    }

    /// Whether another set has replaced the client's. Either no other master shows the client's set
    /// any more, or most masters of the new set are members of it and most of the old one are not.
    fn is_replaced_by(&self, newest: &MasterRecord, index: MasterIndex, record: &MasterRecord) -> bool {
        let is_majority = (self.count_members(&record.set, index) + 1) * 2 > record.members.len();
        let is_minority = self.count_members(&newest.set, index) * 2 <= newest.members.len();
        let is_shown = self.records_except(index).any(|(_, other)| other.set == newest.set);
        !is_shown || is_majority && is_minority
    }

    /// Whether an `init` reads this generation though its list is another one: a master of it may
    /// know the generation that has the list.
    fn inspects(&self, record: &MasterRecord) -> bool {
        self.beginning.is_some() && self.has_room_for(record)
    }

    /// The set that an `init` only inspects, as its list is not that of the set.
    pub(super) fn inspected(&self) -> Option<&MasterRecord> {
        let newest = self.newest().filter(|_| self.beginning.is_some())?;
        let has_voted = self.peers.values().any(|peer| !peer.history.is_empty());
        (!has_voted && !self.follows_to(newest)).then_some(newest)
    }

    /// Whether this client is a client of a record's set, and can follow that generation.
    pub(super) fn follows_to(&self, record: &MasterRecord) -> bool {
        self.has_room_for(record) && (self.list_in(record).is_some() || self.came_with_changes(record))
    }

    /// Whether the client followed changes that the record does not tell of any more, or came to
    /// this set with another list than its own.
    fn came_with_changes(&self, record: &MasterRecord) -> bool {
        let is_cut = record.generation > record.earlier.len() as u64;
        let in_view = self.view.as_ref().filter(|view| view.newest.set == record.set);
        in_view.is_some_and(|view| is_cut || view.by_newest_list)
    }

    /// The generation of a record's set that the client's list names: the newest or an earlier one.
    pub(super) fn list_in<'a>(&self, record: &'a MasterRecord) -> Option<&'a Members> {
        let is_named = |name: &str| record.generations().any(|members| members.id_of(name).is_some());
        let is_in = |members: &Members, peer: &Peer| match peer.record() {
            _ if members.id_of(&peer.name).is_some() => true,
            Some(shown) => shown.set == record.set && members.has(shown.member),
            // A name that the set never had may be the client's own name for a member.
            None => !is_named(&peer.name),
        };
        let is_list = |members: &&Members| {
            members.len() == self.listed.len() && self.listed_peers().all(|peer| is_in(members, peer))
        };
        record.generations().find(is_list)
    }

    /// Whether a set began with the newest list of the client's set.
    fn has_newest_list(&self, record: &MasterRecord) -> bool {
        let Some(newest) = self.newest().filter(|newest| self.follows_to(newest)) else { return false };
        let is_list = |members: &Members| {
            members.len() == newest.members.len()
                && members.iter().all(|(_, name)| newest.members.id_of(name).is_some())
        };
        record.generations().any(is_list) && self.has_room_for(record)
    }

    /// Whether each member has an index, or can get one.
    fn has_room_for(&self, record: &MasterRecord) -> bool {
        let is_known = |name: &Arc<str>| self.peers.values().any(|peer| peer.name == *name);
        let new = record.members.iter().filter(|(_, name)| !is_known(name)).count();
        self.peers.len() + new <= MasterIndex::COUNT
    }

    /// Leaves the set. The client's leases of it are over: no master votes in another set within a
    /// quarantine after its last vote in this one.
    pub(super) fn leave(&mut self) {
        self.sets_left += 1;
        self.view = None;
        self.proposer = Proposer::default();
        for peer in self.peers.values_mut() {
            peer.member = None;
            peer.loss = None;
            peer.history = VoteHistory::default();
        }
    }

    /// Leaves a set that no master shows any more, if this is an `init`, which may begin another
    /// one.
    pub(super) fn leave_vanished_set(&mut self, now: u64) {
        let Some(newest) = self.newest().filter(|_| self.beginning.is_some()) else { return };
        let is_shown =
            |record: &MasterRecord| record.set == newest.set && record.state != MemberState::Candidate;
        let has_vanished = |peer: &Peer| {
            let reading = recent(peer.reading.as_ref(), now);
            reading.is_some_and(|reading| !reading.record.as_ref().is_some_and(is_shown))
        };
        if self.list_and_members().all(has_vanished) {
            self.leave();
        }
    }

    /// Acceptors chose the members of the generation after `from`. The client had asked them at
    /// this time (us) or later.
    pub(super) fn chosen(&mut self, from: &MasterRecord, members: Members, now: u64) {
        let record = from.next(members);
        let has_room = self.has_room_for(&record);
        let is_newest = |view: &&mut View| {
            (&view.newest.set, view.newest.generation) == (&from.set, from.generation) && has_room
        };
        if let Some(view) = self.view.as_mut().filter(is_newest) {
            let until = now.saturating_add(micros(self.terms.quarantine() - LATE));
            let before = std::mem::replace(&mut view.newest, record);
            view.unconfirmed = Some(UnconfirmedView { before, until });
            self.assign_members();
        }
    }

    /// Goes back to the previous generation, if no master has shown the chosen one in time.
    pub(super) fn expire_unconfirmed(&mut self, now: u64) {
        let Some(newest) = self.newest() else { return };
        let is_confirmed = self.records().any(|(_, record)| {
            record.state != MemberState::Candidate
                && (&record.set, record.generation) == (&newest.set, newest.generation)
                && record.members == newest.members
        });
        let Some(view) = &mut self.view else { return };
        if is_confirmed {
            view.unconfirmed = None;
        }
        if let Some(expired) = view.unconfirmed.take_if(|chosen| chosen.until < now) {
            view.newest = expired.before;
            self.assign_members();
        }
    }

    /// Finds out which member of the view each master is. A member that no master is gets a new
    /// index.
    pub(super) fn assign_members(&mut self) {
        let Some(newest) = self.newest().cloned() else { return };
        let mut free = newest.members.clone();
        self.peers.values_mut().for_each(|peer| peer.member = None);
        // Two masters may have shown the same number, one after the other. It belongs to the one
        // that has its name.
        for by_name in [true, false] {
            for peer in self.peers.values_mut() {
                let shown = peer.record().filter(|record| record.set == newest.set);
                let id = shown.map(|record| record.member).or(peer.history.member);
                let is_named = |id: u32| newest.members.name_of(id).as_ref() == Some(&peer.name);
                let id = id.filter(|id| peer.member.is_none() && free.has(*id) && by_name == is_named(*id));
                if let Some(id) = id {
                    peer.member = Some(id);
                    free = free.without(id);
                }
            }
        }
        let listed = self.list_in(&newest).cloned();
        for (id, name) in free.iter() {
            let is_listed = listed.as_ref().is_some_and(|listed| listed.has(*id));
            let Some(index) = self.index_for(name, is_listed) else { continue };
            self.peers[index].member = Some(*id);
        }
    }

    /// The index of a member that has not shown itself: of the master with its name, of one that
    /// the client has another name for, or a new one. `None` if there is no room.
    fn index_for(&mut self, name: &Arc<str>, is_listed: bool) -> Option<MasterIndex> {
        let named = self.peers.position(|peer| peer.name == *name && peer.member.is_none());
        let is_left = |peer: &Peer| is_listed && peer.member.is_none() && peer.record().is_none();
        let left = || self.listed.iter().find(|index| is_left(&self.peers[*index]));
        named.or_else(left).or_else(|| self.peers.push(Peer::new(name.clone())))
    }

    /// Forgets the masters' refusals of this client's list and terms. An operator can have changed
    /// something since.
    pub(crate) fn forget_misfits(&mut self) {
        self.peers.values_mut().for_each(|peer| peer.misfit = None);
    }
}
