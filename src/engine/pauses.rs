//! How long a waiter sleeps between two attempts: pure.

use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::owner::Owner;
use crate::round::quorum;
use crate::round::verdict::is_held;
use crate::vote::{Outcome, Vote};

/// The longest time between two looks of a waiter that nobody wakes.
const LONGEST_LOOK: Duration = Duration::from_secs(60);

/// The first and the longest pause while a client of another library holds the lock. The first is
/// short, for most locks are held for a moment. The longest is the most that a waiter loses once
/// the lock is free, and costs each master two to four calls a second.
const FOREIGN_POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// How long a waiter may sleep when nobody wakes it: F (1 + A / 4), at most [`LONGEST_LOOK`]; with
/// `every`, at most `every` (1 + A). F is the time until the entries on a quorum are over (of a
/// semaphore, those of the permit that is over first), and A the number of waiters ahead.
///
/// So the first in the queue asks when a holder that died is over, the second a little later in
/// case the first died, too, and the number of looks hardly grows with the number of waiters.
///
/// `None` when the waiter cannot count on being woken: too few masters gave it a place, or nobody
/// has the lock. In the latter case an owner that has a few masters may be dead.
pub(crate) fn next_look(votes: &[Vote], every: Option<Duration>) -> Option<Duration> {
    let needed = quorum(votes.len());
    if !is_held(votes) {
        return None;
    }
    let mut free_in = Vec::new();
    let mut ahead = Vec::new();
    for vote in votes {
        match vote.outcome {
            Outcome::Held { remaining, ahead: Some(others), ref permits, .. } => {
                ahead.push(others);
                let first_over = permits.as_ref().and_then(|permits| permits.first_over());
                free_in.push(first_over.or(remaining).unwrap_or(LONGEST_LOOK));
            }
            // This master was free, and is free again once the waiter has withdrawn.
            Outcome::Granted => free_in.push(Duration::ZERO),
            _ => {}
        }
    }
    free_in.sort();
    let ahead = ahead.into_iter().min()?;
    let free_in = *free_in.get(needed - 1)?;
    let look = (free_in / 4).saturating_mul(ahead.saturating_add(4)).min(LONGEST_LOOK);
    Some(every.map_or(look, |every| look.min(every.saturating_mul(ahead.saturating_add(1)))))
}

/// The client of another library that one waiter saw last as the holder. Its release wakes no
/// waiter.
#[derive(Debug)]
pub(super) struct ForeignHolder {
    seen: Option<Arc<str>>,
    backoff: Backoff,
}

impl ForeignHolder {
    pub(super) fn new() -> Self {
        Self { seen: None, backoff: Backoff::new(FOREIGN_POLL.0, FOREIGN_POLL.1) }
    }

    /// How long to sleep until the next attempt. `holder` is the value that a quorum of the masters
    /// has, if there is one. Returns `None` where there is none, and where it is an owner of this
    /// library, whose release wakes a waiter.
    ///
    /// The pauses double while the value stays. They begin anew where it has changed or was gone:
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
    use crate::vote::Permits;

    fn held(owner: &str, ms: u64, ahead: Option<u32>) -> Vote {
        Vote::of(Outcome::held_by(owner, Some(Duration::from_millis(ms)), ahead, None))
    }

    fn granted() -> Vote {
        Vote::of(Outcome::Granted)
    }

    fn dead() -> Vote {
        Vote::of(Outcome::Unreachable("x".into()))
    }

    #[test]
    fn a_waiter_looks_when_a_quorum_may_be_free() {
        let look = |votes: &[Vote]| next_look(votes, None).map(|look| look.as_millis());
        let votes =
            |ahead| vec![held("b", 900, ahead), held("b", 300, ahead), held("b", 600, ahead), dead(), dead()];
        assert_eq!(look(&votes(Some(0))), Some(900));
        assert_eq!(look(&votes(Some(2))), Some(1350), "two are ahead of it");
        assert_eq!(look(&votes(None)), None, "it has no place");
        assert_eq!(look(&[granted(), held("b", 300, Some(0)), held("b", 600, Some(0))]), Some(300));
        let split = [granted(), held("b", 300, Some(0)), held("c", 600, Some(0))];
        assert_eq!(look(&split), None, "nobody has it, and who has a part may be dead");
        assert_eq!(look(&[held("b", 300, Some(0)), dead(), dead()]), None);
        assert_eq!(look(&[held("b", 80_000, Some(9)), held("b", 80_000, Some(9)), dead()]), Some(60_000));
    }

    #[test]
    fn a_waiter_of_a_fair_lock_looks_before_the_ttl_is_over() {
        let second = Duration::from_secs(1);
        let look = |ms, ahead| {
            let votes = [(); 3].map(|()| held("b", ms, Some(ahead)));
            next_look(&votes, Some(second)).unwrap().as_millis()
        };
        assert_eq!((look(30_000, 0), look(30_000, 1), look(30_000, 5)), (1000, 2000, 6000));
        assert_eq!((look(400, 0), look(400, 1)), (400, 500), "or when the TTL is over");
        assert_eq!(look(80_000, 90), 60_000, "the longest time between two looks");
    }

    #[test]
    fn a_waiter_for_a_permit_looks_when_the_first_may_be_free() {
        let taken = |ms| {
            let permits = Permits::new([].into(), Some(Duration::from_millis(ms)));
            Vote::of(Outcome::held_by("b", Some(Duration::from_secs(9)), Some(0), Some(permits)))
        };
        assert_eq!(next_look(&[taken(100), taken(200), taken(300)], None), Some(Duration::from_millis(200)));
    }

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
