//! What must hold for every history, a property a file.
//!
//! | property | in short | from |
//! |---|---|---|
//! | `windows` | no two owners have one exclusive lock, or one permit, at the same time | the simulator |
//! | `fences` | tokens are unique, and rise in real time | the simulator |
//! | `liveness` | in the calm, every waiter gets the lock | the simulator |
//! | [`permits`] | no more hold a semaphore than it has permits | here |
//! | [`readers`] | readers and writers of one lock never hold it together | here |
//! | [`store`] | the fenced store accepts nothing older than what it has accepted before | here |
//! | [`stranger`] | a client with another list of masters gets no lock | here |
//! | [`changes`] | nobody notices that the set of masters changes | here |
//! | [`pace`] | acquires are not much slower while the set changes: a goal, no property | here |
//! | [`ttl`] | no key outlives its TTL, or has none | here |
//! | [`linearizable`] | every history of an exclusive lock is one of a fenced mutex: with a verdict of its own, for the search may be too long | here |
//!
//! Those of the simulator are the same code ([`simulated`]). Of its others, `born_valid` and
//! `loss_told` need to know when a client learned something, and a real process may stand still
//! before it records that.

use quorate_simulator::checkers::{fences, windows};
pub use quorate_simulator::history::Violation;

pub use self::exercised::exercised;
use crate::history::History;

pub mod changes;
mod exercised;
pub mod linearizable;
#[cfg(test)]
pub(crate) mod made_up;
pub mod pace;
pub mod permits;
pub mod readers;
mod search;
pub mod simulated;
pub mod store;
pub mod stranger;
pub mod ttl;
mod words;

/// One property.
#[derive(Clone, Copy, Debug)]
pub struct Checker {
    /// Its name.
    pub name: &'static str,
    /// Finds what violates it.
    pub check: fn(&History) -> Vec<Violation>,
}

/// Those that must hold whatever strikes, and need no search.
pub const SAFETY: [Checker; 7] = [
    Checker { name: windows::NAME, check: simulated::windows },
    Checker { name: fences::NAME, check: simulated::fences },
    Checker { name: permits::NAME, check: permits::check },
    Checker { name: readers::NAME, check: readers::check },
    Checker { name: store::NAME, check: store::check },
    Checker { name: stranger::NAME, check: stranger::check },
    Checker { name: changes::NAME, check: changes::check },
];

/// Everything that violates any of them, in the order of time.
pub fn check_safety(history: &History) -> Vec<Violation> {
    let mut violations: Vec<_> = SAFETY.iter().flat_map(|checker| (checker.check)(history)).collect();
    violations.sort_by_key(|violation| violation.at);
    violations
}

#[cfg(test)]
mod tests {
    use super::made_up::{acquire, exclusive, fenced, given_back, history};
    use super::*;

    #[test]
    fn nothing_is_found_where_nothing_happened() {
        assert_eq!(check_safety(&History::default()), []);
    }

    #[test]
    fn all_are_asked_and_answer_in_the_order_of_time() {
        let found = check_safety(&history([
            acquire("b", &exclusive("l"), 40, 200),
            acquire("a", &exclusive("l"), 10, 100),
            given_back(fenced(acquire("d", &exclusive("m"), 10, 30), 2), 20),
            fenced(acquire("e", &exclusive("m"), 30, 40), 1),
        ]));
        let found: Vec<_> = found.iter().map(|found| found.property).collect();
        assert_eq!(found, ["fences", "windows"]);
    }

    #[test]
    fn kinds_of_one_name_are_different_locks() {
        let other = crate::history::Lock { kind: "other".to_owned(), ..exclusive("l") };
        let found =
            check_safety(&history([acquire("a", &exclusive("l"), 10, 100), acquire("b", &other, 20, 100)]));
        assert_eq!(found, []);
    }
}
