//! The violations of a summary: which are told one by one, and what is said of the others. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// How many are told, if there are no more properties than that.
const TOLD: usize = 8;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Violation {
    pub(crate) property: &'static str,
    pub(crate) what: String,
    /// From the beginning of the history.
    pub(crate) at_ms: f64,
}

/// The first of each property, and of the others those that came first; in the order in which they
/// are.
pub(super) fn told(violations: &[Violation]) -> Vec<&Violation> {
    let mut seen = BTreeSet::new();
    let (mut told, others): (Vec<_>, Vec<_>) =
        violations.iter().enumerate().partition(|(_, found)| seen.insert(found.property));
    let room = TOLD.saturating_sub(told.len());
    told.extend(others.into_iter().take(room));
    told.sort_unstable_by_key(|(place, _)| *place);
    told.into_iter().map(|(_, found)| found).collect()
}

/// How many more there are, of which property; nothing if all are told.
pub(super) fn others(violations: &[Violation]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    violations.iter().for_each(|found| *counts.entry(found.property).or_default() += 1);
    let told = told(violations);
    for found in &told {
        counts.entry(found.property).and_modify(|count| *count -= 1);
    }
    let more = violations.len() - told.len();
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
        let mut properties = vec!["readers"; 10];
        properties.extend(["windows", "windows", "ttl"]);
        let found = found(&properties);
        let places: Vec<_> = told(&found).iter().map(|found| found.at_ms as usize).collect();
        assert_eq!(places, [0, 1, 2, 3, 4, 5, 10, 12]);
        assert_eq!(others(&found).unwrap(), "and 5 more: 4 of readers, 1 of windows");
    }

    #[test]
    fn few_are_all_told() {
        let found = found(&["windows", "linearizable", "windows"]);
        assert_eq!((told(&found).len(), others(&found)), (3, None));
        assert_eq!((told(&[]).len(), others(&[])), (0, None));
    }
}
