//! No two owners have one lock, or one permit of a semaphore, at the same time, except readers: the
//! property that a lock is for.
//!
//! The window of a guard is `[granted, end)`, where the end is the first of its deadline, its
//! release and the report of its loss: until then its holder has every reason to believe that the
//! lock is its own. Windows of different owners on one lock must not overlap; those of a lock over
//! several names count for each name. They may touch, and a guard that was handed out too late has
//! none (that is [`born_valid`](super::born_valid)'s). Guards of one owner may overlap: it
//! re-entered, or reads what it writes. So may those of readers.

use std::collections::BTreeSet;

use crate::history::{History, Hold, Violation};

/// The property's name.
pub const NAME: &str = "windows";

/// Finds every guard that was handed out in the window of another owner; to read, in that of
/// another owner that writes. Of several such windows, it names one.
pub fn check(history: &History) -> Vec<Violation> {
    let mut found: Vec<_> = history.holds_by_site().values().flat_map(|holds| intruders(holds)).collect();
    let mut reported = BTreeSet::new();
    found.retain(|violation| reported.insert(violation.what.clone())); // of two names that both have
    found
}

fn intruders(holds: &[&Hold]) -> Vec<Violation> {
    let mut all = Reach::default();
    let mut writers = Reach::default();
    let mut found = Vec::new();
    for &hold in holds.iter().filter(|hold| hold.granted < hold.window_end()) {
        let rivals = if hold.reads() { &writers } else { &all };
        found.extend(rivals.rival_of(hold).map(|rival| violation(rival, hold)));
        all.add(hold);
        if !hold.reads() {
            writers.add(hold);
        }
    }
    found
}

fn violation(rival: &Hold, hold: &Hold) -> Violation {
    let at = hold.granted;
    let from = rival.granted;
    let to = rival.window_end();
    let early = to - at;
    let what = format!("{hold} got it {early:?} early, in the window of {rival}, {from:?} to {to:?}");
    Violation { property: NAME, what, at }
}

/// How far the windows so far reach: the furthest, and the furthest of all owners but that one's.
#[derive(Default)]
struct Reach<'a> {
    furthest: Option<&'a Hold>,
    runner_up: Option<&'a Hold>,
}

impl<'a> Reach<'a> {
    /// A window of another owner that this one begins in.
    fn rival_of(&self, hold: &Hold) -> Option<&'a Hold> {
        let mut rivals = [self.furthest, self.runner_up].into_iter().flatten();
        rivals.find(|rival| rival.owner != hold.owner && rival.window_end() > hold.granted)
    }

    fn add(&mut self, hold: &'a Hold) {
        let passes = |other: Option<&Hold>| other.is_none_or(|other| hold.window_end() > other.window_end());
        let is_furthest_owners = self.furthest.is_some_and(|furthest| furthest.owner == hold.owner);
        if passes(self.furthest) {
            if !is_furthest_owners {
                self.runner_up = self.furthest;
            }
            self.furthest = Some(hold);
        } else if !is_furthest_owners && passes(self.runner_up) {
            self.runner_up = Some(hold);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{client, given_back, history, hold, lost, over, permit, shared, words};

    fn count(holds: impl IntoIterator<Item = Hold>) -> usize {
        check(&history(holds)).len()
    }

    #[test]
    fn windows_that_touch_are_well() {
        assert_eq!(count([hold("a", 0, 100), hold("b", 100, 200)]), 0, "at the deadline");
        assert_eq!(count([given_back("a", 0, 100, 50), hold("b", 50, 200)]), 0, "given back");
        assert_eq!(count([lost("a", 0, 100, 50), hold("b", 50, 200)]), 0, "reported lost");
        assert_eq!(count([hold("b", 100, 200), hold("a", 0, 100)]), 0, "in any order");
    }

    #[test]
    fn windows_that_overlap_by_a_moment_are_found() {
        assert_eq!(count([hold("a", 0, 100), hold("b", 99, 200)]), 1, "at the deadline");
        assert_eq!(count([given_back("a", 0, 100, 50), hold("b", 49, 200)]), 1, "given back");
        assert_eq!(count([lost("a", 0, 100, 50), hold("b", 49, 200)]), 1, "reported lost");
        assert_eq!(count([hold("b", 99, 200), hold("a", 0, 100)]), 1, "in any order");
        assert_eq!(count([hold("b", 0, 100), hold("a", 0, 100)]), 1, "at the same moment");
    }

    #[test]
    fn what_comes_after_the_deadline_makes_no_window_longer() {
        assert_eq!(count([given_back("a", 0, 100, 150), hold("b", 100, 200)]), 0);
        assert_eq!(count([lost("a", 0, 100, 150), hold("b", 100, 200)]), 0);
    }

    #[test]
    fn guards_of_one_owner_may_overlap() {
        assert_eq!(count([hold("a", 0, 100), hold("a", 50, 200)]), 0);
        assert_eq!(count([hold("a", 0, 100), hold("a", 50, 200), hold("b", 150, 300)]), 1);
    }

    #[test]
    fn other_locks_and_empty_windows_are_nobodys_business() {
        let elsewhere = over(&["m"], hold("b", 50, 200));
        assert_eq!(count([hold("a", 0, 100), elsewhere]), 0);
        assert_eq!(count([hold("a", 0, 100), hold("b", 50, 50)]), 0, "handed out too late");
        assert_eq!(count([given_back("b", 50, 200, 50), hold("a", 0, 100)]), 0, "given back at once");
    }

    #[test]
    fn a_long_window_is_remembered_behind_short_ones() {
        assert_eq!(count([hold("a", 0, 900), given_back("b", 10, 99, 20), hold("c", 30, 40)]), 2);
        assert_eq!(
            count([hold("a", 0, 900), hold("b", 10, 500), hold("a", 400, 950)]),
            2,
            "a re-enters in b's"
        );
        assert_eq!(
            count([hold("b", 0, 500), hold("a", 10, 900), hold("a", 400, 950)]),
            2,
            "and the other way round"
        );
        assert_eq!(
            count([hold("b", 0, 500), hold("a", 10, 400), hold("b", 450, 950)]),
            1,
            "b re-enters in its own"
        );
        assert_eq!(count([hold("a", 0, 900), hold("b", 10, 50), hold("c", 20, 500), hold("a", 400, 950)]), 3);
    }

    #[test]
    fn a_rival_is_remembered_whatever_the_furthest_owner_enters() {
        let two = || [hold("b", 0, 500), hold("a", 10, 900)];
        for again in [hold("a", 400, 950), hold("a", 400, 600)] {
            assert_eq!(count(two().into_iter().chain([again, hold("a", 450, 990)])), 3);
        }
    }

    #[test]
    fn a_lock_over_several_names_counts_for_each() {
        let both = |owner, from, to| over(&["l", "m"], hold(owner, from, to));
        assert_eq!(count([both("a", 0, 100), hold("b", 99, 200)]), 1);
        assert_eq!(count([over(&["m"], hold("a", 0, 100)), both("b", 99, 200)]), 1);
        assert_eq!(count([both("a", 0, 100), over(&["m", "n"], hold("b", 99, 200))]), 1);
        assert_eq!(count([both("a", 0, 100), both("b", 99, 200)]), 1, "reported once");
        assert_eq!(count([both("a", 0, 100), over(&["n"], hold("b", 50, 200)), both("c", 100, 200)]), 0);
        assert_eq!(count([both("a", 0, 100), both("a", 50, 200)]), 0, "re-enters");
    }

    #[test]
    fn each_permit_counts_by_itself() {
        assert_eq!(count([permit(0, hold("a", 0, 100)), permit(1, hold("b", 50, 200))]), 0);
        let found = check(&history([permit(1, hold("a", 0, 100)), permit(1, hold("b", 99, 200))]));
        let what = "client 0 (b on lock l:1) got it 1ms early, in the window of client 0 (a on lock l:1), 0ns to 100ms";
        assert_eq!(words(&found), [what]);
    }

    #[test]
    fn readers_may_have_it_together_and_nobody_beside_a_writer() {
        let readers = || [shared(hold("a", 0, 100)), shared(hold("b", 50, 200))];
        assert_eq!(count(readers()), 0);
        assert_eq!(count(readers().into_iter().chain([hold("c", 200, 300)])), 0, "after both");
        assert_eq!(count(readers().into_iter().chain([hold("c", 199, 300)])), 1, "beside the last");
        assert_eq!(count([shared(hold("a", 0, 900)), shared(hold("b", 10, 50)), hold("c", 60, 99)]), 1);
        assert_eq!(count([hold("a", 0, 100), shared(hold("b", 100, 200))]), 0, "after the writer");
        assert_eq!(count([hold("a", 0, 100), shared(hold("b", 99, 200))]), 1, "beside the writer");
        let found =
            check(&history([hold("a", 0, 900), shared(hold("a", 5, 990)), shared(hold("b", 10, 50))]));
        let what = "client 0 (b on lock l, to read) got it 890ms early, in the window of client 0 (a on lock l), 0ns to 900ms";
        assert_eq!(words(&found), [what]);
    }

    #[test]
    fn a_writer_may_read_what_it_writes_and_go_on_when_it_has_released_that() {
        let downgrade = || [given_back("a", 0, 900, 100), shared(hold("a", 50, 900))];
        assert_eq!(
            count(downgrade().into_iter().chain([shared(hold("b", 100, 200))])),
            0,
            "others read, too"
        );
        assert_eq!(count(downgrade().into_iter().chain([shared(hold("b", 99, 200))])), 1, "it writes still");
        assert_eq!(count(downgrade().into_iter().chain([hold("b", 100, 200)])), 1, "nobody writes meanwhile");
    }

    #[test]
    fn it_says_who_when_and_by_how_much() {
        let other = Hold { process: client(7), ..hold("b", 97, 200) };
        let found = check(&history([hold("a", 0, 100), other]));
        let what =
            "client 7 (b on lock l) got it 3ms early, in the window of client 0 (a on lock l), 0ns to 100ms";
        assert_eq!(words(&found), [what]);
    }
}
