//! The properties that must hold for every history, one a file, each a pure function of it.
//!
//! | property | in short |
//! |---|---|
//! | [`windows`] | no two owners have one lock, or one permit, at the same time, but to read |
//! | [`permits`] | no more have a semaphore at the same time than it has permits |
//! | [`born_valid`] | a guard is valid when it is handed out |
//! | [`loss_told`] | a holder learns that its lease is lost before it ends |
//! | [`fences`] | tokens are unique, and rise in real time |
//! | [`store`] | the fenced store accepts nothing older than what it has accepted before |
//! | [`strangers`] | a client with another list of masters than the set gets no lock |
//! | [`ttl`] | nothing locks after its end, no key outlives its TTL, and no name is remembered for ever |
//! | [`left_behind`] | in the calm, no key is left behind on a master |
//! | [`liveness`] | in the calm, every waiter gets the lock |
//! | [`hand_off`] | in the calm, a lock is not left free while somebody waits for it |
//! | [`order`] | in the calm, a fair lock is granted in the order of arrival |
//! | [`reach`] | no master counts as unreachable before its time-out |
//! | [`decrees`] | of a set of masters, one list is decided for each generation |
//! | [`changes`] | nobody notices that the set of masters changes |
//! | [`pace`] | acquires are not much slower while the set changes: a goal, no property |
//! | [`linearizable`] | every history of an exclusive lock is one of a fenced mutex: with a verdict of its own, for the search may be too long |
//!
//! The lists below say to which of them a run is not held, or only.

pub use self::exercised::exercised;
use crate::history::{History, Violation};

pub mod born_valid;
pub mod changes;
pub mod decrees;
mod exercised;
pub mod fences;
pub mod hand_off;
pub mod left_behind;
pub mod linearizable;
pub mod liveness;
pub mod loss_told;
pub mod order;
pub mod pace;
pub mod permits;
pub mod reach;
mod search;
mod stillness;
pub mod store;
pub mod strangers;
pub mod ttl;
pub mod windows;

/// Finds what violates a property.
pub type Checker = fn(&History) -> Vec<Violation>;

/// All properties that need no search. What a history cannot show violates none.
pub const ALL: [(&str, Checker); 16] = [
    (windows::NAME, windows::check),
    (permits::NAME, permits::check),
    (born_valid::NAME, born_valid::check),
    (loss_told::NAME, loss_told::check),
    (fences::NAME, fences::check),
    (store::NAME, store::check),
    (strangers::NAME, strangers::check),
    (ttl::NAME, ttl::check),
    (left_behind::NAME, left_behind::check),
    (liveness::NAME, liveness::check),
    (hand_off::NAME, hand_off::check),
    (order::NAME, order::check),
    (reach::NAME, reach::check),
    (decrees::NAME, decrees::check),
    (changes::NAME, changes::check),
    (pace::NAME, pace::check),
];

/// What holds in a simulation though masters forget, and clocks jump: nobody has the lock for
/// nothing. When it is had again then is another matter.
pub const WHATEVER_HAPPENS: [&str; 7] = [
    windows::NAME,
    permits::NAME,
    born_valid::NAME,
    loss_told::NAME,
    fences::NAME,
    store::NAME,
    strangers::NAME,
];

/// What does not hold in a simulation where the set of masters changes: a call may wait there for a
/// connection that shakes hands again, which the master owes nothing for.
pub const NOT_CHANGING: [&str; 1] = [reach::NAME];

/// What holds on real servers at any time.
pub const SAFETY: [&str; 6] =
    [windows::NAME, permits::NAME, fences::NAME, store::NAME, strangers::NAME, changes::NAME];

/// What real servers do not show. It takes when a client learned something, and a real process may
/// stand still before it records that; or what may still be in the way when all is calm.
pub const NOT_REAL: [&str; 3] = [born_valid::NAME, loss_told::NAME, hand_off::NAME];

/// Everything that violates any of these properties, in the order of time.
pub fn check_only(history: &History, properties: &[&str]) -> Vec<Violation> {
    check_those(history, |name| properties.contains(&name))
}

/// Everything that violates any property but these, in the order of time.
pub fn check_all_but(history: &History, properties: &[&str]) -> Vec<Violation> {
    check_those(history, |name| !properties.contains(&name))
}

fn check_those(history: &History, holds: impl Fn(&str) -> bool) -> Vec<Violation> {
    let those = ALL.iter().filter(|(name, _)| holds(name));
    let mut violations: Vec<_> = those.flat_map(|(_, check)| check(history)).collect();
    violations.sort_by_key(|violation| violation.at);
    violations
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::history::Hold;
    use crate::made_up::{fenced, given_back, history, hold, ms, on, over, permits};

    /// What helps the checkers, and checks nothing.
    const HELPERS: [&str; 4] = ["exercised", "mod", "search", "stillness"];

    #[test]
    fn every_file_is_on_the_list_under_its_name() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/checkers");
        let files = folder.read_dir().unwrap().map(|file| file.unwrap().path());
        let names = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
        let files: BTreeSet<_> = names.filter(|name| !HELPERS.contains(&&**name)).collect();
        let all = ALL.iter().map(|(name, _)| *name).chain([linearizable::NAME]);
        assert_eq!(all.map(str::to_owned).collect::<BTreeSet<_>>(), files);
    }

    #[test]
    fn nothing_is_found_where_nothing_happened() {
        assert_eq!(check_all_but(&History::default(), &[]), []);
    }

    #[test]
    fn all_are_asked_and_answer_in_the_order_of_time() {
        let late = Hold { granted: ms(90), ..hold("d", 600, 80) };
        let told = |found: Vec<Violation>| -> Vec<_> {
            found.iter().map(|found| (found.property, found.at)).collect()
        };
        let history = history([given_back("a", 100, 500, 450), hold("b", 400, 900), late]);
        let expected = [("born_valid", ms(90)), ("windows", ms(400)), ("loss_told", ms(900))];
        assert_eq!(told(check_all_but(&history, &[])), expected);
        assert_eq!(told(check_all_but(&history, &NOT_REAL)), expected[1..2]);
        let tokens = [fenced(2, given_back("d", 10, 30, 20)), fenced(1, hold("e", 30, 40))];
        let holds = tokens.map(|hold| over(&["m"], hold)).into_iter().chain(history.holds);
        let found = check_only(&crate::made_up::history(holds), &SAFETY);
        assert_eq!(told(found), [("fences", ms(30)), ("windows", ms(400))]);
    }

    #[test]
    fn a_violation_is_told_in_one_line() {
        let found = check_all_but(&history([hold("a", 100, 500)]), &[]);
        let expected =
            "loss_told at 500ms: client 0 (a on lock l) never learned that its lease was over at 500ms";
        assert_eq!(found.iter().map(Violation::to_string).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn kinds_of_one_name_are_different_locks_and_permits_are_none() {
        let other = crate::history::Lock { kind: "other".to_owned(), ..hold("a", 1, 2).lock };
        let found = check_only(&history([hold("a", 10, 100), on(&other, hold("b", 20, 100))]), &SAFETY);
        assert_eq!(found, []);
        let unknown = ["a", "b"].map(|owner| fenced(1, on(&permits(2), hold(owner, 10, 100))));
        assert_eq!(check_only(&history(unknown), &SAFETY), []);
    }
}
