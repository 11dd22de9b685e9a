//! Nobody notices that the set of masters changes: every acquire that is ready to wait is granted,
//! one that is not is told who has the lock, no lease ends before its holder ends it, and those
//! that clients hold all the time are held from before the first change until after the last one.
//!
//! This is promised where all masters answer but those that are replaced, and clients wait for
//! longer than others hold.

use quorate_simulator::history::Violation;

use super::words::{at, time, who};
use crate::figures::held_throughout;
use crate::history::{Call, History, Hold, Made, Outcome};

/// The property's name.
pub const NAME: &str = "changes";

/// Finds every acquire that failed, and every lease that was lost, where the set changes; and that
/// too few leases were held over all changes.
pub fn check(history: &History) -> Vec<Violation> {
    if history.changes.is_empty() {
        return Vec::new();
    }
    let acquires = history.calls.iter().filter_map(failed);
    acquires.chain(history.holds.iter().filter_map(lost)).chain(too_few(history)).collect()
}

fn failed(made: &Made) -> Option<Violation> {
    let Call::Acquire { lock, wait, .. } = &made.call else { return None };
    let why = match &made.outcome {
        Outcome::Failed { why } if *wait > 0 => why,
        Outcome::Unknown { why } => why,
        _ => return None,
    };
    let name = lock.names.join(" and ");
    let what = format!(
        "{} did not get {} {name}, for which it asked at {}: {why}",
        made.process,
        lock.kind,
        at(made.invoked)
    );
    Some(Violation { property: NAME, what, at: time(made.returned.unwrap_or(made.invoked)) })
}

fn lost(hold: &Hold) -> Option<Violation> {
    let over = hold.given_back.filter(|given_back| *given_back > hold.deadline).map(|_| hold.deadline);
    let lost = hold.lost.or(over)?;
    let name = hold.lock.names.join(" and ");
    let what =
        format!("{} lost {} {name}, which it was granted at {}", who(hold), hold.lock.kind, at(hold.granted));
    Some(Violation { property: NAME, what, at: time(lost) })
}

fn too_few(history: &History) -> Option<Violation> {
    let leases = history.run.as_ref()?.leases;
    let held = held_throughout(history);
    let what = format!("{held} leases were held over all changes, of at least {leases} that clients hold");
    (held < leases).then(|| Violation { property: NAME, what, at: time(history.changes[0].from) })
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{acquire, exclusive, given_back, history, run, words};
    use super::*;
    use crate::history::{Change, Run};

    fn changing(history: History) -> History {
        let change = Change { what: "a master joins".to_owned(), from: 5_000, to: Some(9_000) };
        History { changes: vec![change], ..history }
    }

    fn made(wait: u64, outcome: Outcome) -> Made {
        let call = Call::Acquire { lock: exclusive("l"), ttl: 1, wait };
        Made { process: "p".to_owned(), number: 0, call, invoked: 7_000, returned: Some(8_000), outcome }
    }

    #[test]
    fn an_acquire_that_fails_is_found_where_the_set_changes() {
        let failed = || Outcome::Failed { why: "held".to_owned() };
        let unknown = Outcome::Unknown { why: "no quorum".to_owned() };
        let calls = vec![made(0, failed()), made(1, failed()), made(0, unknown)];
        let calls = History { calls, ..History::default() };
        assert_eq!(check(&calls), []);
        let found = check(&changing(calls));
        assert_eq!(
            words(&found),
            [
                "p did not get mutex l, for which it asked at 0.007 s: held",
                "p did not get mutex l, for which it asked at 0.007 s: no quorum"
            ]
        );
    }

    #[test]
    fn leases_that_are_not_held_over_all_changes_are_found() {
        let throughout = |name: &str| given_back(acquire("a", &exclusive(name), 4, 100), 50);
        let given_back_before = given_back(acquire("a", &exclusive("n"), 4, 100), 8);
        let held = |holds: [Hold; 2]| {
            let run = Some(Run { leases: 2, ..run() });
            check(&changing(History { run, ..history(holds) }))
        };
        assert_eq!(held([throughout("l"), throughout("m")]), []);
        assert_eq!(
            words(&held([throughout("l"), given_back_before])),
            ["1 leases were held over all changes, of at least 2 that clients hold"]
        );
    }

    #[test]
    fn a_lease_that_ends_before_its_holder_ends_it_is_found() {
        let goes_on = given_back(acquire("a", &exclusive("l"), 10, 100), 50);
        let to_the_end = acquire("a", &exclusive("m"), 10, 100);
        let over = given_back(acquire("b", &exclusive("l"), 10, 100), 101);
        let lost = Hold { lost: Some(60_000), ..acquire("c", &exclusive("l"), 10, 100) };
        let found = check(&changing(history([goes_on, to_the_end, over, lost])));
        assert_eq!(found.iter().map(|found| found.at).collect::<Vec<_>>(), [time(100_000), time(60_000)]);
        assert_eq!(words(&found)[1], "process of c (c) lost mutex l, which it was granted at 0.010 s");
    }
}
