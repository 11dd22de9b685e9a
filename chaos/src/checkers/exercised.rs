//! Which properties a history could have violated: of one in which nobody reads, that readers are
//! well says nothing.

use quorate_simulator::checkers::{fences, liveness, windows};

use super::{changes, linearizable, pace, permits, readers, store, stranger, ttl};
use crate::history::{Call, History, Hold, Made, Outcome, Share};

/// Every property: its name, and whether something happened that it is about. That of the stranger
/// is there only where a stranger is, and those of changes where the set changes.
pub fn exercised(history: &History) -> Vec<(&'static str, bool)> {
    let held = |is: fn(&Hold) -> bool| history.holds.iter().any(is);
    let made = |is: &dyn Fn(&Made) -> bool| history.calls.iter().any(is);
    let is_accepted =
        |made: &Made| matches!((&made.call, &made.outcome), (Call::Write { .. }, Outcome::Accepted));
    let waits_in_calm = |made: &Made| {
        let waits = matches!(made.call, Call::Acquire { wait, .. } if wait > 0);
        waits && history.calm.is_some_and(|calm| made.invoked >= calm)
    };
    let is_acquire = |made: &Made| matches!(made.call, Call::Acquire { .. });
    let mut properties = vec![
        (windows::NAME, held(Hold::is_exclusive)),
        (fences::NAME, held(|hold| hold.is_exclusive() && hold.fence.is_some())),
        (permits::NAME, held(|hold| matches!(hold.lock.share, Share::Permits(_)))),
        (readers::NAME, held(|hold| hold.lock.share == Share::Shared)),
        (store::NAME, made(&is_accepted)),
        (linearizable::NAME, held(Hold::is_exclusive)),
        (ttl::NAME, made(&is_acquire) && history.quiet.is_some()),
        (liveness::NAME, made(&waits_in_calm)),
    ];
    if !history.strangers.is_empty() {
        properties.push((stranger::NAME, true));
    }
    if !history.changes.is_empty() {
        properties.push((changes::NAME, true));
        properties.push((pace::NAME, pace::before(history).is_some()));
    }
    properties
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{acquire, exclusive, fenced, history, permits, shared};
    use super::*;
    use crate::history::{Change, StrangerAsked};

    fn names(history: &History) -> Vec<&'static str> {
        let all = exercised(history).into_iter();
        all.filter(|(_, exercised)| *exercised).map(|(name, _)| name).collect()
    }

    #[test]
    fn a_property_is_exercised_where_something_happened_that_it_is_about() {
        assert_eq!(names(&History::default()), [""; 0]);
        let hold = |lock| history([acquire("a", &lock, 10, 20)]);
        assert_eq!(names(&hold(exclusive("l"))), ["windows", "linearizable"]);
        assert_eq!(names(&hold(shared("l"))), ["readers"]);
        assert_eq!(names(&hold(permits("l", 2))), ["permits"]);
        let with_token = history([fenced(acquire("a", &exclusive("l"), 10, 20), 1)]);
        assert_eq!(names(&with_token), ["windows", "fences", "linearizable"]);
        let made = |call, outcome| Made {
            process: "p".to_owned(),
            number: 0,
            call,
            invoked: 7,
            returned: Some(8),
            outcome,
        };
        let written = made(Call::Write { resource: "l".to_owned(), fence: 1 }, Outcome::Accepted);
        assert_eq!(names(&History { calls: vec![written], ..History::default() }), ["store"]);
        let strangers = vec![StrangerAsked { at: 7, why: None }];
        assert_eq!(names(&History { strangers, ..History::default() }), ["stranger"]);
        let changes = vec![Change { what: String::new(), from: 7, to: None }];
        assert_eq!(names(&History { changes, ..History::default() }), ["changes"]);
        let asked = made(Call::Acquire { lock: exclusive("l"), ttl: 1, wait: 1 }, Outcome::Cancelled);
        let asked = |calm| History { calls: vec![asked.clone()], calm, quiet: Some(9), ..History::default() };
        assert_eq!(names(&asked(Some(7))), ["ttl", "liveness"]);
        assert_eq!(names(&asked(Some(8))), ["ttl"], "before the calm");
    }
}
