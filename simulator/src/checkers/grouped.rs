//! What happened, by the lock or the permit that it happened to.

use std::collections::BTreeMap;

use crate::history::{History, Hold, Site, Time};

/// The guards of each lock, or each permit, in the order in which they were handed out.
pub(super) fn holds_by_site(history: &History) -> BTreeMap<Site<'_>, Vec<&Hold>> {
    let sites = history.holds.iter().flat_map(|hold| hold.sites().map(move |site| (site, hold)));
    grouped(sites, |hold| hold.granted)
}

/// What belongs to each of these, in the order of time.
pub(super) fn grouped<'a, K: Ord, T>(
    things: impl Iterator<Item = (K, &'a T)>,
    at: impl Fn(&T) -> Time,
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
