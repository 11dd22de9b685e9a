//! While the set of masters changes, acquires are not much slower than before: the p99 of each
//! change is at most five times that of the time before the first one.
//!
//! This is a goal and no promise. A machine that gets busier meanwhile misses it, too.

use quorate_simulator::history::Violation;

use super::words::{long, time};
use crate::figures::{Stretch, changes, percentile};
use crate::history::{History, Micros};

/// The goal's name.
pub const NAME: &str = "pace";

/// How many times as long as before a p99 may be.
const AT_MOST: Micros = 5;

/// Finds every change that was too slow.
pub fn check(history: &History) -> Vec<Violation> {
    let stretches = stretches(history);
    let Some(before) = stretches.first().and_then(p99) else { return Vec::new() };
    let too_slow = |change: &Stretch| {
        let during = p99(change).filter(|during| *during > before * AT_MOST)?;
        let what = format!(
            "{}: the p99 of acquires was {}, {:.1} times as long as before ({}), and not at most {AT_MOST} times",
            change.what.as_ref()?,
            long(during),
            during as f64 / before as f64,
            long(before)
        );
        Some(Violation { property: NAME, what, at: time(change.time.start) })
    };
    stretches.iter().filter_map(too_slow).collect()
}

/// The p99 of the time before the first change, if there is any.
pub(super) fn before(history: &History) -> Option<Micros> {
    stretches(history).first().and_then(p99)
}

fn stretches(history: &History) -> Vec<Stretch> {
    history.run.as_ref().map(|run| changes(history, run.duration)).unwrap_or_default()
}

fn p99(stretch: &Stretch) -> Option<Micros> {
    percentile(&stretch.latencies, 990)
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{exclusive, run, words};
    use super::*;
    use crate::history::{Call, Change, Made, Outcome};

    /// One before the change that took 1 ms, and one in it that took so long.
    fn changing(took: Micros) -> History {
        let made = |invoked, took| Made {
            process: "p".to_owned(),
            number: 0,
            call: Call::Acquire { lock: exclusive("l"), ttl: 1, wait: 1 },
            invoked,
            returned: Some(invoked + took),
            outcome: Outcome::Granted { owner: String::new(), deadline: 0, fence: None, permit: None },
        };
        let change = Change { what: "m3 joins".to_owned(), from: 20_000, to: Some(50_000) };
        let calls = vec![made(10_000, 1_000), made(30_000, took), made(80_000, 20_000)];
        History { run: Some(run()), calls, changes: vec![change], end: 110_000, ..History::default() }
    }

    #[test]
    fn a_change_that_is_too_slow_is_found() {
        assert_eq!(check(&changing(5_000)), []);
        let found = check(&changing(5_500));
        assert_eq!(found.iter().map(|found| found.at).collect::<Vec<_>>(), [time(20_000)]);
        let what = "m3 joins: the p99 of acquires was 5.5 ms, 5.5 times as long as before (1.0 ms), and not at most 5 times";
        assert_eq!(words(&found), [what]);
    }

    #[test]
    fn nothing_is_found_where_nothing_is_known_of_before() {
        let mut history = changing(5_500);
        history.calls.remove(0);
        assert_eq!((before(&history), check(&history)), (None, Vec::new()));
        assert_eq!(check(&History { run: None, ..changing(5_500) }), []);
    }
}
