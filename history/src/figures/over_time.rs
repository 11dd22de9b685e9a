//! What came of acquires in each part of a run.

use std::ops::Range;

use super::counts::Answers;
use super::latency::percentile;
use crate::history::{Call, History, Outcome, Time};

/// A part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// From when to when.
    pub time: Range<Time>,
    /// Of acquires that ended in it.
    pub answers: Answers,
    /// How long those of them took that were granted, from the shortest to the longest.
    pub latencies: Vec<Time>,
}

impl Slot {
    /// The time that half of them did not exceed.
    pub fn median(&self) -> Option<Time> {
        percentile(&self.latencies, 500)
    }
}

/// `count` equal parts of this time.
pub fn over_time(history: &History, time: &Range<Time>, count: usize) -> Vec<Slot> {
    let nanos = time.end.saturating_sub(time.start).as_nanos().div_ceil(count.max(1) as u128);
    let length = Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).max(1));
    let slot = |number: usize| {
        let start = time.start + length * number as u32;
        Slot { time: start..start + length, answers: Answers::default(), latencies: Vec::new() }
    };
    let mut slots: Vec<_> = (0..count).map(slot).collect();
    for made in history.calls.iter().filter(|made| matches!(made.call, Call::Acquire { .. })) {
        let Some(ended) = made.returned.filter(|ended| *ended >= time.start) else { continue };
        let Some(slot) = slots.get_mut((ended - time.start).div_duration_f64(length) as usize) else {
            continue;
        };
        slot.answers.add(&made.outcome);
        if matches!(made.outcome, Outcome::Granted { .. }) {
            slot.latencies.push(ended - made.invoked);
        }
    }
    slots.iter_mut().for_each(|slot| slot.latencies.sort_unstable());
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquires::Ending::{Failed, Granted, Pending};
    use crate::made_up::{attempt, ms};

    #[test]
    fn an_acquire_is_where_it_ended() {
        let calls = vec![
            attempt(90, Some(99), Granted),
            attempt(100, Some(104), Granted),
            attempt(101, Some(109), Granted),
            attempt(101, Some(110), Failed),
            attempt(101, Some(119), Pending),
            attempt(118, Some(120), Granted),
            attempt(118, None, Granted),
        ];
        let slots = over_time(&History { calls, ..History::default() }, &(ms(100)..ms(120)), 2);
        let [first, second] = &slots[..] else { panic!("{slots:?}") };
        assert_eq!((&first.time, &second.time), (&(ms(100)..ms(110)), &(ms(110)..ms(120))));
        assert_eq!(first.answers, Answers { granted: 2, refused: 0, unknown: 0 });
        assert_eq!(second.answers, Answers { granted: 0, refused: 1, unknown: 1 });
        assert_eq!(first.latencies, [4, 8].map(ms));
        assert_eq!((first.median(), second.median()), (Some(ms(4)), None));
    }
}
