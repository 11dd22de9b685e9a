//! While the set of masters changes, acquires are not much slower than before: the p99 of each
//! change is at most five times that of the time before the first one.
//!
//! This is a goal and no promise. A machine that gets busier meanwhile misses it, too.

use crate::figures::{Stretch, changes, percentile};
use crate::history::{History, Time, Violation};

/// The goal's name.
pub const NAME: &str = "pace";

/// How many times as long as before a p99 may be.
const AT_MOST: u32 = 5;

/// Finds every change that was too slow.
pub fn check(history: &History) -> Vec<Violation> {
    let stretches = stretches(history);
    let Some(before) = stretches.first().and_then(p99) else { return Vec::new() };
    let too_slow = |change: &Stretch| {
        let during = p99(change).filter(|during| *during > before * AT_MOST)?;
        let what = format!(
            "{}: the p99 of acquires was {during:?}, {:.1} times as long as before ({before:?}), and not at most {AT_MOST} times",
            change.what.as_ref()?,
            during.div_duration_f64(before)
        );
        Some(Violation { property: NAME, what, at: change.time.start })
    };
    stretches.iter().filter_map(too_slow).collect()
}

/// The p99 of the time before the first change, if there is any.
pub(super) fn before(history: &History) -> Option<Time> {
    stretches(history).first().and_then(p99)
}

fn stretches(history: &History) -> Vec<Stretch> {
    history.run.as_ref().map(|run| changes(history, run.duration)).unwrap_or_default()
}

fn p99(stretch: &Stretch) -> Option<Time> {
    percentile(&stretch.latencies, 990)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquires::Ending::Granted;
    use crate::history::Change;
    use crate::made_up::{attempt, ms, run, words};

    /// One before the change that took 1 ms, and one in it that took so long.
    fn changing(took: Time) -> History {
        let mut calls = [(10, 11), (30, 30), (80, 100)]
            .map(|(invoked, returned)| attempt(invoked, Some(returned), Granted))
            .to_vec();
        calls[1].returned = Some(calls[1].invoked + took);
        let change = Change { what: "m3 joins".to_owned(), from: ms(20), to: Some(ms(50)) };
        History { run: Some(run()), calls, changes: vec![change], end: ms(110), ..History::default() }
    }

    #[test]
    fn a_change_that_is_too_slow_is_found() {
        assert_eq!(check(&changing(ms(5))), []);
        let found = check(&changing(Time::from_micros(5_500)));
        assert_eq!(found.iter().map(|found| found.at).collect::<Vec<_>>(), [ms(20)]);
        let what = "m3 joins: the p99 of acquires was 5.5ms, 5.5 times as long as before (1ms), and not at most 5 times";
        assert_eq!(words(&found), [what]);
    }

    #[test]
    fn nothing_is_found_where_nothing_is_known_of_before() {
        let mut history = changing(Time::from_micros(5_500));
        history.calls.remove(0);
        assert_eq!((before(&history), check(&history)), (None, Vec::new()));
        assert_eq!(check(&History { run: None, ..changing(Time::from_micros(5_500)) }), []);
    }
}
