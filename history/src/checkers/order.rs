//! In the calm, a fair lock is granted in the order of arrival: a waiter gets it before all that
//! came later.
//!
//! An acquire that is ready to wait stands in the queues of a quorum [`IN_LINE`] after it began.
//! From then on, until it is granted, nobody gets the lock who began [later](History::in_turn) than
//! it did, and asked only then: whether to wait or once. When a grant was asked for is not known,
//! but that it was [`IN_LINE`] before at most. What was under way when the first one came to stand
//! may overtake it.
//!
//! Of each client one waiter stands in the queues, and the others are behind it in line; of two
//! that began within [`IN_LINE`] it may be either. So a waiter stands when all others of its client
//! are gone that may be ahead of it, and [`IN_LINE`] is over.
//!
//! It is taken for granted that:
//! - the calm has lasted for [`SETTLING`] and a [longest TTL](History::longest_ttl): all masters
//!   vote, and connections are open,
//! - a message takes eight milliseconds at most, and clocks run at rates that differ by less than a
//!   hundredth,
//! - nobody enters the lock again, which an owner does past those who wait.
//!
//! A waiter that gives up, or fails, does not count, for it asks for the last time without a place;
//! nor does one whose client was killed, or stood still meanwhile, for it is passed over.

use super::left_behind::SETTLING;
use super::stillness::Stillness;
use crate::acquires::{Acquire, Ending, acquires};
use crate::grouped::grouped;
use crate::history::{History, Time, Violation};

/// The property's name.
pub const NAME: &str = "order";

/// How long it takes to get a place in the queues and a subscription, when all is calm: three round
/// trips, and as much again. What is granted was asked for no longer ago.
pub const IN_LINE: Time = Time::from_millis(100);

/// How far two clients may be apart in what they take for the masters' time, when all is calm: by a
/// round trip, and by what clocks drift in the five seconds for which a waiter may not have looked.
/// Who comes later by more has to be behind.
pub const APART: Time = Time::from_millis(100);

/// Finds every acquire that was granted before one that came first.
pub fn check(history: &History) -> Vec<Violation> {
    let (Some(calm), Some(later)) = (history.calm, history.in_turn) else { return Vec::new() };
    let quiet = calm + SETTLING + history.longest_ttl;
    let still = Stillness::of(history);
    let all = acquires(history);
    let by_names = all.iter().map(|acquire| (&*acquire.lock.names, acquire));
    let mut found = Vec::new();
    for acquires in grouped(by_names, |acquire| acquire.began).values() {
        let waiters = acquires.iter().filter(|waiter| waiter.began >= quiet && waits(waiter));
        let waiters = waiters.filter(|waiter| {
            !still.touches(waiter.process, waiter.began, waiter.ended.unwrap_or(history.end))
        });
        let waiters: Vec<_> = waiters.map(|waiter| (*waiter, stands(waiter, acquires))).collect();
        for acquire in acquires {
            let Some(granted) = granted(acquire) else { continue };
            let asked = acquire.began.max(granted.saturating_sub(IN_LINE));
            let first = waiters.iter().find(|(waiter, stands)| {
                let is_there = *stands <= asked && waiter.ended.is_none_or(|ended| granted < ended);
                is_there && acquire.began > waiter.began + later
            });
            found.extend(first.map(|(waiter, _)| violation(waiter, acquire, granted)));
        }
    }
    found
}

/// Whether it keeps its place until it is granted.
fn waits(acquire: &Acquire<'_>) -> bool {
    !acquire.wait.is_zero() && matches!(acquire.ending, Ending::Granted | Ending::Pending)
}

/// Since when it stands in the queues, for certain.
fn stands(waiter: &Acquire<'_>, acquires: &[&Acquire<'_>]) -> Time {
    let is_other = |other: &&&Acquire<'_>| !std::ptr::eq(**other, waiter);
    let others = acquires.iter().filter(|other| other.process == waiter.process).filter(is_other);
    let ahead = others.filter(|other| other.began <= waiter.began + IN_LINE);
    let gone = ahead.map(|other| other.ended.unwrap_or(Time::MAX));
    gone.fold(waiter.began, Time::max).saturating_add(IN_LINE)
}

/// When it was granted.
fn granted(acquire: &Acquire<'_>) -> Option<Time> {
    acquire.ended.filter(|_| acquire.ending == Ending::Granted)
}

fn violation(waiter: &Acquire<'_>, acquire: &Acquire<'_>, granted: Time) -> Violation {
    let Acquire { lock, process, began, .. } = acquire;
    let first = waiter.process;
    let since = waiter.began;
    let what = format!(
        "{process}, which came at {began:?}, was granted {lock} before {first}, which waited for it since {since:?}"
    );
    Violation { property: NAME, what, at: granted }
}

#[cfg(test)]
mod tests {
    use super::Ending::{Cancelled, Failed, Granted, Pending};
    use super::*;
    use crate::history::{Made, Pause};
    use crate::made_up::{
        asking, attempt, by, client, exclusive, history, kill, ms, outcome, patient_for, pause, words,
    };

    /// It is quiet from 13 s on.
    fn quiet(calls: &[Made]) -> History {
        History { calls: calls.to_vec(), in_turn: Some(APART), ..history([]) }
    }

    fn found(calls: &[Made]) -> usize {
        check(&quiet(calls)).len()
    }

    /// Client 0 waits from 20 to 25 s.
    fn waiter() -> Made {
        attempt(20_000, Some(25_000), Granted)
    }

    /// Client 1 comes in between, and has it before.
    fn later_one() -> Made {
        by(1, attempt(20_500, Some(24_000), Granted))
    }

    #[test]
    fn whoever_came_later_and_has_it_first_is_found() {
        let found = check(&quiet(&[waiter(), later_one()]));
        let what = "client 1, which came at 20.5s, was granted lock l before client 0, which waited for it since 20s";
        assert_eq!((words(&found), found[0].at), (vec![what], ms(24_000)));
    }

    #[test]
    fn the_order_of_arrival_is_right() {
        let third = by(2, attempt(20_600, Some(25_200), Granted));
        let second = by(1, attempt(20_500, Some(25_100), Granted));
        assert_eq!(found(&[waiter(), second, third]), 0);
    }

    #[test]
    fn a_newcomer_that_does_not_wait_is_found_and_once() {
        let newcomer = patient_for(0, by(2, attempt(21_000, Some(21_010), Granted)));
        let second = by(1, attempt(20_500, Some(25_100), Granted));
        assert_eq!(found(&[waiter(), second.clone(), newcomer.clone()]), 1);
        assert_eq!(found(&[waiter(), second, Made { outcome: outcome(Failed), ..newcomer }]), 0);
    }

    #[test]
    fn of_two_that_come_within_a_moment_either_may_be_first() {
        let later = |began| by(1, attempt(began, Some(24_000), Granted));
        assert_eq!(found(&[waiter(), later(20_100)]), 0);
        assert_eq!(found(&[waiter(), later(20_101)]), 1);
    }

    #[test]
    fn what_was_under_way_before_it_stood_in_line_may_overtake_it() {
        let later = |granted| by(1, attempt(20_101, Some(granted), Granted));
        assert_eq!(found(&[waiter(), later(20_199)]), 1, "it began when the other one stood");
        // It stands from when the one of its client that was ahead of it is gone.
        let ahead = attempt(19_000, Some(22_000), Granted);
        assert_eq!(found(&[ahead.clone(), waiter(), later(22_199)]), 0);
        assert_eq!(found(&[ahead, waiter(), later(22_200)]), 1);
    }

    #[test]
    fn who_may_be_ahead_in_its_own_line_is_waited_for() {
        let other = |began| attempt(began, Some(24_500), Granted);
        assert_eq!(found(&[waiter(), other(20_100), later_one()]), 0);
        assert_eq!(found(&[waiter(), by(2, other(20_100)), later_one()]), 1, "another client");
        let behind = attempt(20_101, Some(25_500), Granted);
        assert_eq!(found(&[waiter(), behind, later_one()]), 1, "behind it");
        let for_ever = attempt(20_000, None, Pending);
        assert_eq!(found(&[for_ever.clone(), waiter(), later_one()]), 0);
        assert_eq!(found(&[for_ever, later_one()]), 1, "it still waits");
    }

    #[test]
    fn who_is_gone_is_passed_by_nobody() {
        let gone = |outcome, ended| found(&[attempt(20_000, ended, outcome), later_one()]);
        assert_eq!(gone(Granted, Some(24_000)), 0);
        assert_eq!(gone(Granted, Some(24_001)), 1);
        assert_eq!(gone(Failed, Some(24_001)), 0, "it asked without a place");
        assert_eq!(gone(Cancelled, Some(24_001)), 0);
        assert_eq!(found(&[patient_for(0, waiter()), later_one()]), 0, "it never waited");
    }

    #[test]
    fn who_stood_still_or_died_meanwhile_is_passed_over() {
        let passed = |pause| {
            let pauses = vec![pause];
            check(&History { pauses, ..quiet(&[waiter(), later_one()]) }).len()
        };
        assert_eq!([pause(21_000, 21_001), kill(24_999)].map(passed), [0, 0]);
        assert_eq!([pause(19_000, 20_000), kill(25_001)].map(passed), [1, 1]);
        assert_eq!(passed(Pause { process: client(1), ..kill(21_000) }), 1, "another client");
    }

    #[test]
    fn it_is_about_one_lock_in_the_calm_where_it_is_promised() {
        let other = asking(&exclusive("k"), later_one());
        assert_eq!(found(&[waiter(), other]), 0);
        let begins = |began| found(&[attempt(began, Some(25_000), Granted), later_one()]);
        assert_eq!([begins(12_999), begins(13_000)], [0, 1]);
        let both = quiet(&[waiter(), later_one()]);
        assert_eq!(check(&History { in_turn: None, ..both.clone() }), []);
        assert_eq!(check(&History { calm: None, ..both }), []);
    }
}
