//! When clients stood still, to be asked quickly.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::history::{ClientNumber, History, Time};

/// When each client stood still: spans that neither overlap nor touch, in the order of time.
pub(super) struct Stillness(BTreeMap<ClientNumber, Vec<Span>>);

/// From when until when. A client that was killed stands still until `Time::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) from: Time,
    pub(super) to: Time,
}

impl Stillness {
    pub(super) fn of(history: &History) -> Self {
        Self::bridging(history, Duration::ZERO)
    }

    /// The same, where a client that went on for no more than `gap` is taken to have stood still
    /// meanwhile.
    pub(super) fn bridging(history: &History, gap: Duration) -> Self {
        let mut clients: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for pause in &history.pauses {
            clients.entry(pause.client).or_default().push(Span { from: pause.from, to: pause.to });
        }
        for spans in clients.values_mut() {
            spans.sort();
            spans.dedup_by(|next, last| {
                let joined = next.from <= last.to.saturating_add(gap);
                if joined {
                    last.to = last.to.max(next.to);
                }
                joined
            });
        }
        Self(clients)
    }

    /// The last span that had begun at this moment.
    pub(super) fn last(&self, client: ClientNumber, at: Time) -> Option<Span> {
        let spans = self.0.get(&client)?;
        let begun = spans.partition_point(|span| span.from <= at);
        spans[..begun].last().copied()
    }

    /// Whether the client stood still at any moment between these, both included.
    pub(super) fn touches(&self, client: ClientNumber, from: Time, to: Time) -> bool {
        self.last(client, to).is_some_and(|span| span.to > from)
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{kill, ms, pause};
    use super::*;
    use crate::history::Pause;

    fn history(pauses: impl IntoIterator<Item = Pause>) -> History {
        History { pauses: pauses.into_iter().collect(), ..History::default() }
    }

    #[test]
    fn a_client_stands_still_from_the_first_moment_to_before_the_last() {
        let still = Stillness::of(&history([pause(50, 60), pause(10, 20)]));
        assert!(still.touches(0, ms(0), ms(10)) && still.touches(0, ms(19), ms(30)));
        assert!(still.touches(0, ms(0), ms(99)) && still.touches(0, ms(55), ms(56)));
        assert!(!still.touches(0, ms(0), ms(9)) && !still.touches(0, ms(20), ms(49)));
        assert!(!still.touches(0, ms(60), ms(99)));
        assert!(!still.touches(1, ms(0), ms(99)), "another client");
    }

    #[test]
    fn overlapping_pauses_are_one() {
        let still = Stillness::of(&history([pause(10, 90), pause(20, 30), kill(80)]));
        assert_eq!(still.last(0, ms(10)), Some(Span { from: ms(10), to: Time::MAX }));
        assert_eq!(still.last(0, ms(9)), None);
    }

    #[test]
    fn gaps_are_bridged_where_asked() {
        let pauses = history([pause(10, 20), pause(25, 30), pause(36, 40)]);
        assert_eq!(
            Stillness::bridging(&pauses, ms(5)).last(0, ms(12)),
            Some(Span { from: ms(10), to: ms(30) })
        );
        assert_eq!(Stillness::of(&pauses).last(0, ms(12)), Some(Span { from: ms(10), to: ms(20) }));
    }
}
