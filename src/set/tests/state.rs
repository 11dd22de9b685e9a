//! Questions about what a client knows of its set.

use std::sync::Arc;

use super::super::handle::Event;
use super::super::proposer::Ballot;
use super::super::record::{MasterRecord, MemberState};
use super::super::state::UNNAMED_SET;
use super::basics::{Dice, indices, name, refusal};
use super::client::{Client, hello};
use super::fake::FakeMaster;
use super::sets::{begin_anew, connect_often, known_set, set, the_third_leaves};
use crate::vote::Refusal;
use crate::wire::MasterSet;

#[test]
fn a_set_is_named_by_its_id_or_by_its_masters_if_it_has_none() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    let names: Vec<Arc<str>> = [0, 1, 2].map(name).to_vec();
    assert_eq!(Client::new(&[0, 1, 2], None).set.identity(), names);
    assert_eq!(client.set.identity(), [client.set.newest().unwrap().set.clone()]);
    let record = masters[0].record.as_mut().unwrap();
    record.set = UNNAMED_SET.into();
    client = Client::new(&[0, 1, 2], None);
    client.connect(0, &mut masters, 1, &dice);
    assert_eq!(&*client.set.newest().unwrap().set, UNNAMED_SET);
    assert_eq!(client.set.identity(), names);
}

#[test]
fn generations_of_two_sets_have_two_numbers() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    assert_eq!(client.set.listed(), MasterSet::first(3));
    let first = client.set.newest().unwrap().clone();
    let numbers = |client: &Client| {
        [0, 1].map(|generation| client.set.view_of(&MasterRecord { generation, ..first.clone() }))
    };
    assert_eq!(numbers(&client), [0, 1]);
    begin_anew(&mut masters[..3], 5, &dice);
    connect_often(&mut client, &mut masters, &[5], &dice);
    assert_eq!(numbers(&client), [1 << 48, 1 << 48 | 1]);
    assert_eq!(client.set.voters().view, 1 << 48);
}

#[test]
fn an_answer_is_news_if_it_differs() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    let is_news = |client: &mut Client, index: usize, masters: &mut [FakeMaster]| {
        let before = client.set.news();
        client.connect(index, masters, 1, &dice);
        client.set.news() > before
    };
    assert!(is_news(&mut client, 0, &mut masters));
    assert!(!is_news(&mut client, 0, &mut masters));
    assert!(is_news(&mut client, 1, &mut masters));
    masters[0].record.as_mut().unwrap().stamp = "another".into();
    assert!(is_news(&mut client, 0, &mut masters));
    let ballot = Ballot::default();
    let promised = Event::Promised { master: 0.into(), ballot, accepted: None };
    for event in [promised, Event::Rejected { promised: ballot }, Event::ReadAgain] {
        let before = client.set.news();
        client.set.handle(1, event);
        assert!(client.set.news() > before);
    }
}

/// One promised, and the other one has not replied yet.
#[test]
fn acceptors_are_not_asked_again_at_once() {
    let dice = Dice::new(1);
    let (mut client, masters) = known_set(&dice);
    let mut ask = || {
        hello(&mut client.set, 0, FakeMaster::new(9).reading(5), dice.ids());
        let ask = client.set.handle(5, Event::Propose { draw: 1 }).ask;
        if let Some(ballot) = ask.as_ref().map(|ask| ask.ballot) {
            client.set.handle(5, Event::Promised { master: 1.into(), ballot, accepted: None });
        }
        ask
    };
    let proposal = ask().unwrap();
    assert_eq!(proposal.generation, masters[0].record.as_ref().unwrap().generation + 1);
    assert_eq!(proposal.masters, indices([1, 2]));
    assert_eq!(ask(), None);
}

/// A master without a record is what a client hears before any `init`.
#[test]
fn a_missing_set_is_a_misfit_only_for_an_init() {
    let dice = Dice::new(1);
    for (begins, is_misfit) in [(None, false), (Some(Some(vec!["another".into()])), true)] {
        let mut client = Client::new(&[0], begins);
        let verdict = hello(&mut client.set, 0, FakeMaster::new(9).reading(5), dice.ids());
        assert_eq!(refusal(&verdict), Some(Refusal::NoSet), "{verdict:?}");
        assert_eq!(client.set.misfit().is_some(), is_misfit);
    }
}

#[test]
fn answers_are_counted_and_age() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    for index in 0..3 {
        assert!(!client.set.all_answered());
        assert!(!client.set.answered_recently(index.into(), 10));
        client.connect(index, &mut masters, 10, &dice);
    }
    assert!(client.set.all_answered());
    assert_eq!(
        [10, 2_000_009, 2_000_010].map(|now| client.set.answered_recently(0.into(), now)),
        [true, true, false]
    );
}

#[test]
fn masters_without_records_know_no_set() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    for index in 0..3 {
        assert!(client.set.unrecorded().is_none() && !client.set.knows_no_set(), "{index}");
        hello(&mut client.set, index, FakeMaster::new(7 + index as u64).reading(1), dice.ids());
    }
    assert_eq!(client.set.unrecorded(), Some(["7", "8", "9"].map(Arc::from).to_vec()));
    assert!(client.set.knows_no_set());
    assert_eq!(client.set.has_record(), None);
    client.connect(1, &mut masters, 1, &dice);
    assert_eq!(client.set.has_record(), Some(name(1)));
    assert!(client.set.unrecorded().is_none() && !client.set.knows_no_set());
    // The client knows a set that no master shows any more.
    hello(&mut client.set, 1, FakeMaster::new(8).reading(1), dice.ids());
    assert!(client.set.unrecorded().is_some() && !client.set.knows_no_set());
}

#[test]
fn another_list_is_told_from_other_terms() {
    let dice = Dice::new(1);
    for (list, protocol, refuses, is_list) in [(&[0, 1, 3][..], "v2", 2, true), (&[0, 1, 2], "v9", 0, false)]
    {
        let mut masters = set(&dice);
        masters[0].record.as_mut().unwrap().terms.protocol = protocol.into();
        let mut client = Client::new(list, None);
        assert_eq!((client.set.misfit(), client.set.other_list()), (None, None));
        for index in [1, refuses] {
            client.connect(index, &mut masters, 1, &dice);
        }
        let misfit = client.set.misfit().unwrap();
        assert!(misfit.starts_with(&format!("m{}: ", list[refuses])), "{misfit}");
        assert_eq!(client.set.other_list(), Some(misfit).filter(|_| is_list));
        for master in [1, refuses] {
            client.set.handle(1, Event::Unreachable { master: master.into() });
            let is_forgotten = client.set.peers[master.into()].reading.is_none();
            assert_eq!(is_forgotten, master == refuses, "what it said of the list and terms does not count");
        }
        assert_eq!(client.set.misfit(), None);
    }
}

#[test]
fn a_master_that_was_removed_is_no_member_unless_it_joins_again() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    let states = |client: &Client| (client.set.is_no_member(2.into()), client.set.has_left(2.into()));
    assert!(!Client::new(&[0, 1, 2], None).set.is_no_member(2.into()), "nothing is known");
    assert_eq!(states(&client), (false, false));
    client.cut_off = vec![2];
    the_third_leaves(&mut client, &mut masters, 5, &dice);
    assert_eq!(states(&client), (true, false), "it was not told");
    client.cut_off = vec![];
    client.connect(2, &mut masters, 6, &dice);
    assert_eq!(masters[2].record.as_ref().unwrap().state, MemberState::Removed);
    assert_eq!(states(&client), (true, true));
    client.set.join(&name(2)).unwrap();
    assert_eq!(states(&client), (false, false));
    client.set.end_joining();
    assert_eq!(states(&client), (true, true));
}

#[test]
fn a_candidate_joins_by_what_it_showed_since_the_proposer_asked_last() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    let index = client.set.join(&name(3)).unwrap();
    client.meet();
    client.connect(index, &mut masters, 10, &dice);
    let candidate = masters[3].record.clone().unwrap();
    assert_eq!(client.set.joining(), Some(&candidate));
    client.set.join(&name(3)).unwrap();
    assert_eq!(client.set.joining(), None, "it may have died since");
    client.connect(index, &mut masters, 10, &dice);
    assert_eq!(client.set.joining(), Some(&candidate));
    let others = [
        MasterRecord { set: "another".into(), ..candidate.clone() },
        MasterRecord { state: MemberState::Member, ..candidate.clone() },
        MasterRecord { run_id: "of before a restart".into(), ..candidate },
    ];
    for record in others {
        client.set.peers[index].reading.as_mut().unwrap().record = Some(record);
        assert_eq!(client.set.joining(), None);
    }
}
