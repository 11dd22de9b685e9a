//! No more have a semaphore at the same time than it has permits: the property that a semaphore is
//! for.
//!
//! Guards are in their windows as [`windows`](super::windows) has it. When one is handed out, fewer
//! than all permits of its semaphore must be in a window. Which permit each says it is does not
//! matter here. If clients disagree on the number of permits, the greatest counts. Locks that are
//! not semaphores are not looked at.

use crate::history::{History, Hold, Share, Violation};

/// The property's name.
pub const NAME: &str = "permits";

/// Finds every guard that was handed out while as many others were in their windows as there are
/// permits.
pub fn check(history: &History) -> Vec<Violation> {
    history.holds_by_lock().values().flat_map(|holds| too_many(holds)).collect()
}

fn too_many(holds: &[&Hold]) -> Vec<Violation> {
    let permits = holds.iter().filter_map(|hold| match hold.lock.share {
        Share::Permits(permits) => Some(permits as usize),
        Share::Exclusive | Share::Shared => None,
    });
    let Some(permits) = permits.max() else { return Vec::new() };
    let mut inside = Vec::<&Hold>::new();
    let mut found = Vec::new();
    for hold in holds.iter().filter(|hold| hold.granted < hold.window_end()) {
        inside.retain(|other| other.window_end() > hold.granted);
        if inside.len() >= permits {
            found.push(violation(hold, &inside, permits));
        }
        inside.push(hold);
    }
    found
}

fn violation(hold: &Hold, inside: &[&Hold], permits: usize) -> Violation {
    let others: Vec<_> = inside.iter().map(|other| other.to_string()).collect();
    let what = format!("{hold} got one of {permits} permits that were all taken, by {}", others.join(", "));
    Violation { property: NAME, what, at: hold.granted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{given_back, history, hold, lost, ms, on, over, permits, words};

    fn found(number: u32, holds: impl IntoIterator<Item = Hold>) -> Vec<Violation> {
        let of = |hold: Hold| Hold {
            lock: crate::history::Lock { share: Share::Permits(number), ..hold.lock },
            ..hold
        };
        check(&history(holds.into_iter().map(of)))
    }

    #[test]
    fn as_many_as_there_are_permits_may_have_it_and_not_one_more() {
        let holds = || [hold("a", 0, 100), hold("b", 10, 100), hold("c", 99, 200)];
        assert_eq!(found(3, holds()), []);
        let found = found(2, holds());
        let what = "client 0 (c on lock l) got one of 2 permits that were all taken, by client 0 (a on lock l), client 0 (b on \
                    lock l)";
        assert_eq!(words(&found), [what]);
        assert_eq!(found[0].at, ms(99));
    }

    #[test]
    fn which_permits_they_say_they_are_does_not_matter() {
        let holds = (0..3).map(|number| Hold { permit: Some(number), ..hold("a", 0, 100) });
        assert_eq!(found(2, holds).len(), 1);
    }

    #[test]
    fn a_permit_that_is_free_again_may_be_had() {
        for first in
            [hold("a", 0, 100), given_back("a", 0, 500, 100), lost("a", 0, 500, 100), hold("a", 50, 50)]
        {
            assert_eq!(found(2, [first, hold("b", 10, 900), hold("c", 100, 900)]), []);
        }
        let holds = [hold("a", 0, 100), hold("b", 0, 300), hold("c", 100, 200), hold("d", 200, 300)];
        assert_eq!(found(2, holds.clone()), [], "one after the other");
        assert_eq!(found(2, holds.into_iter().chain([hold("e", 150, 400)])).len(), 2, "e and d");
        let late = [hold("a", 10, 100), hold("b", 20, 100), hold("c", 50, 50)];
        assert_eq!(found(2, late), [], "handed out too late");
    }

    #[test]
    fn one_more_is_found_each_time() {
        assert_eq!(found(2, ["a", "b", "c", "d"].map(|owner| hold(owner, 10, 100))).len(), 2);
    }

    #[test]
    fn one_that_is_kept_for_long_is_remembered() {
        let short = (1..9).map(|at| hold("b", at * 10, at * 10 + 10));
        assert_eq!(found(1, short.chain([hold("a", 0, 900)])).len(), 8);
    }

    #[test]
    fn each_semaphore_counts_by_itself_and_locks_do_not() {
        assert_eq!(found(1, [hold("a", 0, 100), over(&["m"], hold("b", 50, 200))]), []);
        assert_eq!(check(&history([hold("a", 0, 100), hold("a", 50, 200)])), []);
    }

    #[test]
    fn the_greatest_number_counts() {
        let of = |number, owner| on(&permits(number), hold(owner, 10, 100));
        assert_eq!(check(&history([of(2, "a"), of(2, "b"), of(3, "c")])), []);
    }
}
