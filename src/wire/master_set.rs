//! A set of masters, by their indices.

use super::master_index::MasterIndex;

/// A set of masters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct MasterSet(u64);

impl MasterSet {
    /// The first masters, so many.
    pub(crate) fn first(masters: usize) -> Self {
        MasterIndex::all().take(masters).collect()
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(crate) fn has(self, index: MasterIndex) -> bool {
        self.0 & (1 << index.0) != 0
    }

    /// How many masters of the set come before this one.
    pub(crate) fn before(self, index: MasterIndex) -> usize {
        (self.0 & ((1 << index.0) - 1)).count_ones() as usize
    }

    /// The masters in one of the two sets, or in both.
    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The masters in both sets.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The masters that are not in the other set.
    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// In the masters' order.
    pub(crate) fn iter(self) -> impl Iterator<Item = MasterIndex> + Clone {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let next = (left != 0).then(|| MasterIndex(left.trailing_zeros() as u8))?;
            left &= left - 1;
            Some(next)
        })
    }
}

impl From<MasterIndex> for MasterSet {
    /// One master.
    fn from(index: MasterIndex) -> Self {
        Self(1 << index.0)
    }
}

impl FromIterator<MasterIndex> for MasterSet {
    fn from_iter<I: IntoIterator<Item = MasterIndex>>(masters: I) -> Self {
        Self(masters.into_iter().fold(0, |bits, index| bits | 1 << index.0))
    }
}
