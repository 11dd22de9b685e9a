//! The record of a master: its set, its terms, and the process that remembers its grants. See
//! docs/PROTOCOL.md.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::terms::Terms;
use crate::wire::{PROTOCOL, Value};

/// A master's record, as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MasterRecord {
    /// Names the set, for ever.
    pub(crate) set: Arc<str>,
    /// Which of the [`members`](MasterRecord::members) this master is.
    pub(crate) member: u32,
    pub(crate) members: Members,
    /// Drawn anew whenever the master may have forgotten something.
    pub(crate) incarnation: Arc<str>,
    /// The process that remembers, and that process's second replication id.
    pub(crate) run_id: Arc<str>,
    pub(crate) replid2: Arc<str>,
    /// What calls name in place of all this.
    pub(crate) stamp: Arc<str>,
    /// Until when (us) the master has no vote.
    pub(crate) quarantine: u64,
    /// How often the members have changed.
    pub(crate) generation: u64,
    pub(crate) terms: SetTerms,
    /// The members of the generations before, the last ones first, at most [`MOST_EARLIER`].
    pub(crate) earlier: Vec<Members>,
    pub(crate) state: MemberState,
}

/// What the clients of one set have agreed on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SetTerms {
    pub(crate) protocol: Arc<str>,
    /// In milliseconds.
    pub(crate) max_ttl: u64,
}

/// Whether a master counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MemberState {
    /// Not yet: its set, or its place in it, is being prepared.
    Candidate,
    /// It does.
    Member,
    /// Not any more: the members are others.
    Removed,
}

/// How many earlier generations a record has: a client with a list that old still finds its set.
const MOST_EARLIER: usize = 16;

/// The masters of a set: a number for ever, and the URL without user and password.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Members(Arc<[(u32, Arc<str>)]>);

impl Members {
    /// The first members of a set: they are numbered in the order of their names.
    pub(crate) fn first(names: &[Arc<str>]) -> Self {
        let mut names: Vec<Arc<str>> = names.to_vec();
        names.sort_unstable();
        Self((1..).zip(names).collect())
    }

    /// Those that live in one process, in this order.
    pub(crate) fn in_order(names: &[Arc<str>]) -> Self {
        Self((1..).zip(names.iter().cloned()).collect())
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let one = |line: &str| {
            let (id, name) = line.split_once(' ')?;
            Some((id.parse().ok()?, name.into()))
        };
        text.lines().map(one).collect::<Option<Arc<[_]>>>().map(Self)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether so many of them are most.
    pub(crate) fn have_majority(&self, count: usize) -> bool {
        count * 2 > self.len()
    }

    /// Their numbers and names.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &(u32, Arc<str>)> {
        self.0.iter()
    }

    pub(crate) fn has(&self, id: u32) -> bool {
        self.0.iter().any(|(its, _)| *its == id)
    }

    /// These, and one more.
    pub(crate) fn with(&self, id: u32, name: Arc<str>) -> Self {
        Self(self.0.iter().cloned().chain([(id, name)]).collect())
    }

    /// These without one.
    pub(crate) fn without(&self, id: u32) -> Self {
        Self(self.0.iter().filter(|(its, _)| *its != id).cloned().collect())
    }

    /// The number of the member with this name.
    pub(crate) fn id_of(&self, name: &str) -> Option<u32> {
        self.0.iter().find(|(_, its)| **its == *name).map(|(id, _)| *id)
    }

    /// The name of the member with this number.
    pub(crate) fn name_of(&self, id: u32) -> Option<Arc<str>> {
        self.0.iter().find(|(its, _)| *its == id).map(|(_, name)| name.clone())
    }

    /// Their names, as a part of a sentence.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|(_, name)| &**name).collect();
        names.join(", ")
    }
}

/// A line for each.
impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(|(id, name)| format!("{id} {name}")).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl SetTerms {
    pub(crate) fn of(terms: &Terms) -> Self {
        let max_ttl = u64::try_from(terms.max_ttl.as_millis()).unwrap_or(u64::MAX);
        Self { protocol: PROTOCOL.into(), max_ttl }
    }
}

/// As in a sentence about those whose terms they are.
impl fmt::Display for SetTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "protocol {} and a max TTL of {} ms", self.protocol, self.max_ttl)
    }
}

impl MemberState {
    const ALL: [Self; 3] = [Self::Candidate, Self::Member, Self::Removed];

    fn word(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::Member => "member",
            Self::Removed => "removed",
        }
    }
}

impl MasterRecord {
    /// Reads the fields of a record, each followed by its value. `None` if one is missing, or makes
    /// no sense: it is not a record, or that of a later version.
    pub(crate) fn read(words: &[Value]) -> Option<Self> {
        let pairs = words.chunks_exact(2).map(|pair| Some((&**pair[0].text()?, pair[1].text()?)));
        let fields: BTreeMap<&str, &Arc<str>> = pairs.collect::<Option<_>>()?;
        let text = |field: &str| fields.get(field).map(|&text| text.clone());
        let number = |field: &str| text(field)?.parse::<u64>().ok();
        let state = text("state")?;
        Some(Self {
            set: text("set")?,
            member: number("member")?.try_into().ok()?,
            members: Members::read(&text("members")?)?,
            incarnation: text("incarnation")?,
            run_id: text("run_id")?,
            replid2: text("replid2")?,
            stamp: text("stamp")?,
            quarantine: number("quarantine")?,
            generation: number("generation")?,
            terms: SetTerms { protocol: text("protocol")?, max_ttl: number("max_ttl")? },
            earlier: match &*text("earlier")? {
                "" => Vec::new(),
                earlier => earlier.split("\n\n").map(Members::read).collect::<Option<_>>()?,
            },
            state: MemberState::ALL.into_iter().find(|its| its.word() == &*state)?,
        })
    }

    /// The lists that clients can have: of this generation and of the earlier ones.
    pub(crate) fn generations(&self) -> impl Iterator<Item = &Members> {
        std::iter::once(&self.members).chain(&self.earlier)
    }

    /// The record of this master in the next generation, which has these members.
    pub(crate) fn next(&self, members: Members) -> Self {
        let earlier = self.generations().take(MOST_EARLIER).cloned().collect();
        Self { generation: self.generation + 1, members, earlier, ..self.clone() }
    }

    /// Whether it is a candidate of a first generation. All other candidates join an existing set.
    pub(crate) fn begins_set(&self) -> bool {
        self.state == MemberState::Candidate && self.members.has(self.member)
    }

    /// Whether a candidate is one of these members, or of those that it begins a set with.
    pub(crate) fn has_place_in(&self, members: &Members) -> bool {
        self.begins_set() || members.has(self.member)
    }

    /// The record of this master in the generation of another one's. `member` is its number.
    pub(crate) fn carried(&self, newer: &Self, member: u32, stamp: Arc<str>) -> Self {
        let MasterRecord { generation, members, earlier, .. } = newer.clone();
        let state = if members.has(member) { MemberState::Member } else { MemberState::Removed };
        Self { generation, members, earlier, member, state, stamp, ..self.clone() }
    }

    /// The fields that a client writes; the script adds the others.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, String)> {
        [
            ("set", self.set.to_string()),
            ("member", self.member.to_string()),
            ("members", self.members.to_string()),
            ("incarnation", self.incarnation.to_string()),
            ("stamp", self.stamp.to_string()),
            ("generation", self.generation.to_string()),
            ("protocol", self.terms.protocol.to_string()),
            ("max_ttl", self.terms.max_ttl.to_string()),
            ("earlier", self.earlier.iter().map(Members::to_string).collect::<Vec<_>>().join("\n\n")),
            ("state", self.state.word().to_owned()),
        ]
        .into_iter()
    }
}
