//! Blocks of measurements, and what to make of them.

use std::time::Instant;

use hdrhistogram::Histogram;

/// What one contender did in one block, in nanoseconds.
pub(crate) struct Block {
    pub(crate) acquire: Histogram<u64>,
    pub(crate) release: Histogram<u64>,
}

impl Block {
    pub(crate) fn new() -> Self {
        Self { acquire: Histogram::new(3).unwrap(), release: Histogram::new(3).unwrap() }
    }

    /// Notes one cycle: an acquire from `began` to `granted`, and a release from there to now.
    pub(crate) fn note(&mut self, began: Instant, granted: Instant) {
        self.acquire.record((granted - began).as_nanos() as u64).unwrap();
        self.release.record(granted.elapsed().as_nanos() as u64).unwrap();
    }
}

/// The median over blocks of a quantile.
pub(crate) fn median(blocks: &[Block], of: fn(&Block) -> &Histogram<u64>, quantile: f64) -> f64 {
    let mut values: Vec<u64> = blocks.iter().map(|block| of(block).value_at_quantile(quantile)).collect();
    values.sort_unstable();
    values[values.len() / 2] as f64
}

/// The ratios of the acquires' medians in neighbouring blocks, so that drift of the machine cancels out; sorted.
pub(crate) fn ratios(ours: &[Block], theirs: &[Block]) -> Vec<f64> {
    let p50 = |block: &Block| block.acquire.value_at_quantile(0.5) as f64;
    let mut ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| p50(a) / p50(b)).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// The median of sorted values, with their quartiles.
pub(crate) fn quartiles(sorted: &[f64]) -> String {
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    format!("{:.2} (quartiles {:.2} to {:.2})", at(0.5), at(0.25), at(0.75))
}
