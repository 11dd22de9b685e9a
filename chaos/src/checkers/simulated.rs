//! The simulator's properties, of a history of real processes.
//!
//! There a lock is identified by its kind and name. A permit of a semaphore is a lock of its own,
//! if it is known which one was granted. Read locks have several holders at once, and are left to
//! [`readers`](super::readers).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quorate_simulator::checkers;
use quorate_simulator::history::{self as simulated, Attempt, AttemptOutcome, Time, Violation};

use super::words::{named, short, time, window};
use crate::history::{Call, History, Hold, Lock, Made, Micros, Outcome};

/// No two owners have one exclusive lock at the same time.
pub fn windows(history: &History) -> Vec<Violation> {
    let clients = clients(history);
    let translated = translate(history, Duration::ZERO, &clients);
    let names: BTreeMap<_, _> = clients.iter().map(|(name, number)| (*number, *name)).collect();
    let pairs = checkers::windows::pairs(&translated).into_iter();
    let mut found: Vec<_> = pairs.map(|(rival, hold)| overlap(rival, hold, &names)).collect();
    let mut reported = BTreeSet::new();
    found.retain(|violation| reported.insert(violation.what.clone())); // of two names that both have
    found
}

/// Two that had one lock at the same time, where processes have these names.
fn overlap(rival: &simulated::Hold, hold: &simulated::Hold, names: &BTreeMap<usize, &str>) -> Violation {
    let who =
        |hold: &simulated::Hold| named(names.get(&hold.client).copied().unwrap_or_default(), &hold.owner);
    let both = hold.names.iter().filter(|name| rival.names.contains(name));
    let both: Vec<_> = both.filter_map(|name| Some(name.split_once(' ')?.1)).collect();
    let permit = hold.permit.map(|permit| format!("permit {permit} of ")).unwrap_or_default();
    let micros = |at: Time| Micros::try_from(at.as_micros()).unwrap_or(Micros::MAX);
    let what = format!(
        "{} was granted {permit}{} while {} held it, {}",
        who(hold),
        both.join(" and "),
        who(rival),
        window(micros(rival.granted), micros(rival.window_end()), micros(hold.granted))
    );
    Violation { property: checkers::windows::NAME, what, at: hold.granted }
}

/// The tokens of exclusive locks are unique, and rise in real time.
pub fn fences(history: &History) -> Vec<Violation> {
    check(history, Duration::ZERO, checkers::fences::check)
}

/// In the calm, every waiter gets the lock within this bound. It depends on how many wait, and for
/// how long locks are held.
pub fn liveness(history: &History, bound: Duration) -> Vec<Violation> {
    check(history, bound, checkers::liveness::check)
}

/// What the simulator finds. It has numbers for clients, and here they have names.
fn check(
    history: &History,
    bound: Duration,
    check: fn(&simulated::History) -> Vec<Violation>,
) -> Vec<Violation> {
    let clients = clients(history);
    let mut found = check(&translate(history, bound, &clients));
    for violation in &mut found {
        for (name, number) in &clients {
            violation.what = violation.what.replace(&format!("client {number} "), &format!("{name} "));
        }
        for Hold { owner, .. } in &history.holds {
            if violation.what.contains(owner) {
                violation.what = violation.what.replace(owner, &short(owner));
            }
        }
    }
    found
}

/// A number for each process.
fn clients(history: &History) -> BTreeMap<&str, usize> {
    let calls = history.calls.iter().map(|made| &*made.process);
    let mut clients = BTreeMap::new();
    for name in calls.chain(history.holds.iter().map(|hold| &*hold.process)) {
        let number = clients.len();
        clients.entry(name).or_insert(number);
    }
    clients
}

/// The history as the simulator would have it.
fn translate(history: &History, bound: Duration, clients: &BTreeMap<&str, usize>) -> simulated::History {
    let client = |process: &str| clients.get(process).copied().unwrap_or_default();
    let exclusive = history.holds.iter().filter(|hold| hold.is_exclusive());
    let pauses = history.pauses.iter().filter_map(|pause| {
        let client = *clients.get(&*pause.process)?; // one that has done nothing has no number
        Some(simulated::Pause { client, from: time(pause.from), to: pause.to.map_or(Time::MAX, time) })
    });
    simulated::History {
        holds: exclusive.map(|hold| translated(hold, client(&hold.process))).collect(),
        attempts: history
            .calls
            .iter()
            .filter_map(|made| attempt(history, made, client(&made.process)))
            .collect(),
        pauses: pauses.collect(),
        calm: history.calm.map(time),
        end: time(history.end),
        bound,
        ..simulated::History::default()
    }
}

fn translated(hold: &Hold, client: usize) -> simulated::Hold {
    simulated::Hold {
        names: names(&hold.lock),
        permit: hold.permit,
        shared: false,
        owner: hold.owner.clone(),
        client,
        asked: time(hold.asked),
        granted: time(hold.granted),
        deadline: time(hold.deadline),
        given_back: hold.given_back.map(time),
        lost: hold.lost.map(time),
        fence: hold.fence,
    }
}

/// Each name with its kind.
fn names(lock: &Lock) -> Vec<String> {
    lock.names.iter().map(|name| format!("{} {name}", lock.kind)).collect()
}

fn attempt(history: &History, made: &Made, client: usize) -> Option<Attempt> {
    let Call::Acquire { lock, wait, .. } = &made.call else { return None };
    let killed = || history.pauses.iter().any(|pause| pause.process == made.process && pause.to.is_none());
    let outcome = match (&made.outcome, made.returned) {
        (Outcome::Granted { .. }, _) => AttemptOutcome::Granted,
        (Outcome::Cancelled, _) => AttemptOutcome::Cancelled,
        (_, Some(_)) => AttemptOutcome::Failed,
        (_, None) if killed() => AttemptOutcome::Killed,
        (_, None) => AttemptOutcome::Pending,
    };
    let ended = made.returned.map(time);
    let began = time(made.invoked);
    let wait = Duration::from_micros(*wait);
    Some(Attempt { names: names(lock), shared: false, client, began, ended, outcome, wait })
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{acquire, end, exclusive, given_back, history, owned, permits, shared};
    use super::*;
    use crate::history::Pause;

    #[test]
    fn windows_that_overlap_are_found() {
        let first = || given_back(acquire("a", &exclusive("l"), 10, 100), 50);
        assert_eq!(windows(&history([first(), acquire("b", &exclusive("l"), 50, 200)])), []);
        let found = windows(&history([first(), acquire("b", &exclusive("l"), 49, 200)]));
        let what = "process of b (b) was granted l while process of a (a) held it, from 0.010 s to 0.050 s: 1.0 ms too early";
        assert_eq!(found[0].what, what);
        assert_eq!((found.len(), found[0].at), (1, Time::from_millis(49)));
    }

    #[test]
    fn a_guard_of_several_names_excludes_those_of_each() {
        let both = Lock { names: vec!["l".to_owned(), "m".to_owned()], ..exclusive("l") };
        for name in ["l", "m"] {
            let holds = [acquire("a", &both, 10, 100), acquire("b", &exclusive(name), 50, 200)];
            assert_eq!(windows(&history(holds)).len(), 1, "{name}");
        }
        assert_eq!(
            windows(&history([acquire("a", &both, 10, 100), acquire("b", &exclusive("n"), 50, 200)])),
            []
        );
    }

    #[test]
    fn those_that_may_be_together_are_not_looked_at() {
        for lock in [shared("l"), permits("l", 2)] {
            let holds = || [acquire("a", &lock, 10, 100), acquire("b", &lock, 20, 100)];
            assert_eq!(windows(&history(holds())), []);
            assert_eq!(fences(&history(holds().map(|hold| Hold { fence: Some(1), ..hold }))), []);
        }
    }

    #[test]
    fn a_permit_is_a_lock_of_its_own() {
        let hold = |owner: &str, permit, fence| Hold {
            permit: Some(permit),
            fence: Some(fence),
            ..acquire(owner, &permits("s", 2), 10, 100)
        };
        let both = |permit, fence| history([hold("a", 0, 1), hold("b", permit, fence)]);
        assert_eq!((windows(&both(1, 1)), fences(&both(1, 1))), (vec![], vec![]));
        assert_eq!((windows(&both(0, 2)).len(), fences(&both(0, 2)).len()), (1, 0));
        assert_eq!(fences(&both(0, 1)).len(), 1);
    }

    #[test]
    fn guards_of_one_owner_may_overlap() {
        let again = owned(acquire("b", &exclusive("l"), 20, 100), "a");
        assert_eq!(windows(&history([acquire("a", &exclusive("l"), 10, 100), again])), []);
    }

    #[test]
    fn tokens_that_fall_or_are_given_again_are_found() {
        let with = |fences: [u64; 2]| {
            let holds = [acquire("a", &exclusive("l"), 10, 20), acquire("b", &exclusive("l"), 30, 40)];
            let fenced =
                holds.into_iter().zip(fences).map(|(hold, fence)| Hold { fence: Some(fence), ..hold });
            super::fences(&history(fenced)).len()
        };
        assert_eq!([with([1, 2]), with([2, 2]), with([2, 1])], [0, 1, 1]);
    }

    /// An acquire that is ready to wait for a minute, in the calm from 1 s on, with a bound of 10
    /// s.
    fn waits(began: u64, returned: Option<u64>, outcome: Outcome, pauses: Vec<Pause>) -> usize {
        let ms = |time: u64| time * 1_000;
        let call = Call::Acquire { lock: exclusive("l"), ttl: ms(1_000), wait: ms(60_000) };
        let process = "p".to_owned();
        let returned = returned.map(ms);
        let made = Made { process, number: 0, call, invoked: ms(began), returned, outcome };
        let history = History { calls: vec![made], pauses, calm: Some(ms(1_000)), ..end(100_000) };
        liveness(&history, Duration::from_secs(10)).len()
    }

    #[test]
    fn whoever_waits_in_the_calm_and_does_not_get_it_is_found() {
        let granted = || Outcome::Granted { owner: "a".to_owned(), deadline: 0, fence: None, permit: None };
        let unknown = || Outcome::Unknown { why: String::new() };
        let failed = || Outcome::Failed { why: String::new() };
        assert_eq!(waits(2_000, Some(12_000), granted(), vec![]), 0);
        assert_eq!(waits(2_000, Some(12_001), granted(), vec![]), 1, "late");
        assert_eq!(waits(2_000, Some(3_000), failed(), vec![]), 1, "turned away");
        assert_eq!(waits(2_000, Some(3_000), unknown(), vec![]), 1, "not known");
        assert_eq!(waits(2_000, None, unknown(), vec![]), 1, "still waiting");
        assert_eq!(waits(500, None, unknown(), vec![]), 0, "in the storm");
        let kill = Pause { process: "p".to_owned(), from: 3_000_000, to: None };
        assert_eq!(waits(2_000, None, unknown(), vec![kill]), 0, "killed");
        let pause = Pause { process: "p".to_owned(), from: 3_000_000, to: Some(4_000_000) };
        assert_eq!(waits(2_000, Some(12_001), granted(), vec![pause]), 0, "stood still");
    }
}
