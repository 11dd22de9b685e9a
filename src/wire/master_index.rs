//! Which master of a client, and a value for each.

use std::ops::{Index, IndexMut};

/// One of the masters that a client was given, or that joined the set while it ran. It keeps its
/// index for as long as the client lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MasterIndex(pub(super) u8);

impl MasterIndex {
    /// How many there are: no client has more masters, those that left the set included.
    pub(crate) const COUNT: usize = u64::BITS as usize;

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }
}

#[cfg(any(test, feature = "unstable-testing"))]
impl From<usize> for MasterIndex {
    /// # Panics
    ///
    /// If a client cannot have so many masters.
    fn from(place: usize) -> Self {
        Self::all().nth(place).expect("a client has fewer masters")
    }
}

/// A value for each of the first masters, or for all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ByMaster<T>(Vec<T>);

impl<T> ByMaster<T> {
    /// A value for each index.
    pub(crate) fn all(make: impl Fn() -> T) -> Self {
        MasterIndex::all().map(|_| make()).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (MasterIndex, &T)> {
        MasterIndex::all().zip(&self.0)
    }

    pub(crate) fn values(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    pub(crate) fn values_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// The first master whose value matches.
    pub(crate) fn position(&self, is_it: impl Fn(&T) -> bool) -> Option<MasterIndex> {
        self.iter().find(|(_, value)| is_it(value)).map(|(index, _)| index)
    }

    /// Gives the next master its value. `None` if there is no room.
    pub(crate) fn push(&mut self, value: T) -> Option<MasterIndex> {
        let index = MasterIndex::all().nth(self.0.len())?;
        self.0.push(value);
        Some(index)
    }
}

impl<T> FromIterator<T> for ByMaster<T> {
    /// The values of the masters in their order.
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl<T> Index<MasterIndex> for ByMaster<T> {
    type Output = T;

    fn index(&self, index: MasterIndex) -> &T {
        &self.0[usize::from(index.0)]
    }
}

impl<T> IndexMut<MasterIndex> for ByMaster<T> {
    fn index_mut(&mut self, index: MasterIndex) -> &mut T {
        &mut self.0[usize::from(index.0)]
    }
}
