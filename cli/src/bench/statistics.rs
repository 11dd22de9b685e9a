//! Percentiles and distributions of times: pure.

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

/// The round trip of a master that did not answer.
pub(crate) const NEVER: f64 = f64::INFINITY;

/// The points of a [`Curve`], finer where the tail is.
const SHARES: usize = 100;

/// A time in milliseconds; JSON has it to the microsecond, and as null when it never came.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Ms(pub(crate) f64);

impl Serialize for Ms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.0.is_finite().then_some((self.0 * 1e3).round() / 1e3)).serialize(serializer)
    }
}

/// What a number of times were like. All of them never came where there are none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct LatencySummary {
    pub(crate) count: u64,
    #[serde(rename = "mean_ms")]
    pub(crate) mean: Ms,
    #[serde(rename = "p50_ms")]
    pub(crate) p50: Ms,
    #[serde(rename = "p90_ms")]
    pub(crate) p90: Ms,
    #[serde(rename = "p99_ms")]
    pub(crate) p99: Ms,
    #[serde(rename = "p999_ms")]
    pub(crate) p999: Ms,
    #[serde(rename = "max_ms")]
    pub(crate) max: Ms,
}

/// The share of the times, from 0 to 1, that were not above a number of milliseconds: rising points
/// of a distribution.
pub(crate) type Curve = Vec<(f64, f64)>;

/// Times in milliseconds, in order, each with its weight.
#[derive(Clone, Debug)]
pub(crate) struct Sorted(Vec<(f64, f64)>);

impl Sorted {
    pub(crate) fn new(times: impl IntoIterator<Item = f64>) -> Self {
        Self::weighted(times.into_iter().map(|time| (time, 1.0)))
    }

    pub(super) fn weighted(times: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut sorted: Vec<_> = times.into_iter().filter(|(_, weight)| *weight > 0.0).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self(sorted)
    }

    /// The times at these shares of the weight, which rise: for each the first that has so much up
    /// to it.
    pub(super) fn at(&self, shares: &[f64]) -> Vec<f64> {
        let whole = self.weight();
        let mut times = self.0.iter();
        let mut time = NEVER;
        let mut below = 0.0;
        let reach = |share: &f64| {
            // So much less that a sum of many parts reaches what it should.
            while below < share * whole - 1e-9 * whole || below == 0.0 {
                let Some((next, weight)) = times.next() else { break };
                (time, below) = (*next, below + weight);
            }
            time
        };
        shares.iter().map(reach).collect()
    }

    /// Those that came.
    pub(crate) fn answered(&self) -> Self {
        Self(self.0.iter().copied().filter(|(time, _)| time.is_finite()).collect())
    }

    #[cfg(test)]
    pub(super) fn times(&self) -> impl Iterator<Item = f64> {
        self.0.iter().map(|(time, _)| *time)
    }

    pub(super) fn weight(&self) -> f64 {
        self.0.iter().map(|(_, weight)| weight).sum()
    }

    pub(crate) fn summary(&self) -> LatencySummary {
        let whole = self.weight();
        let mean = self.0.iter().map(|(time, weight)| time * weight).sum::<f64>() / whole;
        let at = self.at(&[0.5, 0.9, 0.99, 0.999, 1.0]);
        let [p50, p90, p99, p999, max] = std::array::from_fn(|i| Ms(at[i]));
        let mean = Ms(if mean.is_nan() { NEVER } else { mean });
        LatencySummary { count: whole.round() as u64, mean, p50, p90, p99, p999, max }
    }

    pub(crate) fn curve(&self) -> Curve {
        let shares = shares();
        let points = self.at(&shares).into_iter().zip(shares);
        points.filter(|(time, _)| time.is_finite()).collect()
    }
}

/// The summary of a histogram of nanoseconds.
pub(crate) fn summary(times: &Histogram<u64>) -> LatencySummary {
    if times.is_empty() {
        return Sorted::new([]).summary();
    }
    let at = |share| Ms(times.value_at_quantile(share) as f64 / 1e6);
    let mean = Ms(times.mean() / 1e6);
    let [p50, p90, p99, p999, max] = [0.5, 0.9, 0.99, 0.999, 1.0].map(at);
    LatencySummary { count: times.len(), mean, p50, p90, p99, p999, max }
}

/// The curve of a histogram of nanoseconds.
pub(crate) fn curve(times: &Histogram<u64>) -> Curve {
    if times.is_empty() {
        return Curve::new();
    }
    shares().into_iter().map(|share| (times.value_at_quantile(share) as f64 / 1e6, share)).collect()
}

fn shares() -> Vec<f64> {
    let hundredths = (0..SHARES).map(|i| i as f64 / SHARES as f64);
    hundredths.chain([0.995, 0.998, 0.999]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let summary = Sorted::new((1..=200).rev().map(f64::from)).summary();
        let LatencySummary { count, mean, p50, p90, p99, p999, max } = summary;
        assert_eq!((count, mean), (200, Ms(100.5)));
        assert_eq!((p50, p90, p99), (Ms(100.0), Ms(180.0), Ms(198.0)));
        assert_eq!((p999, max), (Ms(200.0), Ms(200.0)));
    }

    #[test]
    fn of_nothing_there_is_no_time() {
        let nothing = Sorted::new([]).summary();
        assert_eq!((nothing.count, nothing.p50, nothing.mean), (0, Ms(NEVER), Ms(NEVER)));
        assert_eq!(summary(&Histogram::new(3).unwrap()), nothing);
        let json = serde_json::to_value(nothing).unwrap();
        assert!(json["p50_ms"].is_null() && json["count"] == 0);
    }

    #[test]
    fn a_histogram_is_summed_up_in_milliseconds() {
        let mut times = Histogram::new(3).unwrap();
        (1..=100).for_each(|us| times.record(us * 1000).unwrap());
        let LatencySummary { count, p50, max, .. } = summary(&times);
        assert_eq!(count, 100);
        assert!((p50.0 - 0.050).abs() < 1e-4 && (max.0 - 0.100).abs() < 1e-4, "{p50:?} {max:?}");
        assert!(curve(&times).is_sorted());
    }
}
