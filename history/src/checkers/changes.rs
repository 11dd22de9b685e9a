//! Nobody notices that the set of masters changes: every acquire that is ready to wait is granted,
//! one that is not is told who has the lock, no lease ends before its holder ends it, and those
//! that clients hold all the time are held from before the first change until after the last one.
//!
//! This is promised where all masters answer but those that are replaced, and clients wait for
//! longer than others hold.

use crate::figures::held_throughout;
use crate::history::{Call, History, Hold, Made, Outcome, Violation};

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
        Outcome::Failed { why } if !wait.is_zero() => why,
        Outcome::Unknown { why } => why,
        _ => return None,
    };
    let Made { process, invoked, returned, .. } = made;
    let what = format!("{process} did not get {lock}, for which it asked at {invoked:?}: {why}");
    Some(Violation { property: NAME, what, at: returned.unwrap_or(*invoked) })
}

fn lost(hold: &Hold) -> Option<Violation> {
    let over = hold.given_back.filter(|given_back| *given_back > hold.deadline).map(|_| hold.deadline);
    let lost = hold.lost.or(over)?;
    let what = format!("{hold} lost it, which it was granted at {:?}", hold.granted);
    Some(Violation { property: NAME, what, at: lost })
}

fn too_few(history: &History) -> Option<Violation> {
    let leases = history.run.as_ref()?.leases;
    let held = held_throughout(history);
    let what = format!("{held} leases were held over all changes, of at least {leases} that clients hold");
    (held < leases).then(|| Violation { property: NAME, what, at: history.changes[0].from })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquires::Ending::Pending;
    use crate::history::{Change, Run};
    use crate::made_up::{attempt, given_back, history, hold, lost, ms, over, patient_for, run, words};

    fn changing(history: History) -> History {
        let change = Change { what: "a master joins".to_owned(), from: ms(5), to: Some(ms(9)) };
        History { changes: vec![change], ..history }
    }

    fn made(wait: u64, outcome: Outcome) -> Made {
        Made { outcome, ..patient_for(wait, attempt(7, Some(8), Pending)) }
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
                "client 0 did not get lock l, for which it asked at 7ms: held",
                "client 0 did not get lock l, for which it asked at 7ms: no quorum"
            ]
        );
    }

    #[test]
    fn leases_that_are_not_held_over_all_changes_are_found() {
        let throughout = |name: &str| over(&[name], given_back("a", 4, 100, 50));
        let given_back_before = over(&["n"], given_back("a", 4, 100, 8));
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
        let goes_on = given_back("a", 10, 100, 50);
        let to_the_end = over(&["m"], hold("a", 10, 100));
        let ended = given_back("b", 10, 100, 101);
        let lost = lost("c", 10, 100, 60);
        let found = check(&changing(history([goes_on, to_the_end, ended, lost])));
        assert_eq!(found.iter().map(|found| found.at).collect::<Vec<_>>(), [ms(100), ms(60)]);
        assert_eq!(words(&found)[1], "client 0 (c on lock l) lost it, which it was granted at 10ms");
    }
}
