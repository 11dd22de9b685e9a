//! The properties that every run must have, one a file, each a pure function of the history.
//!
//! | property | in short |
//! |---|---|
//! | [`windows`] | no two owners have one lock, or one permit, at the same time, but to read |
//! | [`crowd`] | no more have a semaphore at the same time than it has permits |
//! | [`born_valid`] | a guard is valid when it is handed out |
//! | [`loss_told`] | a holder learns that its lease is lost before it ends |
//! | [`ttl`] | no entry counts after its end, and no name is remembered for ever |
//! | [`left_behind`] | in the calm, no key is left behind on a master |
//! | [`liveness`] | in the calm, every waiter gets the lock |
//! | [`hand_off`] | in the calm, a lock is not left free while somebody waits for it |
//! | [`order`] | in the calm, a fair lock is granted in the order of arrival |
//! | [`reach`] | no master counts as unreachable before its time-out |
//! | [`decrees`] | of a set of masters, one list is decided for each generation |
//! | [`fences`] | tokens rise, and the resource takes no old one |
//! | [`strangers`] | a client with another list of masters than the set gets no lock |
//!
//! The first five must hold under all faults, as long as clocks run at nearly the same rate; the
//! last two even if they do not.

use crate::history::{History, Violation};

pub mod born_valid;
pub mod crowd;
pub mod decrees;
pub mod fences;
mod grouped;
pub mod hand_off;
pub mod left_behind;
pub mod liveness;
pub mod loss_told;
#[cfg(test)]
mod made_up;
pub mod order;
pub mod reach;
mod stillness;
pub mod strangers;
pub mod ttl;
pub mod windows;

/// One property.
#[derive(Clone, Copy, Debug)]
pub struct Checker {
    /// Its name, which is that of its file.
    pub name: &'static str,
    /// Finds what violates it.
    pub check: fn(&History) -> Vec<Violation>,
}

/// All of them.
pub const ALL: [Checker; 13] = [
    Checker { name: windows::NAME, check: windows::check },
    Checker { name: crowd::NAME, check: crowd::check },
    Checker { name: born_valid::NAME, check: born_valid::check },
    Checker { name: loss_told::NAME, check: loss_told::check },
    Checker { name: ttl::NAME, check: ttl::check },
    Checker { name: left_behind::NAME, check: left_behind::check },
    Checker { name: liveness::NAME, check: liveness::check },
    Checker { name: hand_off::NAME, check: hand_off::check },
    Checker { name: order::NAME, check: order::check },
    Checker { name: reach::NAME, check: reach::check },
    Checker { name: decrees::NAME, check: decrees::check },
    Checker { name: fences::NAME, check: fences::check },
    Checker { name: strangers::NAME, check: strangers::check },
];

/// Those that must hold though masters forget, and clocks jump: nobody has the lock for nothing.
/// When it is had again then is another matter.
pub const WHATEVER_HAPPENS: [&str; 6] =
    [windows::NAME, crowd::NAME, born_valid::NAME, loss_told::NAME, fences::NAME, strangers::NAME];

/// Everything that violates any property, in the order of time.
pub fn check_all(history: &History) -> Vec<Violation> {
    let mut violations: Vec<_> = ALL.iter().flat_map(|checker| (checker.check)(history)).collect();
    violations.sort_by_key(|violation| violation.at);
    violations
}

/// The same where the set of masters changes. A call may wait there for a connection that shakes
/// hands again, which the master owes nothing for: [`reach`] does not know of that.
pub fn check_changing(history: &History) -> Vec<Violation> {
    let mut violations = check_all(history);
    violations.retain(|violation| violation.property != reach::NAME);
    violations
}

/// The same, for those that must hold whatever happens.
pub fn check_safety(history: &History) -> Vec<Violation> {
    let mut violations = check_all(history);
    violations.retain(|violation| WHATEVER_HAPPENS.contains(&violation.property));
    violations
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::made_up::{given_back, history, hold, ms};
    use super::*;
    use crate::history::Hold;

    /// What helps the checkers, and checks nothing.
    const HELPERS: [&str; 4] = ["grouped", "made_up", "mod", "stillness"];

    #[test]
    fn every_file_is_on_the_list_under_its_name() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/checkers");
        let files = folder.read_dir().unwrap().map(|file| file.unwrap().path());
        let names = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
        let files: BTreeSet<_> = names.filter(|name| !HELPERS.contains(&&**name)).collect();
        assert_eq!(ALL.iter().map(|checker| checker.name.to_owned()).collect::<BTreeSet<_>>(), files);
    }

    #[test]
    fn nothing_is_found_where_nothing_happened() {
        assert_eq!(check_all(&History::default()), []);
    }

    #[test]
    fn all_are_asked_and_answer_in_the_order_of_time() {
        let late = Hold { granted: ms(90), ..hold("d", 600, 80) };
        let history = history([given_back("a", 100, 500, 450), hold("b", 400, 900), late]);
        let found: Vec<_> = check_all(&history).iter().map(|found| (found.property, found.at)).collect();
        assert_eq!(found, [("born_valid", ms(90)), ("windows", ms(400)), ("loss_told", ms(900))]);
    }

    #[test]
    fn a_violation_is_told_in_one_line() {
        let found = check_all(&history([hold("a", 100, 500)]));
        let expected =
            "loss_told at 500ms: client 0 (a on lock l) never learned that its lease was over at 500ms";
        assert_eq!(found.iter().map(Violation::to_string).collect::<Vec<_>>(), [expected]);
    }
}
