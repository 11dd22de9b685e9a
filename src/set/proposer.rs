//! Paxos on the members of the next generation: every member of a set is an acceptor
//! (`scripts/lua/decree.lua`), and any client may be a proposer. Pure.
//!
//! A master that lost its state also lost its promises. Before it rejoins, the client runs phase 1
//! at the other acceptors with a new [`Ballot`]. From then on no proposal with an older ballot can
//! be chosen, and the master that rejoins is given the highest accepted value. [`Proposer`] keeps
//! what came of that phase 1.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::wire::{MasterIndex, MasterSet, Words};

/// The number of a proposal. No two proposals have the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ballot(u128);

/// How soon (us) to ask acceptors again that did not answer.
const RETRY_AFTER: u64 = 200_000;

/// How many ballots there are in a microsecond.
const PER_MICROSECOND: u128 = 1_000_000_000;

impl Ballot {
    /// A ballot of this time (us), and above another one. `draw` is random: it makes the ballot
    /// unique.
    pub(crate) fn new(time: u64, above: Self, draw: u64) -> Self {
        let time = u128::from(time).max(above.0 / PER_MICROSECOND + 1);
        Self(time * PER_MICROSECOND + u128::from(draw) % PER_MICROSECOND)
    }

    /// `None` if the text is not a ballot.
    pub(crate) fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

impl fmt::Display for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value that an acceptor accepted, and the ballot that it came with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Accepted {
    pub(crate) ballot: Ballot,
    pub(crate) value: Arc<str>,
}

/// What an acceptor keeps about one generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AcceptorState {
    pub(crate) generation: u64,
    pub(crate) promised: Option<Ballot>,
    pub(crate) accepted: Option<Accepted>,
}

/// A proposal for the next generation of a set, and the acceptors to send it to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Proposal {
    pub(crate) set: Arc<str>,
    pub(crate) ballot: Ballot,
    /// The generation that is proposed.
    pub(crate) generation: u64,
    pub(crate) masters: MasterSet,
}

impl Proposal {
    /// The operation of `decree.lua`. `key` is that of the acceptor's state. Without a value it
    /// asks for a promise.
    pub(crate) fn words(&self, key: &str, value: &str, time: u64) -> Words {
        let words = Words::new(0).with("decree").with(0).with(6).with(key).with(&self.set);
        words.with(self.generation).with(self.ballot).with(value).with(time)
    }
}

/// Phase 1 for the masters that have to rejoin. One run serves all of them that lost their state
/// before it began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Proposer {
    /// Whether to begin a new run.
    is_wanted: bool,
    /// Whether a new run could hear more: a master answered that had not promised.
    could_hear_more: bool,
    /// When a run was last wanted (us), by a master's clock.
    wanted_at: u64,
    /// The same, of the current run.
    asked_at: u64,
    /// The highest ballot that any acceptor named.
    highest: Ballot,
    /// The current run.
    proposal: Option<Proposal>,
    /// How many state losses had been seen when it began.
    losses: u64,
    promises: BTreeMap<MasterIndex, Option<Accepted>>,
}

impl Proposer {
    /// A master waits for promises about this generation. Its state loss has the sequence number
    /// `loss`, so a run that began before that loss is of no use to it.
    pub(super) fn want(&mut self, generation: u64, loss: u64, now: u64) {
        let is_answered = self.promises(generation, loss).is_some();
        let is_recent = now.abs_diff(self.wanted_at) < RETRY_AFTER;
        self.is_wanted |= !is_answered || self.could_hear_more || !is_recent;
        if self.is_wanted {
            self.wanted_at = now;
        }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// A time (us) before the current run asked its acceptors.
    pub(super) fn asked_at(&self) -> u64 {
        self.asked_at
    }

    /// A master shook hands, and does not wait for promises itself.
    pub(super) fn heard_from(&mut self, master: MasterIndex) {
        self.could_hear_more |= !self.promises.contains_key(&master);
    }

    /// Begins a run, after so many state losses.
    pub(super) fn begin(
        &mut self,
        set: Arc<str>,
        generation: u64,
        masters: MasterSet,
        losses: u64,
        ballot: impl FnOnce(Ballot) -> Ballot,
    ) -> Proposal {
        let ballot = ballot(self.highest);
        let proposal = Proposal { set, ballot, generation, masters };
        *self = Self {
            highest: ballot,
            proposal: Some(proposal.clone()),
            losses,
            wanted_at: self.wanted_at,
            asked_at: self.wanted_at,
            ..Self::default()
        };
        proposal
    }

    /// An acceptor promised this ballot, and had accepted this value before.
    pub(super) fn promised(&mut self, master: MasterIndex, ballot: Ballot, accepted: Option<Accepted>) {
        if self.proposal.as_ref().is_some_and(|proposal| proposal.ballot == ballot) {
            self.promises.insert(master, accepted);
        }
    }

    /// An acceptor had promised this higher ballot.
    pub(super) fn rejected(&mut self, promised: Ballot) {
        self.highest = self.highest.max(promised);
        self.could_hear_more = true;
    }

    /// The acceptors that promised. `None` if the current run is about another generation, or began
    /// before this state loss.
    pub(super) fn promises(&self, generation: u64, loss: u64) -> Option<MasterSet> {
        let proposal = self.proposal.as_ref()?;
        let is_usable = proposal.generation == generation && self.losses >= loss;
        is_usable.then(|| self.promises.keys().copied().collect())
    }

    /// The state of an acceptor that rejoins by the promises of these masters.
    pub(super) fn handed_on(&self, from: MasterSet) -> AcceptorState {
        let accepted = self.promises.iter().filter(|(master, _)| from.has(**master));
        let accepted = accepted.filter_map(|(_, accepted)| accepted.clone()).max();
        let promised = self.proposal.as_ref().map(|proposal| proposal.ballot);
        let generation = self.proposal.as_ref().map_or(0, |proposal| proposal.generation);
        AcceptorState { generation, promised, accepted }
    }
}
