//! What a proposer of a change may do.

use std::time::Duration;

use super::super::change::{Choice, Promises};
use super::super::proposer::{Accepted, Ballot};
use super::super::record::MasterRecord;
use super::basics::{Dice, MAX_TTL, indices, name, terms};
use super::client::{Client, moment};
use super::fake::FakeMaster;
use super::sets::{decide, known_set, set, set_of, the_fourth_joins};

/// These promised, and had accepted nothing.
fn promised(masters: &[usize]) -> Promises {
    Promises { by: masters.iter().map(|&master| (master.into(), None)).collect(), ..Promises::default() }
}

/// The second and third generation of a set, of four and three masters, and its client.
fn changed_set(dice: &Dice) -> [(Client, MasterRecord); 2] {
    let (mut client, mut masters) = known_set(dice);
    the_fourth_joins(&mut client, &mut masters, 1_000, dice);
    let second = client.set.newest().unwrap().clone();
    let mut later = client.clone();
    let now = 2_000 + super::basics::quarantine();
    decide(&mut later, &mut masters, second.members.without(3), now, dice);
    let third = later.set.newest().unwrap().clone();
    [(client, second), (later, third)]
}

#[test]
fn a_proposer_chooses_only_by_the_promises_of_more_than_half() {
    for (count, promises, is_enough) in
        [(3, 1, false), (3, 2, true), (4, 2, false), (4, 3, true), (5, 3, true)]
    {
        let dice = Dice::new(1);
        let (mut masters, all) = set_of(count, &dice);
        let mut client = Client::new(&all, None);
        client.connect_to_all(&mut masters, 1, &dice);
        let newest = client.set.newest().unwrap();
        let choice = client.set.choice(newest, &promised(&all[..promises]), None, moment(1));
        let expected = if is_enough { Choice::Own } else { Choice::NoMajority };
        assert_eq!(choice, expected, "{promises} of {count}");
    }
}

#[test]
fn a_proposer_goes_on_with_the_value_of_the_highest_ballot() {
    let dice = Dice::new(1);
    let [(client, newest), _] = changed_set(&dice);
    let lists = [1, 2].map(|id| newest.members.without(id));
    let accepted = |time: u64, value: &str| {
        Some(Accepted { ballot: Ballot::new(time, Ballot::default(), 0), value: value.into() })
    };
    let mut promises = promised(&[0, 1, 2]);
    promises.by.insert(0.into(), accepted(9, &lists[0].to_string()));
    promises.by.insert(1.into(), accepted(8, &lists[1].to_string()));
    let choice = |promises: &Promises| client.set.choice(&newest, promises, None, moment(1));
    assert_eq!(choice(&promises), Choice::Accepted(lists[0].clone()));
    promises.by.insert(2.into(), accepted(10, "of a later version"));
    assert_eq!(choice(&promises), Choice::Unreadable);
}

/// Of three masters two, and of four masters two as well.
#[test]
fn the_barrier_needs_a_master_of_each_majority_of_the_previous_list() {
    let dice = Dice::new(1);
    for (client, newest) in changed_set(&dice) {
        let raise = |promises: &Promises| client.set.raise_barrier(&newest, promises, moment(1)).map(drop);
        assert_eq!(raise(&promised(&[0, 1])), Ok(()));
        assert_eq!(raise(&promised(&[1])), Err(1));
        let later = Promises { later: indices([0]), ..promised(&[1]) };
        assert_eq!(raise(&later), Ok(()), "a master that promised a higher ballot is in the generation");
    }
    let [(client, newest), _] = changed_set(&dice);
    let joined = client.set.raise_barrier(&newest, &promised(&[1, 3]), moment(1));
    assert_eq!(joined.map(drop), Err(1), "the fourth is not on the previous list");
}

#[test]
fn a_proposer_waits_for_the_barrier_and_for_no_other_one() {
    let dice = Dice::new(1);
    let [(client, newest), (later, third)] = changed_set(&dice);
    let promises = promised(&[0, 1, 2]);
    let barrier = client.set.raise_barrier(&newest, &promises, moment(7)).unwrap();
    let left = |now| client.set.barrier_left(&newest, Some(&barrier), now);
    let ends = moment(7) + terms(MAX_TTL).quarantine();
    let last = ends - Duration::from_micros(1);
    for (now, is_left, choice) in
        [(last, Duration::from_micros(1), Choice::NoBarrier), (ends, Duration::ZERO, Choice::Own)]
    {
        assert_eq!(left(now), Some(is_left));
        assert_eq!(client.set.choice(&newest, &promises, Some(&barrier), now), choice);
    }
    assert_eq!(client.set.barrier_left(&newest, None, ends), None);
    assert_eq!(client.set.choice(&newest, &promises, None, ends), Choice::NoBarrier);
    assert_eq!(later.set.barrier_left(&third, Some(&barrier), ends), None);
    let other = MasterRecord { set: "another".into(), ..newest.clone() };
    assert_eq!(client.set.barrier_left(&other, Some(&barrier), ends), None);
    let first = MasterRecord { earlier: vec![], ..newest };
    assert_eq!(client.set.barrier_left(&first, None, ends), Some(Duration::ZERO));
}

#[test]
fn masters_of_the_barrier_keep_their_incarnations() {
    let dice = Dice::new(1);
    let [(mut client, newest), _] = changed_set(&dice);
    let promises = promised(&[0, 1, 2]);
    let barrier = client.set.raise_barrier(&newest, &promises, moment(7)).unwrap();
    let ends = moment(7) + terms(MAX_TTL).quarantine();
    for (index, choice) in [(0, Choice::Own), (1, Choice::NoBarrier)] {
        let record = client.set.peers[index.into()].reading.as_mut().unwrap().record.as_mut().unwrap();
        record.incarnation = "a new one".into();
        assert_eq!(client.set.choice(&newest, &promises, Some(&barrier), ends), choice);
    }
}

#[test]
fn a_majority_of_the_next_list_votes_when_the_quarantines_of_most_are_over() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    for (index, quarantine) in [30, 10, 20].into_iter().enumerate() {
        masters[index].record.as_mut().unwrap().quarantine = quarantine;
    }
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    let votes_in = |client: &Client, joins: Option<u32>, by: &[usize]| {
        let members = client.set.newest().unwrap().members.clone();
        let next = joins.map_or(members.clone(), |id| members.with(id, name(3)));
        client.set.majority_votes_in(&next, &promised(by), 5).map(|left| left.as_micros())
    };
    assert_eq!(votes_in(&client, None, &[0, 1, 2]), Ok(15));
    assert_eq!(votes_in(&client, None, &[0, 1]), Ok(25));
    assert_eq!(votes_in(&client, None, &[1]), Err(1));
    let index = client.set.join(&name(3)).unwrap();
    client.meet();
    client.connect(index, &mut masters, 1, &dice);
    let FakeMaster { record: Some(record), .. } = &masters[3] else { panic!("it is no candidate") };
    assert_eq!(votes_in(&client, Some(record.member), &[0, 1, 2]), Ok(25));
    assert_eq!(votes_in(&client, Some(record.member), &[0, 1]), Ok(u128::from(record.quarantine - 5)));
    assert_eq!(votes_in(&client, Some(record.member), &[0]), Err(2));
}
