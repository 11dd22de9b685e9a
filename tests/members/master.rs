//! What one master knows: its membership record, and one lock.

use super::variants::Flaw;

pub(crate) const N: usize = 6;

pub(crate) type Time = u8;
pub(crate) type Token = u16;
/// An attempt to decide. Each is made once, so no two are equal; a later one may be lower.
pub(crate) type Ballot = u16;

/// Some of the masters 0 to 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Masters(u8);

impl Masters {
    pub(crate) const fn of(masters: &[usize]) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < masters.len() {
            bits |= 1 << masters[i];
            i += 1;
        }
        Self(bits)
    }

    pub(crate) const ALL: Self = Self::of(&[0, 1, 2, 3, 4, 5]);

    pub(crate) fn has(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }

    pub(crate) fn with(self, at: usize) -> Self {
        Self(self.0 | 1 << at)
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn contains(self, other: Self) -> bool {
        other.without(self).is_empty()
    }

    pub(crate) fn has_majority_of(self, of: Self) -> bool {
        2 * (self.0 & of.0).count_ones() > of.0.count_ones()
    }

    /// Whether no majority is without one of these.
    pub(crate) fn is_in_each_majority_of(self, of: Self) -> bool {
        2 * (self.0 & of.0).count_ones() >= of.0.count_ones()
    }

    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..N).filter(move |&at| self.has(at))
    }
}

impl FromIterator<usize> for Masters {
    fn from_iter<I: IntoIterator<Item = usize>>(masters: I) -> Self {
        masters.into_iter().fold(Self::default(), Self::with)
    }
}

/// The members of a generation, each with its id: a master that is added again has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Members {
    pub(crate) masters: Masters,
    pub(crate) ids: [u8; N],
}

impl Members {
    pub(crate) const fn first(masters: Masters) -> Self {
        Self { masters, ids: [0; N] }
    }

    pub(crate) fn has(&self, at: usize) -> bool {
        self.masters.has(at)
    }

    pub(crate) fn add(mut self, at: usize, id: u8) -> Self {
        self.masters = self.masters.with(at);
        self.ids[at] = id;
        self
    }

    pub(crate) fn remove(mut self, masters: Masters) -> Self {
        self.masters = self.masters.without(masters);
        masters.iter().for_each(|at| self.ids[at] = 0);
        self
    }
}

/// A generation of a set of masters, with the masters of the first one and of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Generation {
    pub(crate) set: u16,
    pub(crate) number: u8,
    pub(crate) members: Members,
    pub(crate) earlier: Masters,
    first: Masters,
}

impl Generation {
    pub(crate) const fn first(set: u16, masters: Masters) -> Self {
        let (members, earlier) = (Members::first(masters), Masters::of(&[]));
        Self { set, number: 0, members, earlier, first: masters }
    }

    pub(crate) fn next(&self, members: Members) -> Self {
        Self { number: self.number + 1, members, earlier: self.members.masters, ..*self }
    }

    /// Its masters, and those that it removed.
    pub(crate) fn reached(&self) -> Masters {
        self.members.masters.and(self.earlier)
    }

    /// Whether a list is that of this set, now or before.
    pub(crate) fn fits(&self, list: Masters) -> bool {
        [self.members.masters, self.earlier, self.first].contains(&list)
    }

    /// Whether this is a later generation of the same set.
    pub(crate) fn follows(&self, other: &Self) -> bool {
        self.set == other.set && self.number > other.number
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    Candidate,
    Member,
    Removed,
}

/// The membership record, with what its master promised and accepted for the next generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    pub(crate) generation: Generation,
    pub(crate) state: State,
    /// Its master's id in the set.
    pub(crate) id: u8,
    /// Who remembers: where it is not its master's, that one forgot.
    pub(crate) incarnation: u8,
    /// It has no vote until then.
    pub(crate) quarantine: Time,
    pub(crate) promised: Ballot,
    pub(crate) accepted: Accepted,
}

/// What another write of a record has otherwise.
type Stamp = (u16, u8, State, u8, u8);

/// Who a master is, with what record.
pub(crate) type Process = (u8, Option<Stamp>);

impl Record {
    fn stamp(&self) -> Stamp {
        (self.generation.set, self.generation.number, self.state, self.id, self.incarnation)
    }

    /// Whether it is a candidate with which its set begins. Any other one is to join.
    pub(crate) fn is_first(&self, at: usize) -> bool {
        self.state == State::Candidate && self.generation.members.has(at)
    }

    pub(crate) fn keeps(&self, at: usize, set: u16) -> bool {
        self.generation.set == set && (self.state == State::Member || self.is_first(at))
    }
}

/// A ballot, and the next members that were accepted with it.
pub(crate) type Accepted = Option<(Ballot, Members)>;

/// The one lock, as one master knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) client: usize,
    pub(crate) until: Time,
    pub(crate) token: Token,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Master {
    /// How often it forgot.
    pub(crate) incarnation: u8,
    pub(crate) record: Option<Record>,
    /// The record that a restart may bring back.
    pub(crate) saved: Option<Record>,
    pub(crate) entry: Option<Entry>,
    /// The highest token given here.
    pub(crate) fence: Token,
}

/// What a master has when it restarts: no locks, and this record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Back {
    Empty,
    Last,
    Saved,
}

impl Master {
    pub(crate) fn new_record(
        &self,
        generation: Generation,
        state: State,
        id: u8,
        quarantine: Time,
    ) -> Record {
        let incarnation = self.incarnation;
        Record { generation, state, id, incarnation, quarantine, promised: 0, accepted: None }
    }

    /// The record, where it is of this set.
    pub(crate) fn record_of(&mut self, set: u16) -> Option<&mut Record> {
        self.record.as_mut().filter(|record| record.generation.set == set)
    }

    pub(crate) fn process(&self) -> Process {
        (self.incarnation, self.record.map(|record| record.stamp()))
    }

    /// Whether it has a record, and forgot nothing since that was written.
    pub(crate) fn remembers(&self) -> bool {
        self.record.is_some_and(|record| record.incarnation == self.incarnation)
    }

    /// Writes a newer generation of the set that it is in: only upwards, only if it forgot nothing,
    /// and only if its id is the one in the list. A candidate with which its set begins stays one.
    pub(crate) fn carry(&mut self, at: usize, generation: &Generation, flaw: Option<Flaw>) {
        let remembers = self.remembers() || flaw == Some(Flaw::CarriesToForgetful);
        let incarnation = self.incarnation;
        let Some(record) = self.record_of(generation.set).filter(|_| remembers) else { return };
        let member = generation.members.has(at);
        let upwards = record.generation.number < generation.number || flaw == Some(Flaw::CarriesDown);
        let another = member && record.id != generation.members.ids[at];
        let waits = record.state == State::Candidate
            && !(member && (!record.is_first(at) || flaw == Some(Flaw::CarriesToCandidate)));
        if !upwards || another || waits || record.generation == *generation {
            return;
        }
        let state = if member { State::Member } else { State::Removed };
        let generation = *generation;
        *record = Record { generation, state, incarnation, promised: 0, accepted: None, ..*record };
    }

    /// The record, where it is of this very generation and has a say in what comes next.
    pub(crate) fn acceptor(&mut self, generation: &Generation) -> Option<&mut Record> {
        let remembers = self.remembers();
        let counts = |record: &&mut Record| {
            remembers && record.generation == *generation && record.state == State::Member
        };
        self.record.as_mut().filter(counts)
    }

    /// Whether it may have forgotten what it knew of a set, by what it shows.
    pub(crate) fn lost_state(&self, set: u16) -> bool {
        self.record.is_none_or(|record| {
            record.state == State::Candidate || record.generation.set == set && !self.remembers()
        })
    }

    /// Whether it has its record of a set, whatever its process.
    pub(crate) fn keeps(&self, at: usize, set: u16) -> bool {
        self.record.is_some_and(|record| record.keeps(at, set))
    }

    /// Whether it has this generation of its set, or a newer one.
    pub(crate) fn has_reached(&self, generation: &Generation) -> bool {
        self.remembers()
            && self.record.is_some_and(|Record { generation: its, state, .. }| {
                state != State::Candidate && its.set == generation.set && its.number >= generation.number
            })
    }

    pub(crate) fn forget(&mut self, back: Back) {
        let record = match back {
            Back::Empty => None,
            Back::Last => self.record,
            Back::Saved => self.saved,
        };
        *self = Self { incarnation: self.incarnation + 1, record, saved: self.saved, ..Self::default() };
    }
}
