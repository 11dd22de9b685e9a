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
use crate::history::{Attempt, AttemptOutcome, History, Stuck, Time, Violation};

/// The property's name.
pub const NAME: &str = "liveness";

/// Finds every acquire that was not granted in time.
pub fn check(history: &History) -> Vec<Violation> {
    let mut found: Vec<_> = history.stuck.iter().map(stuck).collect();
    let Some(calm) = history.calm else { return found };
    let still = Stillness::of(history);
    let waiters = history.attempts.iter().filter(|attempt| attempt.began >= calm && !attempt.wait.is_zero());
    found.extend(waiters.filter_map(|attempt| {
        let limit = attempt.began + history.bound;
        let until = attempt.ended.unwrap_or(history.end);
        let excused = still.touches(attempt.client, attempt.began, until.min(limit));
        let (what, at) = failure(attempt, until, limit).filter(|_| !excused)?;
        Some(violation(attempt, &what, at))
    }));
    found
}

fn stuck(stuck: &Stuck) -> Violation {
    let Stuck { client, at } = *stuck;
    let what = format!(
        "what client {client} does never ends: an acquire, an extension, a release, or a wait for a loss"
    );
    Violation { property: NAME, what, at }
}

/// How it failed, and since when that is certain. It ended, or the run did, at `until`.
fn failure(attempt: &Attempt, until: Time, limit: Time) -> Option<(String, Time)> {
    let took = until.saturating_sub(attempt.began);
    let bound = limit - attempt.began;
    match attempt.outcome {
        AttemptOutcome::Killed => None,
        _ if until > limit => {
            Some((format!("was not granted within {bound:?}: {}", late(attempt, took)), limit))
        }
        AttemptOutcome::Failed if attempt.wait >= bound || took < shortest(attempt.wait) => Some((
            format!("failed after {took:?}, though it was ready to wait for {:?}", attempt.wait),
            until,
        )),
        _ => None,
    }
}

/// How it ended too late.
fn late(attempt: &Attempt, took: Time) -> String {
    match attempt.outcome {
        AttemptOutcome::Granted => format!("it was after {took:?}"),
        AttemptOutcome::Failed => format!("it failed after {took:?}"),
        AttemptOutcome::Cancelled => format!("its caller gave it up after {took:?}"),
        AttemptOutcome::Killed | AttemptOutcome::Pending => format!("it still waited after {took:?}"),
    }
}

/// How short a wait may be, in true time.
fn shortest(wait: Time) -> Time {
    wait.saturating_sub(wait / 100 + Time::from_millis(2))
}

fn violation(attempt: &Attempt, what: &str, at: Time) -> Violation {
    let Attempt { names, client, began, .. } = attempt;
    let lock = names.join("+");
    let what = format!("the acquire of lock {lock} that client {client} began at {began:?} {what}");
    Violation { property: NAME, what, at }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{attempt, history, kill, ms, pause, words};
    use super::AttemptOutcome::{Cancelled, Failed, Granted, Killed, Pending};
    use super::*;
    use crate::history::Pause;

    #[test]
    fn what_never_ends_is_found_in_a_storm_too() {
        let history = History { stuck: vec![Stuck { client: 3, at: ms(120_000) }], ..History::default() };
        let found = check(&history);
        assert!(words(&found)[0].starts_with("what client 3 does never ends") && found[0].at == ms(120_000));
    }

    /// With a bound of 10 s.
    fn found(attempt: Attempt, pauses: &[Pause]) -> Vec<Violation> {
        let attempts = vec![attempt];
        let pauses = pauses.to_vec();
        check(&History { attempts, pauses, bound: ms(10_000), ..history([]) })
    }

    fn patient_for(wait: u64, attempt: Attempt) -> Attempt {
        Attempt { wait: ms(wait), ..attempt }
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
        let attempts = vec![attempt(2_000, None, Pending)];
        assert_eq!(check(&History { attempts, calm: None, ..history([]) }), []);
    }

    #[test]
    fn whoever_was_killed_or_stood_still_meanwhile_is_excused() {
        let pending = || attempt(2_000, None, Pending);
        assert_eq!(found(attempt(2_000, None, Killed), &[]), []);
        assert_eq!(found(pending(), &[kill(12_000)]), []);
        assert_eq!(found(pending(), &[pause(1_000, 2_001)]), []);
        assert_eq!(found(pending(), &[kill(12_001)]).len(), 1, "after the bound");
        assert_eq!(found(pending(), &[pause(1_000, 2_000)]).len(), 1, "before it began");
        assert_eq!(found(pending(), &[Pause { client: 1, ..kill(2_000) }]).len(), 1, "another client");
    }
}
