//! Every master's round trips, and what a quorum of some of the masters would have cost: pure.
//!
//! A quorum of n masters has answered when the k-th of them has, k = n / 2 + 1. So the round trips
//! of one round, put in order, tell when each quorum would have been there: the k-th order
//! statistic.

use super::statistics::Sorted;

/// The most rounds that are kept. A 99th percentile then still has a hundred above it.
const MOST_ROUNDS: usize = 20_000;

/// How many of `masters` are a quorum.
pub(crate) fn quorum(masters: usize) -> usize {
    masters / 2 + 1
}

/// Every master's round trip in milliseconds, round by round. Of very many rounds it keeps every
/// second, then every fourth, and so on.
#[derive(Debug)]
pub(crate) struct Rounds {
    kept: Vec<Box<[f64]>>,
    seen: usize,
    stride: usize,
    most: usize,
}

impl Rounds {
    pub(crate) fn new() -> Self {
        Self::of_at_most(MOST_ROUNDS)
    }

    fn of_at_most(most: usize) -> Self {
        Self { kept: Vec::new(), seen: 0, stride: 1, most: most.next_multiple_of(2) }
    }

    /// Notes a round: one time for each master, [`NEVER`](super::statistics::NEVER) where there was
    /// no answer.
    pub(crate) fn push(&mut self, round: impl Into<Box<[f64]>>) {
        if self.kept.len() == self.most {
            let mut even = [true, false].into_iter().cycle();
            self.kept.retain(|_| even.next().unwrap_or(true));
            self.stride *= 2;
        }
        if self.seen.is_multiple_of(self.stride) {
            self.kept.push(round.into());
        }
        self.seen += 1;
    }

    pub(crate) fn masters(&self) -> usize {
        self.kept.first().map_or(0, |round| round.len())
    }

    /// One master's round trips, in order.
    pub(crate) fn of(&self, master: usize) -> Sorted {
        Sorted::new(self.kept.iter().map(|round| round[master]))
    }

    /// The masters, the one with the shortest median first.
    pub(crate) fn fastest(&self) -> Vec<usize> {
        let mut masters: Vec<_> = (0..self.masters()).map(|i| (self.of(i).at(&[0.5])[0], i)).collect();
        masters.sort_by(|a, b| a.0.total_cmp(&b.0));
        masters.into_iter().map(|(_, i)| i).collect()
    }

    /// When a quorum of these masters had answered, in each round.
    pub(crate) fn quorum_of(&self, chosen: &[usize]) -> Sorted {
        let kth = |round: &[f64]| {
            let mut times: Vec<f64> = chosen.iter().map(|master| round[*master]).collect();
            times.sort_by(f64::total_cmp);
            times[quorum(chosen.len()) - 1]
        };
        Sorted::new(self.kept.iter().map(|round| kth(round)))
    }

    /// When a quorum of `n` of the masters had answered, whichever n these are: in each round, over
    /// every choice of n.
    pub(crate) fn quorum_of_any(&self, n: usize) -> Sorted {
        let weights = rank_weights(self.masters(), n);
        let ranked = self.kept.iter().flat_map(|round| {
            let mut times = round.clone();
            times.sort_by(f64::total_cmp);
            times.into_iter().zip(weights.clone())
        });
        Sorted::weighted(ranked)
    }
}

/// How likely it is for each of `all` times in order that it is the one that completes a quorum of
/// `n`, when those n are drawn at random: k - 1 of them must come before it, and n - k after it.
fn rank_weights(all: usize, n: usize) -> Vec<f64> {
    let k = quorum(n);
    let share = |before: usize| choose(before, k - 1) * choose(all - before - 1, n - k) / choose(all, n);
    (0..all).map(share).collect()
}

/// How many ways there are to choose `k` of `n`.
fn choose(n: usize, k: usize) -> f64 {
    if k > n {
        return 0.0;
    }
    (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::statistics::{LatencySummary, Ms, NEVER};
    use super::*;

    fn rounds(of: &[&[f64]]) -> Rounds {
        let mut rounds = Rounds::new();
        of.iter().for_each(|round| rounds.push(*round));
        rounds
    }

    fn times(sorted: &Sorted) -> Vec<f64> {
        sorted.times().collect()
    }

    /// Some rounds of some masters, a few of which do not answer.
    fn some_rounds() -> impl Strategy<Value = Vec<Vec<f64>>> {
        let time = prop_oneof![9 => (1u32..1000).prop_map(f64::from), 1 => Just(NEVER)];
        (1usize..=6).prop_flat_map(move |masters| vec(vec(time.clone(), masters), 1..12))
    }

    fn all(of: &[Vec<f64>]) -> Rounds {
        rounds(&of.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    #[test]
    fn a_quorum_is_there_with_its_last_master() {
        let seen = rounds(&[&[1.0, 9.0, 4.0], &[7.0, 2.0, 3.0]]);
        assert_eq!(times(&seen.quorum_of(&[0, 1, 2])), [3.0, 4.0]);
        assert_eq!(times(&seen.quorum_of(&[0])), [1.0, 7.0]);
        assert_eq!(times(&seen.quorum_of(&[0, 1])), [7.0, 9.0], "of two masters both are needed");
    }

    #[test]
    fn a_master_that_does_not_answer_is_outvoted_or_ends_it() {
        let seen = rounds(&[&[1.0, NEVER, 4.0]]);
        assert_eq!(times(&seen.quorum_of(&[0, 1, 2])), [4.0]);
        let never = seen.quorum_of(&[0, 1]);
        assert_eq!(never.summary().p50, Ms(NEVER));
        assert!(never.curve().is_empty());
        assert_eq!(seen.fastest(), [0, 2, 1]);
    }

    #[test]
    fn of_many_rounds_evenly_spread_ones_are_kept() {
        let mut rounds = Rounds::of_at_most(4);
        (0..=12).for_each(|i| rounds.push([f64::from(i)]));
        let kept: Vec<f64> = rounds.kept.iter().map(|round| round[0]).collect();
        assert_eq!(kept, [0.0, 4.0, 8.0, 12.0]);
    }

    proptest! {
        #[test]
        fn the_k_th_time_has_k_that_are_not_above_it(of in some_rounds()) {
            let masters = of[0].len();
            for round in &of {
                let quorum_at = times(&all(std::slice::from_ref(round)).quorum_of(&(0..masters).collect::<Vec<_>>()))[0];
                prop_assert!(round.iter().filter(|time| **time <= quorum_at).count() >= quorum(masters));
                prop_assert!(round.iter().filter(|time| **time < quorum_at).count() < quorum(masters));
            }
        }

        #[test]
        fn any_of_some_masters_is_every_choice_of_them(of in some_rounds()) {
            let seen = all(&of);
            let masters = of[0].len();
            for n in 1..=masters {
                let choices = (0usize..1 << masters).filter(|set| set.count_ones() as usize == n);
                let every = choices.flat_map(|set| {
                    let chosen: Vec<_> = (0..masters).filter(|i| set >> i & 1 == 1).collect();
                    times(&seen.quorum_of(&chosen))
                });
                let every = Sorted::new(every);
                let any = seen.quorum_of_any(n);
                prop_assert!((any.weight() - of.len() as f64).abs() < 1e-6);
                let shares = [0.001, 0.213, 0.5, 0.9, 0.99, 1.0];
                prop_assert_eq!(any.at(&shares), every.at(&shares), "{} of {}", n, masters);
            }
        }

        #[test]
        fn percentiles_rise(of in some_rounds()) {
            let order = all(&of).quorum_of_any(of[0].len());
            let LatencySummary { p50, p90, p99, max, .. } = order.summary();
            prop_assert!(p50 <= p90 && p90 <= p99 && p99 <= max);
            prop_assert!(order.curve().is_sorted());
        }
    }
}
