//! When a round is decided: pure counting.

/// How many of `masters` make a quorum: a majority of all that are configured, whatever can be
/// reached.
pub(crate) fn quorum(masters: usize) -> usize {
    masters / 2 + 1
}

/// What so many votes amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It still hangs on the votes to come.
    Open,
    /// A quorum granted.
    Granted,
    /// A quorum cannot be reached any more.
    Denied,
}

/// Decides a round of `masters` in which `granted` voted for it, and `against` refused, denied or
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

/// Whether a lease is gone for certain: so many masters say "not yours" that the rest are no
/// quorum.
pub(crate) fn surely_lost(masters: usize, not_yours: usize) -> bool {
    masters - not_yours < quorum(masters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quorum_is_a_majority() {
        let quorums: Vec<_> = (1..=7).map(quorum).collect();
        assert_eq!(quorums, [1, 2, 2, 3, 3, 4, 4]);
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
    }
}
