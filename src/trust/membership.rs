//! Whose word counts: what to do about the record that a master was found to have, by all that this
//! client knows of the others. Pure.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::record::{MasterRecord, MemberState, Members, SetTerms, name_of_set};
use super::terms::{ColdStart, Terms};
use crate::random::Random;
use crate::vote::Refusal;

#[cfg(test)]
mod tests;

/// What a master showed in a handshake.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// The earlier one of its time (us) and the time that most masters show.
    pub(crate) time: u64,
    pub(crate) run_id: Arc<str>,
    pub(crate) replid2: Arc<str>,
    pub(crate) has_replicas: bool,
    pub(crate) record: Option<MasterRecord>,
}

/// How a set begins, where it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    pub(crate) cold_start: ColdStart,
    /// The processes that no client ever used, by the word of a person. Each is taken out when it
    /// has a record.
    pub(crate) never_used: Option<Vec<Arc<str>>>,
}

/// What is known of a master's persistence before its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insight {
    /// Nothing yet.
    Unknown,
    /// Whether each of its writes is on its disk before the reply: its `appendfsync` is `always`.
    KeepsAll(bool),
    /// This user has no right to ask.
    NotTold,
    /// It is new: it never restarted, nor lost a key. Only one that lives in this process can be
    /// known so well.
    New,
}

/// What to do about a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HelloStep {
    /// Nothing: it votes, from the end of its quarantine on.
    Vote,
    /// Write its record.
    Write(Change),
    /// Ask again when more is known of the others, or later.
    Hear(String),
    /// Leave it, and look again later.
    Wait(String),
    /// It has no vote with this client until somebody acts.
    Refuse(Refusal, String),
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
}

/// What one client knows of the records of its masters.
#[derive(Debug)]
pub(crate) struct Membership {
    /// Its list.
    names: Vec<Arc<str>>,
    terms: Terms,
    begins: Option<Beginning>,
    /// Whether masters that forgot their set go on without those that are not there.
    recovers: bool,
    /// What each master of the list showed last.
    shown: Vec<Option<Shown>>,
    seen: Vec<SeenIncarnations>,
    /// How often a master showed another record than before.
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

    fn note(&mut self, record: &MasterRecord) {
        self.member = Some(record.member);
        if let Some(last) = self.last.replace(record.incarnation.clone())
            && last != record.incarnation
        {
            self.before.push_back(last);
            if self.before.len() > Self::MOST_BEFORE {
                self.before.pop_front();
            }
        }
        self.latest = self.latest.max(record.quarantine);
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

    /// Whether this process had the keys of another one since the record was written. The second
    /// replication id is that of the master whose keys it took over when it was a replica last;
    /// zeros if it was none, and again an hour after the last replica left.
    fn has_copied(&self, record: &MasterRecord) -> bool {
        self.replid2 != record.replid2 && self.replid2.bytes().any(|digit| digit != b'0')
    }
}

impl Membership {
    pub(crate) fn new(names: Vec<Arc<str>>, terms: Terms) -> Self {
        let count = names.len();
        Self {
            names,
            terms,
            begins: None,
            recovers: false,
            shown: vec![None; count],
            seen: vec![SeenIncarnations::default(); count],
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

    /// Whether each master showed whether it has a record.
    pub(crate) fn heard_all(&self) -> bool {
        self.shown.iter().all(Option::is_some)
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

    /// What a step says of this client's list and terms.
    fn misfit_of(&self, index: usize, step: &HelloStep) -> Option<Misfit> {
        let HelloStep::Refuse(reason, why) = step else { return None };
        let is_list = match reason {
            Refusal::OtherMembers => self.is_other_list(index),
            Refusal::NoSet if self.begins.is_none() => return None,
            _ => false,
        };
        Some(Misfit { is_list, why: format!("{}: {why}", self.names[index]).into() })
    }

    /// A master that showed a record.
    pub(crate) fn has_record(&self) -> Option<Arc<str>> {
        self.records().next().map(|(index, _)| self.names[index].clone())
    }

    /// The processes of all masters, if each was heard and none has a record.
    pub(crate) fn unrecorded(&self) -> Option<Vec<Arc<str>>> {
        let shown = self.shown.iter().map(|shown| shown.as_ref().filter(|shown| shown.record.is_none()));
        shown.map(|shown| Some(shown?.run_id.clone())).collect()
    }

    /// The policy of the set that the master at `index` showed to be of, or that is to begin.
    pub(crate) fn cold_start(&self, shown: &Shown) -> ColdStart {
        let of_set = shown.record.as_ref().or_else(|| self.records().next().map(|(_, record)| record));
        let begins = || self.begins.as_ref().map(|begins| begins.cold_start);
        of_set.map(|record| record.terms.cold_start).or_else(begins).unwrap_or_default()
    }

    /// The records that the masters showed last.
    fn records(&self) -> impl Iterator<Item = (usize, &MasterRecord)> {
        let records = self.shown.iter().enumerate();
        records.filter_map(|(index, shown)| Some((index, shown.as_ref()?.record.as_ref()?)))
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

    /// What to do about the master at `index`, which showed this.
    pub(crate) fn next(
        &mut self,
        index: usize,
        shown: Shown,
        insight: Insight,
        random: &dyn Random,
    ) -> HelloStep {
        let never_used = self.begins.as_mut().and_then(|begins| begins.never_used.as_mut());
        if let (Some(never_used), Some(_)) = (never_used, &shown.record) {
            never_used.retain(|run_id| *run_id != shown.run_id);
        }
        let case = MasterCase { membership: self, index, shown: &shown, insight, random };
        let step = match &shown.record {
            Some(record) => case.at_record(record),
            None => case.at_none(),
        };
        if let (HelloStep::Vote, Some(record)) = (&step, &shown.record) {
            self.seen[index].note(record);
        }
        let last = self.shown[index].replace(shown);
        let its = |shown: &Shown| shown.record.as_ref().map(|record| record.stamp.clone());
        self.news += u64::from(last.as_ref().map(its) != self.shown[index].as_ref().map(its));
        self.misfits[index] = self.misfit_of(index, &step);
        step
    }
}

/// What to do about one master of the list.
struct MasterCase<'a> {
    membership: &'a Membership,
    index: usize,
    shown: &'a Shown,
    insight: Insight,
    random: &'a dyn Random,
}

impl<'a> MasterCase<'a> {
    fn at_record(&self, record: &MasterRecord) -> HelloStep {
        let terms = &self.membership.terms;
        let is_prepared =
            record.state == MemberState::Candidate && !self.shown.quarantined_for(record).is_zero();
        if let Some(ours) = self.set_of_most().filter(|ours| is_prepared && ours.set != record.set) {
            // Another set wants a master that forgot that it is one of ours.
            return self.admit(ours, MemberState::Member, Some(record));
        }
        let first = self.first_after(record);
        if let Some(step) = first.or_else(|| self.other_terms(record)).or_else(|| self.other_set(record)) {
            return step;
        }
        let seen = &self.membership.seen[self.index];
        let went_back = seen.went_back(record);
        let has_copied = self.shown.has_copied(record);
        if record.run_id != self.shown.run_id || has_copied || went_back {
            let remembers = record.keeps_all && self.keeps_all() == Some(true) && !has_copied && !went_back;
            let quarantine = match self.insight {
                Insight::New => Duration::ZERO,
                _ if remembers => terms.shortest_quarantine(),
                _ => terms.quarantine(),
            };
            return HelloStep::Write(Change {
                found: Some(record.stamp.clone()),
                quarantine: Some(quarantine),
                least: record.quarantine.max(seen.latest),
                record: self.anew(record),
            });
        }
        let keeps_all = self.keeps_all().unwrap_or(record.keeps_all);
        if record.keeps_all != keeps_all || record.replid2 != self.shown.replid2 {
            return HelloStep::Write(Change::of(record, |record| {
                record.keeps_all = keeps_all;
                record.replid2 = self.shown.replid2.clone();
            }));
        }
        match record.state {
            MemberState::Member => HelloStep::Vote,
            MemberState::Candidate => self.at_candidate(record),
        }
    }

    /// A candidate becomes a member when all masters of its set were read after their quarantines,
    /// or most are members.
    fn at_candidate(&self, record: &MasterRecord) -> HelloStep {
        let left = self.shown.quarantined_for(record);
        if !left.is_zero() {
            let left = left.as_secs_f64();
            return HelloStep::Wait(format!(
                "its set begins, or goes on, when its quarantine is over, in {left:.1} s"
            ));
        }
        let is_ready = |other: &Shown| {
            other.record.as_ref().is_some_and(|its| {
                (&its.set, its.generation) == (&record.set, record.generation)
                    && (its.state == MemberState::Member || other.quarantined_for(its).is_zero())
            })
        };
        let mut others = self.membership.shown.iter().enumerate().filter(|(at, _)| *at != self.index);
        match others.find(|(_, other)| !other.as_ref().is_some_and(is_ready)) {
            Some((other, _)) if self.set_of_most().is_none() && !self.membership.recovers => HelloStep::Wait(
                format!("its set begins, or goes on, when {} is ready, too", self.membership.names[other]),
            ),
            _ => HelloStep::Write(Change::of(record, |record| {
                record.state = MemberState::Member;
                record.stamp = fresh(self.random);
            })),
        }
    }

    fn at_none(&self) -> HelloStep {
        let Membership { names, terms, begins, .. } = self.membership;
        if self.insight == Insight::New {
            let record = self.first(Members::in_order(names), ColdStart::default(), MemberState::Member);
            return self.write(None, MasterRecord { set: "new".into(), ..record }, Duration::ZERO);
        }
        let unheard = self.unheard();
        let not_heard = |other| HelloStep::Hear(format!("it has no record, and {other} was not heard yet"));
        let records = || self.others().map(|(_, record)| record);
        let found = records().find(|its| its.state == MemberState::Member).or_else(|| records().next());
        if let Some(Beginning { cold_start, never_used }) = begins {
            let first = self.first(Members::first(names), *cold_start, MemberState::Candidate);
            let is_begun =
                |(_, its): (usize, &MasterRecord)| its.set != first.set || its.state == MemberState::Member;
            match (self.others().any(is_begun), unheard.first(), never_used) {
                (true, ..) => {}
                (false, Some(other), _) if found.is_none() => return not_heard(other),
                (false, _, None) => return self.write(None, first, terms.quarantine()),
                (false, _, Some(never_used)) if never_used.contains(&self.shown.run_id) => {
                    return self.write(None, first, Duration::ZERO);
                }
                _ => {
                    let why = "its process is another one than the fingerprint names, or lost its record";
                    return HelloStep::Refuse(Refusal::NoSet, why.to_owned());
                }
            }
        }
        match (found, unheard.first()) {
            (None, Some(other)) if unheard.len() >= names.len().div_ceil(2) => not_heard(other),
            (None, _) => HelloStep::Refuse(
                Refusal::NoSet,
                "it has no record of a set of masters: `quorate init` begins one".to_owned(),
            ),
            (Some(found), unheard) => match (self.set_of_most(), unheard) {
                (Some(ours), _) => self.admit(ours, MemberState::Member, None),
                (None, Some(_)) if self.membership.recovers => {
                    self.other_set(found).unwrap_or_else(|| self.admit(found, MemberState::Member, None))
                }
                (None, Some(other)) => HelloStep::Hear(format!(
                    "it has no record, as so many others that {other} has to be there, too"
                )),
                (None, None) => {
                    self.other_set(found).unwrap_or_else(|| self.admit(found, MemberState::Candidate, None))
                }
            },
        }
    }

    /// The records of the other masters.
    fn others(&self) -> impl Iterator<Item = (usize, &'a MasterRecord)> + use<'a> {
        let index = self.index;
        self.membership.records().filter(move |(at, _)| *at != index)
    }

    /// The others that were not heard yet.
    fn unheard(&self) -> Vec<&Arc<str>> {
        let Membership { names, shown, .. } = self.membership;
        let all = names.iter().zip(shown).enumerate();
        all.filter(|(at, (_, shown))| *at != self.index && shown.is_none())
            .map(|(_, (name, _))| name)
            .collect()
    }

    /// The record of one of the set of which most masters of the list are members, without this
    /// one.
    fn set_of_most(&self) -> Option<&'a MasterRecord> {
        let most = self.membership.names.len() / 2 + 1;
        self.others().map(|(_, record)| record).find(|record| self.members_of(&record.set) >= most)
    }

    /// How many others are members of this set.
    fn members_of(&self, set: &str) -> usize {
        let is_member = |record: &MasterRecord| record.state == MemberState::Member && *record.set == *set;
        self.others().filter(|(_, record)| is_member(record)).count()
    }

    /// Makes the master one of the set that `its` is a record of, in its own place: that of its
    /// name, or where this client saw it before.
    fn admit(&self, its: &MasterRecord, state: MemberState, found: Option<&MasterRecord>) -> HelloStep {
        let Membership { names, seen, terms, .. } = self.membership;
        if let Some(refused) = self.other_terms(its) {
            return refused;
        }
        let place = seen[self.index].member.or_else(|| its.members.id_of(&names[self.index]));
        let is_free = |id: &u32| self.others().all(|(_, other)| other.set != its.set || other.member != *id);
        match place.filter(is_free) {
            Some(member) if its.members.len() == names.len() => {
                let record = MasterRecord { member, state, ..self.anew(its) };
                self.write(found, record, terms.quarantine())
            }
            _ => self.other_members(its),
        }
    }

    /// The record of a master in the first generation of a set.
    fn first(&self, members: Members, cold_start: ColdStart, state: MemberState) -> MasterRecord {
        let terms = SetTerms::of(&self.membership.terms, cold_start);
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
            keeps_all: self.keeps_all() == Some(true),
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
            keeps_all: self.keeps_all() == Some(true),
            ..record.clone()
        }
    }

    /// Gives the master a place in a set that it had none in, by its own word.
    fn write(&self, found: Option<&MasterRecord>, record: MasterRecord, quarantine: Duration) -> HelloStep {
        let found = found.map(|found| found.stamp.clone());
        let least = self.membership.seen[self.index].latest;
        HelloStep::Write(Change { found, quarantine: Some(quarantine), least, record })
    }

    /// The record of a set that begins here, in place of one that was prepared and came to nothing
    /// for as long as a quarantine lasts.
    fn first_after(&self, record: &MasterRecord) -> Option<HelloStep> {
        let Membership { names, terms, begins, .. } = self.membership;
        let begins = begins.as_ref()?;
        let quarantine = u64::try_from(terms.quarantine().as_micros()).unwrap_or(u64::MAX);
        let first = self.first(Members::first(names), begins.cold_start, MemberState::Candidate);
        let is_of_it = |its: &MasterRecord| its.set == record.set && its.state == MemberState::Member;
        let came_to_nothing = record.state == MemberState::Candidate
            && record.set != first.set
            && record.quarantine > 0
            && record.quarantine.saturating_add(quarantine) < self.shown.time
            && !self.others().any(|(_, its)| is_of_it(its));
        came_to_nothing.then(|| self.write(Some(record), first, terms.quarantine()))
    }

    /// Whether the master keeps all that it writes, and nothing can take its place; `None` where
    /// that is not known.
    fn keeps_all(&self) -> Option<bool> {
        match self.insight {
            _ if self.shown.has_replicas => Some(false),
            Insight::KeepsAll(keeps_all) => Some(keeps_all),
            Insight::Unknown | Insight::NotTold | Insight::New => None,
        }
    }

    /// Whether this client has other terms than the set.
    fn other_terms(&self, record: &MasterRecord) -> Option<HelloStep> {
        let ours = SetTerms::of(&self.membership.terms, record.terms.cold_start);
        let why = || format!("its clients have {}, and this one has {ours}", record.terms);
        (record.terms != ours).then(|| HelloStep::Refuse(Refusal::OtherTerms, why()))
    }

    /// Whether the list, or what its masters showed, is of another set than this record. Another
    /// set that is only prepared on a master is a matter of that one.
    fn other_set(&self, record: &MasterRecord) -> Option<HelloStep> {
        let name = |at: usize| &self.membership.names[at];
        let differs = |other: &MasterRecord| other.set != record.set && other.state == MemberState::Member;
        let is_of_most = self.members_of(&record.set) >= self.membership.names.len() / 2;
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
        (record.members.len() != self.membership.names.len()).then(|| self.other_members(record))
    }

    fn other_members(&self, record: &MasterRecord) -> HelloStep {
        let ours = self.membership.names.join(", ");
        let theirs = record.members.names();
        let why = format!("its set is {theirs}, and this client's {ours}: give all clients the same");
        HelloStep::Refuse(Refusal::OtherMembers, why)
    }
}

impl Change {
    /// Whether it costs the master its vote for a while.
    pub(crate) fn costs_the_vote(&self) -> bool {
        self.quarantine.is_some_and(|time| !time.is_zero())
    }

    /// The record when `record.lua` has written it at this time (us).
    pub(crate) fn written(&self, now: u64) -> MasterRecord {
        let ends_in = |pause: Duration| {
            let pause = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
            let ends = if pause == 0 { 0 } else { now.saturating_add(pause) };
            ends.max(self.least)
        };
        let quarantine = self.quarantine.map_or(self.record.quarantine, ends_in);
        MasterRecord { quarantine, ..self.record.clone() }
    }

    /// Some fields of a record that counts.
    fn of(record: &MasterRecord, change: impl FnOnce(&mut MasterRecord)) -> Self {
        let mut next = record.clone();
        change(&mut next);
        Self { found: Some(record.stamp.clone()), quarantine: None, least: 0, record: next }
    }
}

/// Sixteen digits that nobody drew before.
fn fresh(random: &dyn Random) -> Arc<str> {
    format!("{:016x}", random.fresh_u64()).into()
}
