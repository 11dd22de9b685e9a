//! What is measured, and for how long: pure.

use std::time::Duration;

use crate::exit::{self, Failure};

/// Below this there is nothing to take a percentile of.
pub(crate) const MIN_DURATION: Duration = Duration::from_millis(100);

/// Longer runs say nothing that ten minutes do not, and are load on the masters.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(10 * 60);

/// The most locks at a time: well beyond where more of them make anything faster.
pub(crate) const MAX_CONCURRENCY: usize = 4096;

/// The most concurrencies in one run: each gets a part of the duration.
pub(crate) const MAX_LEVELS: usize = 16;

/// A measurement whose settings are within their limits. The TTL's limits are the library's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) duration: Duration,
    pub(crate) concurrency: Vec<usize>,
    pub(crate) ttl: Duration,
}

impl Plan {
    pub(crate) fn new(duration: Duration, concurrency: Vec<usize>, ttl: Duration) -> Result<Self, Failure> {
        let usage = |message: String| Err(Failure::new(exit::USAGE, message));
        let text = humantime::format_duration;
        if duration < MIN_DURATION || duration > MAX_DURATION {
            return usage(format!(
                "--duration {} is not within {} and {}",
                text(duration),
                text(MIN_DURATION),
                text(MAX_DURATION)
            ));
        }
        if let Some(wrong) = concurrency.iter().find(|locks| !(1..=MAX_CONCURRENCY).contains(*locks)) {
            return usage(format!("--concurrency {wrong} is not within 1 and {MAX_CONCURRENCY}"));
        }
        if concurrency.len() > MAX_LEVELS {
            let count = concurrency.len();
            return usage(format!("--concurrency has {count} values; at most {MAX_LEVELS} are allowed"));
        }
        Ok(Self { duration, concurrency, ttl })
    }

    /// How long each step gets: the single locks are one, and each concurrency is one.
    pub(crate) fn step(&self) -> Duration {
        let steps = 1 + self.concurrency.len();
        self.duration / u32::try_from(steps).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(ms: u64, concurrency: &[usize]) -> Result<Plan, String> {
        let duration = Duration::from_millis(ms);
        let ttl = Duration::from_secs(10);
        Plan::new(duration, concurrency.to_vec(), ttl).map_err(|failure| failure.message)
    }

    #[test]
    fn the_steps_share_the_duration() {
        assert_eq!(plan(10_000, &[1, 16, 64]).unwrap().step(), Duration::from_millis(2_500));
        assert_eq!(plan(100, &[]).unwrap().step(), MIN_DURATION);
    }

    #[test]
    fn the_limits_themselves_are_allowed() {
        assert!(plan(600_000, &[4096; 16]).is_ok());
        assert!(plan(100, &[1]).is_ok());
    }

    #[test]
    fn a_value_outside_of_its_limits_is_named_with_the_limit() {
        for (wrong, parts) in [
            (plan(99, &[1]), ["99ms", "100ms"]),
            (plan(600_001, &[1]), ["10m 1ms", "10m"]),
            (plan(1_000, &[1, 0]), ["--concurrency 0", "4096"]),
            (plan(1_000, &[4_097]), ["4097", "4096"]),
            (plan(1_000, &[1; 17]), ["17", "16"]),
        ] {
            let message = wrong.unwrap_err();
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
    }
}
