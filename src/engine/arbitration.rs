//! What a waiter does after a round that did not grant: pure. Contenders that split the vote see
//! the same holders, so one rule tells each of them what to do, and none of them draws lots.

use std::cmp::Reverse;
use std::time::Duration;

use super::quorum::quorum;
use super::verdict::is_held;
use crate::vote::{Outcome, Vote};

/// The longest time between two looks of a waiter that nobody wakes.
const LONGEST_LOOK: Duration = Duration::from_secs(60);

/// What to do with the votes of a split round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// Nobody has more masters: keep them, and ask again while the others withdraw.
    Persist,
    /// Somebody else has, or has it all: withdraw, and wait to be woken.
    Withdraw,
}

/// Who goes on when a round ends without a quorum for anybody: the owner that has most masters, and
/// of equals the owner that comes first in the order of text.
pub(crate) fn rule(votes: &[Vote], me: &str) -> Ruling {
    let mine = votes.iter().filter(|vote| vote.outcome == Outcome::Granted).count();
    let holders = || {
        votes.iter().filter_map(|vote| match &vote.outcome {
            Outcome::Held { owner, .. } => Some(&**owner),
            _ => None,
        })
    };
    let able = mine + holders().count();
    let has = |owner: &str| holders().filter(|holder| *holder == owner).count();
    let rival = holders().map(|owner| (has(owner), Reverse(owner))).max();
    match rival {
        Some(rival) if able >= quorum(votes.len()) && (mine, Reverse(me)) > rival => Ruling::Persist,
        _ => Ruling::Withdraw,
    }
}

/// How long a waiter may sleep when nobody wakes it. With F, the time until the entries on a quorum
/// are over (of a semaphore, that of the permit which is over first), and A, how many are ahead of
/// it: F (1 + A / 4), at most [`LONGEST_LOOK`]; with `every`, at most `every` (1 + A).
///
/// So the first in the queue follows a holder that died, the next follows a first that died, and
/// the number of looks hardly grows with the number of waiters.
///
/// `None` when nobody may be counted on to wake it: too few masters gave it a place, or nobody has
/// the lock. Then some owner has a few masters and may be dead.
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
            // It was free, and is so again when it is withdrawn from, with a place in its queue.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vote::Permits;
    use proptest::prelude::*;

    fn vote(outcome: Outcome) -> Vote {
        Vote { master: "m".into(), outcome, latency: Duration::ZERO }
    }

    fn held(owner: &str, ms: u64, ahead: Option<u32>) -> Vote {
        vote(Outcome::held_by(owner, Some(Duration::from_millis(ms)), ahead, None))
    }

    fn granted() -> Vote {
        vote(Outcome::Granted)
    }

    fn dead() -> Vote {
        vote(Outcome::Unreachable("x".into()))
    }

    #[test]
    fn whoever_has_most_masters_goes_on() {
        let two_one_two = [granted(), granted(), held("b", 9, None), held("c", 9, None), held("c", 9, None)];
        assert_eq!(rule(&two_one_two, "a"), Ruling::Persist, "a comes before c");
        assert_eq!(rule(&two_one_two, "d"), Ruling::Withdraw);
        let held_by_one = [granted(), granted(), held("b", 9, None), held("b", 9, None), held("b", 9, None)];
        assert_eq!(rule(&held_by_one, "a"), Ruling::Withdraw);
        assert_eq!(rule(&[granted(), granted(), dead(), dead(), dead()], "a"), Ruling::Withdraw);
        assert_eq!(rule(&[held("b", 9, None), dead(), held("b", 9, None)], "a"), Ruling::Withdraw);
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
            vote(Outcome::held_by("b", Some(Duration::from_secs(9)), Some(0), Some(permits)))
        };
        assert_eq!(next_look(&[taken(100), taken(200), taken(300)], None), Some(Duration::from_millis(200)));
    }

    proptest! {
        /// However the masters are split among contenders that all see each other, exactly one of
        /// them goes on, unless one of them has a quorum already.
        #[test]
        fn of_all_contenders_exactly_one_goes_on(split in proptest::collection::vec(0usize..5, 1..=15)) {
            let name = |contender: usize| format!("owner:{contender}");
            let seen_by = |me: usize| -> Vec<Vote> {
                split.iter().map(|&holder| if holder == me { granted() } else { held(&name(holder), 9, None) }).collect()
            };
            let has = |contender: usize| split.iter().filter(|&&holder| holder == contender).count();
            let going_on: Vec<_> = (0..5)
                .filter(|&me| has(me) > 0 && has(me) < quorum(split.len()))
                .filter(|&me| rule(&seen_by(me), &name(me)) == Ruling::Persist)
                .collect();
            let somebody_has_it = (0..5).any(|contender| has(contender) >= quorum(split.len()));
            prop_assert_eq!(going_on.len(), usize::from(!somebody_has_it), "{:?}", going_on);
        }
    }
}
