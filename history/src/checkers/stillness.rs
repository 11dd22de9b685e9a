//! When processes stood still, to be asked quickly.

use std::collections::BTreeMap;

use crate::history::{History, Time};

/// When each process stood still: spans that neither overlap nor touch, in the order of time.
pub(super) struct Stillness<'a>(BTreeMap<&'a str, Vec<Span>>);

/// From when until when. A process that was killed stands still until `Time::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) from: Time,
    pub(super) to: Time,
}

impl<'a> Stillness<'a> {
    pub(super) fn of(history: &'a History) -> Self {
        Self::bridging(history, Time::ZERO)
    }

    /// The same, where a process that went on for no more than `gap` is taken to have stood still
    /// meanwhile.
    pub(super) fn bridging(history: &'a History, gap: Time) -> Self {
        let mut processes: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for pause in &history.pauses {
            let span = Span { from: pause.from, to: pause.to.unwrap_or(Time::MAX) };
            processes.entry(&*pause.process).or_default().push(span);
        }
        for spans in processes.values_mut() {
            spans.sort();
            spans.dedup_by(|next, last| {
                let joined = next.from <= last.to.saturating_add(gap);
                if joined {
                    last.to = last.to.max(next.to);
                }
                joined
            });
        }
        Self(processes)
    }

    /// The last span that had begun at this moment.
    pub(super) fn last(&self, process: &str, at: Time) -> Option<Span> {
        let spans = self.0.get(process)?;
        let begun = spans.partition_point(|span| span.from <= at);
        spans[..begun].last().copied()
    }

    /// Whether the process stood still at any moment between these, both included.
    pub(super) fn touches(&self, process: &str, from: Time, to: Time) -> bool {
        self.last(process, to).is_some_and(|span| span.to > from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Pause;
    use crate::made_up::{client, kill, ms, pause};

    fn history(pauses: impl IntoIterator<Item = Pause>) -> History {
        History { pauses: pauses.into_iter().collect(), ..History::default() }
    }

    #[test]
    fn a_client_stands_still_from_the_first_moment_to_before_the_last() {
        let history = history([pause(50, 60), pause(10, 20)]);
        let still = Stillness::of(&history);
        assert!(still.touches(&client(0), ms(0), ms(10)) && still.touches(&client(0), ms(19), ms(30)));
        assert!(still.touches(&client(0), ms(0), ms(99)) && still.touches(&client(0), ms(55), ms(56)));
        assert!(!still.touches(&client(0), ms(0), ms(9)) && !still.touches(&client(0), ms(20), ms(49)));
        assert!(!still.touches(&client(0), ms(60), ms(99)));
        assert!(!still.touches(&client(1), ms(0), ms(99)), "another client");
    }

    #[test]
    fn overlapping_pauses_are_one() {
        let history = history([pause(10, 90), pause(20, 30), kill(80)]);
        let still = Stillness::of(&history);
        assert_eq!(still.last(&client(0), ms(10)), Some(Span { from: ms(10), to: Time::MAX }));
        assert_eq!(still.last(&client(0), ms(9)), None);
    }

    #[test]
    fn gaps_are_bridged_where_asked() {
        let pauses = history([pause(10, 20), pause(25, 30), pause(36, 40)]);
        assert_eq!(
            Stillness::bridging(&pauses, ms(5)).last(&client(0), ms(12)),
            Some(Span { from: ms(10), to: ms(30) })
        );
        assert_eq!(Stillness::of(&pauses).last(&client(0), ms(12)), Some(Span { from: ms(10), to: ms(20) }));
    }
}
