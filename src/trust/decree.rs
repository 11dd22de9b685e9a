//! What the masters of a set promise, and accept, about its next generation: Paxos on one value for
//! each generation, of which every member is an acceptor (`scripts/lua/decree.lua`). Pure.
//!
//! A master that forgot what it granted forgot what it promised as well. Whoever gives it its place
//! again first has the others promise a new [`Ballot`], so that nothing that it may have promised
//! for can still come about unseen, and hands on to it what those accepted: that is [`Evidence`].

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::master_set::MasterSet;
use crate::random::Random;

/// A number of a proposal that nobody else has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ballot(u128);

/// How soon (us) masters are asked again that did not answer.
const AGAIN: u64 = 200_000;

/// How many ballots there are in a microsecond.
const IN_A_MICROSECOND: u128 = 1_000_000_000;

impl Ballot {
    /// One of this time (us), or above another one.
    pub(crate) fn new(time: u64, above: Self, random: &dyn Random) -> Self {
        let time = u128::from(time).max(above.0 / IN_A_MICROSECOND + 1);
        Self(time * IN_A_MICROSECOND + u128::from(random.fresh_u64()) % IN_A_MICROSECOND)
    }

    /// `None` where the text is empty, or none of a ballot.
    pub(crate) fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

impl fmt::Display for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value for the next generation, and under which ballot a master accepted it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Accepted {
    pub(crate) ballot: Ballot,
    pub(crate) value: Arc<str>,
}

/// What a master knows about a generation: its promise, and what it accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Promised {
    pub(crate) generation: u64,
    pub(crate) ballot: Option<Ballot>,
    pub(crate) accepted: Option<Accepted>,
}

/// Whom to ask for which promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    /// The masters' set.
    pub(crate) set: Arc<str>,
    pub(crate) ballot: Ballot,
    /// The generation that it is about: the next one.
    pub(crate) generation: u64,
    pub(crate) masters: MasterSet,
}

/// What other masters promised before one that forgot gets its place again.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// Whether somebody is to ask.
    pub(super) is_wanted: bool,
    /// Whether more could be heard by now: a master is there that had not answered.
    is_outdated: bool,
    /// When somebody was to ask last (us), by a master's time.
    wanted: u64,
    /// When that was before the promises here were asked for.
    asked_at: u64,
    /// The highest ballot that a master named.
    highest: Ballot,
    asked: Option<Proposal>,
    /// How often a master was seen to have forgotten something before that was asked.
    began: u64,
    promises: BTreeMap<usize, Option<Accepted>>,
}

impl Evidence {
    /// A master that was seen to have forgotten something, as the `since`th time, waits for what
    /// others say about this generation. They are asked again when more could be heard, or when
    /// some time has passed.
    pub(super) fn want(&mut self, generation: u64, since: u64, time: u64) {
        let is_known = self.of(generation, since).is_some();
        let is_recent = time < self.wanted + AGAIN;
        self.is_wanted |= !is_known || self.is_outdated || !is_recent;
        if self.is_wanted {
            self.wanted = time;
        }
    }

    /// When those were asked that promised something (us), or earlier.
    pub(super) fn asked_at(&self) -> u64 {
        self.asked_at
    }

    /// A master has made a handshake.
    pub(super) fn note_another(&mut self, index: usize) {
        self.is_outdated |= !self.promises.contains_key(&index);
    }

    /// A ballot above all that a master named.
    pub(super) fn next_ballot(&self, time: u64, random: &dyn Random) -> Ballot {
        Ballot::new(time, self.highest, random)
    }

    /// Begins anew, with this proposal.
    pub(super) fn ask(&mut self, proposal: Proposal, began: u64) -> Proposal {
        *self = Self {
            highest: proposal.ballot,
            asked: Some(proposal.clone()),
            began,
            wanted: self.wanted,
            asked_at: self.wanted,
            ..Self::default()
        };
        proposal
    }

    /// A master promised that ballot, and had accepted this before.
    pub(super) fn note(&mut self, index: usize, ballot: Ballot, accepted: Option<Accepted>) {
        if self.asked.as_ref().is_some_and(|asked| asked.ballot == ballot) {
            self.promises.insert(index, accepted);
        }
    }

    /// A master had promised this ballot.
    pub(super) fn note_higher(&mut self, ballot: Ballot) {
        self.highest = self.highest.max(ballot);
        self.is_outdated = true;
    }

    /// The masters that promised since a master was seen to have forgotten, as the `since`th time,
    /// about this generation; `None` where they were not asked since.
    pub(super) fn of(&self, generation: u64, since: u64) -> Option<MasterSet> {
        let asked = self.asked.as_ref()?;
        let is_it = asked.generation == generation && self.began >= since;
        is_it.then(|| self.promises.keys().copied().collect())
    }

    /// What a master that forgot is to know from now on, by the word of these.
    pub(super) fn handed_on(&self, from: MasterSet) -> Promised {
        let accepted = self.promises.iter().filter(|(index, _)| from.has(**index));
        let accepted = accepted.filter_map(|(_, accepted)| accepted.clone()).max();
        let (ballot, generation) =
            self.asked.as_ref().map_or((None, 0), |asked| (Some(asked.ballot), asked.generation));
        Promised { generation, ballot, accepted }
    }
}
