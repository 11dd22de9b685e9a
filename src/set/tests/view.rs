//! Which set and generation a client follows.

use std::sync::Arc;

use super::super::handle::Event;
use super::super::peer::Reading;
use super::super::record::{MasterRecord, MemberState, Members};
use super::super::rules::Verdict;
use super::super::state::Set;
use super::basics::{Dice, MAX_TTL, name, quarantine, refusal, terms};
use super::client::{Client, hello};
use super::fake::FakeMaster;
use super::sets::{
    begin_anew, beginner, connect_often, decide, known_set, set, set_of, the_fourth_joins, the_third_leaves,
    the_third_leaves_for_the_fourth,
};
use crate::vote::Refusal;
use crate::wire::MasterIndex;

/// It has the number of a generation that the other set has, too.
#[test]
fn a_client_joins_another_set_when_none_shows_its_own() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    let before = client.set.voters().view;
    let old = masters[2].clone();
    for (index, master) in masters.iter_mut().enumerate() {
        *master = FakeMaster::new(50 + index as u64);
    }
    let mut begins = beginner(&[0, 1, 2], "another");
    connect_often(&mut begins, &mut masters, &[5, 5 + quarantine()], &dice);
    let now = 5 + quarantine();
    client.connect(0, &mut masters, now, &dice);
    assert_eq!(refusal(&client.connect(0, &mut masters, now, &dice)), Some(Refusal::OtherMembers));
    assert_eq!(client.set.voters().view, before, "it showed its own set last");
    client.connect(2, &mut masters, now, &dice);
    client.connect_to_all(&mut masters, now, &dice);
    assert_eq!(client.voters(&masters, now), [0, 1, 2]);
    assert_ne!(client.set.voters().view, before);
    // A master of the set of before is of another one.
    masters[2] = old;
    let steps = client.connect_to_all(&mut masters, now, &dice);
    assert_eq!(refusal(&steps[2]), Some(Refusal::OtherMembers), "{steps:?}");
}

/// It would be counted under the number of a generation that both sets have.
#[test]
fn a_master_of_another_set_with_the_same_list_has_no_vote() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    let removed = MasterRecord { state: MemberState::Removed, ..masters[2].record.clone().unwrap() };
    for (index, master) in masters.iter_mut().enumerate() {
        *master = FakeMaster::new(50 + index as u64);
    }
    let mut begins = beginner(&[0, 1, 2], "another");
    connect_often(&mut begins, &mut masters, &[5, 5 + quarantine()], &dice);
    let now = 5 + quarantine();
    let lost = FakeMaster::new(60).reading(now);
    hello(&mut client.set, 1, lost.clone(), dice.ids());
    hello(&mut client.set, 2, Reading { record: Some(removed), ..lost }, dice.ids());
    let verdict = hello(&mut client.set, 0, masters[0].reading(now), dice.ids());
    assert!(matches!(&verdict, Verdict::Wait(why) if why.contains("another set")), "{verdict:?}");
    assert_eq!(client.set.newest().unwrap().generation, masters[0].record.clone().unwrap().generation);
    client.connect_to_all(&mut masters, now, &dice);
    client.connect_to_all(&mut masters, now, &dice);
    assert_eq!(client.voters(&masters, now), [0, 1, 2]);
}

/// The third one left its set for the fourth, and the client went along.
#[test]
fn a_client_joins_a_set_that_begins_with_the_newest_list() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    the_third_leaves_for_the_fourth(&mut client, &mut masters, [1_000, 2_000 + quarantine()], &dice);
    for index in [0, 1, 3] {
        masters[index] = FakeMaster::new(50 + index as u64);
    }
    let now = 3_000 + quarantine();
    let mut begins = beginner(&[0, 1, 3], "another");
    connect_often(&mut begins, &mut masters, &[now, now + quarantine()], &dice);
    assert_eq!(begins.voters(&masters, now + quarantine()), [0, 1, 3]);
    client.cut_off = vec![];
    connect_often(&mut client, &mut masters, &[now + quarantine()], &dice);
    assert_eq!(client.voters(&masters, now + quarantine()), [0, 1, 3]);
}

#[test]
fn a_list_or_terms_that_differ_are_refused() {
    let dice = Dice::new(1);
    let why = |steps: &[Verdict]| steps.iter().filter_map(refusal).collect::<Vec<_>>();
    for list in [&[0, 1, 3][..], &[3, 0, 1], &[0, 1], &[0, 1, 2, 3]] {
        let mut masters = set(&dice);
        let mut client = Client::new(list, None);
        client.connect_to_all(&mut masters, 0, &dice);
        let steps = client.connect_to_all(&mut masters, 0, &dice);
        assert!(why(&steps).contains(&Refusal::OtherMembers), "{list:?}: {steps:?}");
        assert!(!client.voters(&masters, 0).contains(&3));
        let mut client = Client::new(list, Some(None));
        client.connect_to_all(&mut masters, 0, &dice);
        let steps = client.connect_to_all(&mut masters, 0, &dice);
        assert!(why(&steps).contains(&Refusal::OtherMembers), "{list:?}: {steps:?}");
    }
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.set = Set::new((0..3).map(name).collect(), terms(MAX_TTL * 2));
    let steps = client.connect_to_all(&mut masters, 0, &dice);
    assert_eq!(why(&steps), [Refusal::OtherTerms; 3]);
    assert!(client.set.newest().is_none());
    let mut masters = set(&dice);
    masters[..3].iter_mut().for_each(|it| it.record.as_mut().unwrap().terms.protocol = "v9".into());
    let steps = Client::new(&[0, 1, 2], None).connect_to_all(&mut masters, 0, &dice);
    assert_eq!(why(&steps), [Refusal::OtherTerms; 3]);
    // One server under two names is one member.
    let mut masters = set(&dice);
    masters[3] = masters[0].clone();
    let steps = Client::new(&[0, 1, 3], None).connect_to_all(&mut masters, 0, &dice);
    assert_eq!(refusal(&steps[2]), Some(Refusal::OtherMembers));
}

/// A client with names of its own for the masters cannot tell one that lost its record from another
/// server: that one is refused, and the rest is enough.
/// The set had more masters when the list was written; one of those is of another set by now.
#[test]
fn a_list_of_before_is_judged_by_the_set_of_now() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    the_fourth_joins(&mut client, &mut masters, 1_000, &dice);
    let newest = client.set.newest().unwrap().clone();
    let id = newest.members.id_of(&name(3)).unwrap();
    let now = 2_000 + quarantine();
    decide(&mut client, &mut masters, newest.members.without(id), now, &dice);
    let record = masters[3].record.take().unwrap();
    let members = Members::first(&[name(3), "x".into(), "y".into()]);
    masters[3].record = Some(MasterRecord {
        set: "another".into(),
        state: MemberState::Member,
        member: 1,
        members,
        generation: 0,
        earlier: vec![],
        ..record
    });
    let now = now + 2 * quarantine();
    let mut late = Client::new(&[0, 1, 2, 3], None);
    late.cut_off = vec![2];
    (0..2).for_each(|_| drop(late.connect_to_all(&mut masters, now, &dice)));
    assert_eq!((late.voters(&masters, now), late.quorum()), (vec![0, 1], 2));
    // A third one forgets, and is prepared for another set: this one takes it back.
    let mut begins = Client::new(&[2, 4, 5], Some(None));
    masters[2] = FakeMaster::new(9);
    masters.extend([10, 11].map(FakeMaster::new));
    (0..2).for_each(|_| drop(begins.connect_to_all(&mut masters, now, &dice)));
    assert_ne!(masters[2].record.as_ref().unwrap().set, newest.set);
    late.cut_off = vec![];
    (0..3).for_each(|_| drop(late.connect_to_all(&mut masters, now + 1, &dice)));
    assert_eq!(masters[2].record.as_ref().unwrap().set, newest.set);
}

/// It would count a quorum of those that it knows.
#[test]
fn what_was_decided_is_not_believed_where_there_is_no_room_for_a_master() {
    let dice = Dice::new(1);
    let (client, masters) = known_set(&dice);
    let newest = client.set.newest().unwrap().clone();
    let next = newest.next(newest.members.with(9, "new".into()));
    let mut anew = masters.clone();
    begin_anew(&mut anew[..3], 5, &dice);
    let before = anew[0].record.as_ref().unwrap();
    anew[0].record =
        Some(MasterRecord { members: next.members.clone(), ..before.next(next.members.clone()) });
    for (room, generation) in [(0, 0), (1, 1)] {
        let mut client = client.clone();
        while client.set.peers.len() + room < MasterIndex::COUNT {
            client.set.join(&format!("seen {}", client.set.peers.len()).into()).unwrap();
        }
        let mut chosen = client.set.clone();
        chosen.handle(1, Event::Chosen { from: newest.clone(), members: next.members.clone() });
        assert_eq!(chosen.newest().unwrap().generation, generation);
        // A set that began with the newest list has that many members by now.
        for index in [1, 2] {
            hello(&mut client.set, index, FakeMaster::new(9).reading(6), dice.ids());
        }
        hello(&mut client.set, 0, anew[0].reading(6), dice.ids());
        assert_eq!(client.set.newest().unwrap().generation, generation);
    }
}

/// The last of the masters heard is of the set that began anew. The others show the previous
/// generation, or have no record.
#[test]
fn a_client_goes_over_to_a_set_if_none_or_few_masters_show_its_own() {
    let both = [(4, 1, 2, false), (4, 1, 3, true), (5, 2, 3, true), (3, 0, 1, true), (3, 1, 1, false)];
    for (count, before, anew, goes_over) in both {
        let dice = Dice::new(1);
        let (mut masters, all) = set_of(count, &dice);
        let mut client = Client::new(&all, None);
        client.connect_to_all(&mut masters, 1, &dice);
        begin_anew(&mut masters, 5, &dice);
        let is_left = |client: &Client| client.set.newest().map(|newest| &*newest.set) == Some("another");
        for (index, master) in masters.iter().enumerate().skip(before) {
            let empty = FakeMaster::new(9);
            let shown = if index < count - anew { &empty } else { master };
            assert!(!is_left(&client), "{before} and {anew} of {count}");
            hello(&mut client.set, index, shown.reading(6), dice.ids());
        }
        assert_eq!(is_left(&client), goes_over, "{before} and {anew} of {count}");
    }
}

/// It has two members less by now, and most of them show it.
#[test]
fn a_client_does_not_go_over_while_most_masters_show_its_own_set() {
    let dice = Dice::new(1);
    let (mut masters, all) = set_of(5, &dice);
    let mut client = Client::new(&all, None);
    client.connect_to_all(&mut masters, 1, &dice);
    begin_anew(&mut masters, 5, &dice);
    for index in [3, 4] {
        let record = masters[index].record.as_mut().unwrap();
        *record = record.next(record.members.without(1).without(2));
        hello(&mut client.set, index, masters[index].reading(6), dice.ids());
        assert_eq!(client.set.newest().unwrap().members.len(), 5);
    }
}

/// No master shows the client's set any more, and one shows another set.
#[test]
fn a_client_goes_over_only_to_a_member_of_a_set_with_its_list() {
    let names =
        |names: &[&'static str]| Members::first(&names.iter().map(|&name| name.into()).collect::<Vec<_>>());
    let list = names(&["m0", "m1", "m2"]);
    for (state, members, goes_over) in [
        (MemberState::Member, list.clone(), true),
        (MemberState::Removed, list.clone(), false),
        (MemberState::Candidate, list, false),
        (MemberState::Member, names(&["m0", "m1"]), false),
        (MemberState::Member, names(&["m0", "m1", "x"]), false),
        (MemberState::Member, names(&["m0", "m1", "m2", "x"]), false),
    ] {
        let dice = Dice::new(1);
        let (mut client, mut masters) = known_set(&dice);
        begin_anew(&mut masters[..3], 5, &dice);
        let record = masters[0].record.as_mut().unwrap();
        (record.state, record.members) = (state, members);
        record.earlier = vec![names(&["m0", "m2"])]; // none of these is the client's own name
        for index in [1, 2] {
            hello(&mut client.set, index, FakeMaster::new(9).reading(6), dice.ids());
        }
        hello(&mut client.set, 0, masters[0].reading(6), dice.ids());
        let is_left = *client.set.newest().unwrap().set == *"another";
        assert_eq!(is_left, goes_over, "{:?}", masters[0].record);
    }
}

/// The quarantines of the next set end earlier.
#[test]
fn what_a_client_saw_in_a_set_that_it_left_counts_no_more() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters.iter_mut().take(3).for_each(|its| its.record.as_mut().unwrap().quarantine = quarantine());
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 5, &dice);
    begin_anew(&mut masters[..3], 10, &dice);
    connect_often(&mut client, &mut masters, &[10], &dice);
    assert_eq!(client.voters(&masters, 10), [0, 1, 2]);
}

/// One server was behind two addresses, one after the other.
#[test]
fn a_number_is_that_of_the_master_with_its_name() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    client.list[0.into()] = 1;
    client.connect(0, &mut masters, 5, &dice);
    assert_eq!(client.set.index_of_member("m1"), Some(1.into()));
    assert_eq!(client.set.index_of_member("m2"), Some(2.into()));
    assert_eq!(client.set.index_of_member("m7"), None);
    // A number in another set says nothing.
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect(2, &mut masters, 5, &dice);
    let record = masters[1].record.as_mut().unwrap();
    record.set = "another".into();
    hello(&mut client.set, 0, masters[1].reading(5), dice.ids());
    assert_eq!(client.set.index_of_member("m1"), Some(1.into()));
}

/// A write takes at most three seconds.
#[test]
fn a_decision_is_written_until_three_seconds_before_a_quarantine_is_over() {
    let dice = Dice::new(1);
    let (mut client, masters) = known_set(&dice);
    let newest = client.set.newest().unwrap().clone();
    let members = newest.members.without(1);
    client.set.handle(10, Event::Chosen { from: newest, members });
    let last = 10 + quarantine() - 3_000_000;
    for (now, generation) in [(last, 1), (last + 1, 0)] {
        hello(&mut client.set, 2, masters[2].reading(now), dice.ids());
        assert_eq!(client.set.newest().unwrap().generation, generation, "{now}");
    }
}

#[test]
fn a_list_with_other_names_is_no_other_list() {
    let dice = Dice::new(1);
    for (names, is_other) in [(["m0", "m1", "m3"], true), (["a", "b", "c"], false)] {
        let mut masters = set(&dice);
        masters[2].record = None;
        let mut client = Client::new(&[0, 1, 2], None);
        client.set = Set::new(names.map(Arc::from).to_vec(), terms(MAX_TTL));
        let steps = client.connect_to_all(&mut masters, 5, &dice);
        assert_eq!(refusal(&steps[2]), Some(Refusal::OtherMembers));
        assert_eq!(client.set.is_other_list(2.into()), is_other);
        assert_eq!(client.voters(&masters, 5), [0, 1]);
    }
}

/// One server of another set behind one address keeps no other master from its vote.
#[test]
fn a_foreign_master_costs_its_own_vote_and_no_other() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters.push(FakeMaster::new(5));
    masters.push(FakeMaster::new(6));
    let mut others = Client::new(&[3, 4, 5], Some(Some(vec!["4".into(), "5".into(), "6".into()])));
    (0..3).for_each(|_| drop(others.connect_to_all(&mut masters, 0, &dice)));
    assert_eq!(others.voters(&masters, 0), [3, 4, 5]);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 0, &dice);
    client.list[2.into()] = 3; // its address leads there now
    for _ in 0..2 {
        let steps = client.connect_to_all(&mut masters, 5, &dice);
        assert_eq!(refusal(&steps[2]), Some(Refusal::OtherMembers), "{steps:?}");
        assert_eq!(client.voters(&masters, 5), [0, 1]);
        assert_eq!(client.set.other_list(), None, "that master voted before, so the list is right");
    }
}

/// Masters that forgot it decided something else.
#[test]
fn a_decision_that_no_master_was_told_of_is_given_up() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let [mut alone, mut client] = [(); 2].map(|()| Client::new(&[0, 1, 2], None));
    alone.connect_to_all(&mut masters, 1, &dice);
    client.connect_to_all(&mut masters, 1, &dice);
    let newest = client.set.newest().unwrap().clone();
    alone.set.handle(1, Event::Chosen { from: newest.clone(), members: newest.members.without(1) });
    decide(&mut client, &mut masters, newest.members.without(2), 1_000, &dice);
    alone.connect_to_all(&mut masters, 2_000, &dice);
    assert_eq!(alone.set.newest().unwrap().members, newest.members.without(1), "one list a generation");
    (0..2).for_each(|_| drop(alone.connect_to_all(&mut masters, quarantine(), &dice)));
    assert_eq!(alone.set.newest().unwrap().members, newest.members.without(2));
}

/// Its list is of so long ago that no record tells of it.
#[test]
fn a_client_that_runs_goes_along_with_any_number_of_changes() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let [mut operator, mut runs] = [(); 2].map(|()| Client::new(&[0, 1, 2], None));
    runs.connect_to_all(&mut masters, 1, &dice);
    operator.connect_to_all(&mut masters, 1, &dice);
    let members = operator.set.newest().unwrap().members.without(3);
    decide(&mut operator, &mut masters, members, 1_000, &dice);
    for turn in 1..=20 {
        let members = operator.set.newest().unwrap().members.clone();
        decide(&mut operator, &mut masters, members, 1_000 + turn * 1_000, &dice);
        for _ in 0..2 {
            runs.connect_to_all(&mut masters, 1_000 + turn * 1_000, &dice);
        }
        assert_eq!(runs.voters(&masters, 1_000 + turn * 1_000), [0, 1], "{turn}");
    }
    assert_eq!(operator.set.newest().unwrap().generation, 21);
    let steps = Client::new(&[0, 1, 2], None).connect_to_all(&mut masters, 30_000, &dice);
    assert_eq!(refusal(&steps[0]), Some(Refusal::OtherMembers), "nobody tells whether its list was ever one");
}

/// The first master is back with its record of the old set, and it answers first.
#[test]
fn what_most_masters_are_of_counts_and_not_what_is_heard_first() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    let members = client.set.newest().unwrap().members.clone();
    decide(&mut client, &mut masters, members, 1_000, &dice);
    let from_before = masters[0].clone();
    for master in &mut masters {
        (master.record, master.acceptor) = (None, None);
    }
    let mut begins = Client::new(&[0, 1, 2], Some(Some(vec!["1".into(), "2".into(), "3".into()])));
    begins.set.beginning.as_mut().unwrap().id = "another".into();
    (0..3).for_each(|_| drop(begins.connect_to_all(&mut masters, 10_000, &dice)));
    assert_eq!(begins.voters(&masters, 10_000), [0, 1, 2]);
    masters[0] = from_before;
    let mut client = Client::new(&[0, 1, 2], None);
    for _ in 0..2 {
        let steps = client.connect_to_all(&mut masters, 20_000, &dice);
        assert_eq!(client.set.newest().unwrap().generation, 0, "{steps:?}");
    }
    assert_eq!(client.voters(&masters, 20_000), [1, 2]);
}

#[test]
fn a_master_is_known_by_the_clients_own_name_for_it_too() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.set = Set::new(["m0", "b", "c"].map(Arc::from).to_vec(), terms(MAX_TTL));
    let own_name = |client: &Client, name: &str| client.set.own_name(&name.into());
    for (silent, its) in [(vec![1, 2], None), (vec![2], Some("m2"))] {
        client.cut_off = silent;
        client.connect_to_all(&mut masters, 5, &dice);
        assert_eq!(own_name(&client, "c").as_deref(), its, "which of the silent ones it is");
    }
    client.cut_off = vec![];
    client.connect_to_all(&mut masters, 5, &dice);
    for (name, its) in [("m0", Some("m0")), ("b", Some("m1")), ("m1", Some("m1")), ("m7", None)] {
        assert_eq!(own_name(&client, name).as_deref(), its);
    }
    let mut emptied = client.clone();
    for index in [1, 2] {
        hello(&mut emptied.set, index, FakeMaster::new(9).reading(5), dice.ids());
    }
    assert_eq!(own_name(&emptied, "b").as_deref(), Some("m1"), "it voted before");
    the_third_leaves(&mut client, &mut masters, 6_000, &dice);
    for name in ["m2", "c"] {
        assert_eq!(own_name(&client, name).as_deref(), Some(name), "it has left");
    }
}
