//! Whose word counts: what to do about the record that a master was found to have, by all that this
//! client knows of the others. Pure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::decree::{Accepted, Ballot, Evidence, Promised, Proposal};
use super::record::{MasterRecord, MemberState, Members, SetTerms};
use super::terms::{CLOCK_RANGE, Terms};
use super::voters::Voters;
use crate::master_set::MasterSet;
use crate::random::Random;
use crate::vote::Refusal;

#[cfg(test)]
mod tests;

/// What a master showed in a handshake.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// The earlier one of its time (us) and the time that most masters show.
    pub(crate) time: u64,
    /// The later one of these (us); the end of time until it is known what time most masters show.
    pub(crate) later: u64,
    pub(crate) run_id: Arc<str>,
    pub(crate) replid2: Arc<str>,
    /// The incarnation that knows what it promised; empty where none does.
    pub(crate) decree: Arc<str>,
    pub(crate) record: Option<MasterRecord>,
}

/// How a set begins, where it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// The set's id, unless another one begins with the same list.
    pub(crate) id: Arc<str>,
    /// The processes that no client ever used, by the word of a person. Each is taken out when it
    /// has a record.
    pub(crate) never_used: Option<Vec<Arc<str>>>,
}

impl Beginning {
    pub(crate) fn new(never_used: Option<Vec<Arc<str>>>, random: &dyn Random) -> Self {
        Self { id: fresh(random), never_used }
    }

    /// Notes that this process has a record, or is given one: it counts as used from now on. If it
    /// is a member, its set has begun: all its masters count as used, and if it is this set, the
    /// next one has another id.
    fn note_used(&mut self, run_id: &str, record: Option<&MasterRecord>, random: &dyn Random) {
        let member = record.filter(|record| record.state == MemberState::Member);
        if member.is_some_and(|member| member.set == self.id) {
            self.id = fresh(random);
        }
        if let Some(never_used) = &mut self.never_used {
            never_used.retain(|its| member.is_none() && **its != *run_id);
        }
    }
}

/// What to do about a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HelloStep {
    /// Nothing: it votes, from the end of its quarantine on.
    Vote,
    /// Write its record.
    Write(Box<Change>),
    /// Ask again when more is known of the others, or later.
    Hear(String),
    /// Leave it, and look again later.
    Wait(String),
    /// It has no vote with this client until somebody acts.
    Refuse(Refusal, String),
}

impl HelloStep {
    fn write(change: Change) -> Self {
        Self::Write(Box::new(change))
    }

    fn is_write(&self) -> bool {
        matches!(self, Self::Write(_))
    }
}

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The stamp of the record that was found; `None` where none was.
    pub(crate) found: Option<Arc<str>>,
    /// For how long from now the master has no vote; `None` leaves that as it is.
    pub(crate) quarantine: Option<Duration>,
    /// The least end (us) of that.
    pub(crate) least: u64,
    pub(crate) record: MasterRecord,
    pub(crate) decree: Decree,
}

/// What to write of the master's promises about the next generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decree {
    /// Nothing.
    Unchanged,
    /// They stay, and the record's incarnation knows them.
    Kept,
    /// The record's incarnation knows these, and no others.
    New(Promised),
}

/// What one client knows of the records of its masters.
#[derive(Debug)]
pub(crate) struct Membership {
    /// The names of its masters: of its list, and of those that joined the set since.
    names: Vec<Arc<str>>,
    /// How many of these are its list.
    listed: usize,
    terms: Terms,
    begins: Option<Beginning>,
    /// Whether masters that lost state rejoin without those that do not answer.
    recovers: bool,
    /// The record of a master of the set in the newest generation that any showed.
    newest: Option<MasterRecord>,
    /// How often this client left a set, for one that began with the same masters.
    sets_left: u64,
    /// The set that it joined for its newest list, which was not its own list.
    joined: Option<Arc<str>>,
    /// Which member of that each master is.
    places: Vec<Option<u32>>,
    /// The master that is to become a candidate of the set.
    joining: Option<usize>,
    /// What was decided here, and no master showed yet: the record of before, and until when (us) a
    /// master may be told.
    decision: Option<(MasterRecord, u64)>,
    /// What each master showed last.
    shown: Vec<Option<Shown>>,
    seen: Vec<SeenIncarnations>,
    /// The masters that lost state and have no place again yet.
    losses: Vec<Option<StateLoss>>,
    /// How often one was seen to have lost state.
    loss_count: u64,
    /// How often that was when each master showed something last.
    shown_after: Vec<u64>,
    evidence: Evidence,
    /// How often a master showed another record than before, or promised something.
    pub(crate) news: u64,
    /// Why each master refuses this client's list or terms, or the word that it was never used.
    misfits: Vec<Option<Misfit>>,
}

/// Why this client is no client of a master's set.
#[derive(Clone, Debug)]
struct Misfit {
    /// Whether its list is why.
    is_list: bool,
    why: Arc<str>,
}

/// A master was seen to have lost state: its process, or a part of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StateLoss {
    /// Its process, and the stamp of its record.
    what: (Arc<str>, Option<Arc<str>>),
    /// The sequence number of this loss, counted over all masters.
    number: u64,
}

/// The incarnations that voted with this client at one address. One that is back after another was
/// there, or has an earlier end, is what a master has that went back: somebody put an older copy of
/// its keys there, or its address led to another server for a while.
#[derive(Clone, Debug, Default)]
struct SeenIncarnations {
    member: Option<u32>,
    last: Option<Arc<str>>,
    /// Those before, the oldest first.
    before: VecDeque<Arc<str>>,
    /// The latest end (us) of a quarantine.
    latest: u64,
}

impl SeenIncarnations {
    /// How many are remembered: each is a restart, or a loss of keys, that this client saw.
    const MOST_BEFORE: usize = 16;

    /// Forgets an end that is later than this (us): a wrong clock wrote it.
    fn bound(&mut self, longest: u64) {
        if self.latest > longest {
            self.latest = 0;
        }
    }

    /// Notes a record with which the master voted. An end that is later than `longest` counts for
    /// nothing.
    fn note(&mut self, record: &MasterRecord, longest: u64) {
        self.member = Some(record.member);
        if let Some(last) = self.last.replace(record.incarnation.clone())
            && last != record.incarnation
        {
            self.before.push_back(last);
            if self.before.len() > Self::MOST_BEFORE {
                self.before.pop_front();
            }
        }
        if record.quarantine <= longest {
            self.latest = self.latest.max(record.quarantine);
        }
    }

    fn went_back(&self, record: &MasterRecord) -> bool {
        self.before.contains(&record.incarnation) || record.quarantine < self.latest
    }
}

impl Shown {
    /// How long the master has no vote.
    fn quarantined_for(&self, record: &MasterRecord) -> Duration {
        Duration::from_micros(record.quarantine.saturating_sub(self.time))
    }

    /// The latest end (us) of a quarantine that no wrong clock wrote.
    fn longest_end(&self, terms: &Terms) -> u64 {
        self.later.saturating_add(micros(terms.longest_quarantine()))
    }

    /// Whether this process had the keys of another one since the record was written. The second
    /// replication id is that of the master whose keys it took over when it was a replica last;
    /// zeros if it was none, and again an hour after the last replica left.
    fn has_copied(&self, record: &MasterRecord) -> bool {
        self.replid2 != record.replid2 && self.replid2.bytes().any(|digit| digit != b'0')
    }

    /// Whether it lost what it promised, and has its record yet.
    fn lost_decree(&self, record: &MasterRecord) -> bool {
        self.decree != record.incarnation
    }

    fn stamp(&self) -> Option<Arc<str>> {
        self.record.as_ref().map(|record| record.stamp.clone())
    }
}

impl Membership {
    pub(crate) fn new(names: Vec<Arc<str>>, terms: Terms) -> Self {
        let count = names.len();
        Self {
            names,
            listed: count,
            terms,
            begins: None,
            recovers: false,
            newest: None,
            sets_left: 0,
            joined: None,
            places: vec![None; count],
            joining: None,
            decision: None,
            shown: vec![None; count],
            seen: vec![SeenIncarnations::default(); count],
            losses: vec![None; count],
            loss_count: 0,
            shown_after: vec![0; count],
            evidence: Evidence::default(),
            news: 0,
            misfits: vec![None; count],
        }
    }

    /// From now on a set may begin, where no master of the list has a record; or not any more.
    pub(crate) fn begin(&mut self, how: Option<Beginning>) {
        if self.looked_at().is_some() {
            self.leave_set();
        }
        self.begins = how;
    }

    /// The set that an `init` only looks at, for its list is none of that.
    fn looked_at(&self) -> Option<&MasterRecord> {
        let has_voted = || self.seen.iter().any(|seen| seen.last.is_some());
        let is_looked_at = |newest: &&MasterRecord| !self.follows_to(newest) && !has_voted();
        self.newest.as_ref().filter(|_| self.begins.is_some()).filter(is_looked_at)
    }

    /// From now on masters that lost state rejoin without those that do not answer; or not any
    /// more.
    pub(crate) fn recover(&mut self, recovers: bool) {
        self.recovers = recovers;
    }

    /// Whether each master of the list, and of the newest one, showed whether it has a record.
    pub(crate) fn heard_all(&self) -> bool {
        self.shown_of_all().all(|shown| shown.is_some())
    }

    /// What the masters of the list, and of the newest one, showed last.
    fn shown_of_all(&self) -> impl Iterator<Item = Option<&Shown>> {
        let all = (0..self.shown.len()).filter(|index| *index < self.listed || self.places[*index].is_some());
        all.map(|index| self.shown[index].as_ref())
    }

    /// The masters of this client's list.
    pub(crate) fn listed(&self) -> MasterSet {
        MasterSet::first(self.listed)
    }

    /// Why this client's list is not that of a set, if it is not. A master that voted before, and
    /// is of another set by now, is a fault of that master alone.
    pub(crate) fn other_list(&self) -> Option<Arc<str>> {
        self.misfits.iter().flatten().find(|misfit| misfit.is_list).map(|misfit| misfit.why.clone())
    }

    /// Why a master refuses this client's list or terms.
    pub(crate) fn misfit(&self) -> Option<Arc<str>> {
        self.misfits.iter().flatten().next().map(|misfit| misfit.why.clone())
    }

    /// What masters said of this client's list and terms counts no more: somebody may have changed
    /// something since.
    pub(crate) fn forget_misfits(&mut self) {
        self.misfits.fill(None);
    }

    /// A master is not there any more: if it refused this client's list or terms, it is as one that
    /// was never heard.
    pub(crate) fn forget_misfit(&mut self, index: usize) {
        if self.misfits[index].take().is_some() {
            self.shown[index] = None;
        }
    }

    /// What a step says of this client's list and terms.
    fn misfit_of(&self, index: usize, step: &HelloStep) -> Option<Misfit> {
        let HelloStep::Refuse(reason, why) = step else { return None };
        let is_list = match reason {
            Refusal::OtherMembers => self.is_other_list(index),
            Refusal::Removed => return None,
            Refusal::NoSet if self.begins.is_none() => return None,
            _ => false,
        };
        Some(Misfit { is_list, why: format!("{}: {why}", self.names[index]).into() })
    }

    /// A master that showed a record.
    pub(crate) fn has_record(&self) -> Option<Arc<str>> {
        self.records().next().map(|(index, _)| self.names[index].clone())
    }

    /// The processes of all masters of the list, if each was heard and none has a record.
    pub(crate) fn unrecorded(&self) -> Option<Vec<Arc<str>>> {
        let shown = self.listed_shown().map(|shown| shown.as_ref().filter(|shown| shown.record.is_none()));
        shown.map(|shown| Some(shown?.run_id.clone())).collect()
    }

    /// Whether each master of the list was heard, and nobody knows of a set.
    pub(crate) fn knows_no_set(&self) -> bool {
        self.newest.is_none() && self.unrecorded().is_some()
    }

    /// The masters whose votes count, by the newest generation that is known.
    pub(crate) fn voters(&self) -> Voters {
        let Some(newest) = &self.newest else {
            return Voters::given(&self.names[..self.listed]);
        };
        let is_voter = |index: &usize| self.places[*index].is_some();
        let masters: MasterSet = (0..self.names.len()).filter(is_voter).collect();
        let names = masters.iter().map(|index| self.names[index].clone()).collect();
        Voters { view: self.view_of(newest), masters, names }
    }

    /// Names a generation of the set of this record, as long as this client is of that set.
    pub(crate) fn view_of(&self, record: &MasterRecord) -> u64 {
        self.sets_left << 48 | record.generation
    }

    /// What names this client's set, for ever; of one that has no name, its masters.
    pub(crate) fn identity(&self) -> Vec<Arc<str>> {
        match &self.newest {
            Some(newest) if *newest.set != *NEW => vec![newest.set.clone()],
            _ => self.names[..self.listed].to_vec(),
        }
    }

    /// The record of a master of the set in the newest generation that any showed.
    pub(crate) fn newest(&self) -> Option<&MasterRecord> {
        self.newest.as_ref()
    }

    /// Whether the master at this index is none of the set any more, nor is to be, and was told so.
    pub(crate) fn has_left(&self, index: usize) -> bool {
        let was_told = self.record_of(index).is_some_and(|its| its.state == MemberState::Removed);
        was_told && self.is_no_member(index)
    }

    /// Whether the master at this index is none of the set, nor is to be.
    pub(crate) fn is_no_member(&self, index: usize) -> bool {
        let is_joining = self.joining == Some(index);
        self.newest.is_some() && self.places[index].is_none() && !is_joining
    }

    /// The set's name of a master that is one of it, or was, which this client may have another
    /// name for.
    pub(crate) fn own_name(&self, name: &Arc<str>) -> Option<Arc<str>> {
        let newest = self.newest.as_ref()?;
        if newest.members.id_of(name).is_some() {
            return Some(name.clone());
        }
        let index = self.names.iter().position(|its| its == name);
        // The place of one that was never heard is sure where it is the only one.
        let is_unheard =
            |index: &usize| self.seen[*index].member.is_none() && self.record_of(*index).is_none();
        let unheard = (0..self.listed).filter(is_unheard).count();
        let is_sure = |index: &usize| !is_unheard(index) || unheard == 1;
        let place = index.filter(is_sure).and_then(|index| self.places[index]);
        let was_one = || newest.earlier.iter().any(|its| its.id_of(name).is_some());
        let has_left =
            || index.and_then(|index| self.record_of(index)).is_some_and(|its| its.set == newest.set);
        let by_place = place.and_then(|id| newest.members.name_of(id));
        by_place.or_else(|| (was_one() || has_left()).then(|| name.clone()))
    }

    /// At which index the member of this name in the set is.
    pub(crate) fn index_of_member(&self, name: &str) -> Option<usize> {
        let id = self.newest.as_ref()?.members.id_of(name)?;
        self.places.iter().position(|place| *place == Some(id))
    }

    /// The record that the master at this index showed last.
    pub(crate) fn record_of(&self, index: usize) -> Option<&MasterRecord> {
        self.shown[index].as_ref()?.record.as_ref()
    }

    /// The generation after that of this record was decided to be this, after this time (us). A
    /// master has to be told soon: if most masters lose state, they may accept another one
    /// a quarantine later.
    pub(crate) fn decided(&mut self, record: &MasterRecord, next: Members, since: u64) {
        let is_newest =
            |newest: &&MasterRecord| (&newest.set, newest.generation) == (&record.set, record.generation);
        let record = record.next(next);
        if let Some(newest) = self.newest.as_ref().filter(is_newest).filter(|_| self.has_room_for(&record)) {
            let until = since.saturating_add(micros(self.terms.quarantine() - LATE));
            self.decision = Some((newest.clone(), until));
            self.newest = Some(record);
            self.locate();
        }
    }

    /// Forgets what was decided here and came to no master in time.
    fn note_decision(&mut self, time: u64) {
        let Some(newest) = &self.newest else { return };
        let is_told = |its: &MasterRecord| {
            (&its.set, its.generation) == (&newest.set, newest.generation)
                && its.members == newest.members
                && its.state != MemberState::Candidate
        };
        if self.records().any(|(_, its)| is_told(its)) {
            self.decision = None;
        }
        if let Some((before, _)) = self.decision.take_if(|(_, until)| *until < time) {
            self.newest = Some(before);
        }
    }

    /// The master of this name is to become a candidate of the set. Returns its index; `None` where
    /// there is no room for one more.
    pub(crate) fn make_room(&mut self, name: &Arc<str>) -> Option<usize> {
        let known = self.names.iter().position(|its| its == name);
        let index = known.or_else(|| self.push(name.clone()))?;
        self.joining = Some(index);
        Some(index)
    }

    /// The record of the master that is to join, while that is a candidate of the set, and shows so
    /// again and again: it is there at this time (us).
    pub(crate) fn joining(&self, time: u64) -> Option<&MasterRecord> {
        let shown = self.shown[self.joining?].as_ref()?;
        let is_there = shown.time.saturating_add(MAX_AGE) >= time;
        let record = shown.record.as_ref().filter(|its| is_there && its.state == MemberState::Candidate);
        record.filter(|its| self.newest_of(its).is_some())
    }

    /// No master is to join any more.
    pub(crate) fn end_joining(&mut self) {
        self.joining = None;
    }

    fn push(&mut self, name: Arc<str>) -> Option<usize> {
        let index = self.names.len();
        if index == MasterSet::INDICES {
            return None;
        }
        self.names.push(name);
        self.places.push(None);
        self.shown.push(None);
        self.seen.push(SeenIncarnations::default());
        self.losses.push(None);
        self.shown_after.push(0);
        self.misfits.push(None);
        Some(index)
    }

    /// Which masters are to promise what, if a master that lost state waits for that.
    pub(crate) fn take_proposal(&mut self, time: u64, random: &dyn Random) -> Option<Proposal> {
        let newest = self.newest.as_ref().filter(|_| self.evidence.is_wanted)?;
        let set = newest.set.clone();
        let generation = newest.generation + 1;
        let keeps_state = |index: &usize| self.places[*index].is_some() && self.losses[*index].is_none();
        let masters: MasterSet = (0..self.names.len()).filter(keeps_state).collect();
        let ballot = self.evidence.next_ballot(time, random);
        Some(self.evidence.ask(Proposal { set, ballot, generation, masters }, self.loss_count))
    }

    /// For who only looks: takes it that all masters that showed a record promise what one that
    /// lost state waits for. False if none waits.
    pub(crate) fn is_promised_by_all(&mut self, random: &dyn Random) -> bool {
        let Some(proposal) = self.take_proposal(0, random) else { return false };
        let has_record = |index: &usize| self.record_of(*index).is_some();
        let masters: Vec<usize> = proposal.masters.iter().filter(has_record).collect();
        masters.into_iter().for_each(|index| self.note_promise(index, proposal.ballot, None));
        true
    }

    /// A master promised that ballot, and had accepted this before.
    pub(crate) fn note_promise(&mut self, index: usize, ballot: Ballot, accepted: Option<Accepted>) {
        self.evidence.note(index, ballot, accepted);
        self.news += 1;
    }

    /// A master had promised this ballot, so a lower one comes too late.
    pub(crate) fn note_higher(&mut self, ballot: Ballot) {
        self.evidence.note_higher(ballot);
        self.news += 1;
    }

    /// Nobody is there to promise anything.
    pub(crate) fn note_that_none_is_asked(&mut self) {
        self.news += 1;
    }

    /// The records that the masters showed last.
    fn records(&self) -> impl Iterator<Item = (usize, &MasterRecord)> {
        let records = self.shown.iter().enumerate();
        records.filter_map(|(index, shown)| Some((index, shown.as_ref()?.record.as_ref()?)))
    }

    /// The records of the other masters than this.
    fn others(&self, index: usize) -> impl Iterator<Item = (usize, &MasterRecord)> {
        self.records().filter(move |(at, _)| *at != index)
    }

    /// How many other masters than this are members of a set.
    fn members_of(&self, set: &str, index: usize) -> usize {
        let is_member = |record: &MasterRecord| record.state == MemberState::Member && *record.set == *set;
        self.others(index).filter(|(_, record)| is_member(record)).count()
    }

    /// What the masters of the list showed last.
    fn listed_shown(&self) -> impl Iterator<Item = &Option<Shown>> {
        self.shown[..self.listed].iter()
    }

    /// Whether a master that is none of the set makes this client's list another one. Not so if it
    /// voted with this client before, or if this client joined the set for another list than its
    /// own. Nor if it has no record, and the client has other names for
    /// the rest than the set has: it may have one for this master, too.
    fn is_other_list(&self, index: usize) -> bool {
        let has_record = self.records().any(|(at, _)| at == index);
        let is_named_so =
            |(at, its): (usize, &MasterRecord)| its.members.id_of(&self.names[at]) == Some(its.member);
        let may_be = self.seen[index].last.is_none() && index < self.listed && self.joined.is_none();
        may_be && (has_record || self.records().all(is_named_so))
    }

    /// The members of this set, now or before, that the client's list names.
    fn list_in<'a>(&self, record: &'a MasterRecord) -> Option<&'a Members> {
        let has_name = |its: &Members, name: &str| its.id_of(name).is_some();
        let is_of_it = |its: &Members, index: usize| {
            let name = &self.names[index];
            match self.record_of(index) {
                _ if has_name(its, name) => true,
                Some(shown) => shown.set == record.set && its.has(shown.member),
                // A name that the set never had may be the client's own for a member.
                None => !record.generations().any(|its| has_name(its, name)),
            }
        };
        let is_it =
            |its: &&Members| its.len() == self.listed && (0..self.listed).all(|index| is_of_it(its, index));
        record.generations().find(is_it)
    }

    /// Whether this record tells of a newer generation of this client's set than it knew.
    fn is_news(&self, index: usize, record: &MasterRecord) -> bool {
        let is_newer = match &self.newest {
            None => true,
            Some(newest) if newest.set == record.set => record.generation > newest.generation,
            // The set that it knew is no more, or what is left of it is no majority.
            Some(newest) => {
                let is_most = (self.members_of(&record.set, index) + 1) * 2 > record.members.len();
                let is_left = self.others(index).any(|(_, its)| its.set == newest.set);
                !is_left || is_most && self.members_of(&newest.set, index) * 2 <= newest.members.len()
            }
        };
        let is_other = self.newest.as_ref().is_some_and(|newest| newest.set != record.set);
        let counts = if is_other {
            record.state == MemberState::Member
        } else {
            record.state != MemberState::Candidate // one may be of a set that never begins
        };
        let follows = if is_other { self.follows_to_set(record) } else { self.looks_at(record) };
        let follows = follows || self.follows_to(record);
        is_newer && counts && follows && self.fits(record)
    }

    /// An `init` looks at the masters of each generation: they may tell of the one that its list
    /// is.
    fn looks_at(&self, record: &MasterRecord) -> bool {
        self.begins.is_some() && self.has_room_for(record)
    }

    /// Whether a set began with the newest list of this client's set, to which it went along.
    fn follows_to_set(&self, record: &MasterRecord) -> bool {
        let is_its_client = |newest: &&MasterRecord| self.follows_to(newest);
        let Some(newest) = self.newest.as_ref().filter(is_its_client) else { return false };
        let is_its = |its: &Members| {
            its.len() == newest.members.len()
                && its.iter().all(|(_, name)| newest.members.id_of(name).is_some())
        };
        record.generations().any(is_its) && self.has_room_for(record)
    }

    /// Leaves its set. Its leases of that are over: no master votes in another one within a
    /// quarantine after its last vote in that.
    fn leave_set(&mut self) {
        self.sets_left += 1;
        self.newest = None;
        self.joined = None;
        self.places.fill(None);
        self.seen.fill(SeenIncarnations::default());
        self.losses.fill(None);
        self.evidence = Evidence::default();
        self.decision = None;
    }

    /// Goes along to the generation of this record.
    fn go_along(&mut self, record: &MasterRecord) {
        if self.newest.as_ref().is_some_and(|newest| newest.set != record.set) {
            let is_by_list = self.follows_to(record);
            self.leave_set();
            self.joined = (!is_by_list).then(|| record.set.clone());
        }
        self.newest = Some(record.clone());
        self.locate();
        self.forget_misfits(); // what did not fit before may be this
    }

    /// Leaves a set that no master is of any more, if this client may begin another one: all
    /// answered a moment ago.
    fn leave_what_nobody_shows(&mut self, time: u64) {
        let Some(newest) = self.newest.as_ref().filter(|_| self.begins.is_some()) else { return };
        let shows = |its: &MasterRecord| its.set == newest.set && its.state != MemberState::Candidate;
        let has_left = |shown: Option<&Shown>| {
            let shown = shown.filter(|shown| shown.time.abs_diff(time) < MAX_AGE);
            shown.is_some_and(|shown| !shown.record.as_ref().is_some_and(shows))
        };
        if self.shown_of_all().all(has_left) {
            self.leave_set();
        }
    }

    /// Whether the client goes along to this generation from the one that its list is of.
    fn follows_to(&self, record: &MasterRecord) -> bool {
        let is_its = self.list_in(record).is_some();
        (is_its || self.went_along(record)) && self.has_room_for(record)
    }

    /// Whether each member has an index, or can get one.
    fn has_room_for(&self, record: &MasterRecord) -> bool {
        let is_new = |(_, name): &&(u32, Arc<str>)| !self.names.contains(name);
        self.names.len() + record.members.iter().filter(is_new).count() <= MasterSet::INDICES
    }

    /// Whether the client went along to this set, or with changes of it that its record does not
    /// tell of any more.
    fn went_along(&self, record: &MasterRecord) -> bool {
        let is_cut = record.generation > record.earlier.len() as u64;
        let is_joined = self.joined.as_ref() == Some(&record.set);
        (is_cut || is_joined) && self.newest_of(record).is_some()
    }

    /// Whether this client has the terms of the set.
    fn fits(&self, record: &MasterRecord) -> bool {
        record.terms == SetTerms::of(&self.terms)
    }

    /// Finds out which member of the newest generation each master is: by what it showed, by its
    /// name, or as the one that is left of the client's list. Members that none is are new masters.
    fn locate(&mut self) {
        let Some(newest) = self.newest.clone() else { return };
        let mut places: Vec<Option<u32>> = vec![None; self.names.len()];
        let is_free = |places: &[Option<u32>], id: u32| newest.members.has(id) && !places.contains(&Some(id));
        let is_named_so = |index: usize, id| newest.members.name_of(id).as_ref() == Some(&self.names[index]);
        // Two may have shown the same member, one after the other: it is the one that has its name.
        for by_name in [true, false] {
            for index in 0..self.names.len() {
                let shown = self.record_of(index).filter(|its| its.set == newest.set).map(|its| its.member);
                let id = shown.or(self.seen[index].member).filter(|id| is_free(&places, *id));
                if let Some(id) =
                    id.filter(|id| places[index].is_none() && by_name == is_named_so(index, *id))
                {
                    places[index] = Some(id);
                }
            }
        }
        let listed = self.list_in(&newest).cloned();
        for (id, name) in newest.members.iter() {
            if !is_free(&places, *id) {
                continue;
            }
            let named =
                (0..self.names.len()).find(|index| self.names[*index] == *name && places[*index].is_none());
            let is_listed = listed.as_ref().is_some_and(|listed| listed.has(*id));
            let is_left =
                |index: &usize| is_listed && places[*index].is_none() && self.record_of(*index).is_none();
            let left = || (0..self.listed).find(is_left);
            let Some(index) = named.or_else(left).or_else(|| self.push(name.clone())) else { continue };
            places.resize(self.names.len(), None);
            places[index] = Some(*id);
        }
        self.places = places;
    }

    /// Notes which masters have lost state, by what they showed and what is known by now.
    fn note_losses(&mut self) {
        for index in 0..self.shown.len() {
            let Some(shown) = &self.shown[index] else { continue };
            if !self.has_lost_state(index, shown) {
                self.losses[index] = None;
                continue;
            }
            let what = (shown.run_id.clone(), shown.stamp());
            if self.losses[index].as_ref().is_none_or(|before| before.what != what) {
                self.loss_count += 1;
                self.losses[index] = Some(StateLoss { what, number: self.loss_count });
            }
        }
    }

    /// Whether a master may have lost what it granted and promised, and has no place again.
    fn has_lost_state(&self, index: usize, shown: &Shown) -> bool {
        let Some(record) = &shown.record else { return true };
        match record.state {
            // A candidate promises nothing. One that is to join has no place to lose.
            MemberState::Candidate => {
                let is_voter = |newest: &MasterRecord| {
                    let is_member = newest.members.has(record.member);
                    newest.set != record.set || record.is_incomplete() || is_member
                };
                self.lost_state(index, shown, record)
                    || self.newest.as_ref().is_some_and(is_voter)
                    || self.is_other_candidate(index, record)
            }
            MemberState::Member => self.lost_state(index, shown, record),
            MemberState::Removed => false,
        }
    }

    /// Whether a candidate is a member of its set by now, by its name, but not as the one that it
    /// was prepared to be: it lost state, and was prepared again, before it was decided.
    fn is_other_candidate(&self, index: usize, record: &MasterRecord) -> bool {
        let Some(newest) = self.newest_of(record).filter(|_| record.state == MemberState::Candidate) else {
            return false;
        };
        let is_nobody =
            |id: u32| !self.others(index).any(|(_, its)| its.set == newest.set && its.member == id);
        !newest.members.has(record.member) && newest.members.id_of(&self.names[index]).is_some_and(is_nobody)
    }

    /// Whether what the master has may be less than what it had.
    fn lost_state(&self, index: usize, shown: &Shown, record: &MasterRecord) -> bool {
        record.run_id != shown.run_id
            || shown.has_copied(record)
            || shown.lost_decree(record)
            || self.seen[index].went_back(record)
    }

    /// The newest generation of the set of this record, where that has members.
    fn newest_of(&self, record: &MasterRecord) -> Option<&MasterRecord> {
        self.newest.as_ref().filter(|newest| newest.set == record.set)
    }

    /// What to do about the master at `index`, which showed this. It is new if it never restarted,
    /// nor lost a key: only one that lives in this process can be known so well.
    pub(crate) fn next(
        &mut self,
        index: usize,
        shown: Shown,
        is_new: bool,
        random: &dyn Random,
    ) -> HelloStep {
        let longest = shown.longest_end(&self.terms);
        self.seen[index].bound(longest);
        let last = self.shown[index].replace(shown.clone());
        self.note_decision(shown.time);
        if let Some(record) = shown.record.as_ref().filter(|record| self.is_news(index, record)) {
            self.go_along(record);
        }
        self.leave_what_nobody_shows(shown.time);
        self.note_losses();
        self.shown_after[index] = self.loss_count;
        let step = MasterCase { membership: self, index, shown: &shown, is_new, random }.decide();
        if let Some(begins) = self.begins.as_mut().filter(|_| shown.record.is_some() || step.is_write()) {
            begins.note_used(&shown.run_id, shown.record.as_ref(), random);
        }
        if let (HelloStep::Vote, Some(record)) = (&step, &shown.record) {
            self.seen[index].note(record, longest);
        }
        if let (HelloStep::Hear(_), Some(loss)) = (&step, &self.losses[index]) {
            let generation = self.newest.as_ref().map_or(0, |newest| newest.generation + 1);
            self.evidence.want(generation, loss.number, shown.time);
        } else {
            self.evidence.note_another(index);
        }
        self.news += u64::from(last.as_ref().map(Shown::stamp) != Some(shown.stamp()));
        self.misfits[index] = self.misfit_of(index, &step);
        self.locate();
        step
    }
}

/// What to do about one master.
struct MasterCase<'a> {
    membership: &'a Membership,
    index: usize,
    shown: &'a Shown,
    is_new: bool,
    random: &'a dyn Random,
}

/// The rows of "What a client decides" in docs/PROTOCOL.md, in their order: the first one that fits
/// counts.
impl<'a> MasterCase<'a> {
    fn decide(&self) -> HelloStep {
        let record = self.shown.record.as_ref();
        if record.is_none() && self.is_new {
            return self.begin_new();
        }
        // A member of a third set says which one that is, below.
        let is_its = |its: &MasterRecord, set: &Arc<str>| its.set == *set || its.state != MemberState::Member;
        match self.membership.looked_at() {
            Some(newest) if record.is_none_or(|its| is_its(its, &newest.set)) => {
                return self.other_members(newest);
            }
            _ => {}
        }
        let first = self.join(record).or_else(|| self.take_back(record)).or_else(|| self.begin(record));
        first.unwrap_or_else(|| match record {
            Some(record) => self.at_record(record),
            None => self.at_none(),
        })
    }

    /// A master in this process is new. Each client begins the same set with it, which needs no
    /// `init`.
    fn begin_new(&self) -> HelloStep {
        let Membership { names, listed, .. } = self.membership;
        let record = self.first(NEW.into(), Members::in_order(&names[..*listed]), MemberState::Member);
        self.write(None, record, Duration::ZERO)
    }

    /// Makes the master a candidate of the set, if it is to join it and is no master of it, nor of
    /// another one.
    fn join(&self, record: Option<&MasterRecord>) -> Option<HelloStep> {
        self.membership.joining.filter(|index| *index == self.index)?;
        let newest = self.membership.newest.as_ref()?;
        if record.is_none() && newest.members.id_of(&self.membership.names[self.index]).is_some() {
            return None; // it has joined, and lost its record
        }
        let has_joined = |record: &MasterRecord| {
            let is_candidate = record.state == MemberState::Candidate;
            let is_ours = || newest.members.has(record.member) || is_candidate && !self.lost_state(record);
            if record.set == newest.set { is_ours() } else { record.state == MemberState::Member }
        };
        if record.is_some_and(has_joined) {
            return None;
        }
        let state = MemberState::Candidate;
        // Another number each time: a decision names one candidacy, and not one before it.
        let member = FIRST_DRAWN + (self.random.fresh_u64() % u64::from(u32::MAX / 2)) as u32;
        let record = MasterRecord { member, state, ..self.anew(newest) };
        Some(self.write(self.shown.record.as_ref(), record, self.membership.terms.quarantine()))
    }

    /// Has a master rejoin the set of most masters, if another set prepared it as a candidate.
    fn take_back(&self, record: Option<&MasterRecord>) -> Option<HelloStep> {
        let (record, ours) = record.zip(self.set_of_most())?;
        (record.state == MemberState::Candidate && record.set != ours.set).then(|| self.rejoin(None))
    }

    /// Begins a set, if a person said so, and no master of the list has one, or they lost it.
    fn begin(&self, found: Option<&MasterRecord>) -> Option<HelloStep> {
        let Membership { names, listed, begins, newest, .. } = self.membership;
        let begins = begins.as_ref().filter(|_| self.index < *listed)?;
        let is_of_lost = |record: &MasterRecord| self.membership.newest_of(record).is_some();
        let mut records = self.membership.records();
        let is_foreign = records.any(|(_, its)| its.state != MemberState::Candidate && !is_of_lost(its));
        if is_foreign || !self.all_answered_now() {
            return None;
        }
        if let Some(newest) = newest {
            if !self.is_lost(newest) {
                return None;
            }
            if self.membership.list_in(newest) != Some(&newest.members) {
                return Some(self.other_members(newest));
            }
        }
        let list = Members::first(&names[..*listed]);
        let set = self.begun_set(begins);
        let is_begun = |record: &MasterRecord| record.set == set && self.is_of_list(record);
        match found {
            Some(record) if is_begun(record) && !self.lost_state(record) => None,
            Some(record) if is_of_lost(record) || self.is_of_list(record) || self.is_left_over(record) => {
                Some(self.prepare(found, self.first(set, list, MemberState::Candidate), begins))
            }
            Some(_) => None, // another `init` prepares it
            None => Some(self.prepare(found, self.first(set, list, MemberState::Candidate), begins)),
        }
    }

    /// Writes a candidate of the set that begins.
    fn prepare(&self, found: Option<&MasterRecord>, first: MasterRecord, begins: &Beginning) -> HelloStep {
        match &begins.never_used {
            None => self.write(found, first, self.membership.terms.quarantine()),
            Some(never_used) if found.is_none() && never_used.contains(&self.shown.run_id) => {
                self.begin_now(first)
            }
            Some(_) => {
                let why = "its process is another one than the fingerprint names, or lost its record";
                HelloStep::Refuse(Refusal::NoSet, why.to_owned())
            }
        }
    }

    /// Which set begins: the lowest id that a candidate showed a moment ago, so that several `init`
    /// agree. A candidate that was left over gives none: its set may have begun once already.
    fn begun_set(&self, begins: &Beginning) -> Arc<str> {
        let shown = self.membership.shown.iter().flatten().filter(|shown| self.is_now(shown.time));
        let records = shown.filter_map(|shown| shown.record.as_ref());
        let candidates = records.filter(|its| self.is_of_list(its) && !self.is_left_over(its));
        candidates.map(|its| its.set.clone()).min().unwrap_or_else(|| begins.id.clone())
    }

    /// Whether a record is that of a candidate with which a set of this client's list begins.
    fn is_of_list(&self, record: &MasterRecord) -> bool {
        let Membership { names, listed, .. } = self.membership;
        let is_first = record.is_incomplete() && record.generation == 0 && self.membership.fits(record);
        is_first && record.members == Members::first(&names[..*listed])
    }

    /// Whether a candidate came to nothing for as long as a quarantine lasts.
    fn is_left_over(&self, record: &MasterRecord) -> bool {
        let until = record.quarantine.saturating_add(micros(self.membership.terms.quarantine()));
        record.state == MemberState::Candidate && until < self.shown.time
    }

    /// Whether each master of the list, and of the newest one, answered a moment ago.
    fn all_answered_now(&self) -> bool {
        self.membership.shown_of_all().all(|shown| shown.is_some_and(|shown| self.is_now(shown.time)))
    }

    /// Whether at most half of the masters keep their records as members. If all keep one as a
    /// candidate or a member in the first generation, the set is about to begin.
    fn is_lost(&self, newest: &MasterRecord) -> bool {
        let is_member = |index: &usize| {
            self.membership.record_of(*index).is_some_and(|its| its.state == MemberState::Member)
        };
        let keep: Vec<usize> = self.keep_records(newest).collect();
        let all = self.membership.places.iter().flatten().count();
        keep.iter().copied().filter(|index| is_member(index)).count() * 2 <= all
            && (keep.len() < all || newest.generation > 0)
    }

    /// The masters of the newest list that keep their records of the set, whatever their process.
    fn keep_records(&self, newest: &MasterRecord) -> impl Iterator<Item = usize> + use<'a> {
        let Membership { shown, places, .. } = self.membership;
        let set = newest.set.clone();
        let keeps = move |shown: &Shown| {
            let is_ours = |its: &&MasterRecord| {
                its.set == set && (its.state == MemberState::Member || its.is_incomplete())
            };
            shown.record.as_ref().filter(is_ours).is_some_and(|its| !shown.lost_decree(its))
        };
        (0..shown.len())
            .filter(|index| places[*index].is_some())
            .filter(move |index| shown[*index].as_ref().is_some_and(&keeps))
    }

    fn at_record(&self, record: &MasterRecord) -> HelloStep {
        let newest = self.membership.newest_of(record);
        let is_begun_here = self.membership.begins.is_some() && self.is_of_list(record);
        let refused = || self.other_terms(record).or_else(|| self.other_set(record));
        if let Some(refused) = refused().filter(|_| !is_begun_here) {
            return refused;
        }
        if record.state == MemberState::Removed {
            return self.removed(record);
        }
        if self.lost_state(record) {
            return match newest {
                _ if self.is_new => self.write(Some(record), self.anew(record), Duration::ZERO),
                Some(_) => self.rejoin(Some(record)),
                None => HelloStep::Wait(
                    "it lost its state while its set begins: `quorate init` goes on with it".to_owned(),
                ),
            };
        }
        if let Some(step) = self.bounded(record).or_else(|| self.note_history(record)) {
            return step;
        }
        if self.membership.is_other_candidate(self.index, record) {
            return self.rejoin(None);
        }
        if let Some(step) = newest.and_then(|newest| self.tell(record, newest)) {
            return step;
        }
        match record.state {
            MemberState::Candidate if record.is_incomplete() => self.at_candidate(record),
            MemberState::Candidate => {
                HelloStep::Wait("it is to join its set, and has a vote when that is decided".to_owned())
            }
            MemberState::Member | MemberState::Removed => HelloStep::Vote,
        }
    }

    fn lost_state(&self, record: &MasterRecord) -> bool {
        self.membership.lost_state(self.index, self.shown, record)
    }

    /// A master that was removed from its set.
    fn removed(&self, record: &MasterRecord) -> HelloStep {
        let why = format!("it was removed from its set, which is {} now", record.members.names());
        HelloStep::Refuse(Refusal::Removed, why)
    }

    /// Begins a quarantine anew that a wrong clock wrote.
    fn bounded(&self, record: &MasterRecord) -> Option<HelloStep> {
        let Membership { terms, seen, .. } = self.membership;
        let is_too_long = record.quarantine > self.shown.longest_end(terms);
        is_too_long.then(|| {
            HelloStep::write(Change {
                quarantine: Some(terms.quarantine()),
                least: seen[self.index].latest,
                ..Change::of(record, |record| record.stamp = fresh(self.random))
            })
        })
    }

    /// Notes that the second replication id went back to zeros.
    fn note_history(&self, record: &MasterRecord) -> Option<HelloStep> {
        let replid2 = &self.shown.replid2;
        let has_changed = record.replid2 != *replid2;
        has_changed.then(|| HelloStep::write(Change::of(record, |record| record.replid2 = replid2.clone())))
    }

    /// Tells a master of a newer generation of its set: a member, and a candidate that joined.
    fn tell(&self, record: &MasterRecord, newest: &MasterRecord) -> Option<HelloStep> {
        let has_joined = !record.is_incomplete() && newest.members.has(record.member);
        let is_told = record.state == MemberState::Member || has_joined;
        if record.generation >= newest.generation || !is_told {
            return None;
        }
        let named = newest.members.id_of(&self.membership.names[self.index]);
        if named.is_some_and(|named| named != record.member) && !newest.members.has(record.member) {
            let why = "another master joined its set under its name: quorate members remove, and then add";
            return Some(HelloStep::Wait(why.to_owned()));
        }
        Some(HelloStep::write(Change::of(record, |record| {
            *record = record.carried(newest, record.member, fresh(self.random));
        })))
    }

    /// A candidate becomes a member when all masters of its set showed a moment ago that their
    /// quarantines were over. If most of them are members without it, it rejoins.
    fn at_candidate(&self, record: &MasterRecord) -> HelloStep {
        let left = self.shown.quarantined_for(record);
        if !left.is_zero() {
            let left = left.as_secs_f64();
            return HelloStep::Wait(format!("its set begins when its quarantine is over, in {left:.1} s"));
        }
        let is_ready = |other: &Shown| {
            let its = other.record.as_ref().filter(|_| self.is_now(other.time));
            its.is_some_and(|its| {
                let is_same = (&its.set, its.generation) == (&record.set, record.generation);
                is_same && other.quarantined_for(its).is_zero()
            })
        };
        let mut others = self.membership.listed_shown().enumerate().filter(|(at, _)| *at != self.index);
        match others.find(|(_, other)| !other.as_ref().is_some_and(is_ready)) {
            None if record.generation == 0 => HelloStep::write(Change::of(record, |record| {
                record.state = MemberState::Member;
                record.stamp = fresh(self.random);
            })),
            _ if self.set_of_most().is_some_and(|ours| ours.set == record.set) => self.rejoin(None),
            other => {
                let other = other.map_or("its set", |(other, _)| &self.membership.names[other]);
                HelloStep::Wait(format!("its set begins when {other} is ready, too: quorate init"))
            }
        }
    }

    fn at_none(&self) -> HelloStep {
        let Membership { names, newest, begins, .. } = self.membership;
        let member = self.others().find(|(_, its)| its.state == MemberState::Member);
        match (newest, member.or_else(|| self.others().next()), self.unheard()) {
            (Some(_), ..) => self.rejoin(None),
            (None, Some((_, found)), _) => {
                let place = self.membership.seen[self.index]
                    .member
                    .or_else(|| found.members.id_of(&names[self.index]));
                let none = place.is_none().then(|| self.other_members(found));
                let refused = self.other_terms(found).or_else(|| self.other_set(found)).or(none);
                let why =
                    "its set was begun without it, and is not complete: `quorate init` goes on with that";
                let is_begun_here = begins.is_some() && self.is_of_list(found);
                refused.filter(|_| !is_begun_here).unwrap_or_else(|| HelloStep::Wait(why.to_owned()))
            }
            (None, None, Some(other)) => HelloStep::Hear(format!(
                "it has no record of a set of masters, and {other}, which may have one, was not heard yet"
            )),
            (None, None, None) if begins.is_some() => {
                HelloStep::Hear("it has no record of a set of masters: one begins when all answer".to_owned())
            }
            (None, None, None) => HelloStep::Refuse(
                Refusal::NoSet,
                "it has no record of a set of masters: `quorate init` begins one".to_owned(),
            ),
        }
    }

    /// Gives a master that lost state its place in its set again. `found` is its record, if it has
    /// one of this set.
    fn rejoin(&self, found: Option<&MasterRecord>) -> HelloStep {
        let Membership { names, evidence, recovers, begins, newest, terms, .. } = self.membership;
        let newest = newest.as_ref().expect("a set is known");
        let member = match self.place_in(newest, found) {
            Ok(member) => member,
            Err(refused) => return refused,
        };
        let Some(promised) = self.promised(newest) else { return HelloStep::Hear(TO_PROMISE.to_owned()) };
        let all = newest.members.len();
        let record = self.anew(newest).carried(newest, member, fresh(self.random));
        let own = self.shown.record.as_ref();
        let rejoin = |decree| self.write_decree(own, record, terms.quarantine(), decree);
        if promised.len() * 2 > all {
            return rejoin(Decree::New(evidence.handed_on(promised)));
        }
        if let Some(missing) = self.missing(newest, promised).iter().next().filter(|_| !recovers) {
            return HelloStep::Hear(format!(
                "it may have forgotten what it knew of its set, and too few others know it: {} has to \
                 answer first (if it never will: quorate members recover)",
                names[missing]
            ));
        }
        let keep: MasterSet = self.keep_records(newest).filter(|index| self.has_answered(*index)).collect();
        let keeps = found.is_some() && keep.has(self.index);
        let kept = keep.or(promised).len();
        if keeps && (kept * 2 > all || *recovers) {
            return rejoin(Decree::Kept);
        }
        if *recovers {
            return rejoin(Decree::New(evidence.handed_on(promised)));
        }
        let lost = all - kept;
        let why = format!("{lost} of {all} masters have no record");
        if begins.is_some() {
            return HelloStep::Wait(format!("{why}: the set begins again when all masters answer"));
        }
        let why = format!("{why}: `quorate init` with its list begins the set again");
        HelloStep::Refuse(Refusal::NoSet, why)
    }

    /// Whether a master answered after this one was seen to have lost state.
    fn has_answered(&self, index: usize) -> bool {
        let Membership { shown, shown_after, .. } = self.membership;
        let is_now = shown[index].as_ref().is_some_and(|shown| self.is_now(shown.time));
        is_now && shown_after[index] >= self.loss()
    }

    /// The masters of the set that promised something since this one was seen to have lost state,
    /// and did not lose it themselves; `None` where they were not asked since.
    fn promised(&self, newest: &MasterRecord) -> Option<MasterSet> {
        let Membership { evidence, losses, places, .. } = self.membership;
        let promised = evidence.of(newest.generation + 1, self.loss());
        let promised = promised.filter(|_| self.is_now(evidence.asked_at()))?;
        Some(promised.iter().filter(|index| places[*index].is_some() && losses[*index].is_none()).collect())
    }

    /// The masters of the set that neither promised something, nor lost state as well.
    fn missing(&self, newest: &MasterRecord, promised: MasterSet) -> MasterSet {
        let Membership { places, .. } = self.membership;
        let is_there = |index: usize| promised.has(index) || self.lost_state_too(index, &newest.set);
        (0..places.len()).filter(|index| places[*index].is_some() && !is_there(*index)).collect()
    }

    /// The sequence number of this master's state loss, counted over all masters.
    fn loss(&self) -> u64 {
        self.membership.losses[self.index].as_ref().map_or(0, |loss| loss.number)
    }

    /// Whether another master was read after this one was seen to have lost state, and had lost its
    /// own as well. One that was read before may have its place again.
    fn lost_state_too(&self, index: usize, set: &str) -> bool {
        let Membership { shown, losses, .. } = self.membership;
        let is_ours = |its: &MasterRecord| *its.set == *set || its.state == MemberState::Candidate;
        let is_of_it = |shown: &Shown| shown.record.as_ref().is_none_or(is_ours);
        losses[index].is_some() && self.has_answered(index) && shown[index].as_ref().is_some_and(is_of_it)
    }

    /// Whether what was said at this time (us) still counts for this master.
    fn is_now(&self, time: u64) -> bool {
        time.abs_diff(self.shown.time) < MAX_AGE
    }

    /// Which member of the newest generation the master is, or was before it.
    fn place_in(&self, newest: &MasterRecord, found: Option<&MasterRecord>) -> Result<u32, HelloStep> {
        let name = &self.membership.names[self.index];
        let own = found.map(|found| found.member).or(self.membership.seen[self.index].member);
        let place = own.filter(|own| newest.members.has(*own)).or_else(|| newest.members.id_of(name));
        let is_free =
            |id: &u32| self.others().all(|(_, other)| other.set != newest.set || other.member != *id);
        place.filter(is_free).or(found.map(|found| found.member)).ok_or_else(|| {
            let was_one = |its: &Members| own.is_some_and(|own| its.has(own)) || its.id_of(name).is_some();
            let has_left = place.is_none() && newest.earlier.iter().any(was_one);
            if has_left { self.removed(newest) } else { self.other_members(newest) }
        })
    }

    /// The records of the other masters.
    fn others(&self) -> impl Iterator<Item = (usize, &'a MasterRecord)> + use<'a> {
        self.membership.others(self.index)
    }

    /// Another one of the list that was not heard yet.
    fn unheard(&self) -> Option<&Arc<str>> {
        let Membership { names, .. } = self.membership;
        let mut all = names.iter().zip(self.membership.listed_shown()).enumerate();
        let found = all.find(|(at, (_, shown))| *at != self.index && shown.is_none());
        found.map(|(_, (name, _))| name)
    }

    /// The record of one of the set of which most masters of the list are members, without this
    /// one.
    fn set_of_most(&self) -> Option<&'a MasterRecord> {
        let ours = self.membership.newest.as_ref()?;
        let is_most = self.membership.members_of(&ours.set, self.index) * 2 > ours.members.len();
        is_most.then_some(ours)
    }

    /// The record of a master in the first generation of a set.
    fn first(&self, set: Arc<str>, members: Members, state: MemberState) -> MasterRecord {
        MasterRecord {
            set,
            member: members.id_of(&self.membership.names[self.index]).unwrap_or_default(),
            members,
            incarnation: fresh(self.random),
            run_id: self.shown.run_id.clone(),
            replid2: self.shown.replid2.clone(),
            stamp: fresh(self.random),
            quarantine: 0,
            generation: 0,
            terms: SetTerms::of(&self.membership.terms),
            earlier: Vec::new(),
            state,
        }
    }

    /// A record of the same set for a master that lost state.
    fn anew(&self, record: &MasterRecord) -> MasterRecord {
        MasterRecord {
            incarnation: fresh(self.random),
            run_id: self.shown.run_id.clone(),
            replid2: self.shown.replid2.clone(),
            stamp: fresh(self.random),
            ..record.clone()
        }
    }

    /// Gives the master a place in a set, which has promised nothing in it yet.
    fn write(&self, found: Option<&MasterRecord>, record: MasterRecord, quarantine: Duration) -> HelloStep {
        self.write_decree(found, record, quarantine, Decree::New(Promised::default()))
    }

    fn write_decree(
        &self,
        found: Option<&MasterRecord>,
        record: MasterRecord,
        quarantine: Duration,
        decree: Decree,
    ) -> HelloStep {
        let its = found.filter(|found| found.set == record.set).map_or(0, |found| found.quarantine);
        let found = found.map(|found| found.stamp.clone());
        let least = self.membership.seen[self.index].latest.max(its);
        HelloStep::write(Change { found, quarantine: Some(quarantine), least, record, decree })
    }

    /// Begins a set with a master that no client ever used. Its quarantine is over, and tells when
    /// that was.
    fn begin_now(&self, record: MasterRecord) -> HelloStep {
        let least = self.shown.time.saturating_sub(OVER).max(self.membership.seen[self.index].latest);
        let decree = Decree::New(Promised::default());
        HelloStep::write(Change { found: None, quarantine: Some(Duration::ZERO), least, record, decree })
    }

    /// Whether this client has other terms than the set.
    fn other_terms(&self, record: &MasterRecord) -> Option<HelloStep> {
        let ours = SetTerms::of(&self.membership.terms);
        let why = || format!("its clients have {}, and this one has {ours}", record.terms);
        (record.terms != ours).then(|| HelloStep::Refuse(Refusal::OtherTerms, why()))
    }

    /// Whether the list, or what its masters showed, is of another set than this record. Another
    /// set that is only prepared on a master is a matter of that one.
    fn other_set(&self, record: &MasterRecord) -> Option<HelloStep> {
        let name = |at: usize| &self.membership.names[at];
        let differs = |other: &MasterRecord| other.set != record.set && other.state == MemberState::Member;
        let all = self.membership.newest_of(record).unwrap_or(record).members.len();
        let is_of_most = (self.membership.members_of(&record.set, self.index) + 1) * 2 > all;
        if let Some((at, other)) = self.others().find(|(_, other)| differs(other) && !is_of_most) {
            let why = format!(
                "its set is {}, and that of {} is {}: name the masters of one set",
                record.members.names(),
                name(at),
                other.members.names()
            );
            return Some(HelloStep::Refuse(Refusal::OtherMembers, why));
        }
        let shown = self.shown.record.as_ref();
        if let Some((at, _)) = self
            .others()
            .find(|(_, other)| shown.is_some_and(|its| (&its.set, its.member) == (&other.set, other.member)))
        {
            let why = format!("it is the same member of its set as {}", name(at));
            return Some(HelloStep::Refuse(Refusal::OtherMembers, why));
        }
        let newest = self.membership.newest_of(record).filter(|newest| newest.generation > record.generation);
        let newest = newest.unwrap_or(record);
        (!self.membership.follows_to(newest)).then(|| self.other_members(newest))
    }

    fn other_members(&self, record: &MasterRecord) -> HelloStep {
        let Membership { names, listed, begins, terms, .. } = self.membership;
        let ours = names[..*listed].join(", ");
        let theirs = record.members.names();
        let why = if record.is_incomplete() {
            let left = self.shown.quarantined_for(record) + terms.quarantine();
            let key = &terms.record;
            format!(
                "it is prepared for {theirs} by an init that did not finish, and this client has {ours}: \
                 run init again in {} s, or DEL {key} there",
                left.as_secs() + 1
            )
        } else if begins.is_some() {
            let key = &terms.record;
            format!(
                "its set is {theirs}, and this client's {ours}: run init with the list of the set, or, if that is \
                 wrong, stop all clients, DEL {key} on every master, and run init again"
            )
        } else {
            format!("its set is {theirs}, and this client's {ours}: give all clients the same")
        };
        HelloStep::Refuse(Refusal::OtherMembers, why)
    }
}

/// How much earlier than a quarantine a decision has to be told: what tells a master may be so
/// late.
const LATE: Duration = Duration::from_secs(3);

/// For how long (us) what others showed and promised counts: less than [`LATE`], by more than it
/// takes to write something. In a longer time a master may have rejoined and lost its state once
/// more: it accepts nothing within a quarantine, which is longer than this, an answer's age and the
/// way of what is written.
const MAX_AGE: u64 = 2_000_000;

/// How long ago (us) a quarantine was over that never was one: longer than a clock may be off.
const OVER: u64 = 2_000_000;

/// Members of a first list have lower numbers.
const FIRST_DRAWN: u32 = 16;

/// The name of sets that begin by themselves, of masters that are known to be new.
const NEW: &str = "new";

/// What keeps a master that lost state from its place while others are asked.
const TO_PROMISE: &str =
    "it may have forgotten what it knew of its set, and the others are to say what they know";

impl Change {
    /// Whether it costs the master its vote for a while.
    pub(crate) fn costs_the_vote(&self) -> bool {
        self.quarantine.is_some_and(|time| !time.is_zero())
    }

    /// The record when `record.lua` has written it at this time (us).
    pub(crate) fn written(&self, now: u64) -> MasterRecord {
        let ends_in = |pause: Duration| {
            if pause.is_zero() {
                return self.least;
            }
            let ends = now.saturating_add(micros(pause));
            let is_too_long = self.least > ends.saturating_add(micros(CLOCK_RANGE));
            if is_too_long { ends } else { ends.max(self.least) }
        };
        let quarantine = self.quarantine.map_or(self.record.quarantine, ends_in);
        MasterRecord { quarantine, ..self.record.clone() }
    }

    /// Some fields of a record that counts.
    fn of(record: &MasterRecord, change: impl FnOnce(&mut MasterRecord)) -> Self {
        let mut next = record.clone();
        change(&mut next);
        Self {
            found: Some(record.stamp.clone()),
            quarantine: None,
            least: 0,
            record: next,
            decree: Decree::Unchanged,
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Sixteen digits that nobody drew before.
fn fresh(random: &dyn Random) -> Arc<str> {
    format!("{:016x}", random.fresh_u64()).into()
}
