//! Blocks of measurements, and what to make of them.

use std::time::Duration;

use hdrhistogram::Histogram;

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
}

impl Block {
    pub(crate) fn new() -> Self {
        Self {
            acquire: Histogram::new(3).unwrap(),
            release: Histogram::new(3).unwrap(),
            failed: 0,
            took: Duration::ZERO,
            cpu: Duration::ZERO,
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

    /// A quantile of the acquires, in us.
    pub(crate) fn acquire(&self, quantile: f64) -> f64 {
        self.acquire.value_at_quantile(quantile) as f64 / 1e3
    }

    /// A quantile of the releases, in us.
    pub(crate) fn release(&self, quantile: f64) -> f64 {
        self.release.value_at_quantile(quantile) as f64 / 1e3
    }

    /// Cycles a second.
    pub(crate) fn rate(&self) -> f64 {
        self.acquire.len() as f64 / self.took.as_secs_f64()
    }

    /// The CPU time of this process for a cycle, in us.
    pub(crate) fn cpu(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.acquire.len() as f64
    }
}

/// The share of the blocks' cycles that were granted, in percent.
pub(crate) fn granted(blocks: &[Block]) -> f64 {
    let sum = |of: fn(&Block) -> u64| blocks.iter().map(of).sum::<u64>() as f64;
    let granted = sum(|block| block.acquire.len());
    granted / (granted + sum(|block| block.failed)) * 100.0
}

/// The median over blocks.
pub(crate) fn median(blocks: &[Block], of: impl Fn(&Block) -> f64) -> f64 {
    middle(blocks.iter().map(of))
}

/// The median of values.
pub(crate) fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let sorted = sorted(values);
    sorted[sorted.len() / 2]
}

/// The ratios of neighbouring blocks, so that drift of the machine cancels out: their median, with quartiles.
pub(crate) fn ratio(ours: &[Block], theirs: &[Block], of: impl Fn(&Block) -> f64) -> String {
    quartiles(ratios(ours, theirs, of))
}

/// The ratios of neighbouring blocks.
pub(crate) fn ratios(
    ours: &[Block],
    theirs: &[Block],
    of: impl Fn(&Block) -> f64,
) -> impl Iterator<Item = f64> {
    ours.iter().zip(theirs).map(move |(a, b)| of(a) / of(b))
}

/// The median of values, with their quartiles; or the only one there is.
pub(crate) fn quartiles(values: impl Iterator<Item = f64>) -> String {
    let sorted = sorted(values);
    if let [value] = sorted[..] {
        return format!("{value:.2}");
    }
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    format!("{:.2} ({:.2} to {:.2})", at(0.5), at(0.25), at(0.75))
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// A number that the environment may give.
pub(crate) fn number(name: &str, usual: f64) -> f64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}
