//! What all checkers together say of a history.

use quorate_history::checkers::{self, linearizable};
use quorate_history::{History, Violation};

/// What a history shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What violates a property, or is [too slow](checkers::pace), in the order of time.
    pub violations: Vec<Violation>,
    /// The locks, by kind and name, for which the search for an order was given up.
    pub inconclusive: Vec<(String, String)>,
}

impl Verdict {
    /// Asks every checker that real servers have something to show to.
    pub fn of(history: &History) -> Self {
        let violations = checkers::check_all_but(history, &checkers::NOT_REAL);
        let mut verdict = Self { violations, inconclusive: Vec::new() };
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
