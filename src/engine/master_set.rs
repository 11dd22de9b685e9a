//! A set of masters, by their indices.

use crate::config::MAX_MASTERS;

/// A set of masters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MasterSet(u16);

const _: () = assert!(MAX_MASTERS <= u16::BITS as usize, "each master has a bit");

impl MasterSet {
    /// All of so many masters.
    pub(super) fn all(masters: usize) -> Self {
        (0..masters).collect()
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The masters in one of the two sets, or in both.
    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The masters in both sets.
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The masters that are not in the other set.
    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// In the masters' order.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..u16::BITS as usize).filter(move |index| self.0 & (1 << index) != 0)
    }
}

impl FromIterator<usize> for MasterSet {
    fn from_iter<I: IntoIterator<Item = usize>>(masters: I) -> Self {
        Self(masters.into_iter().fold(0, |bits, index| bits | 1 << index))
    }
}
