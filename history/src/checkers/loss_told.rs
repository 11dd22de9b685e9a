//! A holder learns that its lease is lost before the lease ends, so that what it protects can stop.
//!
//! For every guard whose deadline came within the run: it was released before its deadline, or
//! reported lost by its deadline. A client that stands still cannot report anything: if a pause
//! reaches into the deadline, or ends less than [`SLACK`] before it, it must report the loss (or
//! release) by the end of the pause plus [`SLACK`]. If it stands still again before that is over,
//! it has until the end of that pause, and so on. A client that was killed reports nothing any
//! more.
//!
//! A guard that was handed out after its deadline is not looked at: that is
//! [`born_valid`](super::born_valid)'s.

use super::stillness::Stillness;
use crate::history::{History, Hold, Time, Violation};

/// The property's name.
pub const NAME: &str = "loss_told";

/// What a resumed client needs, at most, to report a loss: its threads are scheduled, its timers
/// ring.
pub const SLACK: Time = Time::from_millis(5);

/// Finds every lease that ran out on a holder that did not know.
pub fn check(history: &History) -> Vec<Violation> {
    let still = Stillness::bridging(history, SLACK);
    let over =
        history.holds.iter().filter(|hold| hold.granted < hold.deadline && hold.deadline <= history.end);
    over.filter_map(|hold| {
        let limit = limit(hold, &still);
        let is_certain = limit <= history.end;
        (is_certain && !knew(hold, limit)).then(|| violation(hold, limit))
    })
    .collect()
}

/// When its holder must know, at the latest.
fn limit(hold: &Hold, still: &Stillness<'_>) -> Time {
    let goes_on = still.last(&hold.process, hold.deadline).map(|span| span.to.saturating_add(SLACK));
    goes_on.map_or(hold.deadline, |goes_on| goes_on.max(hold.deadline))
}

/// Whether it knew by then, or did not need to know.
fn knew(hold: &Hold, limit: Time) -> bool {
    let in_time = |at: Time| at < hold.deadline || (limit > hold.deadline && at <= limit);
    hold.given_back.is_some_and(in_time) || hold.lost.is_some_and(|lost| lost <= limit)
}

fn violation(hold: &Hold, limit: Time) -> Violation {
    let deadline = hold.deadline;
    let when = match hold.lost {
        Some(lost) => format!("learned {:?} too late", lost - limit),
        None => "never learned".to_owned(),
    };
    let excuse = if limit > deadline {
        format!(", counted from {limit:?} because it stood still")
    } else {
        String::new()
    };
    let what = format!("{hold} {when} that its lease was over at {deadline:?}{excuse}");
    Violation { property: NAME, what, at: limit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Pause;
    use crate::made_up::{client, given_back, history, hold, kill, lost, ms, pause, words};

    fn found(hold: Hold, pauses: &[Pause]) -> Vec<Violation> {
        check(&History { pauses: pauses.to_vec(), ..history([hold]) })
    }

    #[test]
    fn a_lease_may_be_given_back_until_just_before_its_deadline_or_told_lost_until_then() {
        assert_eq!(found(given_back("a", 0, 5_000, 4_999), &[]), []);
        assert_eq!(found(lost("a", 0, 5_000, 5_000), &[]), []);
        assert_eq!(found(lost("a", 0, 5_000, 4_000), &[]), []);
        let both = Hold { given_back: Some(ms(6_000)), ..lost("a", 0, 5_000, 4_900) };
        assert_eq!(found(both, &[]), [], "reported lost, and given back later");
    }

    #[test]
    fn a_lease_that_runs_out_untold_is_found() {
        let told_late = found(lost("a", 0, 5_000, 5_001), &[]);
        let never_told = found(hold("a", 0, 5_000), &[]);
        let who = "client 0 (a on lock l)";
        let what = "that its lease was over at 5s";
        assert_eq!(words(&told_late), [format!("{who} learned 1ms too late {what}")]);
        assert_eq!(words(&never_told), [format!("{who} never learned {what}")]);
        assert_eq!(found(given_back("a", 0, 5_000, 5_000), &[]).len(), 1, "given back when it was over");
        let both = Hold { given_back: Some(ms(6_000)), ..lost("a", 0, 5_000, 5_001) };
        assert_eq!(found(both, &[]).len(), 1);
    }

    #[test]
    fn a_lease_that_ends_with_the_run_counts_and_one_that_outlives_it_does_not() {
        assert_eq!(found(hold("a", 0, 100_000), &[]).len(), 1);
        assert_eq!(found(hold("a", 0, 100_001), &[]), []);
    }

    #[test]
    fn a_client_that_stood_still_tells_when_it_goes_on() {
        for hold in [lost("a", 0, 5_000, 7_005), given_back("a", 0, 5_000, 7_005)] {
            assert_eq!(found(hold, &[pause(5_000, 7_000)]), []);
        }
        let late = found(lost("a", 0, 5_000, 7_006), &[pause(4_000, 7_000)]);
        let what = "client 0 (a on lock l) learned 1ms too late that its lease was over at 5s, counted from 7.005s \
                    because it stood still";
        assert_eq!(words(&late), [what]);
        assert_eq!(found(hold("a", 0, 5_000), &[pause(4_000, 7_000)]).len(), 1, "never");
        assert_eq!(found(hold("a", 0, 5_000), &[pause(4_000, 99_996)]), [], "the run ends before it has to");
    }

    #[test]
    fn a_pause_that_leaves_time_to_tell_is_no_excuse() {
        let late = || lost("a", 0, 5_000, 5_001);
        assert_eq!(found(late(), &[pause(4_000, 4_995)]).len(), 1, "over in time");
        assert_eq!(found(late(), &[pause(4_000, 4_996)]), [], "over hardly in time");
        assert_eq!(
            found(lost("a", 0, 5_000, 5_000), &[pause(1_000, 2_000)]),
            [],
            "and does not shorten the time"
        );
        assert_eq!(found(late(), &[pause(5_001, 6_000)]).len(), 1, "after the deadline");
        assert_eq!(
            found(late(), &[Pause { process: client(1), ..pause(4_000, 6_000) }]).len(),
            1,
            "another client's"
        );
    }

    #[test]
    fn a_client_that_stands_still_again_has_time_until_it_goes_on_again() {
        let again = [pause(4_000, 6_000), pause(6_005, 7_000)];
        assert_eq!(found(lost("a", 0, 5_000, 7_005), &again), []);
        let later = [pause(4_000, 6_000), pause(6_006, 7_000)];
        assert_eq!(found(lost("a", 0, 5_000, 7_005), &later).len(), 1);
    }

    #[test]
    fn a_client_that_was_killed_in_time_tells_nobody() {
        assert_eq!(found(hold("a", 0, 5_000), &[kill(5_000)]), []);
        assert_eq!(found(hold("a", 0, 5_000), &[kill(5_001)]).len(), 1);
    }

    #[test]
    fn a_guard_that_was_handed_out_too_late_is_not_looked_at() {
        assert_eq!(found(hold("a", 5_000, 5_000), &[]), []);
    }
}
