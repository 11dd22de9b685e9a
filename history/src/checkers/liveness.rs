//! In the calm, every waiter gets the lock: none waits for ever, and none is turned away.
//!
//! Every acquire that began in the calm, and was ready to wait, ends granted within
//! [`History::bound`]. Where it was ready to wait for less than that, it may also fail, but only
//! when its wait is over; a hundredth and 2 ms earlier at most, because the wait is measured with
//! the client's clock. Where its caller gave it up within the bound nothing is known. A client that
//! was killed, or that stood still while the acquire ran, is excused, as is an acquire whose bound
//! comes after the end of the run.
//!
//! And every operation of a client ends at some time, in the storm too.

use super::stillness::Stillness;
use crate::acquires::{Acquire, Ending, acquires};
use crate::history::{History, Stuck, Time, Violation};

/// The property's name.
pub const NAME: &str = "liveness";

/// Finds every acquire that was not granted in time.
pub fn check(history: &History) -> Vec<Violation> {
    let mut found: Vec<_> = history.stuck.iter().map(stuck).collect();
    let Some(calm) = history.calm else { return found };
    let still = Stillness::of(history);
    let waiters = acquires(history).into_iter();
    let waiters = waiters.filter(|acquire| acquire.began >= calm && !acquire.wait.is_zero());
    found.extend(waiters.filter_map(|acquire| {
        let limit = acquire.began + history.bound;
        let until = acquire.ended.unwrap_or(history.end);
        let excused = still.touches(acquire.process, acquire.began, until.min(limit));
        let (what, at) = failure(&acquire, until, limit).filter(|_| !excused)?;
        Some(violation(&acquire, &what, at))
    }));
    found
}

fn stuck(stuck: &Stuck) -> Violation {
    let Stuck { process, at } = stuck;
    let what =
        format!("what {process} does never ends: an acquire, an extension, a release, or a wait for a loss");
    Violation { property: NAME, what, at: *at }
}

/// How it failed, and since when that is certain. It ended, or the run did, at `until`.
fn failure(acquire: &Acquire<'_>, until: Time, limit: Time) -> Option<(String, Time)> {
    let took = until.saturating_sub(acquire.began);
    let bound = limit - acquire.began;
    match acquire.ending {
        _ if until > limit => {
            Some((format!("was not granted within {bound:?}: {}", late(acquire, took)), limit))
        }
        Ending::Failed if acquire.wait >= bound || took < shortest(acquire.wait) => Some((
            format!("failed after {took:?}, though it was ready to wait for {:?}", acquire.wait),
            until,
        )),
        _ => None,
    }
}

/// How it ended too late.
fn late(acquire: &Acquire<'_>, took: Time) -> String {
    match acquire.ending {
        Ending::Granted => format!("it was after {took:?}"),
        Ending::Failed => format!("it failed after {took:?}"),
        Ending::Cancelled => format!("its caller gave it up after {took:?}"),
        Ending::Pending => format!("it still waited after {took:?}"),
    }
}

/// How short a wait may be, in true time.
fn shortest(wait: Time) -> Time {
    wait.saturating_sub(wait / 100 + Time::from_millis(2))
}

fn violation(acquire: &Acquire<'_>, what: &str, at: Time) -> Violation {
    let Acquire { lock, process, began, .. } = acquire;
    let what = format!("the acquire of {lock} that {process} began at {began:?} {what}");
    Violation { property: NAME, what, at }
}

#[cfg(test)]
mod tests {
    use super::Ending::{Cancelled, Failed, Granted, Pending};
    use super::*;
    use crate::history::{Made, Pause};
    use crate::made_up::{attempt, client, history, kill, ms, patient_for, pause, words};

    #[test]
    fn what_never_ends_is_found_in_a_storm_too() {
        let history =
            History { stuck: vec![Stuck { process: client(3), at: ms(120_000) }], ..History::default() };
        let found = check(&history);
        assert!(words(&found)[0].starts_with("what client 3 does never ends") && found[0].at == ms(120_000));
    }

    /// With a bound of 10 s.
    fn found(acquire: Made, pauses: &[Pause]) -> Vec<Violation> {
        let calls = vec![acquire];
        let pauses = pauses.to_vec();
        check(&History { calls, pauses, bound: ms(10_000), ..history([]) })
    }

    #[test]
    fn an_acquire_may_take_as_long_as_the_bound() {
        assert_eq!(found(attempt(2_000, Some(12_000), Granted), &[]), []);
        let late = found(attempt(2_000, Some(12_001), Granted), &[]);
        let what = "the acquire of lock l that client 0 began at 2s was not granted within 10s: it was after 10.001s";
        assert_eq!(words(&late), [what]);
        assert_eq!(late[0].at, ms(12_000));
    }

    #[test]
    fn what_is_pending_is_found_when_the_bound_is_over() {
        assert_eq!(found(attempt(90_000, None, Pending), &[]), []);
        let late = found(attempt(89_999, None, Pending), &[]);
        let what = "the acquire of lock l that client 0 began at 89.999s was not granted within 10s: it still waited \
                    after 10.001s";
        assert_eq!(words(&late), [what]);
    }

    #[test]
    fn an_acquire_that_fails_is_found() {
        let failed = found(attempt(2_000, Some(5_000), Failed), &[]);
        let what = "the acquire of lock l that client 0 began at 2s failed after 3s, though it was ready to wait for 60s";
        assert_eq!(words(&failed), [what]);
        assert_eq!(failed[0].at, ms(5_000));
        assert_eq!(found(attempt(2_000, Some(5_000), Pending), &[]).len(), 1, "nobody knows how it ended");
        assert_eq!(
            found(patient_for(10_000, attempt(2_000, Some(12_000), Failed)), &[]).len(),
            1,
            "at the bound"
        );
    }

    #[test]
    fn an_acquire_that_waits_for_less_than_the_bound_may_fail_when_its_wait_is_over() {
        let failed_at = |at| found(patient_for(5_000, attempt(2_000, Some(at), Failed)), &[]).len();
        assert_eq!(failed_at(7_000), 0);
        assert_eq!(failed_at(6_948), 0, "its clock is fast");
        assert_eq!(failed_at(6_947), 1, "sooner");
        assert_eq!(failed_at(12_001), 1, "after the bound");
    }

    #[test]
    fn an_acquire_that_was_given_up_is_found_after_the_bound() {
        assert_eq!(found(attempt(2_000, Some(12_000), Cancelled), &[]), []);
        assert_eq!(found(attempt(2_000, Some(12_001), Cancelled), &[]).len(), 1);
    }

    #[test]
    fn only_waiters_in_the_calm_count() {
        assert_eq!(found(attempt(999, None, Pending), &[]), []);
        assert_eq!(found(attempt(1_000, None, Pending), &[]).len(), 1);
        assert_eq!(found(patient_for(0, attempt(2_000, None, Pending)), &[]), []);
        assert_eq!(found(patient_for(1, attempt(2_000, None, Pending)), &[]).len(), 1);
        let calls = vec![attempt(2_000, None, Pending)];
        assert_eq!(check(&History { calls, calm: None, ..history([]) }), []);
    }

    #[test]
    fn whoever_was_killed_or_stood_still_meanwhile_is_excused() {
        let pending = || attempt(2_000, None, Pending);
        assert_eq!(found(pending(), &[kill(12_000)]), []);
        assert_eq!(found(pending(), &[pause(1_000, 2_001)]), []);
        assert_eq!(found(pending(), &[kill(12_001)]).len(), 1, "after the bound");
        assert_eq!(found(pending(), &[pause(1_000, 2_000)]).len(), 1, "before it began");
        assert_eq!(
            found(pending(), &[Pause { process: client(1), ..kill(2_000) }]).len(),
            1,
            "another client"
        );
    }
}
