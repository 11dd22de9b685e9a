//! Blocks of measurements, and what to make of them.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::figures::Row;
use crate::meter::Used;

pub(crate) const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)];

/// How long one cycle took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycle {
    pub(crate) acquire: Duration,
    pub(crate) release: Duration,
}

/// What one contender did in one block; histograms in nanoseconds.
pub(crate) struct Block {
    pub(crate) acquire: Histogram<u64>,
    pub(crate) release: Histogram<u64>,
    /// Cycles that were not granted.
    pub(crate) failed: u64,
    pub(crate) took: Duration,
    /// The CPU time of this process in the meantime.
    pub(crate) cpu: Duration,
    /// What the masters did in the meantime.
    pub(crate) masters: Used,
}

impl Block {
    pub(crate) fn new() -> Self {
        Self {
            acquire: Histogram::new(3).unwrap(),
            release: Histogram::new(3).unwrap(),
            failed: 0,
            took: Duration::ZERO,
            cpu: Duration::ZERO,
            masters: Used::default(),
        }
    }

    /// Notes a cycle; none is one that was not granted.
    pub(crate) fn note(&mut self, cycle: Option<Cycle>) {
        match cycle {
            Some(Cycle { acquire, release }) => {
                self.acquire.record(acquire.as_nanos() as u64).unwrap();
                self.release.record(release.as_nanos() as u64).unwrap();
            }
            None => self.failed += 1,
        }
    }

    /// How many cycles were granted.
    pub(crate) fn cycles(&self) -> f64 {
        self.acquire.len() as f64
    }

    /// A quantile of the acquires, in us.
    pub(crate) fn acquire(&self, quantile: f64) -> f64 {
        self.acquire.value_at_quantile(quantile) as f64 / 1e3
    }
}

/// How many cycles there were in blocks, and how many of them were granted.
pub(crate) fn asked_and_granted(blocks: &[Block]) -> (u64, u64) {
    let granted = blocks.iter().map(|block| block.acquire.len()).sum();
    (granted + blocks.iter().map(|block| block.failed).sum::<u64>(), granted)
}

/// Adds the quantiles of all cycles of these blocks, taken together, to a row: in us, as
/// `acquire_p50_us`.
pub(crate) fn with_quantiles(row: Row, blocks: &[Block]) -> Row {
    let [mut acquire, mut release] = [(); 2].map(|()| Histogram::<u64>::new(3).unwrap());
    for block in blocks {
        acquire.add(&block.acquire).unwrap();
        release.add(&block.release).unwrap();
    }
    [("acquire", acquire), ("release", release)].into_iter().fold(row, |row, (what, times)| {
        QUANTILES.into_iter().fold(row, |row, (name, quantile)| {
            row.with(&format!("{what}_{name}_us"), times.value_at_quantile(quantile) as f64 / 1e3)
        })
    })
}

/// The median over blocks.
pub(crate) fn median(blocks: &[Block], of: impl Fn(&Block) -> f64) -> f64 {
    middle(blocks.iter().map(of))
}

/// The median of values.
pub(crate) fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
