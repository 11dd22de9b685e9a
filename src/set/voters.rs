//! The masters whose votes count, from one change of the set to the next.

use std::sync::Arc;

use crate::wire::MasterSet;

/// The members of one generation of a set, as one client knows them. All votes of a round are of
/// the same.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Voters {
    /// Names the generation, and the set.
    pub(crate) view: u64,
    pub(crate) masters: MasterSet,
    /// Their names, in the order of their indices.
    pub(crate) names: Box<[Arc<str>]>,
    /// Their numbers in the set, the same for all its clients. Until this client knows the set,
    /// their places in its list.
    pub(crate) numbers: Box<[u32]>,
}

impl Voters {
    /// The masters that a client was given.
    pub(crate) fn given(names: &[Arc<str>]) -> Self {
        let numbers = (0..names.len() as u32).collect();
        Self { view: 0, masters: MasterSet::first(names.len()), names: names.into(), numbers }
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether these are most of them.
    pub(crate) fn have_majority(&self, masters: MasterSet) -> bool {
        self.masters.and(masters).len() * 2 > self.len()
    }
}
