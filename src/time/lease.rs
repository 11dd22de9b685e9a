//! How long a granted acquire may be trusted: pure arithmetic.

use std::time::Duration;

use super::clock::Moment;
use super::clocks::BAND;

/// What a lease loses to clocks that run at different rates: a hundredth of the TTL, and 2 ms
/// because Redis counts in whole milliseconds and expires a key of a shared layout up to one late.
///
/// Source: <https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/>, "clock
/// drift"; the numbers are those of Redlock's first implementation and of most since.
pub(crate) fn drift(ttl: Duration) -> Duration {
    ttl / 100 + Duration::from_millis(2)
}

/// The largest step of a master's clock that goes unnoticed: from the band below the median when a
/// lease was granted, to the band above it when another owner asks. See `clocks.rs`.
const UNSEEN: Duration = BAND.saturating_mul(2);

/// What a lease gives away for clocks that step: all that can go unnoticed, up to a tenth of the
/// TTL.
fn given_away(ttl: Duration) -> Duration {
    UNSEEN.min(ttl / 10)
}

/// How much shorter a lease is than its TTL.
pub(crate) fn shortfall(ttl: Duration) -> Duration {
    drift(ttl) + given_away(ttl)
}

/// When a lease ends, counted from `sent`, the moment before its round was sent, because no master
/// counts from earlier. By then no master has ended it, even with a clock that runs too fast or
/// stepped unnoticed: what a short lease cannot give away for that, its entry is [`kept`] longer.
pub(crate) fn deadline(sent: Moment, ttl: Duration) -> Moment {
    sent + ttl.saturating_sub(shortfall(ttl))
}

/// How long a master keeps an unreleased lock from others, by its own clock: the TTL, the lock
/// delay, and what the lease does not give away for clocks that step. A round adds the width of the
/// time that it goes by.
pub(crate) fn kept(ttl: Duration, delay: Duration) -> Duration {
    ttl + delay + (UNSEEN - given_away(ttl))
}

/// The lock delay after a lease of this TTL, if both together may last as long as `longest`: an
/// owner that enters again may ask for a longer TTL than the delay leaves room for.
pub(crate) fn delay_within(longest: Duration, ttl: Duration, delay: Duration) -> Duration {
    delay.min(longest.saturating_sub(ttl))
}

/// How long a message may be under way and still be executed: masters refuse one whose time is more
/// than 2 s old; that time may have been 0.5 s ahead, and the rest is for clocks that are off.
const LONGEST_UNDER_WAY: Duration = Duration::from_secs(3);

/// When the entry of a round has surely ended, if it is kept for `kept`: even on a master that
/// executed the round as late as possible, by a slow clock.
pub(crate) fn expires_by(sent: Moment, kept: Duration) -> Moment {
    sent + kept + kept / 100 + LONGEST_UNDER_WAY
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The client's clock runs slow, and the master's fast: a hundredth apart together. The
        /// entry of a shared layout, which is kept for the TTL alone, outlives the guard; also
        /// where what a lease gives away for steps of clocks is used up.
        #[test]
        fn a_lease_gives_the_drift_away(ttl in 10u64..=86_400_000, ahead in 0.0f64..=0.01) {
            let ttl = Duration::from_millis(ttl);
            let sent = Moment::from_origin(Duration::from_secs(60));
            let guard_ends = deadline(sent, ttl) + given_away(ttl);
            let key_ends = sent + ttl.mul_f64(1.0 / (1.0 + ahead));
            prop_assert!(guard_ends < key_ends, "{guard_ends:?} {key_ends:?}");
        }

        /// Invariant 1: a lease ends before its keys do, even if the masters' clocks run a
        /// hundredth faster.
        #[test]
        fn a_lease_ends_before_its_keys(sent in 0u64..1 << 40, ttl in 10u64..=86_400_000) {
            let sent = Moment::from_origin(Duration::from_millis(sent));
            let ttl = Duration::from_millis(ttl);
            let fastest_expiry = sent + ttl.mul_f64(1.0 / 1.01);
            prop_assert!(deadline(sent, ttl) < fastest_expiry);
            let stepped = sent + kept(ttl, Duration::ZERO).saturating_sub(BAND * 2).mul_f64(1.0 / 1.01);
            prop_assert!(deadline(sent, ttl) < stepped, "though its clock stepped by two bands");
            prop_assert!(deadline(sent, ttl) > sent);
            let slowest_expiry = sent + ttl.mul_f64(1.01);
            prop_assert!(expires_by(sent, kept(ttl, Duration::ZERO)) > slowest_expiry);
        }
    }
}
