//! Delays between attempts: exponential, capped, and jittered so that clients which failed together
//! do not retry together.

use std::time::Duration;

/// A sequence of growing delays.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    cap: Duration,
    next: Duration,
}

impl Backoff {
    /// Delays of about `first`, twice that, and so on up to `cap`.
    pub(crate) fn new(first: Duration, cap: Duration) -> Self {
        Self { first, cap, next: first }
    }

    /// The next delay: `random` picks it evenly between half of the full one and all of it.
    pub(crate) fn delay(&mut self, random: u64) -> Duration {
        let full = self.next;
        self.next = full.saturating_mul(2).min(self.cap);
        jittered(full, random)
    }

    /// Starts again with the first delay, after a success.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// A time between half of `full` and all of it.
pub(crate) fn jittered(full: Duration, random: u64) -> Duration {
    let share = (random >> 11) as f64 / (1u64 << 53) as f64; // [0, 1)
    full.mul_f64(0.5 + share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn delays_double_up_to_the_cap_and_are_jittered(random: u64, steps in 0u32..40) {
            let first = Duration::from_millis(5);
            let cap = Duration::from_millis(250);
            let mut backoff = Backoff::new(first, cap);
            for _ in 0..steps {
                backoff.delay(random);
            }
            let full = (first * 2u32.saturating_pow(steps.min(16))).min(cap);
            let delay = backoff.delay(random);
            prop_assert!(delay >= full / 2 && delay <= full, "{delay:?} of {full:?}");
            backoff.reset();
            prop_assert!(backoff.delay(random) <= first);
        }
    }

    #[test]
    fn clients_that_failed_together_part() {
        let delay = |random| Backoff::new(Duration::from_millis(8), Duration::from_secs(1)).delay(random);
        assert_eq!(delay(0), Duration::from_millis(4));
        assert_eq!(delay(u64::MAX / 2 + 1), Duration::from_millis(6));
        assert!(delay(u64::MAX) > Duration::from_micros(7_990));
    }
}
