//! Readers and writers of one lock never hold it together. (Two writers are the business of
//! `windows`.)

use quorate_simulator::history::Violation;

use super::words::{time, who, window};
use crate::history::{History, Hold, Share};

/// The property's name.
pub const NAME: &str = "readers";

/// Finds every guard that was handed out to a reader in the window of a writer, or to a writer in
/// that of a reader. Guards of one owner may overlap. Of several such windows, it names one.
pub fn check(history: &History) -> Vec<Violation> {
    history.holds_by_lock().into_iter().flat_map(|((_, name), holds)| together(name, &holds)).collect()
}

/// The guards are in the order in which they were handed out.
fn together(name: &str, holds: &[&Hold]) -> Vec<Violation> {
    let mut held = Vec::<&Hold>::new();
    let mut found = Vec::new();
    let readers_and_writers = holds.iter().copied().filter(|hold| side(hold).is_some());
    for hold in readers_and_writers.filter(|hold| hold.granted < hold.window_end()) {
        held.retain(|other| other.window_end() > hold.granted);
        let rival = held.iter().find(|other| side(other) != side(hold) && other.owner != hold.owner);
        found.extend(rival.map(|rival| violation(name, rival, hold)));
        held.push(hold);
    }
    found
}

fn violation(name: &str, rival: &Hold, hold: &Hold) -> Violation {
    let is = side(hold).unwrap_or_default();
    let was = side(rival).unwrap_or_default();
    let what = format!(
        "{} was granted {name} as {is} while {} had it as {was}, {}",
        who(hold),
        who(rival),
        window(rival.granted, rival.window_end(), hold.granted)
    );
    Violation { property: NAME, what, at: time(hold.granted) }
}

fn side(hold: &Hold) -> Option<&'static str> {
    match hold.lock.share {
        Share::Exclusive => Some("a writer"),
        Share::Shared => Some("a reader"),
        Share::Permits(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{acquire, exclusive, given_back, history, owned, permits, shared, words};
    use super::*;

    fn found(holds: impl IntoIterator<Item = Hold>) -> usize {
        check(&history(holds)).len()
    }

    fn reader(owner: &str, granted: u64, deadline: u64) -> Hold {
        acquire(owner, &shared("l"), granted, deadline)
    }

    fn writer(owner: &str, granted: u64, deadline: u64) -> Hold {
        acquire(owner, &exclusive("l"), granted, deadline)
    }

    #[test]
    fn readers_may_be_together_and_a_writer_after_them() {
        assert_eq!(found([reader("a", 10, 100), reader("b", 20, 90), writer("c", 100, 200)]), 0);
        assert_eq!(found([given_back(writer("a", 10, 100), 50), reader("b", 50, 90)]), 0);
        assert_eq!(found([writer("a", 10, 100), writer("b", 20, 90)]), 0, "not its business");
        assert_eq!(found([reader("a", 10, 100), acquire("b", &permits("l", 1), 20, 90)]), 0);
        assert_eq!(found([reader("a", 10, 100), acquire("b", &exclusive("m"), 20, 90)]), 0, "elsewhere");
    }

    #[test]
    fn a_writer_among_readers_is_found_and_a_reader_beside_a_writer() {
        let found = check(&history([reader("a", 10, 100), reader("b", 20, 40), writer("c", 99, 200)]));
        assert_eq!(
            words(&found),
            [
                "process of c (c) was granted l as a writer while process of a (a) had it as a reader, from 0.010 s to 0.100 s: 1.0 ms too early"
            ]
        );
        assert_eq!(found[0].at, time(99_000));
        assert_eq!(super::check(&history([writer("a", 10, 100), reader("b", 99, 200)])).len(), 1);
    }

    #[test]
    fn a_long_reader_is_remembered_behind_short_ones() {
        assert_eq!(
            found([reader("a", 10, 900), reader("b", 20, 30), reader("c", 40, 50), writer("d", 60, 70)]),
            1
        );
    }

    #[test]
    fn an_owner_may_be_both() {
        assert_eq!(found([writer("a", 10, 100), owned(reader("b", 20, 90), "a")]), 0);
    }
}
