//! Which properties a history could have violated: of one without tokens, that they rise says
//! nothing.

use super::{changes, fences, linearizable, liveness, pace, permits, store, strangers, ttl, windows};
use crate::history::{Call, History, Hold, Made, Outcome, Share};

/// Every property: its name, and whether something happened that it is about. That of the stranger
/// is there only where a stranger is, and those of changes where the set changes.
pub fn exercised(history: &History) -> Vec<(&'static str, bool)> {
    let held = |is: &dyn Fn(&Hold) -> bool| history.holds.iter().any(is);
    let made = |is: &dyn Fn(&Made) -> bool| history.calls.iter().any(is);
    let is_accepted =
        |made: &Made| matches!((&made.call, &made.outcome), (Call::Write { .. }, Outcome::Accepted));
    let waits_in_calm = |made: &Made| {
        let waits = matches!(made.call, Call::Acquire { wait, .. } if !wait.is_zero());
        waits && history.calm.is_some_and(|calm| made.invoked >= calm)
    };
    let has_site = |hold: &Hold| hold.sites().next().is_some();
    let is_acquire = |made: &Made| matches!(made.call, Call::Acquire { .. });
    let mut properties = vec![
        (windows::NAME, held(&has_site)),
        (fences::NAME, held(&|hold| has_site(hold) && hold.fence.is_some())),
        (permits::NAME, held(&|hold| matches!(hold.lock.share, Share::Permits(_)))),
        (store::NAME, made(&is_accepted)),
        (linearizable::NAME, held(&|hold| has_site(hold) && !hold.reads())),
        (ttl::NAME, made(&is_acquire) && history.quiet.is_some()),
        (liveness::NAME, made(&waits_in_calm)),
    ];
    if !history.strangers.is_empty() {
        properties.push((strangers::NAME, true));
    }
    if !history.changes.is_empty() {
        properties.push((changes::NAME, true));
        properties.push((pace::NAME, pace::before(history).is_some()));
    }
    properties
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquires::Ending::Cancelled;
    use crate::history::{Change, StrangerAsked};
    use crate::made_up::{attempt, fenced, history, hold, made, ms, on, permits, shared};

    fn names(history: &History) -> Vec<&'static str> {
        let all = exercised(history).into_iter();
        all.filter(|(_, exercised)| *exercised).map(|(name, _)| name).collect()
    }

    #[test]
    fn a_property_is_exercised_where_something_happened_that_it_is_about() {
        assert_eq!(names(&History::default()), [""; 0]);
        let one = |hold| history([hold]);
        assert_eq!(names(&one(hold("a", 10, 20))), ["windows", "linearizable"]);
        assert_eq!(names(&one(shared(hold("a", 10, 20)))), ["windows"]);
        assert_eq!(names(&one(on(&permits(2), hold("a", 10, 20)))), ["permits"]);
        assert_eq!(names(&one(fenced(1, hold("a", 10, 20)))), ["windows", "fences", "linearizable"]);
        let write = Call::Write { resource: "l".to_owned(), fence: 1 };
        let calls = vec![made(write, 7, Some(8), Outcome::Accepted)];
        assert_eq!(names(&History { calls, ..History::default() }), ["store"]);
        let strangers = vec![StrangerAsked { at: ms(7), why: None }];
        assert_eq!(names(&History { strangers, ..History::default() }), ["strangers"]);
        let changes = vec![Change { what: String::new(), from: ms(7), to: None }];
        assert_eq!(names(&History { changes, ..History::default() }), ["changes"]);
        let asked = |calm| {
            let calls = vec![attempt(7, Some(8), Cancelled)];
            History { calls, calm: Some(ms(calm)), quiet: Some(ms(9)), ..History::default() }
        };
        assert_eq!(names(&asked(7)), ["ttl", "liveness"]);
        assert_eq!(names(&asked(8)), ["ttl"], "before the calm");
    }
}
