//! How a master that lost its state gets its place in the set again. Pure.

use super::peer::Peer;
use super::record::{MasterRecord, MemberState, Members};
use super::rules::{Case, Verdict};
use super::state::{Set, is_recent, recent};
use super::write::AcceptorWrite;
use crate::vote::Refusal;
use crate::wire::{MasterIndex, MasterSet};

impl Set {
    /// Notes which masters have to rejoin.
    pub(super) fn note_losses(&mut self) {
        for index in MasterSet::first(self.peers.len()).iter() {
            if self.has_to_rejoin(index) {
                self.peers[index].note_loss(&mut self.losses);
            } else if self.peers[index].reading.is_some() {
                self.peers[index].loss = None;
            }
        }
    }

    /// Whether a master may have lost grants and promises, and has not rejoined. A candidate has no
    /// promises, so it counts if it has a place in the view, or is of another set.
    fn has_to_rejoin(&self, index: MasterIndex) -> bool {
        let peer = &self.peers[index];
        let Some(reading) = &peer.reading else { return false };
        let Some(record) = &reading.record else { return true };
        if self.joined_again(index, record) {
            return true;
        }
        if record.state == MemberState::Removed {
            return false;
        }
        let is_candidate = record.state == MemberState::Candidate;
        let counts_as_lost =
            |newest: &MasterRecord| newest.set != record.set || record.has_place_in(&newest.members);
        peer.lost_state(reading, record) || is_candidate && self.newest().is_some_and(counts_as_lost)
    }

    /// The members that show their records of the set and their acceptors' state. Their processes
    /// may be others than before. A candidate that joined and was not told has promised nothing.
    pub(super) fn members_with_records(&self, newest: &MasterRecord) -> MasterSet {
        let keeps = |peer: &Peer| {
            let Some(reading) = &peer.reading else { return false };
            reading.record.as_ref().is_some_and(|record| {
                let counts = match record.state {
                    MemberState::Candidate => record.has_place_in(&newest.members),
                    MemberState::Member => true,
                    MemberState::Removed => false,
                };
                record.set == newest.set && counts && !reading.lost_acceptor(record)
            })
        };
        self.members().filter(|(_, peer)| keeps(peer)).map(|(index, _)| index).collect()
    }
}

impl Case<'_> {
    /// Has the master rejoin its set. `found` is its record, if it has one of this set.
    pub(super) fn rejoin(&self, newest: &MasterRecord, found: Option<&MasterRecord>) -> Verdict {
        let member = match self.place_in(newest, found) {
            Ok(member) => member,
            Err(refused) => return refused,
        };
        let Some(promised) = self.promised(newest) else {
            let why =
                "it may have forgotten what it knew of its set, and the others are to say what they know";
            return Verdict::AwaitPeers(why.to_owned());
        };
        let Set { proposer, terms, .. } = self.set;
        let all = newest.members.len();
        let record = self.renewed(newest).carried(newest, member, self.ids.stamp.clone());
        let own = self.reading.record.as_ref();
        let rejoin = |acceptor| self.write_record(own, record, terms.quarantine(), acceptor);
        if promised.len() * 2 > all {
            return rejoin(AcceptorWrite::New(proposer.handed_on(promised)));
        }
        if let Some(missing) = self.missing(newest, promised) {
            return Verdict::AwaitPeers(format!(
                "it may have forgotten what it knew of its set, and too few others know it: {} has to \
                 answer first (if it never will: quorate members recover)",
                missing.name
            ));
        }
        let with_records = self.set.members_with_records(newest);
        let kept = with_records.or(promised).len();
        let keeps = found.is_some() && with_records.has(self.index);
        let recovers = self.set.awaited.is_some();
        if keeps && (kept * 2 > all || recovers) {
            return rejoin(AcceptorWrite::Kept);
        }
        let first = self.rejoin_first(with_records.without(promised));
        if !first.is_empty() && (recovers || first.or(promised).len() * 2 > all) {
            let why = "it has no record any more, and the masters that keep theirs have to rejoin first";
            return Verdict::AwaitPeers(why.to_owned());
        }
        if recovers {
            return rejoin(AcceptorWrite::New(proposer.handed_on(promised)));
        }
        self.lost_set(all - kept, all)
    }

    /// At least half of the members have no record: only an operator resumes the set.
    fn lost_set(&self, lost: usize, all: usize) -> Verdict {
        let why = format!("{lost} of {all} masters have no record");
        if self.set.beginning.is_some() {
            return Verdict::Wait(format!("{why}: the set begins again when all masters answer"));
        }
        let why = format!("{why}: `quorate init` with its list begins the set again");
        Verdict::Refuse(Refusal::NoSet, why)
    }

    /// Which member of the newest generation the master is, or was before it.
    fn place_in(&self, newest: &MasterRecord, found: Option<&MasterRecord>) -> Result<u32, Verdict> {
        let name = &self.peer().name;
        let own = found.map(|found| found.member).or(self.peer().history.member);
        let place = own.filter(|own| newest.members.has(*own)).or_else(|| newest.members.id_of(name));
        let is_taken =
            |id: u32| self.others().any(|(_, other)| other.set == newest.set && other.member == id);
        let free = place.filter(|id| !is_taken(*id));
        free.or(found.map(|found| found.member)).ok_or_else(|| {
            let was_member =
                |members: &Members| own.is_some_and(|own| members.has(own)) || members.id_of(name).is_some();
            let was_removed = place.is_none() && newest.earlier.iter().any(was_member);
            if was_removed { self.removed(newest) } else { self.other_members(newest) }
        })
    }

    /// The members that promised since this master was seen to have lost its state, and did not
    /// lose their own. `None` if they were not asked since.
    fn promised(&self, newest: &MasterRecord) -> Option<MasterSet> {
        let proposer = &self.set.proposer;
        let promises = proposer.promises(newest.generation + 1, self.loss());
        let promises = promises.filter(|_| is_recent(proposer.asked_at(), self.reading.time))?;
        let keeps_state = |(index, peer): &(MasterIndex, &Peer)| promises.has(*index) && peer.loss.is_none();
        Some(self.set.members().filter(keeps_state).map(|(index, _)| index).collect())
    }

    /// A member that neither promised nor lost its state as well, and is not gone.
    fn missing(&self, newest: &MasterRecord, promised: MasterSet) -> Option<&Peer> {
        let is_missing = |(index, _): &(MasterIndex, &Peer)| {
            !promised.has(*index) && !self.lost_state_too(*index, &newest.set) && !self.is_gone(*index)
        };
        self.set.members().find(is_missing).map(|(_, peer)| peer)
    }

    /// Whether a member is gone for good, as an operator says who recovers the set.
    fn is_gone(&self, index: MasterIndex) -> bool {
        let was_awaited = self.set.awaited.is_some_and(|awaited| awaited.has(index));
        was_awaited && recent(self.set.peers[index].reading.as_ref(), self.reading.time).is_none()
    }

    /// Those of these members, which keep their records, that rejoin with what they accepted. A
    /// candidate of a first generation waits for the others.
    fn rejoin_first(&self, with_records: MasterSet) -> MasterSet {
        let rejoins = |index: &MasterIndex| {
            let record = self.set.record_of(*index);
            *index != self.index && !self.is_gone(*index) && record.is_some_and(|record| !record.begins_set())
        };
        with_records.iter().filter(rejoins).collect()
    }

    /// Whether another master had lost its state as well when it answered after this one. An older
    /// answer does not count: the master can have rejoined since.
    fn lost_state_too(&self, index: MasterIndex, set: &str) -> bool {
        let peer = &self.set.peers[index];
        let counts = |record: &MasterRecord| *record.set == *set || record.state == MemberState::Candidate;
        peer.loss.is_some() && self.has_answered(index) && peer.record().is_none_or(counts)
    }

    /// Whether a master answered a moment ago, after this one was seen to have lost its state.
    fn has_answered(&self, index: MasterIndex) -> bool {
        let peer = &self.set.peers[index];
        recent(peer.reading.as_ref(), self.reading.time).is_some() && peer.losses_seen >= self.loss()
    }

    /// The sequence number of this master's state loss.
    fn loss(&self) -> u64 {
        self.peer().loss.as_ref().map_or(0, |loss| loss.number)
    }
}
