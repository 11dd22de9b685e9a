//! The masters' clocks, as this client sees them: pure arithmetic.
//!
//! Leases end on the masters by their wall clocks. A client estimates how far a master's clock is
//! ahead of this host's boot clock: `time - heard` at least, and `time - asked` at most. A clock
//! that is more than [`BAND`] from its own last estimate has jumped; a clock that is more than that
//! from the median of all is wrong. In both cases the master's vote does not count. Smaller steps
//! are covered by [`lease`](super::lease): a lease ends two bands early, or its entries are kept
//! for that much longer.
//!
//! An estimate is an interval, so the median is one, too: see [`Clocks::time`].

use std::ops::Deref;
use std::time::Duration;

use super::clock::Moment;
use crate::wire::{ByMaster, MasterIndex, MasterSet, TrustedTime};

/// How far a master's clock may be from the median, and from its own past: hosts whose clocks are
/// kept by NTP are within a tenth of it.
pub(crate) const BAND: Duration = Duration::from_millis(250);

/// By how much clocks may run at different rates: a hundredth, as for leases.
const RATE: i64 = 100;

/// Estimates that were made within this (us) of each other count together. Of others it may be that
/// one clock was wrong then, and another one is wrong now.
const TOGETHER: u64 = 2_000_000;

/// For how long (us) an agreement that is at least as exact as this is kept: every reply has a
/// time, and few change it. A clock may drift by a hundredth of this meanwhile.
const KEPT: i64 = 100_000;

/// What a client knows of the clocks of its masters.
#[derive(Debug)]
pub(crate) struct Clocks {
    estimates: ByMaster<Option<Estimate>>,
    /// The masters whose clocks make the median.
    voters: MasterSet,
    /// What most of these agreed on when the last clock was heard, or [a moment](KEPT) before that.
    agreement: Option<Agreement>,
}

/// What most of the voters' clocks agree on.
#[derive(Clone, Copy, Debug)]
struct Agreement {
    /// The median estimate of the clocks that were seen.
    median: Estimate,
    /// How far the right time is ahead of this host's clock, whatever the other clocks show.
    time: Estimate,
}

/// How far (us) a clock is ahead of this host's, at least and at most, as of a moment here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    pub(crate) fn new(masters: usize) -> Self {
        let voters = MasterSet::first(masters);
        Self { estimates: ByMaster::all(|| None), voters, agreement: None }
    }

    /// From now on the clocks of these masters make the median.
    pub(crate) fn follow(&mut self, voters: MasterSet) {
        self.voters = voters;
        self.agreement = None;
    }

    /// Notes that it was `time` (us) on the master at some moment between these two.
    pub(crate) fn note(
        &mut self,
        index: MasterIndex,
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
        let jumped = before.and_then(|known| known.strayed(seen));
        if jumped.is_some() || self.kept(heard).is_none() {
            self.agreement = self.agree(heard);
        }
        if let Some(by) = jumped {
            return Err(ClockError::Jumped(by));
        }
        match self.agreement(heard).and_then(|agreement| agreement.median.strayed(seen)) {
            Some(by) => Err(ClockError::FromOthers(by)),
            None => Ok(()),
        }
    }

    /// How many of these masters have clocks that agree with the median.
    pub(crate) fn how_many_agree(&self, masters: impl Iterator<Item = MasterIndex>, now: Moment) -> usize {
        let now = micros(now);
        let Some(Agreement { median, .. }) = self.agreement(now) else { return 0 };
        let agrees = |known: Estimate| median.strayed(known.grown_old(now)).is_none();
        masters.filter(|index| self.estimates[*index].is_some_and(agrees)).count()
    }

    /// The time by the median of all masters, once a majority of them agrees on it.
    pub(crate) fn time(&self, now: Moment) -> Option<TrustedTime> {
        let at = micros(now);
        let Agreement { time, .. } = self.agreement(at)?;
        let low = u64::try_from(time.low + at).ok()?;
        let high = u64::try_from(time.high + at).ok()?;
        Some(TrustedTime { low, width: Duration::from_micros(high.saturating_sub(low)) })
    }

    /// What most of the voters' clocks agree on, as of this moment (us).
    fn agreement(&self, at: i64) -> Option<Agreement> {
        self.kept(at).or_else(|| self.agree(at))
    }

    /// The last agreement, if it is exact and was made a moment ago. It was right then, and so it
    /// is as it has grown old, whatever the clocks have shown since.
    fn kept(&self, at: i64) -> Option<Agreement> {
        let Agreement { median, time } = self.agreement?;
        let is_kept = at - time.at < KEPT && time.high - time.low < KEPT;
        is_kept.then(|| Agreement { median: median.grown_old(at), time: time.grown_old(at) })
    }

    /// A clock that was not seen yet may show anything: so if a majority of the clocks is right,
    /// the time has a moment in common with the band around the true time, whichever were seen.
    fn agree(&self, at: i64) -> Option<Agreement> {
        let known = self.known(at);
        let median = known.median()?;
        let all = self.voters.len();
        let unseen = all - known.estimates.len();
        let low = middle(&known.lows, (all - 1) / 2 - unseen, all / 2 - unseen);
        let high = middle(&known.highs, (all - 1) / 2, all / 2);
        Some(Agreement { median, time: Estimate { low, high, at } })
    }

    /// Whether most clocks were seen, at whatever times.
    pub(crate) fn has_seen_most(&self) -> bool {
        self.voters.iter().filter(|index| self.estimates[*index].is_some()).count() * 2 > self.voters.len()
    }

    /// The estimates of the voters' clocks that count together, as of this moment (us): those that
    /// were made when a majority had been heard last.
    fn known(&self, at: i64) -> Known {
        let all: Few<Estimate> = self.voters.iter().filter_map(|index| self.estimates[index]).collect();
        let made = all.sorted(|estimate| estimate.at);
        let majority = self.voters.len() / 2 + 1;
        let when = made.len().checked_sub(majority).map(|place| made[place]);
        let counts = |known: &&Estimate| when.is_some_and(|when| known.at.abs_diff(when) <= TOGETHER);
        let estimates: Few<Estimate> = all.iter().filter(counts).map(|known| known.grown_old(at)).collect();
        Known {
            voters: self.voters.len(),
            lows: estimates.sorted(|known| known.low),
            highs: estimates.sorted(|known| known.high),
            estimates,
        }
    }
}

/// Estimates of clocks that count together, as of one moment.
struct Known {
    /// Of so many voters.
    voters: usize,
    estimates: Few<Estimate>,
    /// Their low ends and their high ends, each in order.
    lows: Few<i64>,
    highs: Few<i64>,
}

impl Known {
    /// The median estimate of the clocks that were seen, once a majority of all masters is within
    /// the band of it. The median of a few is not enough: where two clocks of five are wrong, it
    /// may be theirs.
    fn median(&self) -> Option<Estimate> {
        let seen = self.estimates.len();
        if seen * 2 <= self.voters {
            return None;
        }
        let one = (seen - 1) / 2;
        let other = seen / 2;
        let low = middle(&self.lows, one, other);
        let median = Estimate { low, high: middle(&self.highs, one, other), at: self.estimates[0].at };
        let agree = self.estimates.iter().filter(|known| median.strayed(**known).is_none()).count();
        (agree * 2 > self.voters).then_some(median)
    }
}

/// Halfway between these two of some values in order. They may be the same.
fn middle(values: &[i64], one: usize, other: usize) -> i64 {
    let lower = values[one];
    lower + (values[other] - lower) / 2
}

/// At most a value for each master. It is made for each reply, so it does not allocate.
struct Few<T> {
    values: [T; crate::config::MAX_MASTERS],
    count: usize,
}

impl<T> Few<T> {
    /// These keys of the values, in order.
    fn sorted(&self, key: impl Fn(&T) -> i64) -> Few<i64> {
        let mut sorted: Few<i64> = self.iter().map(key).collect();
        sorted.values[..sorted.count].sort_unstable();
        sorted
    }
}

impl<T: Copy + Default> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut few = Self { values: [T::default(); crate::config::MAX_MASTERS], count: 0 };
        for value in all {
            few.values[few.count] = value;
            few.count += 1;
        }
        few
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values[..self.count]
    }
}

impl Estimate {
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
            self.how_many_agree(std::iter::once(index.into()), at(1_040)) == 1
        }
    }

    /// A master whose clock is `ahead` (ms) was asked at `asked`, and answered `took` later.
    fn look(clocks: &mut Clocks, index: usize, asked: u64, took: u64, ahead: i64) -> Result<(), ClockError> {
        let time = NOON + (asked + took / 2) * 1000;
        clocks.note(index.into(), at(asked), at(asked + took), time.saturating_add_signed(ahead * 1000))
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
        assert_eq!(clocks.time(at(1_040)).map(TrustedTime::middle), Some(NOON + 1_040_000));
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
        assert_eq!(clocks.time(at(2)).map(TrustedTime::middle), Some(NOON + 2_000));
        assert!(!clocks.agrees(0) && clocks.agrees(1));
        assert!(matches!(look(&mut clocks, 2, 10, 2, 60_000), Err(ClockError::FromOthers(_))));
    }

    /// Two of five are 1.2 s behind, and are seen exactly; a third one answered late.
    #[test]
    fn a_master_that_was_not_seen_may_show_anything() {
        let mut clocks = Clocks::new(5);
        assert_eq!(look(&mut clocks, 0, 2_400, 0, -1_200), Ok(()));
        assert_eq!(look(&mut clocks, 1, 2_400, 0, -1_200), Ok(()));
        assert_eq!(look(&mut clocks, 2, 0, 2_400, -1_200), Ok(()), "it is right");
        let time = clocks.time(at(2_400)).unwrap();
        assert!(time.low + (time.width.as_micros() as u64) >= NOON + 2_400_000, "{time:?}");
        assert!(!clocks.agrees(3), "it was not seen");
    }

    fn is_within_the_band(clocks: &Clocks, now: u64) -> Result<(), TestCaseError> {
        if let Some(TrustedTime { low, width }) = clocks.time(at(now)) {
            let right = NOON + now * 1_000;
            let band = BAND.as_micros() as u64;
            prop_assert!(low <= right + band);
            prop_assert!(low + width.as_micros() as u64 >= right - band);
            prop_assert_eq!(
                clocks.how_many_agree((5..15).map(MasterIndex::from), at(now)),
                0,
                "they were never seen"
            );
        }
        Ok(())
    }

    /// The first was half a second ahead when it was seen last. Now the second is, and the third
    /// is near enough to these for a band.
    #[test]
    fn a_clock_that_was_wrong_long_ago_does_not_count_beside_one_that_is_wrong_now() {
        let mut clocks = Clocks::new(3);
        for (index, ahead) in [(0, 480), (1, -240), (2, 240)] {
            let _ = look(&mut clocks, index, 1_000, 2, ahead);
        }
        let _ = look(&mut clocks, 1, 9_000, 2, 480);
        let before = clocks.time(at(9_002)).unwrap();
        assert!(before.low <= NOON + 9_002_000 + 250_000, "as of the first looks: {before:?}");
        let _ = look(&mut clocks, 2, 9_000, 2, 240);
        let now = clocks.time(at(9_002)).unwrap();
        assert!(now.low <= NOON + 9_002_000 + 250_000, "as of the last two: {now:?}");
    }

    /// Between two looks (ms). Within some of them an agreement is kept.
    fn pauses() -> impl Strategy<Value = u64> {
        prop_oneof![1u64..40, 1u64..30_000]
    }

    #[test]
    fn an_agreement_is_kept_for_a_moment_and_then_made_anew() {
        let mut clocks = Clocks::new(1);
        let mut width = |now| {
            look(&mut clocks, 0, now, 2, 0).unwrap();
            clocks.time(at(now + 2)).unwrap().width.as_micros()
        };
        assert_eq!([0, 50].map(&mut width), [2_000, 3_000], "it grows old");
        assert_eq!(width(100), 2_000);
        let mut clocks = Clocks::new(1);
        look(&mut clocks, 0, 0, 150, 0).unwrap();
        look(&mut clocks, 0, 151, 2, 0).unwrap();
        assert_eq!(clocks.time(at(153)).unwrap().width.as_micros(), 2_000, "the first was vague");
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
            looks in proptest::collection::vec((0usize..3, pauses(), 0u64..400, 0.0f64..=1.0), 1..60),
        ) {
            let mut clocks = Clocks::new(3);
            let mut now = 1_000_000u64;
            for (index, pause, took, part) in looks {
                now += pause;
                let when = now + (took as f64 * part) as u64;
                let time = NOON.saturating_add_signed(when as i64 * 1000 + off[index] * 1000);
                prop_assert_eq!(clocks.note(index.into(), at(now), at(now + took), time), Ok(()));
                now += took;
            }
        }

        /// The right time is within the band of what a client takes for the time, whatever the
        /// clocks of a minority show, others from time to time, however late answers are, and
        /// whichever masters were seen: else two may hold a lock.
        #[test]
        fn the_interval_meets_the_band_around_the_true_time(
            off in proptest::collection::vec(-240i64..=240, 5),
            spells in proptest::collection::vec(
                (
                    proptest::collection::vec((0usize..5, -3_000i64..=3_000), 2),
                    proptest::collection::vec((0usize..5, 0u64..=3_000, 0.0f64..=1.0, pauses()), 0..12),
                ),
                1..4,
            ),
            idle in 0u64..=60_000,
        ) {
            let mut clocks = Clocks::new(5);
            let mut now = 1_000;
            for (wrong, looks) in spells {
                let mut ahead = off.clone();
                wrong.into_iter().for_each(|(index, by)| ahead[index] = by);
                for (index, took, part, pause) in looks {
                    let read = now + (took as f64 * part) as u64;
                    let time = (NOON + read * 1_000).saturating_add_signed(ahead[index] * 1_000);
                    let _ = clocks.note(index.into(), at(now), at(now + took), time);
                    now += took;
                    is_within_the_band(&clocks, now)?;
                    now += pause;
                }
                now += 10_000;
            }
            is_within_the_band(&clocks, now + idle)?;
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
