//! No more hold a semaphore than it has permits.
//!
//! At no moment may there be more windows than permits: `[granted, end)`, where the end is the
//! first of the deadline, the release and the report of the loss. If clients disagree on the number
//! of permits, the greatest counts.

use quorate_simulator::history::Violation;

use super::words::{time, who};
use crate::history::{History, Hold, Share};

/// The property's name.
pub const NAME: &str = "permits";

/// Finds every guard that was handed out while all permits were held.
pub fn check(history: &History) -> Vec<Violation> {
    history.holds_by_lock().into_iter().flat_map(|((_, name), holds)| surplus(name, &holds)).collect()
}

/// The guards are in the order in which they were handed out.
fn surplus(name: &str, holds: &[&Hold]) -> Vec<Violation> {
    let permits = |hold: &Hold| match hold.lock.share {
        Share::Permits(permits) => usize::try_from(permits).ok(),
        Share::Exclusive | Share::Shared => None,
    };
    let Some(most) = holds.iter().copied().filter_map(permits).max() else { return Vec::new() };
    let mut held = Vec::<&Hold>::new();
    let mut found = Vec::new();
    for &hold in holds.iter().filter(|hold| hold.granted < hold.window_end()) {
        held.retain(|other| other.window_end() > hold.granted);
        if held.len() >= most {
            let others = held.iter().map(|other| who(other)).collect::<Vec<_>>().join(", ");
            let what = format!(
                "{} was let into {name}, which has {most} permits, while {} held it: {others}",
                who(hold),
                held.len()
            );
            found.push(Violation { property: NAME, what, at: time(hold.granted) });
        }
        held.push(hold);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{acquire, exclusive, given_back, history, permits, words};
    use super::*;

    fn found(holds: impl IntoIterator<Item = Hold>) -> usize {
        check(&history(holds)).len()
    }

    fn hold(owner: &str, granted: u64, deadline: u64) -> Hold {
        acquire(owner, &permits("s", 2), granted, deadline)
    }

    #[test]
    fn as_many_as_there_are_permits_may_be_in() {
        assert_eq!(found([hold("a", 10, 100), hold("b", 20, 100)]), 0);
        assert_eq!(found([hold("a", 10, 100), hold("b", 20, 100), hold("c", 100, 200)]), 0, "windows touch");
        let early = given_back(hold("b", 20, 100), 50);
        assert_eq!(found([hold("a", 10, 100), early, hold("c", 50, 200)]), 0, "given back");
        let lost = Hold { lost: Some(50_000), ..hold("b", 20, 100) };
        assert_eq!(found([hold("a", 10, 100), lost, hold("c", 50, 200)]), 0, "reported lost");
        assert_eq!(
            found([hold("a", 10, 100), hold("b", 20, 100), hold("c", 50, 50)]),
            0,
            "handed out too late"
        );
    }

    #[test]
    fn one_more_is_found_each_time() {
        let found = check(&history([hold("a", 10, 100), hold("b", 20, 100), hold("c", 99, 200)]));
        let what = "process of c (c) was let into s, which has 2 permits, while 2 held it: process of a (a), \
                    process of b (b)";
        assert_eq!(words(&found), [what]);
        assert_eq!(found[0].at, time(99_000));
        let holds = ["a", "b", "c", "d"].map(|owner| hold(owner, 10, 100));
        assert_eq!(super::check(&history(holds)).len(), 2);
    }

    #[test]
    fn each_semaphore_is_looked_at_by_itself_and_other_locks_are_not() {
        let elsewhere = acquire("c", &permits("t", 2), 30, 100);
        assert_eq!(found([hold("a", 10, 100), hold("b", 20, 100), elsewhere]), 0);
        assert_eq!(found(["a", "b", "c"].map(|owner| acquire(owner, &exclusive("l"), 10, 100))), 0);
    }

    #[test]
    fn the_greatest_number_counts() {
        let three = acquire("c", &permits("s", 3), 30, 100);
        assert_eq!(found([hold("a", 10, 100), hold("b", 20, 100), three]), 0);
    }
}
