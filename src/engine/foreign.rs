//! How often a waiter asks while a client of another library holds the lock: pure. Such a holder
//! tells nobody of its release, so there is no wake-up to wait for.

use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::owner::Owner;

/// The first pause and the last. The first is short, for most locks are held for a moment. The last
/// is the most that a waiter loses once the lock is free, and costs each master two to four calls a
/// second.
const POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// The foreign holder that one waiter has seen last.
#[derive(Debug)]
pub(super) struct ForeignHolder {
    seen: Option<Arc<str>>,
    backoff: Backoff,
}

impl ForeignHolder {
    pub(super) fn new() -> Self {
        Self { seen: None, backoff: Backoff::new(POLL.0, POLL.1) }
    }

    /// How long to wait until the next attempt. `holder` is the value that a quorum of the masters
    /// has, if there is one. Returns `None` where there is none, and where it is an owner of ours,
    /// whose release wakes a waiter.
    ///
    /// The pauses double while the value stays, and begin anew where it has changed or was gone:
    /// the lock is handed on quickly then.
    pub(super) fn pause_after(&mut self, holder: Option<&str>, random: u64) -> Option<Duration> {
        let foreign = holder.filter(|value| value.parse::<Owner>().is_err());
        if foreign != self.seen.as_deref() {
            self.seen = foreign.map(Arc::from);
            self.backoff.reset();
        }
        foreign.map(|_| self.backoff.delay(random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "00000000-0000-4000-8000-000000000001:1";

    /// Draws the whole delay, but for less than a microsecond.
    const LONGEST: u64 = u64::MAX;

    /// The pauses in milliseconds after these values, one after the other.
    fn pauses(holder: &mut ForeignHolder, values: &[Option<&str>], random: u64) -> Vec<Option<u128>> {
        let millis = |pause: Duration| (pause.as_micros() + 1) / 1000;
        values.iter().map(|value| holder.pause_after(*value, random).map(millis)).collect()
    }

    #[test]
    fn pauses_double_while_the_value_stays_and_are_jittered() {
        let same = [Some("theirs"); 7];
        let longest = pauses(&mut ForeignHolder::new(), &same, LONGEST);
        assert_eq!(longest, [20, 40, 80, 160, 320, 500, 500].map(Some));
        let shortest = pauses(&mut ForeignHolder::new(), &same, 0);
        assert_eq!(shortest, [10, 20, 40, 80, 160, 250, 250].map(Some));
    }

    #[test]
    fn pauses_begin_anew_where_the_value_has_changed_or_was_gone() {
        let holder = &mut ForeignHolder::new();
        let a = Some("a");
        let b = Some("b");
        assert_eq!(pauses(holder, &[a, a, a, b, b], LONGEST), [20, 40, 80, 20, 40].map(Some));
        assert_eq!(pauses(holder, &[None, b, b], LONGEST), [None, Some(20), Some(40)], "it was gone");
        assert_eq!(pauses(holder, &[Some(OURS), b], LONGEST), [None, Some(20)], "it was ours");
    }

    #[test]
    fn nobody_polls_while_an_owner_of_ours_has_it() {
        assert_eq!(pauses(&mut ForeignHolder::new(), &[Some(OURS), None], LONGEST), [None, None]);
    }
}
