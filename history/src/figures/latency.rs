//! How long acquires took.

use crate::history::{Call, History, Outcome, Time};

/// How long the acquires took that were granted, waits included, from the shortest to the longest.
pub fn latencies(history: &History) -> Vec<Time> {
    let mut times: Vec<_> = granted(history).map(|(began, ended)| ended - began).collect();
    times.sort_unstable();
    times
}

/// The time that `per_mille` thousandths of `times`, which are sorted, do not exceed.
pub fn percentile(times: &[Time], per_mille: usize) -> Option<Time> {
    let place = (times.len() * per_mille).div_ceil(1_000).max(1);
    times.get(place - 1).copied()
}

/// When acquires were made, and when they were granted.
pub(super) fn granted(history: &History) -> impl Iterator<Item = (Time, Time)> {
    history.calls.iter().filter_map(|made| match (&made.call, &made.outcome) {
        (Call::Acquire { .. }, Outcome::Granted { .. }) => Some((made.invoked, made.returned?)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::ms;

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let times: Vec<_> = (1..=100).map(ms).collect();
        let of = |per_mille| percentile(&times, per_mille).unwrap();
        assert_eq!([of(0), of(500), of(990), of(991), of(1_000)], [1, 50, 99, 100, 100].map(ms));
        assert_eq!((percentile(&[ms(7)], 500), percentile(&[], 500)), (Some(ms(7)), None));
    }
}
