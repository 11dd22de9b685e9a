//! The masters' clocks, as this client sees them: pure arithmetic.
//!
//! Leases end on the masters by their wall clocks. A client estimates how far a master's clock is
//! ahead of this host's boot clock: `time - heard` at least, and `time - asked` at most. A clock
//! that is more than [`BAND`] from its own last estimate has jumped; a clock that is more than that
//! from the median of all is wrong. In both cases the master's vote does not count. Smaller steps
//! are covered by [`lease`](crate::lease): a lease ends two bands early, or its entries are kept
//! for that much longer.

use super::terms::BAND;
use crate::clock::Moment;
use crate::master_set::MasterSet;

/// By how much clocks may run at different rates: a hundredth, as for leases.
const RATE: i64 = 100;

/// What a client knows of the clocks of its masters.
#[derive(Debug)]
pub(super) struct Clocks {
    /// Of each master, by its index.
    estimates: Box<[Option<Estimate>]>,
    /// The masters whose clocks make the median.
    pub(super) voters: MasterSet,
}

/// How far (us) a clock is ahead of this host's, at least and at most, as of a moment here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Estimate {
    low: i64,
    high: i64,
    at: i64,
}

/// How a clock is off, in seconds ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ClockError {
    /// From what it was.
    Jumped(f64),
    /// From the median of all.
    FromOthers(f64),
}

impl std::fmt::Display for ClockError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Jumped(by) => write!(f, "its clock jumped by {by:+.3} s"),
            Self::FromOthers(by) => write!(f, "its clock is {by:+.3} s from the median"),
        }
    }
}

impl Clocks {
    pub(super) fn new(masters: usize) -> Self {
        Self { estimates: vec![None; MasterSet::INDICES].into(), voters: MasterSet::first(masters) }
    }

    /// Notes that it was `time` (us) on the master at some moment between these two.
    pub(super) fn note(
        &mut self,
        index: usize,
        asked: Moment,
        heard: Moment,
        time: u64,
    ) -> Result<(), ClockError> {
        let time = i64::try_from(time).unwrap_or(i64::MAX);
        let asked = micros(asked);
        let heard = micros(heard);
        let seen = Estimate { low: time - heard, high: time - asked, at: heard };
        let before = self.estimates[index].map(|known| known.grown_old(heard));
        self.estimates[index] = Some(before.and_then(|known| known.meet(seen)).unwrap_or(seen));
        if let Some(by) = before.and_then(|known| known.strayed(seen)) {
            return Err(ClockError::Jumped(by));
        }
        match self.median().and_then(|median| median.strayed(seen)) {
            Some(by) => Err(ClockError::FromOthers(by)),
            None => Ok(()),
        }
    }

    /// How many of these masters have clocks that agree on the time, as far as is known.
    pub(super) fn how_many_agree(&self, masters: impl Iterator<Item = usize>) -> usize {
        if !self.most_are_known() {
            return masters.count();
        }
        let median = self.median();
        let agrees = |known: Estimate| median.is_some_and(|median| median.strayed(known).is_none());
        masters.filter(|index| self.estimates[*index].is_none_or(agrees)).count()
    }

    /// The time (us) by the median, once a majority of all masters agrees on it.
    pub(super) fn time(&self, now: Moment) -> Option<u64> {
        self.median().and_then(|median| u64::try_from(median.middle() + micros(now)).ok())
    }

    fn most_are_known(&self) -> bool {
        self.known().count() * 2 > self.voters.len()
    }

    /// The estimates of the voters' clocks.
    fn known(&self) -> impl Iterator<Item = Estimate> {
        self.voters.iter().filter_map(|index| self.estimates[index])
    }

    /// The median estimate, once a majority of all masters is within the band of it. The median of
    /// a few is not enough: where two clocks of five are wrong, it may be theirs.
    fn median(&self) -> Option<Estimate> {
        if !self.most_are_known() {
            return None;
        }
        let low = self.known().map(|known| known.low);
        let high = self.known().map(|known| known.high);
        let median = Estimate { low: middle_of(low), high: middle_of(high), at: 0 };
        let agree = self.known().filter(|known| median.strayed(*known).is_none()).count();
        (agree * 2 > self.voters.len()).then_some(median)
    }
}

/// The median; of an even number of values, halfway between the two in the middle.
fn middle_of(values: impl Iterator<Item = i64>) -> i64 {
    let mut sorted = [0; crate::config::MAX_MASTERS];
    let mut count = 0;
    for value in values {
        sorted[count] = value;
        count += 1;
    }
    sorted[..count].sort_unstable();
    let one = sorted[(count - 1) / 2];
    let other = sorted[count / 2];
    one + (other - one) / 2
}

impl Estimate {
    fn middle(self) -> i64 {
        self.low + (self.high - self.low) / 2
    }

    /// The same estimate at a later moment, wider because clocks do not run at the same rate.
    fn grown_old(self, at: i64) -> Self {
        let slack = (at - self.at).max(0) / RATE;
        Self { low: self.low - slack, high: self.high + slack, at }
    }

    /// What follows from both estimates, if they can both be true.
    fn meet(self, seen: Self) -> Option<Self> {
        let low = self.low.max(seen.low);
        let high = self.high.min(seen.high);
        (low <= high).then_some(Self { low, high, at: seen.at })
    }

    /// How far (s) `seen` is ahead of this, if that is more than the band.
    fn strayed(self, seen: Self) -> Option<f64> {
        let by = if seen.low > self.high { seen.low - self.high } else { (seen.high - self.low).min(0) };
        (by.unsigned_abs() > BAND.as_micros() as u64).then_some(by as f64 / 1e6)
    }
}

fn micros(moment: Moment) -> i64 {
    i64::try_from(moment.since(Moment::default()).as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOON: u64 = 1_790_000_000_000_000;

    fn at(ms: u64) -> Moment {
        Moment::from_origin(std::time::Duration::from_millis(ms))
    }

    impl Clocks {
        fn agrees(&self, index: usize) -> bool {
            self.how_many_agree(std::iter::once(index)) == 1
        }
    }

    /// A master whose clock is `ahead` (ms) was asked at `asked`, and answered `took` later.
    fn look(clocks: &mut Clocks, index: usize, asked: u64, took: u64, ahead: i64) -> Result<(), ClockError> {
        let time = NOON + (asked + took / 2) * 1000;
        clocks.note(index, at(asked), at(asked + took), time.saturating_add_signed(ahead * 1000))
    }

    #[test]
    fn a_clock_that_jumps_is_noticed_once_and_then_by_the_others() {
        let mut clocks = Clocks::new(3);
        for index in 0..3 {
            assert_eq!(look(&mut clocks, index, 1_000, 2, 0), Ok(()));
        }
        assert!(matches!(look(&mut clocks, 0, 1_010, 2, 60_000), Err(ClockError::Jumped(by)) if by > 59.9));
        assert!(
            matches!(look(&mut clocks, 0, 1_020, 2, 60_000), Err(ClockError::FromOthers(by)) if by > 59.9)
        );
        assert!(!clocks.agrees(0) && clocks.agrees(1));
        assert!(matches!(look(&mut clocks, 0, 1_030, 2, 0), Err(ClockError::Jumped(by)) if by < -59.9));
        assert_eq!(look(&mut clocks, 0, 1_040, 2, 0), Ok(()));
        assert_eq!(clocks.time(at(1_040)), Some(NOON + 1_040_000));
    }

    #[test]
    fn a_clock_that_is_off_from_the_start_is_noticed_once_most_were_seen() {
        let mut clocks = Clocks::new(5);
        assert_eq!(look(&mut clocks, 0, 0, 2, -3_600_000), Ok(()), "who knows?");
        assert_eq!(look(&mut clocks, 1, 0, 2, 0), Ok(()));
        assert_eq!(look(&mut clocks, 2, 0, 2, 0), Ok(()));
        assert_eq!(clocks.time(at(0)), None, "two of five agree");
        assert_eq!(look(&mut clocks, 3, 0, 2, 0), Ok(()));
        assert!(!clocks.agrees(0), "a majority knows");
        assert!(matches!(look(&mut clocks, 0, 10, 2, -3_600_000), Err(ClockError::FromOthers(_))));
    }

    /// Two of five are a minute ahead, and are heard first.
    #[test]
    fn a_majority_has_to_agree_and_not_only_most_of_those_that_were_heard() {
        let mut clocks = Clocks::new(5);
        for (index, ahead) in [(0, 60_000), (1, 0), (2, 60_000)] {
            assert_eq!(look(&mut clocks, index, 0, 2, ahead), Ok(()), "who knows?");
        }
        assert_eq!(clocks.time(at(2)), None);
        assert!(!(0..3).any(|index| clocks.agrees(index)), "no vote counts yet");
        assert_eq!(look(&mut clocks, 3, 0, 2, 0), Ok(()));
        assert_eq!(clocks.time(at(2)), None);
        assert_eq!(look(&mut clocks, 4, 0, 2, 0), Ok(()));
        assert_eq!(clocks.time(at(2)), Some(NOON + 2_000));
        assert!(!clocks.agrees(0) && clocks.agrees(1));
        assert!(matches!(look(&mut clocks, 2, 10, 2, 60_000), Err(ClockError::FromOthers(_))));
    }

    #[test]
    fn a_single_master_can_only_stray_from_itself() {
        let mut clocks = Clocks::new(1);
        assert_eq!(look(&mut clocks, 0, 0, 2, 7_000), Ok(()));
        assert!(matches!(look(&mut clocks, 0, 10, 2, 8_000), Err(ClockError::Jumped(_))));
        assert_eq!(look(&mut clocks, 0, 20, 2, 8_000), Ok(()));
    }

    proptest! {
        /// Clocks that are within the band of true time, and run at rates within a hundredth, are
        /// never refused, however long answers take.
        #[test]
        fn what_is_within_the_band_is_trusted(
            off in proptest::collection::vec(-120i64..=120, 3),
            looks in proptest::collection::vec((0usize..3, 1u64..20_000, 0u64..400, 0.0f64..=1.0), 1..60),
        ) {
            let mut clocks = Clocks::new(3);
            let mut now = 1_000_000u64;
            for (index, pause, took, part) in looks {
                now += pause;
                let when = now + (took as f64 * part) as u64;
                let time = NOON.saturating_add_signed(when as i64 * 1000 + off[index] * 1000);
                prop_assert_eq!(clocks.note(index, at(now), at(now + took), time), Ok(()));
                now += took;
            }
        }

        /// A step of more than two bands, between two quick looks, never counts.
        #[test]
        fn a_step_above_the_band_is_never_trusted(step in 260i64..100_000, back: bool, took in 0u64..10) {
            let step = if back { -step - 10 } else { step + 10 };
            let mut clocks = Clocks::new(3);
            for index in 0..3 {
                prop_assert_eq!(look(&mut clocks, index, 500, took, 0), Ok(()));
            }
            prop_assert!(look(&mut clocks, 1, 600, took, step).is_err());
        }
    }
}
