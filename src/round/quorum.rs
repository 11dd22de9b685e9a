//! What the votes of a round amount to, by counting: pure. Is it decided? Which token has a quorum?
//! Which of several contenders goes on? Which permits may be free?

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::set::VAGUE;
use crate::vote::{Outcome, Permits, Vote};

/// How many of `masters` make a quorum: a majority of all that are configured, also of those that
/// are out of reach.
pub(crate) fn quorum(masters: usize) -> usize {
    masters / 2 + 1
}

/// Whether a round is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The votes to come decide.
    Open,
    /// A quorum granted.
    Granted,
    /// A quorum cannot be reached any more.
    Denied,
}

/// Decides a round of `masters`, of which `granted` granted, and `against` refused, denied or
/// failed.
pub(crate) fn decide(masters: usize, granted: usize, against: usize) -> Decision {
    if granted >= quorum(masters) {
        Decision::Granted
    } else if masters - against < quorum(masters) {
        Decision::Denied
    } else {
        Decision::Open
    }
}

/// Whether a lease is gone for certain: the masters that do not say "not yours" are no quorum.
pub(crate) fn surely_lost(masters: usize, not_yours: usize) -> bool {
    masters - not_yours < quorum(masters)
}

/// What the grants of a round say about their token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tokens {
    /// A majority of all masters gave this one: it is the lease's.
    Agreed(u64),
    /// No majority gave the same one. The highest is the lease's once a majority has confirmed it.
    Split(u64),
}

/// What the tokens that these masters gave come to. A majority of the masters that granted is not
/// enough: the quorum of the next grant may share no master with it.
pub(crate) fn agree(masters: usize, granted: impl Iterator<Item = u64> + Clone) -> Tokens {
    let gave = |token| granted.clone().filter(|other| *other == token).count();
    match granted.clone().find(|token| gave(*token) >= quorum(masters)) {
        Some(token) => Tokens::Agreed(token),
        None => Tokens::Split(granted.max().unwrap_or(0)),
    }
}

/// A vote that was split: contenders share out the masters, none has a quorum, and one could.
#[derive(Debug)]
pub(crate) struct Contest<'a> {
    /// How many masters the one has whose votes these are.
    mine: usize,
    /// How many each other has.
    others: BTreeMap<&'a str, usize>,
}

impl<'a> Contest<'a> {
    /// The contest that these votes show, if they show one. An owner that has held a master for
    /// longer than a time-out is no contender: it has the lock, or died on its way. By its token it
    /// may have held it for longer than it has, by as much as a client may mistake the time.
    pub(crate) fn of(votes: &'a [Vote], timeout: Duration) -> Option<Self> {
        let longest = timeout + VAGUE;
        let mut open = 0;
        let mut mine = 0;
        let mut others = BTreeMap::new();
        for vote in votes {
            match &vote.outcome {
                Outcome::Granted => mine += 1,
                Outcome::Held { owner, held_for, .. } if held_for.is_none_or(|time| time <= longest) => {
                    *others.entry(&**owner).or_default() += 1;
                }
                Outcome::Pending | Outcome::NotAsked => open += 1,
                _ => {}
            }
        }
        let within_reach = open + mine + others.values().sum::<usize>();
        let quorum = quorum(votes.len());
        let is_undecided = others.values().all(|has| *has < quorum) && within_reach >= quorum;
        is_undecided.then_some(Self { mine, others })
    }

    /// Whether the contender `me`, whose votes these are, keeps the masters that it has, and asks
    /// again while the others withdraw. The one with most masters goes on; of equals the one that
    /// comes first in the order of text. So each that withdraws has seen one that comes before it.
    /// As each keeps what it has until it withdraws, one is left.
    pub(crate) fn is_won_by(&self, me: &str) -> bool {
        let rival = self.others.iter().map(|(owner, has)| (*has, Reverse(*owner))).max();
        rival.is_some_and(|rival| (self.mine, Reverse(me)) > rival)
    }
}

/// The permits that a quorum may have free, by these votes. `None` if no master named its free
/// permits.
pub(crate) fn free_permits(votes: &[Vote], of: u32) -> Option<Vec<u32>> {
    let permits_of = |vote: &Vote| match &vote.outcome {
        Outcome::Held { permits, .. } => permits.clone(),
        _ => None,
    };
    let answers: Vec<Arc<Permits>> = votes.iter().filter_map(permits_of).collect();
    let able = votes.iter().filter(|vote| !vote.outcome.is_out_of_service()).count();
    // A master that granted does not name the permits that are free.
    let mut free_on = vec![able - answers.len(); of as usize];
    let mut named: Vec<u32> = answers.iter().flat_map(|permits| permits.free().iter().copied()).collect();
    named.retain(|number| *number < of); // a master may say anything
    named.iter().for_each(|number| free_on[*number as usize] += 1);
    named.sort_unstable();
    named.dedup();
    named.retain(|number| free_on[*number as usize] >= quorum(votes.len()));
    (!answers.is_empty()).then_some(named)
}

/// Whether a permit may be free, by these votes.
pub(crate) fn has_free_permit(votes: &[Vote], permits: Option<u32>) -> bool {
    permits.and_then(|of| free_permits(votes, of)).is_some_and(|free| !free.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIMEOUT: Duration = Duration::from_millis(250);

    fn goes_on(votes: &[Vote], me: &str) -> bool {
        Contest::of(votes, TIMEOUT).is_some_and(|contest| contest.is_won_by(me))
    }

    fn held(owner: &str, ms: u64, ahead: Option<u32>) -> Vote {
        Vote::of(Outcome::held_by(owner, Some(Duration::from_millis(ms)), ahead, None))
    }

    fn granted() -> Vote {
        Vote::of(Outcome::Granted)
    }

    fn dead() -> Vote {
        Vote::of(Outcome::Unreachable("x".into()))
    }

    fn told(free: &[u32]) -> Vote {
        Vote::of(Outcome::held_by("a", None, None, Some(Permits::new(free.into(), None))))
    }

    #[test]
    fn a_quorum_is_a_majority() {
        let quorums: Vec<_> = (1..=7).map(quorum).collect();
        assert_eq!(quorums, [1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn a_token_needs_a_majority_of_all_masters() {
        let tokens = |granted: &[u64]| agree(5, granted.iter().copied());
        assert_eq!(tokens(&[7, 7, 7]), Tokens::Agreed(7));
        assert_eq!(tokens(&[9, 7, 7, 7]), Tokens::Agreed(7));
        assert_eq!(
            tokens(&[3, 3, 10]),
            Tokens::Split(10),
            "two of three that granted are no majority of five"
        );
        assert_eq!(tokens(&[1, 2, 3, 4, 5]), Tokens::Split(5));
        assert_eq!(tokens(&[]), Tokens::Split(0));
    }

    #[test]
    fn whoever_has_most_masters_goes_on() {
        let two_one_two = [granted(), granted(), held("b", 9, None), held("c", 9, None), held("c", 9, None)];
        assert!(goes_on(&two_one_two, "a"), "a comes before c");
        assert!(!goes_on(&two_one_two, "d"));
        let held_by_one = [granted(), granted(), held("b", 9, None), held("b", 9, None), held("b", 9, None)];
        assert!(!goes_on(&held_by_one, "a"));
        assert!(!goes_on(&[granted(), granted(), dead(), dead(), dead()], "a"));
        assert!(!goes_on(&[held("b", 9, None), dead(), held("b", 9, None)], "a"));
    }

    #[test]
    fn who_has_a_master_for_long_is_no_contender() {
        let a = |time| {
            let mut vote = held("a", 9, None);
            let Outcome::Held { held_for, .. } = &mut vote.outcome else { unreachable!() };
            *held_for = Some(time);
            vote
        };
        let long = a(TIMEOUT + VAGUE + Duration::from_millis(1));
        assert!(!goes_on(&[long.clone(), granted()], "b"), "a has the lock, and a master has joined");
        assert!(goes_on(&[long, granted(), held("c", 9, None)], "b"), "c will withdraw, and a will not");
        let vague = a(TIMEOUT + VAGUE);
        assert!(goes_on(&[vague, granted()], "_"), "a began just now, by a time that was too low");
    }

    #[test]
    fn a_permit_is_free_where_a_quorum_may_have_it() {
        assert_eq!(free_permits(&[dead(), Vote::of(Outcome::Granted), dead()], 3), None, "nobody told");
        let all = [told(&[1, 2]), told(&[2]), told(&[2]), told(&[2]), told(&[1, 2])];
        assert_eq!(free_permits(&all, 3), Some(vec![2]));
        let split = [told(&[1]), told(&[]), told(&[]), told(&[1]), Vote::of(Outcome::Pending)];
        assert_eq!(free_permits(&split, 2), Some(vec![1]), "two are not enough to keep it");
        let alone = [told(&[1, 2]), told(&[2]), told(&[2, 1]), dead(), dead()];
        assert_eq!(free_permits(&alone, 3), Some(vec![2]), "each of those that can vote is needed");
        let no_seventh = [told(&[7]), told(&[7]), told(&[])];
        assert_eq!(free_permits(&no_seventh, 1), Some(vec![]));
    }

    proptest! {
        /// Two quorums of the same masters share one.
        #[test]
        fn quorums_intersect(masters in 1usize..=15) {
            prop_assert!(2 * quorum(masters) > masters);
        }

        /// However the votes come in: the round is decided once, at the first vote that settles it,
        /// and rightly.
        #[test]
        fn the_first_decision_stands(votes in proptest::collection::vec(any::<bool>(), 1..=15)) {
            let masters = votes.len();
            let mut granted = 0;
            let mut against = 0;
            let mut first = Decision::Open;
            for vote in &votes {
                if *vote { granted += 1 } else { against += 1 }
                let now = decide(masters, granted, against);
                if first == Decision::Open {
                    first = now;
                }
                prop_assert_eq!(now, first, "a decision does not change");
                let still_possible = granted + (masters - granted - against) >= quorum(masters);
                prop_assert_eq!(now == Decision::Denied, !still_possible);
            }
            let majority = granted * 2 > masters;
            prop_assert_eq!(first, if majority { Decision::Granted } else { Decision::Denied });
        }

        #[test]
        fn a_lease_is_surely_lost_when_no_quorum_can_have_it(masters in 1usize..=15, no in 0usize..=15) {
            let no = no.min(masters);
            prop_assert_eq!(surely_lost(masters, no), (masters - no) * 2 <= masters);
        }

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
                .filter(|&me| goes_on(&seen_by(me), &name(me)))
                .collect();
            let somebody_has_it = (0..5).any(|contender| has(contender) >= quorum(split.len()));
            prop_assert_eq!(going_on.len(), usize::from(!somebody_has_it), "{:?}", going_on);
        }
    }
}
