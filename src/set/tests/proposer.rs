//! Phase 1 for masters that rejoin, without masters.

use super::super::proposer::{Accepted, Ballot, Proposer};
use crate::wire::MasterSet;

fn ballot(time: u64) -> Ballot {
    Ballot::new(time, Ballot::default(), 7)
}

/// A run about generation 1, after two state losses, with the ballot of 5.
fn begun() -> Proposer {
    let mut proposer = Proposer::default();
    proposer.want(1, 1, 1_000);
    proposer.begin("set".into(), 1, MasterSet::first(3), 2, |_| ballot(5));
    proposer
}

#[test]
fn a_ballot_is_above_another_one_and_grows_with_the_time() {
    assert!(ballot(5) < ballot(6));
    assert_ne!(Ballot::new(5, Ballot::default(), 1), Ballot::new(5, Ballot::default(), 2));
    let above = Ballot::new(3, ballot(9), 0);
    assert!(ballot(9) < above && above < ballot(11));
    assert!(Ballot::new(20, ballot(9), u64::MAX) < ballot(21));
    assert_eq!(Ballot::read(&above.to_string()), Some(above));
    assert_eq!(Ballot::read("x"), None);
}

#[test]
fn promises_count_for_one_ballot_one_generation_and_earlier_losses() {
    let mut proposer = begun();
    proposer.promised(0.into(), ballot(5), None);
    proposer.promised(1.into(), ballot(4), None);
    assert_eq!(proposer.promises(1, 2), Some(MasterSet::first(1)));
    assert_eq!(proposer.promises(1, 1), Some(MasterSet::first(1)));
    assert_eq!(proposer.promises(1, 3), None, "it lost its state after the run began");
    assert_eq!(proposer.promises(2, 2), None);
    assert_eq!(Proposer::default().promises(1, 0), None);
}

#[test]
fn a_master_that_rejoins_is_given_the_value_of_the_highest_ballot() {
    let mut proposer = begun();
    let accepted = [3, 2, 4].map(|time| Accepted { ballot: ballot(time), value: format!("{time}").into() });
    for (master, accepted) in accepted.iter().enumerate() {
        proposer.promised(master.into(), ballot(5), Some(accepted.clone()));
    }
    let state = proposer.handed_on(MasterSet::first(2));
    assert_eq!((state.generation, state.promised), (1, Some(ballot(5))));
    assert_eq!(state.accepted.as_ref(), Some(&accepted[0]), "the third one does not count");
}

#[test]
fn a_run_begins_anew_when_it_could_hear_more_or_after_a_while() {
    let mut proposer = Proposer::default();
    assert!(!proposer.is_wanted());
    (0..2).for_each(|_| proposer.want(1, 1, 5));
    assert!(proposer.is_wanted(), "two masters wait for it");
    let is_wanted = |change: fn(&mut Proposer), generation, loss, now| {
        let mut proposer = begun();
        assert!(!proposer.is_wanted());
        proposer.promised(0.into(), ballot(5), None);
        change(&mut proposer);
        proposer.want(generation, loss, now);
        proposer.is_wanted()
    };
    assert!(!is_wanted(|_| {}, 1, 2, 200_999));
    assert!(is_wanted(|_| {}, 1, 2, 201_000));
    assert!(is_wanted(|_| {}, 1, 3, 1_000));
    assert!(is_wanted(|_| {}, 2, 2, 1_000));
    assert!(is_wanted(|proposer| proposer.heard_from(1.into()), 1, 2, 1_000));
    assert!(!is_wanted(|proposer| proposer.heard_from(0.into()), 1, 2, 1_000), "it has promised");
    assert!(is_wanted(|proposer| proposer.rejected(ballot(9)), 1, 2, 1_000));
}

#[test]
fn a_run_was_asked_for_when_it_was_last_wanted() {
    let mut proposer = begun();
    assert_eq!(proposer.asked_at(), 1_000);
    proposer.want(1, 2, 1_500);
    proposer.want(1, 3, 2_000);
    assert_eq!(proposer.asked_at(), 1_000);
    for promised in [9, 8] {
        proposer.rejected(ballot(promised));
    }
    proposer.begin("set".into(), 1, MasterSet::first(3), 3, |highest| {
        assert_eq!(highest, ballot(9));
        ballot(10)
    });
    assert_eq!(proposer.asked_at(), 2_000);
}
