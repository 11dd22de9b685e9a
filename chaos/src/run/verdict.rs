//! What all checkers together say of a history.

use std::time::Duration;

use quorate_simulator::history::Violation;

use crate::checkers::{self, linearizable, pace, simulated, ttl};
use crate::history::History;

/// What a history shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What violates a property, or is [too slow](pace), in the order of time.
    pub violations: Vec<Violation>,
    /// The locks, by kind and name, for which the search for an order was given up.
    pub inconclusive: Vec<(String, String)>,
}

impl Verdict {
    /// Asks every checker. In the calm, every waiter has to get the lock within this bound.
    pub fn of(history: &History, bound: Duration) -> Self {
        let mut verdict = Self { violations: checkers::check_safety(history), inconclusive: Vec::new() };
        verdict.violations.extend(ttl::check(history));
        verdict.violations.extend(pace::check(history));
        verdict.violations.extend(simulated::liveness(history, bound));
        for (lock, found) in linearizable::check(history, linearizable::BOUND) {
            match found {
                linearizable::Linearizability::Linearizable => {}
                linearizable::Linearizability::Violated(violation) => verdict.violations.push(violation),
                linearizable::Linearizability::Inconclusive => verdict.inconclusive.push(lock),
            }
        }
        verdict.violations.sort_by_key(|violation| violation.at);
        verdict
    }

    /// The names of the properties that do not hold, each once.
    pub fn properties(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.violations.iter().map(|violation| violation.property).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
