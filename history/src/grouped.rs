//! What happened, by what it happened to.

use std::collections::BTreeMap;

/// What belongs to each of these, in the order of time.
pub(crate) fn grouped<'a, K: Ord, T, O: Ord>(
    things: impl Iterator<Item = (K, &'a T)>,
    at: impl Fn(&T) -> O,
) -> BTreeMap<K, Vec<&'a T>> {
    let mut grouped: BTreeMap<K, Vec<&T>> = BTreeMap::new();
    for (place, thing) in things {
        grouped.entry(place).or_default().push(thing);
    }
    for things in grouped.values_mut() {
        things.sort_by_key(|thing| at(thing));
    }
    grouped
}
