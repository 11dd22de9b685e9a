//! In the calm, a lock is not left free while somebody waits for it: whoever gives it back wakes whoever is next.
//!
//! A lock is free while it is in nobody's window (as [`windows`](super::windows) has it). It may be free for
//! [`HAND_OFF`] at a time, as long as an acquire waits that began before it was free and is ready to wait.
//!
//! When that time begins depends on what freed it:
//! - It was given back by somebody who had it, when the calm had lasted for [`SETTLING`] and a
//!   [longest TTL](History::longest_ttl), so that nothing from before was in the way any more: at that moment.
//! - Anything else (its lease ran out, or was lost; its holder was killed, or gave it back before; nobody ever had it):
//!   one longest TTL later. Nobody is called then, a master may have been written to later than the rest, and those in
//!   the queue look when the TTLs are over, and a quarter later for each dead one that is ahead of them.
//!
//! So a calm must last for two longest TTLs and [`SETTLING`] before a lock counts that nobody gives back.
//!
//! An acquire of a client that was killed, or that stood still in the calm, does not count.

use std::collections::BTreeMap;

use super::left_behind::SETTLING;
use super::stillness::Stillness;
use super::{by_lock, holds_by_lock};
use crate::history::{Attempt, AttemptOutcome, History, Hold, Time, Violation};

/// The property's name.
pub const NAME: &str = "hand_off";

/// How long a lock may be free though it is wanted: two time-outs of 250 ms, for a master that has stopped answering
/// and for the round of whoever is called. Polling, at 100 ms, is quicker; only a call that got lost takes longer.
pub const HAND_OFF: Time = Time::from_millis(500);

/// Finds every time for which a lock was free too long.
pub fn check(history: &History) -> Vec<Violation> {
    let Some(calm) = history.calm else { return Vec::new() };
    let season = Season { quiet: calm + SETTLING + history.longest_ttl, ttl: history.longest_ttl };
    let holds = holds_by_lock(history);
    let mut found = Vec::new();
    for (lock, waiters) in waiters(history, calm) {
        let holds = holds.get(lock).map_or(&[][..], |holds| holds);
        found.extend(idle(&season.free(holds, history.end), &waiters));
    }
    found
}

/// The acquires of each lock that count, by when they began.
fn waiters(history: &History, calm: Time) -> BTreeMap<&str, Vec<&Attempt>> {
    let still = Stillness::of(history);
    let mut waiters = by_lock(&history.attempts, |attempt| (&attempt.lock, attempt.began));
    for attempts in waiters.values_mut() {
        attempts.retain(|attempt| {
            let stood =
                attempt.outcome == AttemptOutcome::Killed || still.touches(attempt.client, calm, history.end);
            !stood && !attempt.wait.is_zero()
        });
    }
    waiters
}

/// A time for which a lock was free, without what is allowed beforehand.
#[derive(Clone, Copy)]
struct Free {
    from: Time,
    to: Time,
}

/// The calm.
struct Season {
    /// Since when nothing from before it is in the way.
    quiet: Time,
    ttl: Time,
}

impl Season {
    /// When a lock is free that was held like this. The holds are in the order of their beginnings.
    fn free(&self, holds: &[&Hold], end: Time) -> Vec<Free> {
        let (mut held_until, mut from, mut free) = (Time::ZERO, self.quiet + self.ttl, Vec::new());
        for hold in holds.iter().filter(|hold| hold.granted < hold.window_end()) {
            free.push(Free { from, to: hold.granted });
            if hold.window_end() >= held_until {
                held_until = hold.window_end();
                from = self.freed_by(hold);
            }
        }
        free.push(Free { from, to: end });
        free.retain(|free| free.from < free.to);
        free
    }

    /// From when on somebody else should have it.
    fn freed_by(&self, hold: &Hold) -> Time {
        let end = hold.window_end();
        match hold.given_back == Some(end) && end >= self.quiet {
            true => end,
            false => end.max(self.quiet) + self.ttl,
        }
    }
}

/// Finds where somebody waited too long. Both are in the order of their beginnings.
fn idle(free: &[Free], waiters: &[&Attempt]) -> Vec<Violation> {
    let (mut waiters, mut last, mut found) = (waiters.iter().copied().peekable(), None, Vec::new());
    for free in free {
        while let Some(waiter) = waiters.next_if(|waiter| waiter.began < free.from) {
            if last.is_none_or(|last| gone(waiter) > gone(last)) {
                last = Some(waiter);
            }
        }
        found.extend(last.and_then(|waiter| violation(*free, waiter)));
    }
    found
}

/// When an acquire did not wait any more.
fn gone(waiter: &Attempt) -> Time {
    waiter.ended.unwrap_or(Time::MAX)
}

fn violation(free: Free, waiter: &Attempt) -> Option<Violation> {
    let (Free { from, to }, Attempt { lock, client, began, .. }) = (free, waiter);
    let idle = to.min(gone(waiter)).saturating_sub(from);
    let what = format!(
        "lock {lock} was left free for {idle:?} from {from:?} on, while client {client} waited for it since {began:?}"
    );
    (idle > HAND_OFF).then_some(Violation { property: NAME, what, at: from + HAND_OFF })
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{attempt, given_back, history, hold, kill, lost, ms, pause, words};
    use super::AttemptOutcome::{Cancelled, Granted, Killed, Pending};
    use super::*;
    use crate::history::Pause;

    // It is calm from 1 s, quiet from 13 s, and what is not a hand-off counts from 23 s at the earliest.

    fn found(holds: &[Hold], attempts: &[Attempt], pauses: &[Pause]) -> Vec<Violation> {
        let (attempts, pauses) = (attempts.to_vec(), pauses.to_vec());
        check(&History { attempts, pauses, ..history(holds.to_vec()) })
    }

    /// The lock is freed like this while somebody waits, and the waiter has it at that moment.
    fn taken(freed: Hold, at: u64) -> usize {
        let waiter = attempt(5_000, Some(at), Granted);
        found(&[freed, given_back("b", at, 99_999, 99_000)], &[waiter], &[]).len()
    }

    fn handed() -> Hold {
        given_back("a", 4_000, 40_000, 30_000)
    }

    #[test]
    fn a_lock_that_is_given_back_is_taken_within_the_bound() {
        assert_eq!(taken(handed(), 30_500), 0);
        assert_eq!(taken(handed(), 30_501), 1);
    }

    #[test]
    fn it_says_who_waited_when_and_for_how_long() {
        let found = found(&[handed()], &[attempt(5_000, Some(30_700), Cancelled)], &[]);
        let what = "lock l was left free for 700ms from 30s on, while client 0 waited for it since 5s";
        assert_eq!(words(&found), [what]);
        assert_eq!(found[0].at, ms(30_500));
    }

    #[test]
    fn one_that_ran_out_or_was_lost_may_take_a_ttl_more() {
        for freed in [hold("a", 4_000, 30_000), lost("a", 4_000, 35_000, 30_000)] {
            assert_eq!(taken(freed.clone(), 40_500), 0);
            assert_eq!(taken(freed, 40_501), 1);
        }
    }

    #[test]
    fn so_may_one_that_was_given_back_before_it_was_quiet_or_never_held() {
        let early = given_back("a", 4_000, 40_000, 12_999);
        assert_eq!((taken(early.clone(), 23_500), taken(early, 23_501)), (0, 1));
        let quiet = given_back("a", 4_000, 40_000, 13_000);
        assert_eq!((taken(quiet.clone(), 13_500), taken(quiet, 13_501)), (0, 1));
        let waiter = |ended| attempt(500, Some(ended), Cancelled);
        assert_eq!(found(&[], &[waiter(23_500)], &[]), []);
        assert_eq!(found(&[], &[waiter(23_501)], &[]).len(), 1, "it waited in vain since before the calm");
    }

    #[test]
    fn a_lock_may_be_free_when_nobody_waits() {
        assert_eq!(found(&[handed()], &[], &[]), []);
        assert_eq!(found(&[handed()], &[attempt(5_000, Some(30_500), Cancelled)], &[]), [], "went away");
        assert_eq!(found(&[handed()], &[attempt(30_000, None, Pending)], &[]), [], "came later");
        let elsewhere = Attempt { lock: "m".into(), ..attempt(29_999, Some(30_501), Cancelled) };
        assert_eq!(found(&[handed()], &[elsewhere], &[]), [], "for another lock");
        assert_eq!(found(&[handed()], &[attempt(29_999, None, Pending)], &[]).len(), 1, "waits to the end");
    }

    #[test]
    fn whoever_waits_longest_tells() {
        let waiters = [attempt(5_000, None, Pending), attempt(6_000, Some(30_100), Cancelled)];
        assert_eq!(found(&[handed()], &waiters, &[]).len(), 1);
    }

    #[test]
    fn a_lock_that_its_owner_has_re_entered_is_not_free() {
        let outer = given_back("a", 4_000, 90_000, 80_000);
        let inner = given_back("a", 5_000, 90_000, 30_000);
        let waiter = || attempt(6_000, Some(80_400), Granted);
        assert_eq!(found(&[outer.clone(), inner.clone()], &[waiter()], &[]), []);
        assert_eq!(found(&[inner, outer], &[waiter()], &[]), []);
    }

    #[test]
    fn a_guard_that_was_handed_out_too_late_held_nothing() {
        let waiter = attempt(5_000, Some(31_000), Granted);
        assert_eq!(found(&[handed(), hold("b", 30_300, 30_300)], &[waiter], &[]).len(), 1);
    }

    #[test]
    fn each_time_counts_by_itself() {
        let holds =
            [handed(), given_back("b", 30_400, 50_000, 31_000), given_back("c", 31_501, 50_000, 40_000)];
        let found = found(&holds, &[attempt(5_000, Some(40_500), Cancelled)], &[]);
        assert_eq!(found.iter().map(|found| found.at).collect::<Vec<_>>(), [ms(31_500)]);
    }

    #[test]
    fn whoever_does_not_wait_does_not_count() {
        let pending = || attempt(5_000, None, Pending);
        let impatient = Attempt { wait: Time::ZERO, ..pending() };
        let killed = Attempt { outcome: Killed, ..pending() };
        assert_eq!(found(&[handed()], &[impatient, killed], &[]), []);
        assert_eq!(found(&[handed()], &[pending()], &[kill(500)]), []);
        assert_eq!(found(&[handed()], &[pending()], &[pause(500, 1_001)]), []);
        assert_eq!(found(&[handed()], &[pending()], &[pause(500, 1_000)]).len(), 1, "before the calm");
        assert_eq!(found(&[handed()], &[pending()], &[Pause { client: 1, ..kill(500) }]).len(), 1);
    }

    #[test]
    fn nothing_is_looked_at_where_it_never_was_calm() {
        let attempts = vec![attempt(5_000, None, Pending)];
        assert_eq!(check(&History { attempts, calm: None, ..history([handed()]) }), []);
    }
}
