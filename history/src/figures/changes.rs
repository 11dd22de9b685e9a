//! How long acquires took while the set of masters changed, and without a change.

use std::ops::Range;

use super::latency::granted;
use crate::history::{History, Time};

/// A time of a run, and the acquires in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// What was changed; `None` for a time without a change.
    pub what: Option<String>,
    /// From when to when.
    pub time: Range<Time>,
    /// How long those acquires took that were granted, and were under way in it: from the shortest
    /// to the longest, waits included.
    pub latencies: Vec<Time>,
    /// The longest of the acquires in as long a time without a change, after all changes. `None`
    /// for a time without a change.
    pub longest_without: Option<Time>,
}

/// The time of this length before the first change, then each change that was made, and last a time
/// after all changes, up to the calm, that is as long as the longest of them. Nothing where the set
/// did not change.
pub fn changes(history: &History, before: Time) -> Vec<Stretch> {
    let Some(first) = history.changes.first() else { return Vec::new() };
    let calm = history.calm.unwrap_or(history.end);
    let after = |length| stretch(history, None, calm.saturating_sub(length)..calm);
    let mut stretches = vec![stretch(history, None, first.from.saturating_sub(before)..first.from)];
    let mut longest = Time::ZERO;
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

fn stretch(history: &History, what: Option<String>, time: Range<Time>) -> Stretch {
    let during = granted(history).filter(|(began, ended)| *began < time.end && *ended > time.start);
    let mut latencies: Vec<_> = during.map(|(began, ended)| ended - began).collect();
    latencies.sort_unstable();
    Stretch { what, time, latencies, longest_without: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquires::Ending::Granted;
    use crate::history::{Change, Made};
    use crate::made_up::{attempt, given_back, history, ms};

    fn granted(calls: &[(u64, u64)]) -> Vec<Made> {
        calls.iter().map(|(invoked, returned)| attempt(*invoked, Some(*returned), Granted)).collect()
    }

    fn change(from: u64, to: Option<u64>) -> Change {
        Change { what: format!("at {from}"), from: ms(from), to: to.map(ms) }
    }

    #[test]
    fn an_acquire_counts_where_it_was_under_way() {
        let calls = granted(&[(10, 35), (45, 46), (55, 65)]);
        let changes_made = vec![change(50, Some(60)), change(90, None)];
        let history = History { calls, changes: changes_made, end: ms(120), ..History::default() };
        let found = changes(&history, ms(20));
        let of = |stretch: &Stretch| (stretch.time.clone(), stretch.latencies.clone());
        assert_eq!(
            found.iter().map(of).collect::<Vec<_>>(),
            [
                (ms(30)..ms(50), vec![ms(1), ms(25)]),
                (ms(50)..ms(60), vec![ms(10)]),
                (ms(110)..ms(120), vec![])
            ]
        );
        let what = |stretch: &Stretch| stretch.what.clone();
        assert_eq!(found.iter().map(what).collect::<Vec<_>>(), [None, Some("at 50".to_owned()), None]);
        assert_eq!(changes(&History::default(), ms(20)), []);
    }

    #[test]
    fn each_change_is_beside_as_long_a_time_without_one() {
        let calls = granted(&[(20, 25), (205, 225), (256, 260), (295, 310)]);
        let changes_made = vec![change(50, Some(60)), change(100, Some(150))];
        let history =
            History { calls, changes: changes_made, calm: Some(ms(270)), end: ms(400), ..History::default() };
        let found = changes(&history, ms(20));
        let longest = |stretch: &Stretch| stretch.longest_without;
        assert_eq!(found.iter().map(longest).collect::<Vec<_>>(), [None, None, Some(ms(20)), None]);
        assert_eq!(found[3].time, ms(220)..ms(270), "as long as the longest change");
    }

    #[test]
    fn what_is_held_throughout_is_held_before_the_first_and_after_the_last() {
        let hold = |granted, to| given_back("a", granted, 90, to);
        let holds = history([hold(10, 70), hold(40, 70), hold(10, 55)]);
        let changes = vec![change(30, Some(40)), change(50, Some(60))];
        assert_eq!(held_throughout(&History { changes, ..holds }), 1);
    }
}
