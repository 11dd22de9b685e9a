//! What one master knows: its membership record, and one lock.

pub(crate) const N: usize = 6;

pub(crate) type Time = u8;
pub(crate) type Token = u16;
/// An attempt to decide. Each is made once, so no two are equal.
pub(crate) type Ballot = u8;

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

    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..N).filter(move |&at| self.has(at))
    }
}

impl FromIterator<usize> for Masters {
    fn from_iter<I: IntoIterator<Item = usize>>(masters: I) -> Self {
        masters.into_iter().fold(Self::default(), Self::with)
    }
}

/// The members of a generation: one set, or two of which quorums of both are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Members {
    pub(crate) old: Masters,
    pub(crate) new: Option<Masters>,
    /// The incarnations of those that were candidates for the decree, which may be carried to.
    pub(crate) named: [Option<u8>; N],
}

impl Members {
    pub(crate) const fn only(old: Masters) -> Self {
        Self { old, new: None, named: [None; N] }
    }

    pub(crate) fn all(&self) -> Masters {
        self.old.and(self.new.unwrap_or_default())
    }

    pub(crate) fn have_quorum(&self, votes: Masters) -> bool {
        votes.has_majority_of(self.old) && self.new.is_none_or(|new| votes.has_majority_of(new))
    }
}

/// What a decree says: the next members, and the incarnations of the candidates among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Decree {
    pub(crate) new: Masters,
    pub(crate) named: [Option<u8>; N],
}

/// A generation of a set of masters. Odd ones are joint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Generation {
    pub(crate) set: u8,
    pub(crate) number: u8,
    pub(crate) members: Members,
}

impl Generation {
    pub(crate) fn is_joint(&self) -> bool {
        self.members.new.is_some()
    }

    /// The joint generation that a decree makes of this one.
    pub(crate) fn joint(&self, Decree { new, named }: Decree) -> Self {
        let members = Members { old: self.members.old, new: Some(new), named };
        Self { number: self.number + 1, members, ..*self }
    }

    /// The generation of the new set alone.
    pub(crate) fn finished(&self) -> Self {
        let Members { old, new, named } = self.members;
        let members = Members { old: new.unwrap_or(old), new: None, named };
        Self { number: self.number + 1, members, ..*self }
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
    /// It has no vote until then.
    pub(crate) quarantine: Time,
    pub(crate) promised: Ballot,
    pub(crate) accepted: Option<(Ballot, Decree)>,
}

impl Record {
    pub(crate) fn new(generation: Generation, state: State, quarantine: Time) -> Self {
        Self { generation, state, quarantine, promised: 0, accepted: None }
    }

    /// Whether it votes on what comes after this generation.
    pub(crate) fn votes_after(&self, generation: &Generation) -> bool {
        self.generation.number == generation.number && self.state == State::Member
    }
}

/// The one lock, as one master knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) client: usize,
    pub(crate) until: Time,
    pub(crate) token: Token,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Master {
    /// How often it forgot everything.
    pub(crate) incarnation: u8,
    pub(crate) record: Option<Record>,
    pub(crate) entry: Option<Entry>,
    /// The highest token given here.
    pub(crate) fence: Token,
}

impl Master {
    /// The record, where it is of this set.
    pub(crate) fn record_of(&mut self, set: u8) -> Option<&mut Record> {
        self.record.as_mut().filter(|record| record.generation.set == set)
    }

    /// Writes a newer generation of the set that it is in: only upwards, and to a candidate only
    /// where the decree names what it is.
    pub(crate) fn carry(&mut self, at: usize, generation: &Generation) {
        let named = generation.members.named[at] == Some(self.incarnation);
        let Some(record) = self.record_of(generation.set) else { return };
        if record.generation.number >= generation.number || (record.state == State::Candidate && !named) {
            return;
        }
        let member = generation.members.all().has(at);
        *record = Record {
            generation: *generation,
            state: if member { State::Member } else { State::Removed },
            promised: 0,
            accepted: None,
            ..*record
        };
    }

    /// Whether it has this generation of its set, or a newer one.
    pub(crate) fn has_reached(&self, generation: &Generation) -> bool {
        self.record.is_some_and(|Record { generation: its, .. }| {
            its.set == generation.set && its.number >= generation.number
        })
    }

    pub(crate) fn forget(&mut self) {
        *self = Self { incarnation: self.incarnation + 1, ..Self::default() };
    }
}
