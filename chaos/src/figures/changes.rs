//! How long acquires took while the set of masters changed, and without a change.

use std::ops::Range;

use super::latency::granted;
use crate::history::{History, Micros};

/// A time of a run, and the acquires in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// What was changed; `None` for a time without a change.
    pub what: Option<String>,
    /// From when to when.
    pub time: Range<Micros>,
    /// How long those acquires took that were granted, and were under way in it: from the shortest
    /// to the longest, waits included.
    pub latencies: Vec<Micros>,
    /// The longest of the acquires in as long a time without a change, after all changes. `None`
    /// for a time without a change.
    pub longest_without: Option<Micros>,
}

/// The time of this length before the first change, then each change that was made, and last a time
/// after all changes, up to the calm, that is as long as the longest of them. Nothing where the set
/// did not change.
pub fn changes(history: &History, before: Micros) -> Vec<Stretch> {
    let Some(first) = history.changes.first() else { return Vec::new() };
    let calm = history.calm.unwrap_or(history.end);
    let after = |length| stretch(history, None, calm.saturating_sub(length)..calm);
    let mut stretches = vec![stretch(history, None, first.from.saturating_sub(before)..first.from)];
    let mut longest = 0;
    for change in &history.changes {
        let Some(to) = change.to else { continue };
        let length = to - change.from;
        longest = longest.max(length);
        stretches.push(Stretch {
            longest_without: after(length).latencies.last().copied(),
            ..stretch(history, Some(change.what.clone()), change.from..to)
        });
    }
    stretches.push(after(longest));
    stretches
}

/// How many guards were held from before the first change until after the last one.
pub fn held_throughout(history: &History) -> usize {
    let Some(from) = history.changes.first().map(|change| change.from) else { return 0 };
    let to = history.changes.last().and_then(|change| change.to).unwrap_or(history.end);
    history.holds.iter().filter(|hold| hold.granted < from && hold.window_end() > to).count()
}

fn stretch(history: &History, what: Option<String>, time: Range<Micros>) -> Stretch {
    let during = granted(history).filter(|(began, ended)| *began < time.end && *ended > time.start);
    let mut latencies: Vec<_> = during.map(|(began, ended)| ended - began).collect();
    latencies.sort_unstable();
    Stretch { what, time, latencies, longest_without: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::made_up::{acquire, exclusive, given_back, history};
    use crate::history::{Call, Change, Made, Outcome};

    fn made(invoked: Micros, returned: Micros) -> Made {
        Made {
            process: "p".to_owned(),
            number: 0,
            call: Call::Acquire { lock: exclusive("l"), ttl: 1, wait: 1 },
            invoked,
            returned: Some(returned),
            outcome: Outcome::Granted { owner: String::new(), deadline: 0, fence: None, permit: None },
        }
    }

    fn change(from: Micros, to: Option<Micros>) -> Change {
        Change { what: format!("at {from}"), from, to }
    }

    #[test]
    fn an_acquire_counts_where_it_was_under_way() {
        let calls = vec![made(10, 35), made(45, 46), made(55, 65)];
        let changes_made = vec![change(50, Some(60)), change(90, None)];
        let history = History { calls, changes: changes_made, end: 120, ..History::default() };
        let found = changes(&history, 20);
        let of = |stretch: &Stretch| (stretch.time.clone(), stretch.latencies.clone());
        assert_eq!(
            found.iter().map(of).collect::<Vec<_>>(),
            [(30..50, vec![1, 25]), (50..60, vec![10]), (110..120, vec![])]
        );
        let what = |stretch: &Stretch| stretch.what.clone();
        assert_eq!(found.iter().map(what).collect::<Vec<_>>(), [None, Some("at 50".to_owned()), None]);
        assert_eq!(changes(&History::default(), 20), []);
    }

    #[test]
    fn each_change_is_beside_as_long_a_time_without_one() {
        let calls = vec![made(20, 25), made(205, 225), made(256, 260), made(295, 310)];
        let changes_made = vec![change(50, Some(60)), change(100, Some(150))];
        let history =
            History { calls, changes: changes_made, calm: Some(270), end: 400, ..History::default() };
        let found = changes(&history, 20);
        let longest = |stretch: &Stretch| stretch.longest_without;
        assert_eq!(found.iter().map(longest).collect::<Vec<_>>(), [None, None, Some(20), None]);
        assert_eq!(found[3].time, 220..270, "as long as the longest change");
    }

    #[test]
    fn what_is_held_throughout_is_held_before_the_first_and_after_the_last() {
        let hold = |granted, to| given_back(acquire("a", &exclusive("l"), granted, 90), to);
        let holds = history([hold(10, 70), hold(40, 70), hold(10, 55)]);
        let changes = vec![change(30_000, Some(40_000)), change(50_000, Some(60_000))];
        assert_eq!(held_throughout(&History { changes, ..holds }), 1);
    }
}
