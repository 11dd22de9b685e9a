//! How a set begins.

use std::sync::Arc;
use std::time::Duration;

use super::super::record::{MasterRecord, MemberState};
use super::super::rules::Verdict;
use super::super::state::Beginning;
use super::basics::{Dice, is_wait, name, quarantine, refusal};
use super::client::{Client, hello};
use super::fake::FakeMaster;
use super::sets::{
    beginner, connect_often, decide, known_set, restart, set, set_of, shown_set, the_third_leaves,
};
use crate::vote::Refusal;

#[test]
fn only_init_begins_a_set_and_its_masters_vote_when_all_were_read_after_their_quarantines() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(FakeMaster::new).collect();
    let steps = Client::new(&[0, 1, 2], None).connect_to_all(&mut masters, 0, &dice);
    assert_eq!(refusal(&steps[2]), Some(Refusal::NoSet));
    let mut client = Client::new(&[0, 1, 2], Some(None));
    for _ in 0..3 {
        let steps = client.connect_to_all(&mut masters, 0, &dice);
        assert!(steps.iter().all(is_wait), "{steps:?}");
    }
    masters[0].record = None; // it is emptied meanwhile, and begins anew
    client.connect_to_all(&mut masters, 1_000, &dice);
    for _ in 0..3 {
        let steps = client.connect_to_all(&mut masters, quarantine(), &dice);
        assert!(steps.iter().all(is_wait), "{steps:?}");
    }
    for _ in 0..2 {
        client.connect_to_all(&mut masters, quarantine() + 1_000, &dice);
    }
    assert_eq!(client.voters(&masters, quarantine() + 1_000), [0, 1, 2]);
}

#[test]
fn a_candidate_that_restarts_is_prepared_anew() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(FakeMaster::new).collect();
    let mut begins = beginner(&[0, 1, 2], "first");
    connect_often(&mut begins, &mut masters, &[5], &dice);
    restart(&mut masters[1]);
    connect_often(&mut begins, &mut masters, &[1_000], &dice);
    let record = masters[1].record.as_ref().unwrap();
    assert_eq!(*record.run_id, *masters[1].run_id.to_string());
    assert_eq!(record.quarantine, 1_000 + quarantine());
}

/// All of it were emptied, but perhaps one that is a candidate.
#[test]
fn init_leaves_a_set_that_no_master_showed_a_moment_ago() {
    for is_candidate in [false, true] {
        let dice = Dice::new(1);
        let mut masters = set(&dice);
        let mut begins = beginner(&[0, 1, 2], "another");
        begins.connect_to_all(&mut masters, 1, &dice);
        let candidate = MasterRecord { state: MemberState::Candidate, ..masters[2].record.clone().unwrap() };
        let record = Some(candidate).filter(|_| is_candidate);
        let last = FakeMaster { record, ..masters[2].clone() };
        let empty = FakeMaster::new(9);
        let late = 10_000_000;
        for (index, shown, now) in [(2, &last, 5), (0, &empty, late), (1, &empty, late), (2, &last, late)] {
            assert!(begins.set.newest().is_some(), "{index}");
            hello(&mut begins.set, index, shown.reading(now), dice.ids());
        }
        assert!(begins.set.newest().is_none(), "candidate: {is_candidate}");
    }
}

#[test]
fn init_writes_on_no_master_that_its_list_does_not_name() {
    let dice = Dice::new(1);
    let mut begins = beginner(&[0, 1, 2], "own");
    begins.set.join(&name(3)).unwrap();
    begins.set.end_joining();
    for index in 0..4 {
        let verdict = hello(&mut begins.set, index, FakeMaster::new(9).reading(5), dice.ids());
        assert!(index < 2 || matches!(verdict, Verdict::Write(_)) == (index == 2), "{index}: {verdict:?}");
    }
}

/// They are back with an older copy of their keys.
#[test]
fn a_set_of_which_most_are_candidates_after_a_change_is_lost() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    let before = masters.clone();
    let members = client.set.newest().unwrap().members.clone();
    decide(&mut client, &mut masters, members, 1_000, &dice);
    for index in [1, 2] {
        masters[index] = before[index].clone();
        masters[index].record.as_mut().unwrap().state = MemberState::Candidate;
    }
    let mut begins = beginner(&[0, 1, 2], "another");
    connect_often(&mut begins, &mut masters, &[2 * quarantine()], &dice);
    assert!(masters.iter().take(3).all(|master| shown_set(master) == Some("another")));
}

/// This client saw it vote before the set was lost.
#[test]
fn a_master_that_was_seen_in_quarantine_is_not_taken_for_new() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters[0].record.as_mut().unwrap().quarantine = quarantine();
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 5, &dice);
    let never_used = Some(vec!["9".into()]);
    client.set.begin(Some(Beginning { id: "another".into(), never_used }));
    let new = FakeMaster::new(9).reading(5);
    hello(&mut client.set, 1, FakeMaster::new(8).reading(5), dice.ids());
    let verdict = hello(&mut client.set, 0, new, dice.ids());
    let Verdict::Write(write) = verdict else { panic!("{verdict:?}") };
    assert_eq!(write.written(5).quarantine, quarantine());
}

/// A FLUSHALL on most masters keeps their processes, which an operator named before the set began.
#[test]
fn no_process_counts_as_never_used_once_a_set_has_begun() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let run_ids = masters[..3].iter().map(|master| master.run_id.to_string().into()).collect();
    let mut begins = Client::new(&[0, 1, 2], Some(Some(run_ids)));
    begins.connect(0, &mut masters, 5, &dice); // a member: the set has begun
    masters[0] = FakeMaster::new(9);
    for master in &mut masters[1..3] {
        *master = FakeMaster::new(master.run_id);
    }
    connect_often(&mut begins, &mut masters, &[10], &dice);
    let voters: Vec<_> = masters.iter().filter(|master| shown_set(master).is_some()).collect();
    assert!(voters.is_empty(), "{voters:?}");
}

/// Its quarantine was over when it began, so that counts from then on.
#[test]
fn what_a_person_began_and_left_makes_room_for_another_set_after_a_quarantine() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..5).map(FakeMaster::new).collect();
    let never_used = Some(Some(vec!["1".into()]));
    let began = 10_000_000;
    let mut cut_short = Client::new(&[0, 1, 2], never_used);
    cut_short.cut_off = vec![1, 2];
    for index in [1, 2] {
        hello(&mut cut_short.set, index, masters[index].reading(began), dice.ids());
    }
    cut_short.connect(0, &mut masters, began, &dice);
    assert_eq!(masters[0].record.as_ref().map(|its| its.state), Some(MemberState::Candidate));
    assert!(masters[0].record.as_ref().unwrap().quarantine <= began, "it would vote at once");
    let mut client = Client::new(&[0, 1, 3], Some(None));
    client.connect_to_all(&mut masters, began + quarantine() / 2, &dice);
    let set =
        |masters: &[FakeMaster], index: usize| masters[index].record.as_ref().map(|its| its.set.clone());
    assert_ne!(set(&masters, 0), set(&masters, 1));
    for later in [2, 4] {
        for _ in 0..3 {
            client.connect_to_all(&mut masters, began + later * quarantine(), &dice);
        }
    }
    assert_eq!(client.voters(&masters, began + 4 * quarantine()), [0, 1, 3]);
}

/// One of them keeps its record.
#[test]
fn init_replaces_a_lost_set_under_another_id() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let before = masters[2].record.clone().unwrap().set;
    for index in [0, 1] {
        masters[index] = FakeMaster::new(50 + index as u64);
    }
    let mut begins = beginner(&[0, 1, 2], "another");
    connect_often(&mut begins, &mut masters, &[5, 5 + quarantine()], &dice);
    assert_eq!(begins.voters(&masters, 5 + quarantine()), [0, 1, 2]);
    let sets = masters.iter().take(3).map(|master| master.record.clone().unwrap().set);
    assert!(sets.into_iter().all(|set| *set == *"another" && set != before));
}

#[test]
fn init_waits_until_every_master_answered() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    for index in [0, 1] {
        masters[index] = FakeMaster::new(50 + index as u64);
    }
    let mut begins = beginner(&[0, 1, 2], "another");
    begins.cut_off = vec![2];
    connect_often(&mut begins, &mut masters, &[5, 10_000_000], &dice);
    assert!(masters[0].record.is_none());
    // What it showed long ago does not count.
    begins.cut_off = vec![];
    begins.connect(2, &mut masters, 10_000_000, &dice);
    begins.cut_off = vec![2];
    connect_often(&mut begins, &mut masters, &[12_000_000], &dice);
    assert!(masters[0].record.is_none());
    begins.cut_off = vec![];
    connect_often(&mut begins, &mut masters, &[12_000_000], &dice);
    assert!(masters.iter().take(3).all(|master| *master.record.clone().unwrap().set == *"another"));
}

/// The set has one master less by now.
#[test]
fn init_with_an_older_list_does_not_begin() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    the_third_leaves(&mut client, &mut masters, 1_000, &dice);
    masters[1] = FakeMaster::new(9);
    let mut begins = beginner(&[0, 1, 2], "another");
    connect_often(&mut begins, &mut masters, &[5_000], &dice);
    let steps = begins.connect_to_all(&mut masters, 5_000, &dice);
    assert_eq!(refusal(&steps[1]), Some(Refusal::OtherMembers), "{steps:?}");
    assert!(masters[1].record.is_none());
    let mut begins = beginner(&[0, 1], "another");
    connect_often(&mut begins, &mut masters, &[5_000, 5_000 + quarantine()], &dice);
    assert_eq!(begins.voters(&masters, 5_000 + quarantine()), [0, 1]);
}

/// Of the masters of the list, the one with a record was never told that the first was removed.
#[test]
fn init_hears_of_the_newest_list_from_a_master_that_was_removed() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    let older = masters[2].record.clone();
    let members = client.set.newest().unwrap().members.without(1);
    decide(&mut client, &mut masters, members, 1_000, &dice);
    connect_often(&mut client, &mut masters, &[2_000], &dice);
    masters[1] = FakeMaster::new(9);
    masters[2].record = older;
    let mut begins = beginner(&[1, 2], "another");
    begins.cut_off = vec![0];
    connect_often(&mut begins, &mut masters, &[5_000], &dice);
    let steps = begins.connect_to_all(&mut masters, 5_000, &dice);
    assert!(steps.iter().any(|step| refusal(step) == Some(Refusal::OtherMembers)), "{steps:?}");
    assert!(masters[1].record.is_none());
    begins.cut_off = vec![];
    connect_often(&mut begins, &mut masters, &[5_000, 5_000 + quarantine()], &dice);
    assert_eq!(begins.voters(&masters, 5_000 + quarantine()), [1, 2]);
}

#[test]
fn init_only_looks_at_a_set_that_its_list_is_none_of() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters[1] = FakeMaster::new(9);
    let mut begins = beginner(&[1, 2], "another");
    connect_often(&mut begins, &mut masters, &[5, 5 + quarantine()], &dice);
    let steps = begins.connect_to_all(&mut masters, 5 + quarantine(), &dice);
    assert!(steps.iter().all(|step| refusal(step) == Some(Refusal::OtherMembers)), "{steps:?}");
    assert!(masters[1].record.is_none());
    assert_eq!(begins.set.newest().unwrap().members.len(), 3);
    begins.set.begin(None);
    assert!(begins.set.newest().is_none());
}

/// It was killed when it had made one of them a member, or all but one.
#[test]
fn init_does_not_take_its_own_set_for_lost() {
    for members in [1, 2] {
        let dice = Dice::new(1);
        let mut masters: Vec<_> = (1..4).map(FakeMaster::new).collect();
        let mut killed = beginner(&[0, 1, 2], "first");
        connect_often(&mut killed, &mut masters, &[0], &dice);
        let now = quarantine();
        for master in masters.iter_mut().take(members) {
            let record = master.record.as_mut().unwrap();
            (record.state, record.stamp) =
                (MemberState::Member, format!("{members} {}", record.stamp).into());
        }
        let mut next = beginner(&[0, 1, 2], "a next one");
        connect_often(&mut next, &mut masters, &[now, now + quarantine()], &dice);
        assert!(masters.iter().all(|master| *master.record.clone().unwrap().set == *"first"), "{members}");
        assert_eq!(next.voters(&masters, now + quarantine()), [0, 1, 2], "{members}");
    }
}

#[test]
fn the_lower_of_two_ids_goes_on() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(FakeMaster::new).collect();
    let mut others = [beginner(&[0, 1, 2], "b"), beginner(&[0, 1, 2], "a")];
    // The first one has heard all before the second one writes.
    for index in [0, 1, 2] {
        for client in &mut others {
            hello(&mut client.set, index, masters[index].reading(1), dice.ids());
        }
    }
    others[0].connect(0, &mut masters, 1, &dice);
    for index in [1, 2] {
        let shown = FakeMaster::new(1 + index as u64);
        if let Verdict::Write(change) = hello(&mut others[1].set, index, shown.reading(1), dice.ids()) {
            masters[index].write(&change, 1, 1);
        }
    }
    let ids = |masters: &[FakeMaster]| {
        masters.iter().map(|master| master.record.clone().unwrap().set).collect::<Vec<_>>()
    };
    assert_eq!(ids(&masters), ["b", "a", "a"].map(Arc::from));
    for now in [2, 2, 2 + quarantine(), 2 + quarantine()] {
        others.iter_mut().for_each(|client| drop(client.connect_to_all(&mut masters, now, &dice)));
    }
    assert_eq!(ids(&masters), ["a", "a", "a"].map(Arc::from));
    assert_eq!(others[0].voters(&masters, 2 + quarantine()), [0, 1, 2]);
}

/// Its set has a higher id than the `init`, which read another master first.
#[test]
fn a_member_beats_a_lower_id() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(FakeMaster::new).collect();
    let mut begins = beginner(&[0, 1, 2], "b");
    connect_often(&mut begins, &mut masters, &[0, quarantine()], &dice);
    assert_eq!(begins.voters(&masters, quarantine()), [0, 1, 2]);
    masters[2] = FakeMaster::new(9);
    let mut lower = beginner(&[0, 1, 2], "a");
    hello(&mut lower.set, 2, masters[2].reading(quarantine()), dice.ids());
    connect_often(&mut lower, &mut masters, &[quarantine(), 2 * quarantine()], &dice);
    assert!(masters.iter().all(|master| *master.record.clone().unwrap().set == *"b"));
}

/// Its set may have begun once already, and have lost all but that.
#[test]
fn a_candidate_left_over_gives_no_id() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(FakeMaster::new).collect();
    connect_often(&mut beginner(&[0, 1, 2], "a"), &mut masters, &[0], &dice);
    for index in [0, 1] {
        masters[index] = FakeMaster::new(50 + index as u64);
    }
    let now = 2 * quarantine() + 1;
    let mut next = beginner(&[0, 1, 2], "b");
    connect_often(&mut next, &mut masters, &[now, now + quarantine()], &dice);
    assert!(masters.iter().all(|master| *master.record.clone().unwrap().set == *"b"));
    assert_eq!(next.voters(&masters, now + quarantine()), [0, 1, 2]);
}

/// Its set began without it, as what it showed was known for a moment.
#[test]
fn a_late_candidate_gets_its_place() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(FakeMaster::new).collect();
    connect_often(&mut beginner(&[0, 1, 2], "a"), &mut masters, &[0], &dice);
    for master in masters.iter_mut().take(2) {
        let record = master.record.as_mut().unwrap();
        (record.state, record.stamp) = (MemberState::Member, format!("2 {}", record.stamp).into());
    }
    let now = quarantine() + 10_000_000;
    let mut client = Client::new(&[0, 1, 2], None);
    for index in [0, 1] {
        client.connect(index, &mut masters, now - 5_000_000, &dice);
    }
    client.connect(2, &mut masters, now, &dice);
    let record = masters[2].record.clone().unwrap();
    assert_eq!((record.state, record.quarantine), (MemberState::Member, now + quarantine()));
}

/// The word of a person that a master was never used is about the time before its first record.
#[test]
fn a_master_that_loses_its_first_record_while_its_set_begins_is_not_new_again() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..6).map(FakeMaster::new).collect();
    let all = (1..6).map(|run_id: u64| run_id.to_string().into()).collect();
    let mut client = Client::new(&[0, 1, 2, 3, 4], Some(Some(all)));
    for index in [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 1, 2, 3, 4] {
        client.connect(index, &mut masters, 5, &dice);
    }
    assert_eq!(client.voters(&masters, 5), [1, 2, 3, 4]);
    masters[2].record = None;
    for _ in 0..3 {
        client.connect_to_all(&mut masters, 6, &dice);
        assert!(!client.voters(&masters, 6).contains(&2));
    }
}

/// Nor if nobody heard that its first record was written.
#[test]
fn a_master_that_was_to_get_its_first_record_is_not_new_again() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(FakeMaster::new).collect();
    let all = (1..4).map(|run_id: u64| run_id.to_string().into()).collect();
    let mut client = Client::new(&[0, 1, 2], Some(Some(all)));
    let begins_now =
        |step: &Verdict| matches!(step, Verdict::Write(change) if change.quarantine == Some(Duration::ZERO));
    for index in [0, 1, 2] {
        hello(&mut client.set, index, masters[index].reading(5), dice.ids());
    }
    assert!(begins_now(&hello(&mut client.set, 0, masters[0].reading(5), dice.ids())));
    assert!(!begins_now(&hello(&mut client.set, 0, masters[0].reading(5), dice.ids())), "it is asked once");
    let id = client.set.beginning.clone().unwrap().id;
    let mut other = Client::new(&[0, 1, 2], Some(None));
    (0..3).for_each(|_| drop(other.connect_to_all(&mut masters, 5, &dice)));
    let now = quarantine() + 5;
    (0..3).for_each(|_| drop(other.connect_to_all(&mut masters, now, &dice)));
    assert_eq!(other.voters(&masters, now), [0, 1, 2]);
    masters[1].record = None;
    for index in [2, 1] {
        assert!(
            !begins_now(&hello(&mut client.set, index, masters[index].reading(now), dice.ids())),
            "{index}"
        );
    }
    assert_ne!(client.set.beginning.unwrap().id, id, "its set has begun");
}

/// Nor for a client that does not know what became of the others since.
#[test]
fn a_master_that_had_its_first_record_is_not_new_for_a_client_that_saw_that() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(FakeMaster::new).collect();
    let all = || Some(Some((1..4).map(|run_id: u64| run_id.to_string().into()).collect()));
    let mut stale = Client::new(&[0, 1, 2], all());
    for index in [0, 1, 2, 0, 1] {
        stale.connect(index, &mut masters, 5, &dice);
    }
    let mut client = Client::new(&[0, 1, 2], Some(None));
    (0..3).for_each(|_| drop(client.connect_to_all(&mut masters, 5, &dice)));
    assert_eq!(client.voters(&masters, 5), [0, 1, 2]);
    masters[0].record = None;
    stale.connect(0, &mut masters, 6, &dice);
    client.connect(0, &mut masters, 6, &dice);
    assert_eq!(client.voters(&masters, 6), [1, 2]);
}

/// An init that did not come to its end keeps no other one from the masters for ever, nor the rest
/// of a set from its members.
#[test]
fn what_was_prepared_and_came_to_nothing_is_in_nobodys_way_for_long() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..6).map(FakeMaster::new).collect();
    let mut other = Client::new(&[0, 3, 4], Some(None));
    (0..2).for_each(|_| drop(other.connect_to_all(&mut masters, 0, &dice)));
    let mut client = Client::new(&[0, 1, 2], Some(None));
    for now in [quarantine(), 2 * quarantine()] {
        let steps = [(); 2].map(|()| client.connect_to_all(&mut masters, now, &dice))[1].clone();
        assert_eq!(refusal(&steps[0]), Some(Refusal::OtherMembers), "{now}: {steps:?}");
    }
    let now = 2 * quarantine() + 1;
    for now in [now, now, now + quarantine(), now + quarantine(), now + quarantine()] {
        client.connect_to_all(&mut masters, now, &dice);
    }
    assert_eq!(client.voters(&masters, now + quarantine()), [0, 1, 2]);
    // One master of a set that another one prepares, when its quarantine is over.
    let mut masters = set(&dice);
    masters.push(FakeMaster::new(5));
    masters[2].record = None;
    let mut other = Client::new(&[2, 3, 4], Some(None));
    (0..2).for_each(|_| drop(other.connect_to_all(&mut masters, 0, &dice)));
    let mut client = Client::new(&[0, 1, 2], None);
    (0..2).for_each(|_| drop(client.connect_to_all(&mut masters, quarantine() + 1, &dice)));
    assert_eq!(client.voters(&masters, quarantine() + 1), [0, 1]);
}

/// The second of two was chosen, and has not been told.
#[test]
fn an_init_leaves_a_set_alone_that_a_candidate_has_joined() {
    let dice = Dice::new(1);
    let (mut masters, _) = set_of(1, &dice);
    masters.push(FakeMaster::new(2));
    let mut client = Client::new(&[0], None);
    client.connect_to_all(&mut masters, 1, &dice);
    let members = client.set.newest().unwrap().members.clone();
    let id = client.prepare(1, &mut masters, 1, &dice).unwrap();
    client.cut_off = vec![1];
    let now = 2 + quarantine();
    decide(&mut client, &mut masters, members.with(id, name(1)), now, &dice);
    let mut begins = beginner(&[0, 1], "another");
    connect_often(&mut begins, &mut masters, &[now + 2], &dice);
    assert_eq!(begins.voters(&masters, now + 2), [0, 1]);
    assert_eq!(shown_set(&masters[1]), Some("[0]"));
}
