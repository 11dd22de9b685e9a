//! A change of the set by one master: the rules that its proposer keeps. Pure. `admin/change.rs`
//! asks the acceptors, and waits. docs/SET.md draws it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::proposer::{Accepted, Ballot, Proposal};
use super::record::{MasterRecord, Members};
use super::state::Set;
use crate::time::Moment;
use crate::wire::{MasterIndex, MasterSet};

/// The replies to phase 1 of a proposal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Promises {
    /// The masters that promised, and the values that they had accepted.
    pub(crate) by: BTreeMap<MasterIndex, Option<Accepted>>,
    /// The masters that had promised a higher ballot.
    pub(crate) later: MasterSet,
    /// The highest ballot that a master named.
    pub(crate) highest: Ballot,
}

impl Promises {
    pub(crate) fn masters(&self) -> impl Iterator<Item = MasterIndex> {
        self.by.keys().copied()
    }

    /// The masters that are in this client's generation, and have their acceptor's state.
    pub(crate) fn in_generation(&self) -> MasterSet {
        self.masters().chain(self.later.iter()).collect()
    }
}

/// The wait for the leases of the previous list. Since it began, each majority of that list has had
/// a master in this generation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LeaseBarrier {
    /// The set, and its generation.
    of: (Arc<str>, u64),
    since: Moment,
    /// Those masters, and their incarnations.
    seen: Vec<(MasterIndex, Arc<str>)>,
}

/// Which value a proposer may have accepted in phase 2.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Choice {
    /// The members that an acceptor accepted before.
    Accepted(Members),
    /// An acceptor accepted a value that this build cannot read.
    Unreadable,
    /// The proposer's own members.
    Own,
    /// Too few acceptors promised.
    NoMajority,
    /// A master of the barrier lost its state, or the barrier is not over.
    NoBarrier,
}

impl Set {
    /// A proposal to all members about the generation after `newest`.
    pub(crate) fn proposal(&self, newest: &MasterRecord, ballot: Ballot) -> Proposal {
        let masters = self.voters().masters;
        Proposal { set: newest.set.clone(), ballot, generation: newest.generation + 1, masters }
    }

    /// Raises the barrier, if [enough](is_in_each_majority) masters of the previous list are in
    /// this generation. An error says how many are.
    pub(crate) fn raise_barrier(
        &self,
        newest: &MasterRecord,
        promises: &Promises,
        now: Moment,
    ) -> Result<LeaseBarrier, usize> {
        let seen = self.of_previous_list(newest, promises.in_generation().iter());
        let previous = newest.earlier.first().map_or(0, Members::len);
        if !is_in_each_majority(seen.len(), previous) {
            return Err(seen.len());
        }
        Ok(LeaseBarrier { of: (newest.set.clone(), newest.generation), since: now, seen })
    }

    /// For how long leases of the previous list alone can still be valid. `None` without a barrier
    /// for this generation.
    pub(crate) fn barrier_left(
        &self,
        newest: &MasterRecord,
        barrier: Option<&LeaseBarrier>,
        now: Moment,
    ) -> Option<Duration> {
        if newest.earlier.is_empty() {
            return Some(Duration::ZERO);
        }
        let is_of =
            |barrier: &&LeaseBarrier| (&barrier.of.0, barrier.of.1) == (&newest.set, newest.generation);
        barrier.filter(is_of).map(|barrier| (barrier.since + self.terms.quarantine()).since(now))
    }

    /// Which value to have accepted in phase 2. The proposer has a choice only if no acceptor
    /// accepted a value before, the barrier is over, and [enough](is_in_each_majority) of its
    /// masters kept their incarnations.
    pub(crate) fn choice(
        &self,
        newest: &MasterRecord,
        promises: &Promises,
        barrier: Option<&LeaseBarrier>,
        now: Moment,
    ) -> Choice {
        if !newest.members.have_majority(promises.by.len()) {
            return Choice::NoMajority;
        }
        let accepted = promises.by.values().flatten().max();
        if let Some(accepted) = accepted {
            return Members::read(&accepted.value).map_or(Choice::Unreadable, Choice::Accepted);
        }
        let is_over = self.barrier_left(newest, barrier, now).is_some_and(|left| left.is_zero());
        let has_held = newest.earlier.first().is_none_or(|previous| {
            let seen = self.of_previous_list(newest, promises.masters());
            let same = |barrier: &LeaseBarrier| barrier.seen.iter().filter(|its| seen.contains(its)).count();
            is_in_each_majority(barrier.map_or(0, same), previous.len())
        });
        if is_over && has_held { Choice::Own } else { Choice::NoBarrier }
    }

    /// For how long most of these members have no vote yet, at this time (us). An error says how
    /// many of them answered.
    pub(crate) fn majority_votes_in(
        &self,
        members: &Members,
        promises: &Promises,
        time: u64,
    ) -> Result<Duration, usize> {
        let left = |its: &MasterRecord| Duration::from_micros(its.quarantine.saturating_sub(time));
        let votes_in = |id: u32| {
            let is_it = |its: &&MasterRecord| its.member == id;
            let joins = self.joining().filter(is_it);
            let its = |index| self.record_of(index).filter(is_it);
            joins.or_else(|| promises.masters().find_map(its)).map(left)
        };
        let mut answered: Vec<Duration> = members.iter().filter_map(|(id, _)| votes_in(*id)).collect();
        answered.sort_unstable();
        answered.get(members.len() / 2).copied().ok_or(answered.len())
    }

    /// The masters among these that are on the previous list, and their incarnations.
    fn of_previous_list(
        &self,
        newest: &MasterRecord,
        masters: impl Iterator<Item = MasterIndex>,
    ) -> Vec<(MasterIndex, Arc<str>)> {
        let is_on_it = |id| newest.earlier.first().is_some_and(|previous| previous.has(id));
        let incarnation = |index| {
            let record = self.record_of(index)?;
            is_on_it(record.member).then(|| (index, record.incarnation.clone()))
        };
        masters.filter_map(incarnation).collect()
    }
}

/// Whether this many masters of a list have one in each of its majorities: half of them, if the
/// list is even. A majority would be too much to ask: the three that are left of four masters would
/// all have to answer, and a dead one could not be replaced.
fn is_in_each_majority(count: usize, list: usize) -> bool {
    count * 2 >= list
}
