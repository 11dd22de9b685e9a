//! The violations of a summary: which are listed one by one, and how the others are counted. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// How many are listed, unless more properties are violated.
const LISTED: usize = 8;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Violation {
    pub(crate) property: &'static str,
    pub(crate) what: String,
    /// From the beginning of the history.
    pub(crate) at_ms: f64,
}

/// The first of each property, and of the others those that came first; in their order.
pub(super) fn listed(violations: &[Violation]) -> Vec<&Violation> {
    let mut seen = BTreeSet::new();
    let (mut listed, others): (Vec<_>, Vec<_>) =
        violations.iter().enumerate().partition(|(_, found)| seen.insert(found.property));
    let room = LISTED.saturating_sub(listed.len());
    listed.extend(others.into_iter().take(room));
    listed.sort_unstable_by_key(|(place, _)| *place);
    listed.into_iter().map(|(_, found)| found).collect()
}

/// How many more there are, of which property; nothing if all are listed.
pub(super) fn others(violations: &[Violation]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    violations.iter().for_each(|found| *counts.entry(found.property).or_default() += 1);
    let listed = listed(violations);
    for found in &listed {
        counts.entry(found.property).and_modify(|count| *count -= 1);
    }
    let more = violations.len() - listed.len();
    let left = counts.into_iter().filter(|(_, count)| *count > 0);
    let left: Vec<_> = left.map(|(property, count)| format!("{count} of {property}")).collect();
    (more > 0).then(|| format!("and {more} more: {}", left.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(properties: &[&'static str]) -> Vec<Violation> {
        let found = |(at, property): (usize, &&'static str)| Violation {
            property,
            what: String::new(),
            at_ms: at as f64,
        };
        properties.iter().enumerate().map(found).collect()
    }

    #[test]
    fn each_property_has_an_example_however_many_others_there_are() {
        let mut properties = vec!["fences"; 10];
        properties.extend(["windows", "windows", "ttl"]);
        let found = found(&properties);
        let places: Vec<_> = listed(&found).iter().map(|found| found.at_ms as usize).collect();
        assert_eq!(places, [0, 1, 2, 3, 4, 5, 10, 12]);
        assert_eq!(others(&found).unwrap(), "and 5 more: 4 of fences, 1 of windows");
    }

    #[test]
    fn few_are_all_told() {
        let found = found(&["windows", "linearizable", "windows"]);
        assert_eq!((listed(&found).len(), others(&found)), (3, None));
        assert_eq!((listed(&[]).len(), others(&[])), (0, None));
    }
}
