//! What to do about a master that answered a handshake: the rows of "What a client decides" in
//! docs/PROTOCOL.md, in their order. The first one that fits counts. Pure.

use std::sync::Arc;
use std::time::Duration;

use super::peer::{Peer, PeerState, Reading};
use super::proposer::AcceptorState;
use super::record::{MasterRecord, MemberState, Members, SetTerms};
use super::state::{Set, UNNAMED_SET, recent};
use super::terms::micros;
use super::write::{AcceptorWrite, FreshIds, RecordWrite};
use crate::vote::Refusal;
use crate::wire::MasterIndex;

/// What to do about a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It votes, from the end of its quarantine on.
    Vote,
    /// Write this, and make the handshake again.
    Write(Box<RecordWrite>),
    /// Make the handshake again when more is known of the other masters, or later.
    AwaitPeers(String),
    /// It has no vote yet. Make the handshake again later.
    Wait(String),
    /// It has no vote with this client until somebody acts.
    Refuse(Refusal, String),
}

/// A master that answered, and all that is known.
pub(super) struct Case<'a> {
    pub(super) set: &'a Set,
    pub(super) index: MasterIndex,
    pub(super) reading: &'a Reading,
    /// Whether the master never restarted, and never lost a key. Only a master in this process can
    /// be known that well.
    pub(super) is_new: bool,
    pub(super) ids: &'a FreshIds,
}

impl<'a> Case<'a> {
    pub(super) fn verdict(&self) -> Verdict {
        let record = self.reading.record.as_ref();
        if record.is_none() && self.is_new {
            return self.begin_in_process();
        }
        if let Some(newest) = self.set.inspected() {
            let is_third =
                |record: &MasterRecord| record.set != newest.set && record.state == MemberState::Member;
            if !record.is_some_and(is_third) {
                return self.other_members(newest);
            }
        }
        let by_operator = self.join().or_else(|| self.take_back()).or_else(|| self.begin());
        let by_list = || record.and_then(|record| self.check_list(record));
        by_operator.or_else(by_list).unwrap_or_else(|| self.by_state())
    }

    /// A master in this process is new. Each client begins the same set with it, without `init`.
    fn begin_in_process(&self) -> Verdict {
        let names: Vec<_> = self.set.listed_peers().map(|peer| peer.name.clone()).collect();
        let members = Members::in_order(&names);
        let record = self.first(UNNAMED_SET.into(), members, MemberState::Member);
        self.write_new(None, record, Duration::ZERO)
    }

    /// Makes the master a candidate, if an operator adds it and it is not a member of a set.
    fn join(&self) -> Option<Verdict> {
        let newest = self.set.newest().filter(|_| self.set.joins(self.index))?;
        let record = self.reading.record.as_ref();
        if record.is_none() && newest.members.id_of(&self.peer().name).is_some() {
            return None; // it has joined, and lost its record
        }
        let has_joined = |record: &MasterRecord| {
            let is_candidate = record.state == MemberState::Candidate;
            let is_ready = || newest.members.has(record.member) || is_candidate && !self.lost_state(record);
            if record.set == newest.set { is_ready() } else { record.state == MemberState::Member }
        };
        if record.is_some_and(has_joined) {
            return None;
        }
        // Another number each time: a proposal names one candidacy, and not an earlier one.
        let candidate =
            MasterRecord { member: self.ids.member, state: MemberState::Candidate, ..self.renewed(newest) };
        Some(self.write_new(record, candidate, self.set.terms.quarantine()))
    }

    /// Has a master rejoin that another set made a candidate, if most members show this set.
    fn take_back(&self) -> Option<Verdict> {
        let record = self.reading.record.as_ref()?;
        let newest = self.view_of_most()?;
        let is_foreign = record.state == MemberState::Candidate && record.set != newest.set;
        is_foreign.then(|| self.rejoin(newest, None))
    }

    /// Refuses a record whose terms or list are not the client's, unless an `init` wrote it.
    fn check_list(&self, record: &MasterRecord) -> Option<Verdict> {
        let is_begun_here = self.set.beginning.is_some() && self.is_of_list(record);
        let refused = self.other_terms(record).or_else(|| self.other_set(record));
        refused.filter(|_| !is_begun_here)
    }

    fn by_state(&self) -> Verdict {
        match self.peer().state(self.set.newest()) {
            PeerState::Removed(record) if self.set.joined_again(self.index, record) => self.lost(record),
            PeerState::Removed(record) => self.removed(record),
            PeerState::LostState(None) => self.without_record(),
            PeerState::LostState(Some(record)) => self.lost(record),
            PeerState::Foreign(record) => Verdict::Wait(format!(
                "it is a member of another set, with the masters {}, and too few masters show that set",
                record.members.names()
            )),
            PeerState::Candidate(record) => self.maintain(record).unwrap_or_else(|| self.candidate(record)),
            PeerState::Member(record) => self.maintain(record).unwrap_or(Verdict::Vote),
            PeerState::Unknown => unreachable!("it has answered"),
        }
    }

    /// A master that may have lost grants and promises since its record was written.
    fn lost(&self, record: &MasterRecord) -> Verdict {
        if self.is_new {
            return self.write_new(Some(record), self.renewed(record), Duration::ZERO);
        }
        match self.set.newest_of(record) {
            Some(newest) if self.is_to_join(newest, record) => self.candidate(record),
            Some(newest) => self.rejoin(newest, Some(record)),
            None => {
                let why = "it lost its state while its set begins: `quorate init` goes on with it";
                Verdict::Wait(why.to_owned())
            }
        }
    }

    /// Whether this is the record of a candidate that has no place in the view. A newer generation,
    /// which this client does not know yet, may have it.
    fn is_to_join(&self, newest: &MasterRecord, record: &MasterRecord) -> bool {
        let is_named = newest.members.id_of(&self.peer().name).is_some();
        record.state == MemberState::Candidate && !record.has_place_in(&newest.members) && !is_named
    }

    /// Brings the record of a candidate or member up to date.
    fn maintain(&self, record: &MasterRecord) -> Option<Verdict> {
        let step = self.note_replid2(record).or_else(|| self.bound_quarantine(record));
        let newest = || self.set.newest_of(record);
        step.or_else(|| {
            let newest = newest().filter(|_| self.set.joined_again(self.index, record))?;
            Some(self.rejoin(newest, None))
        })
        .or_else(|| self.tell(record, newest()?))
    }

    /// Begins a quarantine anew if a wrong clock wrote its end.
    fn bound_quarantine(&self, record: &MasterRecord) -> Option<Verdict> {
        let is_too_far = record.quarantine > self.set.latest_quarantine_end(self.reading);
        is_too_far.then(|| {
            write(RecordWrite {
                quarantine: Some(self.set.terms.quarantine()),
                least: self.peer().history.latest_quarantine,
                ..RecordWrite::update(record, |record| record.stamp = self.ids.stamp.clone())
            })
        })
    }

    /// Notes that the second replication id went back to zeros.
    fn note_replid2(&self, record: &MasterRecord) -> Option<Verdict> {
        let replid2 = &self.reading.replid2;
        let has_changed = record.replid2 != *replid2;
        has_changed.then(|| write(RecordWrite::update(record, |record| record.replid2 = replid2.clone())))
    }

    /// Tells a master about a newer generation: a member, or a candidate that has joined.
    fn tell(&self, record: &MasterRecord, newest: &MasterRecord) -> Option<Verdict> {
        let has_joined = !record.begins_set() && newest.members.has(record.member);
        let is_told = record.state == MemberState::Member || has_joined;
        if record.generation >= newest.generation || !is_told {
            return None;
        }
        let named = newest.members.id_of(&self.peer().name);
        if named.is_some_and(|named| named != record.member) && !newest.members.has(record.member) {
            let why = "another master joined its set under its name: quorate members remove, and then add";
            return Some(Verdict::Wait(why.to_owned()));
        }
        Some(write(RecordWrite::update(record, |record| {
            *record = record.carried(newest, record.member, self.ids.stamp.clone());
        })))
    }

    fn candidate(&self, record: &MasterRecord) -> Verdict {
        if !record.begins_set() {
            return Verdict::Wait("it is to join its set, and has a vote when that is decided".to_owned());
        }
        let left = self.reading.quarantined_for(record);
        if !left.is_zero() {
            let left = left.as_secs_f64();
            return Verdict::Wait(format!("its set begins when its quarantine is over, in {left:.1} s"));
        }
        let is_ready = |reading: &Reading| {
            reading.record.as_ref().is_some_and(|other| {
                let is_same = (&other.set, other.generation) == (&record.set, record.generation);
                is_same && reading.quarantined_for(other).is_zero()
            })
        };
        let is_waiting = |index: &MasterIndex| {
            let reading = recent(self.set.peers[*index].reading.as_ref(), self.reading.time);
            *index != self.index && !reading.is_some_and(is_ready)
        };
        let waiting = self.set.listed.iter().find(is_waiting);
        if waiting.is_none() && record.generation == 0 {
            return write(RecordWrite::update(record, |record| {
                record.state = MemberState::Member;
                record.stamp = self.ids.stamp.clone();
            }));
        }
        if let Some(newest) = self.view_of_most().filter(|newest| newest.set == record.set) {
            return self.rejoin(newest, None);
        }
        let other = waiting.map_or("its set", |index| &self.set.peers[index].name);
        Verdict::Wait(format!("its set begins when {other} is ready, too: quorate init"))
    }

    fn without_record(&self) -> Verdict {
        if let Some(newest) = self.set.newest() {
            return self.rejoin(newest, None);
        }
        let member = self.others().find(|(_, record)| record.state == MemberState::Member);
        if let Some((_, found)) = member.or_else(|| self.others().next()) {
            return self.without_record_in(found);
        }
        if let Some(other) = self.set.listed_peers().find(|peer| peer.reading.is_none()) {
            let other = &other.name;
            return Verdict::AwaitPeers(format!(
                "it has no record of a set of masters, and {other}, which may have one, was not heard yet"
            ));
        }
        if self.set.beginning.is_some() {
            let why = "it has no record of a set of masters: one begins when all answer";
            return Verdict::AwaitPeers(why.to_owned());
        }
        let why = "it has no record of a set of masters: `quorate init` begins one";
        Verdict::Refuse(Refusal::NoSet, why.to_owned())
    }

    /// A master without a record, while this client follows no set, and another master shows this
    /// record.
    fn without_record_in(&self, found: &MasterRecord) -> Verdict {
        if let Some(refused) = self.check_list(found) {
            return refused;
        }
        let is_begun_here = self.set.beginning.is_some() && self.is_of_list(found);
        let has_place =
            self.peer().history.member.is_some() || found.members.id_of(&self.peer().name).is_some();
        if !has_place && !is_begun_here {
            return self.other_members(found);
        }
        let why = "its set was begun without it, and is not complete: `quorate init` goes on with that";
        Verdict::Wait(why.to_owned())
    }

    pub(super) fn removed(&self, record: &MasterRecord) -> Verdict {
        let why = format!("it was removed from its set, which is {} now", record.members.names());
        Verdict::Refuse(Refusal::Removed, why)
    }

    /// Refuses a set whose terms are not the client's.
    fn other_terms(&self, record: &MasterRecord) -> Option<Verdict> {
        let ours = SetTerms::of(&self.set.terms);
        let why = || format!("its clients have {}, and this one has {ours}", record.terms);
        (!self.set.fits(record)).then(|| Verdict::Refuse(Refusal::OtherTerms, why()))
    }

    /// Refuses a record if the client's list, or other masters, are of another set. A candidate of
    /// another set concerns only the master that shows it.
    fn other_set(&self, record: &MasterRecord) -> Option<Verdict> {
        let name = |index: MasterIndex| &self.set.peers[index].name;
        let newest = self.set.newest_of(record);
        let members = newest.unwrap_or(record).members.len();
        let is_of_most = (self.set.count_members(&record.set, self.index) + 1) * 2 > members;
        let differs = |other: &MasterRecord| other.set != record.set && other.state == MemberState::Member;
        if let Some((index, other)) = self.others().find(|(_, other)| differs(other) && !is_of_most) {
            let why = format!(
                "its set is {}, and that of {} is {}: name the masters of one set",
                record.members.names(),
                name(index),
                other.members.names()
            );
            return Some(Verdict::Refuse(Refusal::OtherMembers, why));
        }
        let own = self.reading.record.as_ref();
        let is_twin = |other: &MasterRecord| {
            own.is_some_and(|own| (&own.set, own.member) == (&other.set, other.member))
        };
        if let Some((index, _)) = self.others().find(|(_, other)| is_twin(other)) {
            let why = format!("it is the same member of its set as {}", name(index));
            return Some(Verdict::Refuse(Refusal::OtherMembers, why));
        }
        let newest = newest.filter(|newest| newest.generation > record.generation).unwrap_or(record);
        (!self.set.follows_to(newest)).then(|| self.other_members(newest))
    }

    pub(super) fn other_members(&self, record: &MasterRecord) -> Verdict {
        let Set { beginning, terms, .. } = self.set;
        let ours = self.set.list_names();
        let theirs = record.members.names();
        let key = &terms.record;
        let why = if record.begins_set() {
            let left = self.reading.quarantined_for(record) + terms.quarantine();
            format!(
                "it is prepared for {theirs} by an init that did not finish, and this client has {ours}: \
                 run init again in {} s, or DEL {key} there",
                left.as_secs() + 1
            )
        } else if beginning.is_some() {
            format!(
                "its set is {theirs}, and this client's {ours}: run init with the list of the set, or, if that is \
                 wrong, stop all clients, DEL {key} on every master, and run init again"
            )
        } else {
            format!("its set is {theirs}, and this client's {ours}: give all clients the same")
        };
        Verdict::Refuse(Refusal::OtherMembers, why)
    }

    pub(super) fn peer(&self) -> &'a Peer {
        &self.set.peers[self.index]
    }

    pub(super) fn lost_state(&self, record: &MasterRecord) -> bool {
        self.peer().lost_state(self.reading, record)
    }

    /// The records of the other masters.
    pub(super) fn others(&self) -> impl Iterator<Item = (MasterIndex, &'a MasterRecord)> + use<'a> {
        self.set.records_except(self.index)
    }

    /// The view, if more than half of its members show it without this master.
    fn view_of_most(&self) -> Option<&'a MasterRecord> {
        let newest = self.set.newest()?;
        let is_most = self.set.count_members(&newest.set, self.index) * 2 > newest.members.len();
        is_most.then_some(newest)
    }

    /// Whether a record is that of a candidate, and its set begins with the client's list.
    pub(super) fn is_of_list(&self, record: &MasterRecord) -> bool {
        let is_first = record.begins_set() && record.generation == 0 && self.set.fits(record);
        is_first && record.members == self.set.first_members()
    }

    /// The record of this master in the first generation of a set.
    pub(super) fn first(&self, set: Arc<str>, members: Members, state: MemberState) -> MasterRecord {
        MasterRecord {
            set,
            member: members.id_of(&self.peer().name).unwrap_or_default(),
            members,
            incarnation: self.ids.incarnation.clone(),
            run_id: self.reading.run_id.clone(),
            replid2: self.reading.replid2.clone(),
            stamp: self.ids.stamp.clone(),
            quarantine: 0,
            generation: 0,
            terms: SetTerms::of(&self.set.terms),
            earlier: Vec::new(),
            state,
        }
    }

    /// A record with a new incarnation, of this process.
    pub(super) fn renewed(&self, record: &MasterRecord) -> MasterRecord {
        MasterRecord {
            incarnation: self.ids.incarnation.clone(),
            run_id: self.reading.run_id.clone(),
            replid2: self.reading.replid2.clone(),
            stamp: self.ids.stamp.clone(),
            ..record.clone()
        }
    }

    /// Writes a record of an acceptor that has promised nothing.
    pub(super) fn write_new(
        &self,
        found: Option<&MasterRecord>,
        record: MasterRecord,
        quarantine: Duration,
    ) -> Verdict {
        self.write_record(found, record, quarantine, AcceptorWrite::New(AcceptorState::default()))
    }

    pub(super) fn write_record(
        &self,
        found: Option<&MasterRecord>,
        record: MasterRecord,
        quarantine: Duration,
        acceptor: AcceptorWrite,
    ) -> Verdict {
        let before = found.filter(|found| found.set == record.set).map_or(0, |found| found.quarantine);
        let least = self.peer().history.latest_quarantine.max(before);
        let found = found.map(|found| found.stamp.clone());
        write(RecordWrite { found, quarantine: Some(quarantine), least, record, acceptor })
    }
}

impl Set {
    /// The latest end (us) of a quarantine that no wrong clock wrote.
    pub(super) fn latest_quarantine_end(&self, reading: &Reading) -> u64 {
        reading.latest.saturating_add(micros(self.terms.longest_quarantine()))
    }

    /// Whether a candidate or removed master is a member of its set by its name, but under another
    /// number. It lost its state: since this record, it joined under that number.
    pub(super) fn joined_again(&self, index: MasterIndex, record: &MasterRecord) -> bool {
        let is_member = record.state == MemberState::Member;
        let Some(newest) = self.newest_of(record).filter(|_| !is_member) else { return false };
        let is_taken = |id: u32| {
            self.records_except(index).any(|(_, other)| other.set == newest.set && other.member == id)
        };
        let named = newest.members.id_of(&self.peers[index].name);
        !newest.members.has(record.member) && named.is_some_and(|id| !is_taken(id))
    }
}

pub(super) fn write(write: RecordWrite) -> Verdict {
    Verdict::Write(Box::new(write))
}
