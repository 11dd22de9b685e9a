//! How long a granted acquire may be trusted: pure arithmetic.

use std::time::Duration;

use crate::clock::Moment;
use crate::trust::BAND;

/// What a lease loses to clocks that run at different rates: a hundredth of the TTL, and 2 ms
/// because Redis counts in whole milliseconds and expires a key up to one late.
///
/// Source: <https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/>, "clock
/// drift"; the numbers are those of Redlock's first implementation and of most since.
pub(crate) fn drift(ttl: Duration) -> Duration {
    ttl / 100 + Duration::from_millis(2)
}

/// The most by which a master's clock can have stepped without being noticed: from the band below
/// the median when a lease was granted, to the band above it when somebody else asks. See
/// `trust/clocks.rs`.
const UNSEEN: Duration = BAND.saturating_mul(2);

/// What a lease gives away for clocks that step: all that can go unseen, but no more than a tenth
/// of the TTL.
fn given_away(ttl: Duration) -> Duration {
    UNSEEN.min(ttl / 10)
}

/// What a lease lacks of its TTL.
pub(crate) fn shortfall(ttl: Duration) -> Duration {
    drift(ttl) + given_away(ttl)
}

/// When a lease ends: counted from `sent`, the moment before the round that a quorum granted was
/// sent, because no master counts from before that. No master's clock that runs too fast, or steps
/// unseen, has ended it by then: what a short lease cannot give away for that, it is [`kept`]
/// longer.
pub(crate) fn deadline(sent: Moment, ttl: Duration) -> Moment {
    sent + ttl.saturating_sub(shortfall(ttl))
}

/// How long a master keeps a lock from others that was not released, by its own clock: the TTL,
/// what is asked for beyond it, and what the lease does not give away for clocks that step.
pub(crate) fn kept(ttl: Duration, delay: Duration) -> Duration {
    ttl + delay + (UNSEEN - given_away(ttl))
}

/// How long a message may be under way and still be carried out: what comes later is refused for
/// its time, which is 2 s old at most, and may have been 0.5 s ahead; the rest is for clocks that
/// are off.
const LONGEST_UNDER_WAY: Duration = Duration::from_secs(3);

/// When what a round asked for, to be kept for so long, is surely over: on a master that ran it as
/// late as possible, by a clock that is slow.
pub(crate) fn expires_by(sent: Moment, kept: Duration) -> Moment {
    sent + kept + kept / 100 + LONGEST_UNDER_WAY
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_drift_of_ten_seconds_is_102_ms() {
        assert_eq!(drift(Duration::from_secs(10)), Duration::from_millis(102));
    }

    proptest! {
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
