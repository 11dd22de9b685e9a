//! Whose word counts: what to do about the record that a master was found to have, by all that this
//! client knows of the others. Pure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::decree::{Accepted, Ballot, Evidence, Promised, Proposal};
use super::record::{MasterRecord, MemberState, Members, SetTerms, name_of_set};
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
    /// The processes that no client ever used, by the word of a person. Each is taken out when it
    /// has a record.
    pub(crate) never_used: Option<Vec<Arc<str>>>,
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
    /// What it promised about the next generation from now on; `None` leaves that as it is.
    pub(crate) promised: Option<Promised>,
}

/// What one client knows of the records of its masters.
#[derive(Debug)]
pub(crate) struct Membership {
    /// The names of its masters: of its list, and of those that joined the set since.
    names: Vec<Arc<str>>,
    /// How many of these are its list.
    listed: usize,
    terms: Terms,
    /// Whether it goes along when the members change.
    follows: bool,
    begins: Option<Beginning>,
    /// Whether masters that forgot their set go on without those that are not there.
    recovers: bool,
    /// The record of a master of the set in the newest generation that any showed.
    newest: Option<MasterRecord>,
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
    /// The masters that have forgotten something and have no place again yet.
    forgot: Vec<Option<Forgetting>>,
    /// How often one was seen to have forgotten something.
    forgettings: u64,
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

/// A master was seen to have forgotten something.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Forgetting {
    /// Its process, and the stamp of its record.
    what: (Arc<str>, Option<Arc<str>>),
    /// As the how many-th time that any was.
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
        let follows = terms.follows;
        Self {
            names,
            listed: count,
            terms,
            follows,
            begins: None,
            recovers: false,
            newest: None,
            places: vec![None; count],
            joining: None,
            decision: None,
            shown: vec![None; count],
            seen: vec![SeenIncarnations::default(); count],
            forgot: vec![None; count],
            forgettings: 0,
            shown_after: vec![0; count],
            evidence: Evidence::default(),
            news: 0,
            misfits: vec![None; count],
        }
    }

    /// From now on a set may begin, where no master of the list has a record; or not any more.
    pub(crate) fn begin(&mut self, how: Option<Beginning>) {
        self.begins = how;
    }

    /// From now on masters that forgot their set go on without those that are not there; or not any
    /// more.
    pub(crate) fn recover(&mut self, recovers: bool) {
        self.recovers = recovers;
    }

    /// Whether each master of the list showed whether it has a record.
    pub(crate) fn heard_all(&self) -> bool {
        self.listed_shown().all(|shown| shown.is_some())
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
        Voters { generation: newest.generation, masters, names }
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
    /// master has to be told soon: where most masters forgot it since, they may accept another one
    /// a quarantine later.
    pub(crate) fn decided(&mut self, record: &MasterRecord, next: Members, since: u64) {
        let is_newest =
            |newest: &&MasterRecord| (&newest.set, newest.generation) == (&record.set, record.generation);
        let record = record.next(next);
        if let Some(newest) = self.newest.as_ref().filter(is_newest).filter(|_| self.has_room_for(&record)) {
            let in_time = (self.terms.quarantine() - LATE).as_micros();
            let until = since.saturating_add(u64::try_from(in_time).unwrap_or(u64::MAX));
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
                && (its.state != MemberState::Candidate || its.is_incomplete())
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
        let is_there = shown.time.saturating_add(RECENT) >= time;
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
        self.forgot.push(None);
        self.shown_after.push(0);
        self.misfits.push(None);
        Some(index)
    }

    /// Whom to have promise what, where a master that forgot waits for that.
    pub(crate) fn take_proposal(&mut self, time: u64, random: &dyn Random) -> Option<Proposal> {
        let newest = self.newest.as_ref().filter(|_| self.evidence.is_wanted)?;
        let generation = newest.generation + 1;
        let remembers = |index: &usize| self.places[*index].is_some() && self.forgot[*index].is_none();
        let masters: MasterSet = (0..self.names.len()).filter(remembers).collect();
        Some(self.evidence.ask(masters, generation, self.forgettings, time, random))
    }

    /// For who only looks: takes it that all masters that showed a record promise what one that
    /// forgot waits for. False where none waits.
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
    /// voted with this client before. Nor if it has no record, and the client has other names for
    /// the rest than the set has: it may have one for this master, too.
    fn is_other_list(&self, index: usize) -> bool {
        let has_record = self.records().any(|(at, _)| at == index);
        let is_named_so =
            |(at, its): (usize, &MasterRecord)| its.members.id_of(&self.names[at]) == Some(its.member);
        self.seen[index].last.is_none() && (has_record || self.records().all(is_named_so))
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
        // A candidate may be of a set that never begins. One that forgot what it was has its
        // generation from whoever knew that it was decided.
        let is_ours = || self.newest.as_ref().is_none_or(|newest| newest.set == record.set);
        let has_begun = || record.is_incomplete() && record.generation > 0 && is_ours();
        let is_decided = record.state != MemberState::Candidate || has_begun();
        is_newer && is_decided && self.follows_to(record) && self.fits(record)
    }

    /// Whether the client goes along to this generation from the one that its list is of.
    fn follows_to(&self, record: &MasterRecord) -> bool {
        let listed = self.list_in(record);
        let is_its = listed.is_some_and(|listed| self.follows || *listed == record.members);
        (is_its || self.went_along(record)) && self.has_room_for(record)
    }

    /// Whether each member has an index, or can get one.
    fn has_room_for(&self, record: &MasterRecord) -> bool {
        let is_new = |(_, name): &&(u32, Arc<str>)| !self.names.contains(name);
        self.names.len() + record.members.iter().filter(is_new).count() <= MasterSet::INDICES
    }

    /// Whether the client went along with changes of this set that its record does not tell of any
    /// more.
    fn went_along(&self, record: &MasterRecord) -> bool {
        let is_cut = record.generation > record.earlier.len() as u64;
        self.follows && is_cut && self.newest_of(record).is_some()
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

    /// Notes which masters have forgotten something, by what they showed and what is known by now.
    fn note_forgetting(&mut self) {
        for index in 0..self.shown.len() {
            let Some(shown) = &self.shown[index] else { continue };
            if !self.has_forgotten(index, shown) {
                self.forgot[index] = None;
                continue;
            }
            let what = (shown.run_id.clone(), shown.stamp());
            if self.forgot[index].as_ref().is_none_or(|before| before.what != what) {
                self.forgettings += 1;
                self.forgot[index] = Some(Forgetting { what, number: self.forgettings });
            }
        }
    }

    /// Whether a master may have forgotten what it granted and promised, and has no place again.
    fn has_forgotten(&self, index: usize, shown: &Shown) -> bool {
        match &shown.record {
            None => true,
            // One that was to begin the set, when others have begun it, promised nothing since. One
            // of another set is none of this any more.
            Some(record) if record.state == MemberState::Candidate => {
                let is_begun =
                    |newest: &MasterRecord| newest.set != record.set || record.members.has(record.member);
                self.lost_something(index, shown, record)
                    || self.newest.as_ref().is_some_and(is_begun)
                    || self.is_other_candidate(index, record)
            }
            Some(record) => self.lost_something(index, shown, record),
        }
    }

    /// Whether a candidate is a member of its set by now, by its name, but not as the one that it
    /// was prepared to be: it had forgotten, and was prepared again, before it was decided.
    fn is_other_candidate(&self, index: usize, record: &MasterRecord) -> bool {
        let Some(newest) = self.newest_of(record).filter(|_| record.state == MemberState::Candidate) else {
            return false;
        };
        let is_nobody =
            |id: u32| !self.others(index).any(|(_, its)| its.set == newest.set && its.member == id);
        !newest.members.has(record.member) && newest.members.id_of(&self.names[index]).is_some_and(is_nobody)
    }

    /// Whether what the master has may be less than what it had.
    fn lost_something(&self, index: usize, shown: &Shown, record: &MasterRecord) -> bool {
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
        let never_used = self.begins.as_mut().and_then(|begins| begins.never_used.as_mut());
        if let (Some(never_used), Some(_)) = (never_used, &shown.record) {
            never_used.retain(|run_id| *run_id != shown.run_id);
        }
        let longest = shown.longest_end(&self.terms);
        self.seen[index].bound(longest);
        let last = self.shown[index].replace(shown.clone());
        self.note_decision(shown.time);
        if let Some(record) = shown.record.as_ref().filter(|record| self.is_news(index, record)) {
            self.newest = Some(record.clone());
            self.forget_misfits(); // what did not fit before may be this
        }
        self.note_forgetting();
        self.shown_after[index] = self.forgettings;
        let case = MasterCase { membership: self, index, shown: &shown, is_new, random };
        if let Some((newest, next)) = case.left_accepted() {
            self.decided(&newest, next, self.evidence.asked_at());
        }
        let case = MasterCase { membership: self, index, shown: &shown, is_new, random };
        let step = match &shown.record {
            Some(record) => case.at_record(record),
            None => case.at_none(),
        };
        if let (HelloStep::Vote, Some(record)) = (&step, &shown.record) {
            self.seen[index].note(record, longest);
        }
        if let (HelloStep::Hear(_), Some(forgot)) = (&step, &self.forgot[index]) {
            let generation = self.newest.as_ref().map_or(0, |newest| newest.generation + 1);
            self.evidence.want(generation, forgot.number, shown.time);
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

impl<'a> MasterCase<'a> {
    /// Makes the master a candidate of the set, if it is to join it and is none of it, nor of
    /// another one.
    fn join(&self, record: Option<&MasterRecord>) -> Option<HelloStep> {
        self.membership.joining.filter(|index| *index == self.index)?;
        let newest = self.membership.newest.as_ref()?;
        if record.is_none() && newest.members.id_of(&self.membership.names[self.index]).is_some() {
            return None; // it has joined, and forgot that
        }
        let is_of_it = |record: &MasterRecord| {
            let is_one = record.state == MemberState::Candidate || newest.members.has(record.member);
            if record.set == newest.set { is_one } else { record.state == MemberState::Member }
        };
        if record.is_some_and(is_of_it) {
            return None;
        }
        let state = MemberState::Candidate;
        // Another one each time: what is decided names one candidacy, and not one that it forgot.
        let member = FIRST_DRAWN + (self.random.fresh_u64() % u64::from(u32::MAX / 2)) as u32;
        let record = MasterRecord { member, state, ..self.anew(newest) };
        let quarantine = self.membership.terms.quarantine();
        Some(self.write(self.shown.record.as_ref(), record, Some(quarantine), Promised::default()))
    }

    fn at_record(&self, record: &MasterRecord) -> HelloStep {
        if let Some(step) = self.join(Some(record)) {
            return step;
        }
        let is_candidate = record.state == MemberState::Candidate;
        let is_prepared = is_candidate && !self.shown.quarantined_for(record).is_zero();
        if self.set_of_most().is_some_and(|ours| is_prepared && ours.set != record.set) {
            // Another set wants a master that forgot that it is one of ours.
            return self.readmit(None);
        }
        let first = self.first_after(record);
        if let Some(step) = first.or_else(|| self.other_terms(record)).or_else(|| self.other_set(record)) {
            return step;
        }
        let newest = self.membership.newest_of(record);
        let seen = &self.membership.seen[self.index];
        if self.lost_something(record) {
            return match newest {
                _ if self.is_new => self.write_anew(record, Duration::ZERO, seen.latest),
                Some(_) => self.readmit(Some(record)),
                None => self.write_anew(record, self.membership.terms.quarantine(), seen.latest),
            };
        }
        if let Some(step) = self.bounded(record) {
            return step;
        }
        if record.replid2 != self.shown.replid2 {
            return HelloStep::write(Change::of(record, |record| {
                record.replid2 = self.shown.replid2.clone();
            }));
        }
        if self.membership.is_other_candidate(self.index, record) {
            return self.readmit(None);
        }
        match newest {
            Some(_) if !is_prepared && record.is_incomplete() => self.readmit(Some(record)),
            Some(newest)
                if record.generation < newest.generation
                    && (!is_candidate || newest.members.has(record.member)) =>
            {
                self.carry(record, newest)
            }
            _ => match record.state {
                MemberState::Member => HelloStep::Vote,
                MemberState::Candidate => self.at_candidate(record),
                MemberState::Removed => self.removed(record),
            },
        }
    }

    /// Begins a quarantine anew that a wrong clock wrote.
    fn bounded(&self, record: &MasterRecord) -> Option<HelloStep> {
        let Membership { terms, seen, .. } = self.membership;
        let is_too_long = record.quarantine > self.shown.longest_end(terms);
        is_too_long.then(|| {
            let record_now = MasterRecord { stamp: fresh(self.random), ..record.clone() };
            HelloStep::write(Change {
                found: Some(record.stamp.clone()),
                quarantine: Some(terms.quarantine()),
                least: seen[self.index].latest,
                record: record_now,
                promised: None,
            })
        })
    }

    fn lost_something(&self, record: &MasterRecord) -> bool {
        self.membership.lost_something(self.index, self.shown, record)
    }

    /// Whether what another candidate showed is recent: it may be one of another set by now.
    fn is_recent(&self, other: &Shown, record: &MasterRecord) -> bool {
        record.state != MemberState::Candidate || other.time.saturating_add(RECENT) >= self.shown.time
    }

    /// Tells a master of a newer generation of its set. One that forgot what it was stays a
    /// candidate: it may have accepted something about the generation after that.
    fn carry(&self, record: &MasterRecord, newest: &MasterRecord) -> HelloStep {
        let named = newest.members.id_of(&self.membership.names[self.index]);
        if named.is_some_and(|named| named != record.member) && !newest.members.has(record.member) {
            let why = "another master joined its set under its name: quorate members remove, and then add";
            return HelloStep::Wait(why.to_owned());
        }
        let forgot = record.is_incomplete();
        let mut record = record.carried(newest, record.member, fresh(self.random));
        if forgot {
            record.state = MemberState::Candidate;
        }
        let found = self.shown.stamp();
        HelloStep::write(Change { found, quarantine: None, least: 0, record, promised: None })
    }

    /// A master that is none of its set any more.
    fn removed(&self, record: &MasterRecord) -> HelloStep {
        let why = format!("it was removed from its set, which is {} now", record.members.names());
        HelloStep::Refuse(Refusal::Removed, why)
    }

    /// A candidate becomes a member when all masters of its set were read after their quarantines.
    fn at_candidate(&self, record: &MasterRecord) -> HelloStep {
        if !record.members.has(record.member) {
            let why = "it is to join its set, and has a vote when that is decided";
            return HelloStep::Wait(why.to_owned());
        }
        let left = self.shown.quarantined_for(record);
        if !left.is_zero() {
            let left = left.as_secs_f64();
            return HelloStep::Wait(format!("its set begins when its quarantine is over, in {left:.1} s"));
        }
        let is_ready = |other: &Shown| {
            other.record.as_ref().is_some_and(|its| {
                (&its.set, its.generation) == (&record.set, record.generation)
                    && other.quarantined_for(its).is_zero()
                    && self.is_recent(other, its)
            })
        };
        let mut others = self.membership.listed_shown().enumerate().filter(|(at, _)| *at != self.index);
        match others.find(|(_, other)| !other.as_ref().is_some_and(is_ready)) {
            Some((other, _)) if !self.membership.recovers => {
                let other = &self.membership.names[other];
                HelloStep::Wait(format!("its set begins when {other} is ready, too"))
            }
            _ => HelloStep::write(Change::of(record, |record| {
                record.state = MemberState::Member;
                record.stamp = fresh(self.random);
            })),
        }
    }

    fn at_none(&self) -> HelloStep {
        let Membership { names, listed, begins, newest, .. } = self.membership;
        let list = &names[..*listed];
        if self.is_new {
            let record = self.first(Members::in_order(list), MemberState::Member);
            let record = MasterRecord { set: NEW.into(), ..record };
            return self.write(None, record, Some(Duration::ZERO), Promised::default());
        }
        if let Some(step) = self.join(None) {
            return step;
        }
        let unheard = self.unheard();
        let not_heard = |other| {
            HelloStep::Hear(format!(
                "it has no record of a set of masters, and {other}, which may have one, was not heard yet"
            ))
        };
        let records = || self.others().map(|(_, record)| record);
        if let Some(Beginning { never_used }) = begins {
            let first = self.first(Members::first(list), MemberState::Candidate);
            let is_begun = |its: &MasterRecord| its.set != first.set || its.state == MemberState::Member;
            let quarantine = self.membership.terms.quarantine();
            match (newest.is_some() || records().any(is_begun), unheard, never_used) {
                (true, ..) => {}
                (false, Some(other), _) if records().next().is_none() => return not_heard(other),
                (false, _, None) => return self.write(None, first, Some(quarantine), Promised::default()),
                (false, _, Some(never_used)) if never_used.contains(&self.shown.run_id) => {
                    return self.begin_now(first);
                }
                _ => {
                    let why = "its process is another one than the fingerprint names, or lost its record";
                    return HelloStep::Refuse(Refusal::NoSet, why.to_owned());
                }
            }
        }
        let found = records().find(|its| its.state == MemberState::Member).or_else(|| records().next());
        match (newest, found, unheard) {
            (Some(_), ..) => self.readmit(None),
            (None, Some(found), _) => {
                let place = self.membership.seen[self.index]
                    .member
                    .or_else(|| found.members.id_of(&names[self.index]));
                let none = place.is_none().then(|| self.other_members(found));
                let refused = self.other_terms(found).or_else(|| self.other_set(found)).or(none);
                let why =
                    "its set was begun without it, and is not complete: `quorate init` goes on with that";
                refused.unwrap_or_else(|| HelloStep::Wait(why.to_owned()))
            }
            (None, None, Some(other)) => not_heard(other),
            (None, None, None) => HelloStep::Refuse(
                Refusal::NoSet,
                "it has no record of a set of masters: `quorate init` begins one".to_owned(),
            ),
        }
    }

    /// Gives a master that forgot its place in its set again: in the newest generation, when most
    /// of the others have promised to let nothing come about that it may have promised for, or all
    /// of them are there. `found` is its record, if it has one of this set.
    fn readmit(&self, found: Option<&MasterRecord>) -> HelloStep {
        let Membership { names, evidence, recovers, newest, .. } = self.membership;
        let newest = newest.as_ref().expect("a set is known");
        let member = match self.place_in(newest, found) {
            Ok(member) => member,
            Err(refused) => return refused,
        };
        let Some(promised) = self.promised(newest) else { return HelloStep::Hear(TO_PROMISE.to_owned()) };
        let have_majority = promised.len() * 2 > newest.members.len() || *recovers;
        let promises = || evidence.handed_on(promised);
        let before = found.unwrap_or(newest);
        let record = self.anew(before).carried(newest, member, fresh(self.random));
        let quarantine = self.membership.terms.quarantine();
        let own = self.shown.record.as_ref();
        match found {
            // It waited for its quarantine already.
            Some(found) if found.state == MemberState::Candidate && !self.lost_something(found) => {
                let are_ready = self.all_are_ready(newest, promised);
                if have_majority || are_ready && promises().accepted.is_none() {
                    let incarnation = found.incarnation.clone();
                    return self.write(own, MasterRecord { incarnation, ..record }, None, promises());
                }
                HelloStep::Hear(if are_ready { NOT_OURS } else { TO_PROMISE }.to_owned())
            }
            _ if have_majority => self.write(own, record, Some(quarantine), promises()),
            _ => {
                if let Some(missing) = self.missing(newest, promised).iter().next() {
                    return HelloStep::Hear(format!(
                        "it may have forgotten what it knew of its set, and too few others know it: {} has to \
                         answer first (if it never will: quorate members recover)",
                        names[missing]
                    ));
                }
                let accepted = promises().accepted;
                let state = match record.state {
                    MemberState::Member if found.is_none() || accepted.is_some() => MemberState::Candidate,
                    state => state,
                };
                self.write(own, MasterRecord { state, ..record }, Some(quarantine), promises())
            }
        }
    }

    /// The masters of the set that promised something since this one was seen to have forgotten,
    /// and did not forget themselves; `None` where they were not asked since.
    fn promised(&self, newest: &MasterRecord) -> Option<MasterSet> {
        let Membership { evidence, forgot, places, .. } = self.membership;
        let promised = evidence.of(newest.generation + 1, self.forgetting());
        let promised = promised.filter(|_| self.is_now(evidence.asked_at()))?;
        Some(promised.iter().filter(|index| places[*index].is_some() && forgot[*index].is_none()).collect())
    }

    /// The masters of the set that neither promised something, nor forgot as well.
    fn missing(&self, newest: &MasterRecord, promised: MasterSet) -> MasterSet {
        let Membership { places, .. } = self.membership;
        let is_there = |index: usize| promised.has(index) || self.forgot_as_well(index, &newest.set);
        (0..places.len()).filter(|index| places[*index].is_some() && !is_there(*index)).collect()
    }

    /// Whether all masters of the set promised something, or are candidates, and have shown that
    /// their quarantines are over.
    fn all_are_ready(&self, newest: &MasterRecord, promised: MasterSet) -> bool {
        let Membership { names, places, shown, .. } = self.membership;
        let is_ready = |index: usize| {
            let its = self.membership.record_of(index).filter(|its| its.set == newest.set);
            // One that votes since its quarantine made no handshake after it.
            let is_over = |(shown, its): (&Shown, &MasterRecord)| {
                its.quarantine <= shown.time.max(self.shown.time)
                    && (promised.has(index) || its.state == MemberState::Candidate)
                    && !self.membership.lost_something(index, shown, its)
                    && self.is_recent(shown, its)
            };
            shown[index].as_ref().zip(its).is_some_and(is_over)
        };
        let ready = (0..names.len()).filter(|index| places[*index].is_some() && is_ready(*index));
        ready.count() == newest.members.len()
    }

    /// What the newest generation is, and the next one, where most masters forgot, the others
    /// accepted that, and all are there after their quarantines. Those that forgot it may have
    /// accepted it, too, so that it is decided. Now it is: they accept nothing else any more.
    fn left_accepted(&self) -> Option<(MasterRecord, Members)> {
        self.membership.forgot[self.index].as_ref()?;
        let newest = self.membership.newest.as_ref()?;
        let promised = self.promised(newest)?;
        let accepted = self.membership.evidence.handed_on(promised).accepted?;
        let have_majority = promised.len() * 2 > newest.members.len();
        if have_majority
            || !self.missing(newest, promised).is_empty()
            || !self.all_are_ready(newest, promised)
        {
            return None;
        }
        let next = Members::read(&accepted.value)?;
        let record = newest.next(next.clone());
        self.membership.follows_to(&record).then(|| (newest.clone(), next))
    }

    /// As the how many-th time that any did this master forget something.
    fn forgetting(&self) -> u64 {
        self.membership.forgot[self.index].as_ref().map_or(0, |forgetting| forgetting.number)
    }

    /// Whether another master was read after this one was seen to have forgotten, and had
    /// forgotten as well. One that was read before may have its place again.
    fn forgot_as_well(&self, index: usize, set: &str) -> bool {
        let Membership { shown, forgot, shown_after, .. } = self.membership;
        let is_of_it = |shown: &Shown| shown.record.as_ref().is_none_or(|its| *its.set == *set);
        let is_read = |shown: &Shown| is_of_it(shown) && self.is_now(shown.time);
        forgot[index].is_some()
            && shown_after[index] >= self.forgetting()
            && shown[index].as_ref().is_some_and(is_read)
    }

    /// Whether what was said at this time (us) still counts for this master, which forgot.
    fn is_now(&self, time: u64) -> bool {
        time.abs_diff(self.shown.time) < READING
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
        (self.members_of(&ours.set) * 2 > ours.members.len()).then_some(ours)
    }

    /// How many others are members of this set.
    fn members_of(&self, set: &str) -> usize {
        self.membership.members_of(set, self.index)
    }

    /// The record of a master in the first generation of a set.
    fn first(&self, members: Members, state: MemberState) -> MasterRecord {
        let terms = SetTerms::of(&self.membership.terms);
        MasterRecord {
            set: name_of_set(&members, &terms),
            member: members.id_of(&self.membership.names[self.index]).unwrap_or_default(),
            members,
            incarnation: fresh(self.random),
            run_id: self.shown.run_id.clone(),
            replid2: self.shown.replid2.clone(),
            stamp: fresh(self.random),
            quarantine: 0,
            generation: 0,
            terms,
            earlier: Vec::new(),
            state,
        }
    }

    /// A record of the same set for a master that may have forgotten something.
    fn anew(&self, record: &MasterRecord) -> MasterRecord {
        MasterRecord {
            incarnation: fresh(self.random),
            run_id: self.shown.run_id.clone(),
            replid2: self.shown.replid2.clone(),
            stamp: fresh(self.random),
            ..record.clone()
        }
    }

    /// Writes the record of a master that lost something, and has promised nothing to anybody.
    fn write_anew(&self, record: &MasterRecord, quarantine: Duration, latest: u64) -> HelloStep {
        HelloStep::write(Change {
            found: Some(record.stamp.clone()),
            quarantine: Some(quarantine),
            least: record.quarantine.max(latest),
            record: self.anew(record),
            promised: Some(Promised::default()),
        })
    }

    /// Gives the master a place in a set, which knows what it promised from now on.
    fn write(
        &self,
        found: Option<&MasterRecord>,
        record: MasterRecord,
        quarantine: Option<Duration>,
        promised: Promised,
    ) -> HelloStep {
        let its = found.filter(|found| found.set == record.set).map_or(0, |found| found.quarantine);
        let found = found.map(|found| found.stamp.clone());
        let least = self.membership.seen[self.index].latest.max(its);
        HelloStep::write(Change { found, quarantine, least, record, promised: Some(promised) })
    }

    /// Begins a set with a master that no client ever used. Its quarantine is over, and tells when
    /// that was.
    fn begin_now(&self, record: MasterRecord) -> HelloStep {
        let least = self.shown.time.saturating_sub(OVER).max(self.membership.seen[self.index].latest);
        let promised = Some(Promised::default());
        HelloStep::write(Change { found: None, quarantine: Some(Duration::ZERO), least, record, promised })
    }

    /// The record of a set that begins here, in place of one that was prepared and came to nothing
    /// for as long as a quarantine lasts.
    fn first_after(&self, record: &MasterRecord) -> Option<HelloStep> {
        let Membership { names, listed, terms, begins, .. } = self.membership;
        begins.as_ref()?;
        let quarantine = terms.quarantine();
        let first = self.first(Members::first(&names[..*listed]), MemberState::Candidate);
        let is_of_it = |its: &MasterRecord| its.set == record.set && its.state == MemberState::Member;
        let until =
            record.quarantine.saturating_add(u64::try_from(quarantine.as_micros()).unwrap_or(u64::MAX));
        let came_to_nothing = record.state == MemberState::Candidate
            && record.set != first.set
            && until < self.shown.time
            && !self.others().any(|(_, its)| is_of_it(its));
        came_to_nothing.then(|| self.write(Some(record), first, Some(quarantine), Promised::default()))
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
        let is_of_most = (self.members_of(&record.set) + 1) * 2 > all;
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
        let Membership { names, listed, .. } = self.membership;
        let ours = names[..*listed].join(", ");
        let theirs = record.members.names();
        let why = format!("its set is {theirs}, and this client's {ours}: give all clients the same");
        HelloStep::Refuse(Refusal::OtherMembers, why)
    }
}

/// How much earlier than a quarantine a decision has to be told: what tells a master may be so
/// late.
const LATE: Duration = Duration::from_secs(3);

/// For how long (us) counts what others showed and promised before a master showed that it forgot.
/// In a longer time another client may have given it its place again, and it may have forgotten
/// once more: it accepts nothing within a quarantine, which is longer than this, an answer's age
/// and the way of what is written.
const READING: u64 = 2_000_000;

/// How long ago (us) a quarantine was over that never was one: longer than a clock may be off.
const OVER: u64 = 2_000_000;

/// For how long (us) what a candidate showed counts: less than [`LATE`], by more than it takes to
/// tell it something. Otherwise it may have been told of a decision since.
const RECENT: u64 = 2_000_000;

/// Members of a first list have lower numbers.
const FIRST_DRAWN: u32 = 16;

/// The name of sets that begin by themselves, of masters that are known to be new.
const NEW: &str = "new";

/// What keeps a master that forgot from its place where others accepted what this client cannot
/// read, or go along with.
const NOT_OURS: &str =
    "it may have forgotten a change of its set, which a client has to finish that can go along with it";

/// What keeps a master that forgot from its place while others are asked.
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
        Self { found: Some(record.stamp.clone()), quarantine: None, least: 0, record: next, promised: None }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Sixteen digits that nobody drew before.
fn fresh(random: &dyn Random) -> Arc<str> {
    format!("{:016x}", random.fresh_u64()).into()
}
