//! What came of acquires in each part of a run.

use std::ops::Range;

use super::counts::Answers;
use super::latency::percentile;
use crate::history::{Call, History, Micros, Outcome};

/// A part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// From when to when.
    pub time: Range<Micros>,
    /// Of acquires that ended in it.
    pub answers: Answers,
    /// How long those of them took that were granted, from the shortest to the longest.
    pub latencies: Vec<Micros>,
}

impl Slot {
    /// The time that half of them did not exceed.
    pub fn median(&self) -> Option<Micros> {
        percentile(&self.latencies, 500)
    }
}

/// `count` equal parts of this time.
pub fn over_time(history: &History, time: &Range<Micros>, count: usize) -> Vec<Slot> {
    let length = (time.end.saturating_sub(time.start)).div_ceil(count.max(1) as Micros).max(1);
    let slot = |number: usize| {
        let start = time.start + number as Micros * length;
        Slot { time: start..start + length, answers: Answers::default(), latencies: Vec::new() }
    };
    let mut slots: Vec<_> = (0..count).map(slot).collect();
    for made in history.calls.iter().filter(|made| matches!(made.call, Call::Acquire { .. })) {
        let Some(ended) = made.returned.filter(|ended| *ended >= time.start) else { continue };
        let Some(slot) = slots.get_mut(((ended - time.start) / length) as usize) else { continue };
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
    use crate::checkers::made_up::exclusive;
    use crate::history::Made;

    #[test]
    fn an_acquire_is_where_it_ended() {
        let granted = || Outcome::Granted { owner: String::new(), deadline: 0, fence: None, permit: None };
        let made = |invoked, returned, outcome| Made {
            process: "p".to_owned(),
            number: 0,
            call: Call::Acquire { lock: exclusive("l"), ttl: 1, wait: 0 },
            invoked,
            returned,
            outcome,
        };
        let calls = vec![
            made(90, Some(99), granted()),
            made(100, Some(104), granted()),
            made(101, Some(109), granted()),
            made(101, Some(110), Outcome::Failed { why: String::new() }),
            made(101, Some(119), Outcome::Unknown { why: String::new() }),
            made(118, Some(120), granted()),
            made(118, None, granted()),
        ];
        let slots = over_time(&History { calls, ..History::default() }, &(100..120), 2);
        let [first, second] = &slots[..] else { panic!("{slots:?}") };
        assert_eq!((first.time.clone(), second.time.clone()), (100..110, 110..120));
        assert_eq!(first.answers, Answers { granted: 2, refused: 0, unknown: 0 });
        assert_eq!(second.answers, Answers { granted: 0, refused: 1, unknown: 1 });
        assert_eq!((first.latencies.clone(), first.median(), second.median()), (vec![4, 8], Some(4), None));
    }
}
