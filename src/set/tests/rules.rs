//! Verdicts about masters of other sets, and about those that another one is taken for.

use super::super::record::{MasterRecord, MemberState, Members};
use super::super::rules::Verdict;
use super::basics::{Dice, name, quarantine, refusal};
use super::client::{Client, hello};
use super::fake::FakeMaster;
use super::sets::{
    beginner, connect_often, decide, known_set, restart, set, set_of, shown_set, the_fourth_joins,
    the_third_joins_again, the_third_leaves,
};
use crate::vote::Refusal;

#[test]
fn a_set_takes_a_candidate_of_another_one_back_if_most_show_it() {
    for (count, shown, is_taken_back) in [(4, 2, false), (4, 3, true), (5, 2, false), (5, 3, true)] {
        let dice = Dice::new(1);
        let (mut masters, all) = set_of(count, &dice);
        masters[0] = FakeMaster::new(90);
        masters.extend([91, 92].map(FakeMaster::new));
        connect_often(&mut beginner(&[0, count, count + 1], "another"), &mut masters, &[5], &dice);
        assert_eq!(shown_set(&masters[0]), Some("another"));
        let mut client = Client::new(&all, None);
        client.cut_off = (shown + 1..count).collect();
        client.connect_to_all(&mut masters, 6, &dice);
        let verdict = client.connect(0, &mut masters, 6, &dice);
        let expected = (!is_taken_back).then_some(Refusal::OtherMembers);
        assert_eq!(refusal(&verdict), expected, "{shown} of {count}: {verdict:?}");
        assert_eq!(shown_set(&masters[0]) == Some("another"), !is_taken_back, "{shown} of {count}");
    }
}

/// The last one is of another set.
#[test]
fn a_master_votes_beside_one_of_another_set_if_most_are_of_its_own() {
    for (count, shown, votes) in [(4, 2, false), (4, 3, true), (5, 3, true)] {
        let dice = Dice::new(1);
        let (mut masters, all) = set_of(count, &dice);
        let record = masters[count - 1].record.as_mut().unwrap();
        record.set = "another".into();
        record.members = Members::first(&["x".into(), "y".into()]);
        let mut client = Client::new(&all, None);
        client.cut_off = (shown..count - 1).collect();
        client.connect_to_all(&mut masters, 5, &dice);
        let verdict = client.connect(0, &mut masters, 5, &dice);
        assert_eq!(verdict == Verdict::Vote, votes, "{shown} of {count}: {verdict:?}");
    }
}

/// They are not told of it yet.
#[test]
fn a_client_with_the_newest_list_follows_it_beside_masters_of_the_list_before() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    client.cut_off = vec![2];
    let before = masters[2].clone();
    the_fourth_joins(&mut client, &mut masters, 1_000, &dice);
    let mut new = Client::new(&[0, 1, 2, 3], None);
    let first = hello(&mut new.set, 2, before.reading(2_000), dice.ids());
    assert_eq!(refusal(&first), Some(Refusal::OtherMembers));
    assert!(new.set.misfit().is_some());
    new.connect(0, &mut masters, 2_000, &dice);
    assert!(new.set.misfit().is_none(), "the newest list is its own");
    assert_eq!(new.connect(2, &mut masters, 2_000, &dice), Verdict::Vote);
    assert_eq!(masters[2].record.as_ref().unwrap().generation, 1);
}

#[test]
fn a_master_without_a_record_waits_until_all_were_heard() {
    let dice = Dice::new(1);
    let mut client = Client::new(&[0, 1, 2], None);
    for index in 0..3 {
        let verdict = hello(&mut client.set, index, FakeMaster::new(7).reading(5), dice.ids());
        assert_eq!(refusal(&verdict), (index == 2).then_some(Refusal::NoSet), "{verdict:?}");
    }
}

/// A candidate of a set with the client's list answers, and then a member of another set.
#[test]
fn a_master_without_a_record_is_judged_by_a_member_and_not_by_a_candidate() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(FakeMaster::new).collect();
    connect_often(&mut beginner(&[0, 1, 2], "prepared"), &mut masters, &[0], &dice);
    let empty = FakeMaster::new(9);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect(0, &mut masters, 5, &dice);
    let verdict = hello(&mut client.set, 2, empty.reading(5), dice.ids());
    assert!(matches!(&verdict, Verdict::Wait(why) if why.contains("not complete")), "{verdict:?}");
    assert!(client.set.newest().is_none(), "nobody follows a set that has not begun");
    let record = masters[1].record.as_mut().unwrap();
    (record.set, record.state) = ("another".into(), MemberState::Member);
    record.members = Members::first(&["x".into(), "y".into()]);
    client.connect(1, &mut masters, 5, &dice);
    let verdict = hello(&mut client.set, 2, empty.reading(5), dice.ids());
    let Verdict::Refuse(Refusal::OtherMembers, why) = verdict else { panic!("{verdict:?}") };
    assert!(why.starts_with("its set is x, y, and this client's m0, m1, m2: "), "{why}");
}

/// The client has a name of its own for it, or it is another server.
#[test]
fn a_master_without_a_record_that_its_set_does_not_name_is_refused() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(FakeMaster::new).collect();
    connect_often(&mut beginner(&[0, 1, 2], "prepared"), &mut masters, &[0], &dice);
    for mut client in [Client::new(&[0, 1, 7], None), beginner(&[0, 1, 7], "own")] {
        client.connect(0, &mut masters, 5, &dice);
        let verdict = hello(&mut client.set, 2, FakeMaster::new(9).reading(5), dice.ids());
        assert_eq!(refusal(&verdict), Some(Refusal::OtherMembers), "{verdict:?}");
    }
}

/// It has the list of neither.
#[test]
fn init_tells_a_member_of_a_third_set_from_a_candidate() {
    let dice = Dice::new(1);
    for (state, is_third) in [(MemberState::Member, true), (MemberState::Candidate, false)] {
        let masters = set(&dice);
        let mut begins = beginner(&[0, 3], "own");
        hello(&mut begins.set, 0, masters[0].reading(5), dice.ids());
        let record = masters[1].record.clone().unwrap();
        let members = Members::first(&["x".into(), name(3)]);
        let record = MasterRecord { set: "third".into(), members, state, ..record };
        let third = FakeMaster { record: Some(record), ..masters[1].clone() };
        let verdict = hello(&mut begins.set, 1, third.reading(5), dice.ids());
        let Verdict::Refuse(Refusal::OtherMembers, why) = verdict else { panic!("{verdict:?}") };
        assert_eq!(why.contains("name the masters of one set"), is_third, "{why}");
    }
}

#[test]
fn a_candidate_that_restarts_is_prepared_to_join_anew() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    let first = client.prepare(3, &mut masters, 5, &dice).unwrap();
    assert_eq!(client.prepare(3, &mut masters, 6, &dice), Some(first));
    restart(&mut masters[3]);
    let index = client.set.join(&name(3)).unwrap();
    let verdict = client.hello(index, &masters, 7, dice.ids());
    let Verdict::Write(write) = verdict else { panic!("{verdict:?}") };
    assert_eq!(write.record.state, MemberState::Candidate);
    assert_ne!(write.record.member, first);
    assert_eq!(write.written(7).quarantine, 7 + quarantine());
}

#[test]
fn a_member_of_another_set_does_not_join_and_a_candidate_does() {
    for state in [MemberState::Member, MemberState::Candidate] {
        let dice = Dice::new(1);
        let mut masters = set(&dice);
        masters[3] = masters[0].clone();
        let record = masters[3].record.as_mut().unwrap();
        (record.set, record.state) = ("another".into(), state);
        let mut client = Client::new(&[0, 1, 2], None);
        client.connect_to_all(&mut masters, 1, &dice);
        client.prepare(3, &mut masters, 5, &dice);
        let is_left = shown_set(&masters[3]) == Some("another");
        assert_eq!(is_left, state == MemberState::Member, "{state:?}");
        assert_eq!(client.set.misfit().is_some(), is_left, "{state:?}");
        assert_eq!(client.set.other_list(), None, "the client's list does not name it");
    }
}

/// Another change was decided meanwhile.
#[test]
fn a_candidate_that_did_not_join_stays_a_candidate() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    client.prepare(3, &mut masters, 5, &dice).unwrap();
    let before = masters[3].record.clone();
    the_third_leaves(&mut client, &mut masters, 1_000, &dice);
    client.connect(3, &mut masters, 2_000, &dice);
    assert_eq!(masters[3].record, before);
}

/// It never became a member, so it promised nothing.
#[test]
fn a_candidate_that_its_set_left_behind_rejoins() {
    let dice = Dice::new(1);
    for generation in [0, 1] {
        let mut masters = set(&dice);
        let first = masters[2].record.clone().unwrap();
        let mut client = Client::new(&[0, 1, 2], None);
        client.connect_to_all(&mut masters, 1, &dice);
        decide(&mut client, &mut masters, first.members.clone(), 1_000, &dice);
        let state = MemberState::Candidate;
        masters[2].record = Some(MasterRecord { state, generation, ..first.clone() });
        connect_often(&mut Client::new(&[0, 1, 2], None), &mut masters, &[2_000], &dice);
        let record = masters[2].record.as_ref().unwrap();
        assert_ne!(record.incarnation, first.incarnation, "{generation}");
        assert_eq!(record.quarantine, 2_000 + quarantine(), "{generation}");
    }
}

/// It is back as it was before it was removed.
#[test]
fn a_master_is_not_told_of_a_generation_with_another_one_under_its_name() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let now = 2_000 + quarantine();
    let [member, _] = the_third_joins_again(&mut Client::new(&[0, 1, 2], None), &mut masters, now, &dice);
    masters[2] = member.clone();
    let steps = Client::new(&[0, 1, 2], None).connect_to_all(&mut masters, now + 10, &dice);
    assert!(matches!(&steps[2], Verdict::Wait(why) if why.contains("another master joined")), "{steps:?}");
    assert_eq!(masters[2].record, member.record);
}

/// Another address leads to the server that joined again.
#[test]
fn a_removed_master_does_not_rejoin_as_a_member_that_another_one_is() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let now = 2_000 + quarantine();
    let [_, removed] = the_third_joins_again(&mut Client::new(&[0, 1, 2], None), &mut masters, now, &dice);
    masters[3] = std::mem::replace(&mut masters[2], removed.clone());
    let mut client = Client::new(&[0, 1, 2], None);
    client.list[1.into()] = 3;
    let steps = client.connect_to_all(&mut masters, now + 10, &dice);
    assert_eq!(refusal(&steps[2]), Some(Refusal::Removed), "{steps:?}");
    assert_eq!(masters[2].record, removed.record);
}
