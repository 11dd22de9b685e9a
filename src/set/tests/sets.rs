//! Sets that have begun, and changes of them.

use super::super::handle::Event;
use super::super::record::Members;
use super::basics::{Dice, name, quarantine};
use super::client::{Client, agreed};
use super::fake::FakeMaster;

/// Three masters of a set that began at 0, and one more.
pub(super) fn set(dice: &Dice) -> Vec<FakeMaster> {
    let (mut masters, _) = set_of(3, dice);
    masters.push(FakeMaster::new(4));
    masters
}

/// The same, and a client that heard the three at 1.
pub(super) fn known_set(dice: &Dice) -> (Client, Vec<FakeMaster>) {
    let mut masters = set(dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, dice);
    (client, masters)
}

/// Has the set go on without the third one.
pub(super) fn the_third_leaves(client: &mut Client, masters: &mut [FakeMaster], now: u64, dice: &Dice) {
    let members = client.set.newest().unwrap().members.without(3);
    decide(client, masters, members, now, dice);
}

/// A client that reaches only the others has no quorum, now and a quarantine later.
pub(super) fn has_no_quorum_without(
    cut_off: &[usize],
    client: &mut Client,
    masters: &mut [FakeMaster],
    now: u64,
    dice: &Dice,
) {
    client.cut_off = cut_off.to_vec();
    for now in [now, now, now + quarantine(), now + quarantine()] {
        client.connect_to_all(masters, now, dice);
        assert!(client.voters(masters, now).len() < client.quorum(), "{now}");
    }
}

/// `count` masters of a set, and who voted for a client that was there.
pub(super) fn set_of(count: usize, dice: &Dice) -> (Vec<FakeMaster>, Vec<usize>) {
    let mut masters: Vec<_> = (1..=count as u64).map(FakeMaster::new).collect();
    let all: Vec<usize> = (0..count).collect();
    let run_ids = (1..=count).map(|run_id| run_id.to_string().into()).collect();
    let mut client = Client::new(&all, Some(Some(run_ids)));
    (0..3).for_each(|_| drop(client.connect_to_all(&mut masters, 0, dice)));
    assert_eq!(client.voters(&masters, 0), all);
    (masters, all)
}

/// A client that begins a set with this id.
pub(super) fn beginner(list: &[usize], id: &str) -> Client {
    let mut client = Client::new(list, Some(None));
    client.set.beginning.as_mut().unwrap().id = id.into();
    client
}

pub(super) fn connect_often(client: &mut Client, masters: &mut [FakeMaster], times: &[u64], dice: &Dice) {
    for now in times {
        (0..4).for_each(|_| drop(client.connect_to_all(masters, *now, dice)));
    }
}

/// The masters are emptied, and another set begins with their list at once.
pub(super) fn begin_anew(masters: &mut [FakeMaster], now: u64, dice: &Dice) {
    for (index, master) in masters.iter_mut().enumerate() {
        *master = FakeMaster::new(50 + index as u64);
    }
    let all: Vec<usize> = (0..masters.len()).collect();
    let mut client = beginner(&all, "another");
    let run_ids = masters.iter().map(|master| master.run_id.to_string().into()).collect();
    client.set.beginning.as_mut().unwrap().never_used = Some(run_ids);
    connect_often(&mut client, masters, &[now], dice);
    assert_eq!(client.voters(masters, now), all);
}

/// The set that a master shows.
pub(super) fn shown_set(master: &FakeMaster) -> Option<&str> {
    master.record.as_ref().map(|record| &*record.set)
}

pub(super) fn restart(master: &mut FakeMaster) {
    master.run_id += 100;
}

/// Has most masters of the set accept another list.
pub(super) fn choose(
    client: &mut Client,
    masters: &mut [FakeMaster],
    members: Members,
    now: u64,
    dice: &Dice,
) -> Event {
    client.connect_to_all(masters, now, dice);
    let from = client.set.newest().unwrap().clone();
    let proposal = client.proposal(&from, now, dice);
    for value in [None, Some(members.to_string())] {
        let replies = client.ask(masters, &proposal, value.as_deref(), now);
        assert!(agreed(&replies) * 2 > from.members.len(), "{replies:?}");
    }
    Event::Chosen { from, members }
}

/// Has most masters of the set accept another list, and tells those that are reached.
pub(super) fn decide(
    client: &mut Client,
    masters: &mut [FakeMaster],
    members: Members,
    now: u64,
    dice: &Dice,
) {
    let chosen = choose(client, masters, members, now, dice);
    client.set.handle(now, chosen);
    (0..3).for_each(|_| drop(client.connect_to_all(masters, now + 1, dice)));
}

pub(super) fn the_fourth_joins(client: &mut Client, masters: &mut [FakeMaster], now: u64, dice: &Dice) {
    let members = client.set.newest().unwrap().members.clone();
    let id = client.prepare(3, masters, now, dice).unwrap();
    decide(client, masters, members.with(id, name(3)), now, dice);
}

/// The first and second one decide it at these times.
pub(super) fn the_third_leaves_for_the_fourth(
    client: &mut Client,
    masters: &mut [FakeMaster],
    [joins, leaves]: [u64; 2],
    dice: &Dice,
) {
    client.cut_off = vec![2];
    the_fourth_joins(client, masters, joins, dice);
    let members = client.set.newest().unwrap().members.clone();
    decide(client, masters, members.without(3), leaves, dice);
    assert_eq!(client.set.newest().unwrap().generation, 2);
}

/// The third one is removed, and joins again under another number. Returns what it was before each
/// of the two changes.
pub(super) fn the_third_joins_again(
    client: &mut Client,
    masters: &mut [FakeMaster],
    now: u64,
    dice: &Dice,
) -> [FakeMaster; 2] {
    client.connect_to_all(masters, 1, dice);
    let member = masters[2].clone();
    let members = client.set.newest().unwrap().members.without(3);
    decide(client, masters, members.clone(), 1_000, dice);
    let removed = masters[2].clone();
    let id = client.prepare(2, masters, 2_000, dice).unwrap();
    decide(client, masters, members.with(id, name(2)), now, dice);
    [member, removed]
}
