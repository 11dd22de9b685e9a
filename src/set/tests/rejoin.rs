//! How masters that lost their state rejoin.

use super::super::handle::Event;
use super::super::peer::{Reading, VoteHistory};
use super::super::proposer::{Accepted, AcceptorState, Ballot, Proposal};
use super::super::record::{MasterRecord, MemberState};
use super::super::rules::Verdict;
use super::super::state::Set;
use super::basics::{Dice, MAX_TTL, indices, is_wait, name, named, quarantine, refusal, terms};
use super::client::{Client, FakeConnection, agreed, hello};
use super::fake::FakeMaster;
use super::sets::{
    beginner, choose, connect_often, decide, has_no_quorum_without, known_set, restart, set, set_of,
    the_fourth_joins, the_third_joins_again, the_third_leaves, the_third_leaves_for_the_fourth,
};
use crate::vote::Refusal;
use crate::wire::MasterSet;

#[test]
fn a_master_that_forgot_has_no_vote_for_a_quarantine() {
    type Change = fn(&mut [FakeMaster]);
    let changes: [(&str, Change); 4] = [
        ("it restarted", |masters| masters[0].run_id = 9),
        ("it was a replica", |masters| masters[0].replid2 = 9),
        ("it was emptied", |masters| masters[0].record = None),
        ("its promises were deleted", |masters| masters[0].acceptor = None),
    ];
    for (what, change) in changes {
        let dice = Dice::new(1);
        let mut masters = set(&dice);
        let mut client = Client::new(&[0, 1, 2], None);
        client.connect_to_all(&mut masters, 0, &dice);
        change(&mut masters);
        let ends = 5 + quarantine();
        for now in [5, 5, 5, ends - 1] {
            client.connect_to_all(&mut masters, now, &dice);
            assert!(!client.voters(&masters, now).contains(&0), "{what} at {now}");
        }
        for _ in 0..3 {
            client.connect_to_all(&mut masters, ends, &dice);
        }
        assert_eq!(client.voters(&masters, ends), [0, 1, 2], "{what}");
    }
}

#[test]
fn a_master_that_went_back_has_no_vote_for_those_that_saw_what_it_was() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 0, &dice);
    let older = masters[0].clone();
    masters[0].run_id = 9;
    client.connect_to_all(&mut masters, 5, &dice);
    let newer = masters[0].clone();
    masters[0] = older.clone(); // the first server again, behind its address
    client.connect(0, &mut masters, 2 * quarantine(), &dice);
    assert!(!client.voters(&masters, 2 * quarantine()).contains(&0));
    // Its incarnation comes back with the last end.
    let last = masters[0].record.clone().unwrap().quarantine;
    masters[0] = older;
    masters[0].record.as_mut().unwrap().quarantine = last;
    connect_often(&mut client, &mut masters, &[4 * quarantine()], &dice);
    assert!(!client.voters(&masters, 4 * quarantine()).contains(&0));
    // Another end is another record, though it is the same incarnation.
    masters[0] = newer;
    masters[0].record.as_mut().unwrap().quarantine -= 1;
    let mut client = Client::new(&[0, 1, 2], None);
    client.set.peers[0.into()].history.latest_quarantine = masters[0].record.as_ref().unwrap().quarantine + 1;
    client.connect(0, &mut masters, 2 * quarantine(), &dice);
    assert!(!client.voters(&masters, 2 * quarantine()).contains(&0));
}

/// A wrong clock wrote it.
#[test]
fn a_quarantine_beyond_the_bound_begins_anew() {
    let dice = Dice::new(1);
    let longest = quarantine() + 60_000_000;
    for (beyond, is_known, ends) in
        [(0, true, 5 + longest), (1, true, 5 + quarantine()), (1, false, 6 + longest)]
    {
        let mut masters = set(&dice);
        let record = masters[0].record.as_mut().unwrap();
        record.quarantine = 5 + longest + beyond;
        let before = record.clone();
        let mut client = Client::new(&[0, 1, 2], None);
        if is_known {
            client.connect_to_all(&mut masters, 5, &dice);
        } else {
            let shown = Reading { latest: u64::MAX, ..masters[0].reading(5) };
            assert_eq!(hello(&mut client.set, 0, shown, dice.ids()), Verdict::Vote);
        }
        let record = masters[0].record.clone().unwrap();
        assert_eq!(record.quarantine, ends, "{beyond} {is_known}");
        assert_eq!(record.stamp != before.stamp, ends < before.quarantine);
        assert_eq!(record.incarnation, before.incarnation);
    }
}

/// One of them saw the end that a wrong clock wrote.
#[test]
fn two_clients_agree_on_a_bounded_quarantine() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let far = 7_200_000_000;
    masters[0].record.as_mut().unwrap().quarantine = far;
    let [mut saw_it, mut other] = [(); 2].map(|()| Client::new(&[0, 1, 2], None));
    let ahead = masters[0].reading(far - 1_000_000);
    assert_eq!(hello(&mut saw_it.set, 0, ahead, dice.ids()), Verdict::Vote);
    for index in [1, 2] {
        saw_it.connect(index, &mut masters, 5, &dice);
    }
    other.connect_to_all(&mut masters, 5, &dice);
    let bounded = masters[0].record.clone().unwrap();
    assert_eq!(bounded.quarantine, 5 + quarantine());
    for now in [6, 5 + quarantine()] {
        saw_it.connect_to_all(&mut masters, now, &dice);
        other.connect_to_all(&mut masters, now, &dice);
        assert_eq!(masters[0].record.as_ref(), Some(&bounded));
    }
    assert_eq!(saw_it.voters(&masters, 5 + quarantine()), [0, 1, 2]);
}

/// It does not count again when the time has come near it.
#[test]
fn a_bounded_end_is_forgotten_for_good() {
    let longest = quarantine() + 60_000_000;
    let mut seen = VoteHistory::default();
    seen.latest_quarantine = longest + 7;
    seen.bound(longest + 7);
    assert_eq!(seen.latest_quarantine, longest + 7);
    seen.bound(longest + 6);
    seen.bound(u64::MAX);
    assert_eq!(seen.latest_quarantine, 0);
    let dice = Dice::new(1);
    let mut record = set(&dice)[0].record.clone().unwrap();
    for (quarantine, latest) in [(8, 0), (7, 7)] {
        record.quarantine = quarantine;
        seen.note(&record, 7);
        assert_eq!(seen.latest_quarantine, latest);
    }
}

#[test]
fn sixteen_incarnations_before_the_last_are_remembered() {
    let dice = Dice::new(1);
    let (mut client, masters) = known_set(&dice);
    let peer = &mut client.set.peers[0.into()];
    let reading = masters[0].reading(1);
    let first = reading.record.clone().unwrap();
    for restarts in 1..=17 {
        let incarnation = format!("{restarts}").into();
        peer.history.note(&MasterRecord { incarnation, ..first.clone() }, u64::MAX);
        assert_eq!(peer.lost_state(&reading, &first), restarts <= 16, "{restarts}");
    }
}

#[test]
fn restarted_masters_rejoin_with_their_decrees() {
    for count in [1, 2, 3, 5] {
        let dice = Dice::new(1);
        let (mut masters, all) = set_of(count, &dice);
        let accepted = Accepted { ballot: Ballot::default(), value: "value".into() };
        for (_, promised) in masters.iter_mut().filter_map(|master| master.acceptor.as_mut()) {
            *promised = AcceptorState { generation: 1, promised: None, accepted: Some(accepted.clone()) };
        }
        masters.iter_mut().for_each(restart);
        let mut client = Client::new(&all, None);
        let ends = 5 + quarantine();
        connect_often(&mut client, &mut masters, &[5, ends - 1], &dice);
        assert!(client.voters(&masters, ends - 1).is_empty(), "{count}");
        connect_often(&mut client, &mut masters, &[ends], &dice);
        assert_eq!(client.voters(&masters, ends), all, "{count}");
        for master in &masters {
            let (incarnation, promised) = master.acceptor.clone().unwrap();
            assert_eq!(incarnation, master.record.clone().unwrap().incarnation);
            assert_eq!(promised.accepted.as_ref(), Some(&accepted), "{count}");
        }
    }
}

/// It was accepted by the first two, and told to nobody.
#[test]
fn a_restarted_master_keeps_what_it_accepted() {
    let dice = Dice::new(1);
    let (client, mut masters) = known_set(&dice);
    let newest = client.set.newest().unwrap().clone();
    let value = newest.members.without(3).to_string();
    let ballot = Ballot::new(1_000, Ballot::default(), dice.draw());
    let masters_of_it = MasterSet::first(2);
    let proposal = Proposal { set: newest.set.clone(), ballot, generation: 1, masters: masters_of_it };
    for value in [None, Some(&*value)] {
        assert_eq!(agreed(&client.ask(&mut masters, &proposal, value, 1_000)), 2);
    }
    masters.iter_mut().take(3).for_each(restart);
    let mut late = Client::new(&[0, 1, 2], None);
    connect_often(&mut late, &mut masters, &[2_000], &dice);
    for index in [0, 1] {
        let (_, promised) = masters[index].acceptor.clone().unwrap();
        assert_eq!(promised.accepted.map(|accepted| accepted.value), Some(value.clone().into()), "{index}");
    }
}

#[test]
fn half_without_records_waits_for_init() {
    for count in [1, 2, 4] {
        let dice = Dice::new(1);
        let (mut masters, all) = set_of(count, &dice);
        let empty = count.div_ceil(2);
        for master in masters.iter_mut().take(empty) {
            *master = FakeMaster::new(50 + master.run_id);
        }
        masters.iter_mut().skip(empty).for_each(restart);
        let mut client = Client::new(&all, None);
        let later = 5 + 3 * quarantine();
        connect_often(&mut client, &mut masters, &[5, later], &dice);
        let steps = client.connect_to_all(&mut masters, later, &dice);
        assert!(client.voters(&masters, later).is_empty(), "{count}");
        assert!(steps.iter().all(|step| refusal(step) == Some(Refusal::NoSet)), "{count}: {steps:?}");
        let why = format!("{empty} of {count} masters have no record");
        let says_why = |step: &Verdict| matches!(step, Verdict::Refuse(_, its) if its.contains(&why));
        assert!(count == 1 || steps.iter().all(says_why), "{count}: {steps:?}");
        let mut begins = Client::new(&all, Some(None));
        let ends = later + quarantine();
        connect_often(&mut begins, &mut masters, &[later, ends], &dice);
        assert_eq!(begins.voters(&masters, ends), all, "{count}");
    }
}

#[test]
fn less_than_half_without_records_follows_the_restarted() {
    let dice = Dice::new(1);
    let (mut masters, all) = set_of(5, &dice);
    for (index, master) in masters.iter_mut().enumerate() {
        if index < 2 { *master = FakeMaster::new(50 + index as u64) } else { restart(master) }
    }
    let mut client = Client::new(&all, None);
    let ends = 5 + quarantine();
    connect_often(&mut client, &mut masters, &[5, ends], &dice);
    assert_eq!(client.voters(&masters, ends), all);
}

#[test]
fn a_client_never_resumes_a_lost_set() {
    for list in [&[0, 1, 2][..], &[0, 1], &[0, 1, 3]] {
        let dice = Dice::new(1);
        let (mut client, mut masters) = known_set(&dice);
        the_third_leaves(&mut client, &mut masters, 1_000, &dice);
        the_fourth_joins(&mut client, &mut masters, 2_000 + quarantine(), &dice);
        for index in [0, 1] {
            masters[index] = FakeMaster::new(50 + index as u64);
        }
        let now = 3_000 + 2 * quarantine();
        let mut other = Client::new(list, None);
        for client in [&mut client, &mut other] {
            connect_often(client, &mut masters, &[now, now + 2 * quarantine()], &dice);
            assert!(client.voters(&masters, now + 2 * quarantine()).len() < client.quorum(), "{list:?}");
        }
        assert!(masters[0].record.is_none() && masters[1].record.is_none(), "{list:?}");
    }
}

/// All restarted with their records, and one of them lost what it accepted.
#[test]
fn a_master_without_its_promises_does_not_keep_them() {
    for acceptor in [None, Some(("another".into(), AcceptorState::default()))] {
        let dice = Dice::new(1);
        let mut masters = set(&dice);
        masters.iter_mut().take(3).for_each(restart);
        masters[0].acceptor = acceptor;
        let mut client = Client::new(&[0, 1, 2], None);
        connect_often(&mut client, &mut masters, &[5], &dice);
        let (incarnation, promised) = masters[0].acceptor.clone().unwrap();
        assert_eq!(incarnation, masters[0].record.clone().unwrap().incarnation);
        assert!(promised.promised.is_some(), "it rejoined by the promises of the two others");
    }
}

/// It has a place in the set, or another set prepares it.
#[test]
fn which_candidates_count_as_masters_that_lost_state() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let record = masters[2].record.clone().unwrap();
    let all = record.members.clone();
    for (set, member, members, counts) in [
        ("another", 9, all.clone(), true),
        (&*record.set, 9, all.clone(), false),
        (&record.set, 3, all.clone(), true),
        (&record.set, 9, all.with(9, name(9)), true),
        (&record.set, 3, all.without(3), true),
    ] {
        let mut client = Client::new(&[0, 1, 2], None);
        client.connect_to_all(&mut masters, 1, &dice);
        let index = client.set.join(&name(3)).unwrap();
        let set = set.into();
        let state = MemberState::Candidate;
        let record = Some(MasterRecord { set, member, members, state, ..record.clone() });
        let candidate = FakeMaster { record, ..masters[2].clone() };
        hello(&mut client.set, index, candidate.reading(5), dice.ids());
        assert_eq!(client.set.peers[index].loss.is_some(), counts, "{candidate:?}");
    }
}

/// It was not heard since.
#[test]
fn a_removed_master_that_is_emptied_is_told_that_it_was_removed() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    the_third_leaves(&mut client, &mut masters, 1_000, &dice);
    masters[2] = FakeMaster::new(9);
    let steps = Client::new(&[0, 1, 2], None).connect_to_all(&mut masters, 2_000, &dice);
    assert_eq!(refusal(&steps[2]), Some(Refusal::Removed));
}

/// A client has seen it, or the record that was found has it.
#[test]
fn a_record_that_is_written_anew_keeps_a_later_quarantine() {
    type Change = fn(&mut FakeMaster);
    let changes: [(&str, bool, Change); 3] = [
        ("it restarted", false, restart),
        ("it was emptied", true, |master| master.record = None),
        ("a wrong clock", true, |master| master.record.as_mut().unwrap().quarantine = u64::MAX),
    ];
    for (what, is_known, change) in changes {
        let dice = Dice::new(1);
        let mut masters = set(&dice);
        let later = 1_000 + quarantine();
        masters[0].record.as_mut().unwrap().quarantine = later;
        let before = masters[0].record.clone().unwrap();
        let mut client = Client::new(&[0, 1, 2], None);
        if is_known {
            client.connect_to_all(&mut masters, 5, &dice);
        }
        change(&mut masters[0]);
        connect_often(&mut client, &mut masters, &[6], &dice);
        let record = masters[0].record.clone().unwrap();
        assert_ne!(record.stamp, before.stamp, "{what}");
        assert_eq!(record.quarantine, later, "{what}");
        assert_eq!(record.incarnation == before.incarnation, what == "a wrong clock", "{what}");
    }
}

/// It is back with the file of when it was removed.
#[test]
fn a_master_that_joined_again_rejoins_from_its_removal() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    let now = 2_000 + quarantine();
    let [_, removed] = the_third_joins_again(&mut client, &mut masters, now, &dice);
    masters[2] = FakeMaster { run_id: 99, ..removed };
    let mut new = Client::new(&[0, 1, 2], None);
    let ends = now + 10 + quarantine();
    for client in [&mut client, &mut new] {
        connect_often(client, &mut masters, &[now + 10], &dice);
        assert_eq!(client.voters(&masters, ends - 1), [0, 1]);
        connect_often(client, &mut masters, &[ends], &dice);
        assert_eq!(client.voters(&masters, ends), [0, 1, 2]);
    }
}

/// The generation that has it was chosen, and nobody knows that when it is seen.
#[test]
fn a_candidate_that_restarts_before_it_is_told_gets_its_place() {
    for (count, leaves) in [(1, None), (2, Some(2)), (3, Some(3))] {
        let dice = Dice::new(1);
        let (mut masters, all) = set_of(count, &dice);
        masters.extend((count..4).map(|index| FakeMaster::new(index as u64 + 1)));
        let mut client = Client::new(&all, None);
        client.connect_to_all(&mut masters, 1, &dice);
        let joins = if let Some(leaves) = leaves {
            let members = client.set.newest().unwrap().members.without(leaves);
            decide(&mut client, &mut masters, members, 1_000, &dice);
            count - 1
        } else {
            count
        };
        let now = 2_000 + quarantine();
        let members = client.set.newest().unwrap().members.clone();
        let id = client.prepare(joins, &mut masters, 2_000, &dice).unwrap();
        let chosen = choose(&mut client, &mut masters, members.with(id, name(joins)), now, &dice);
        restart(&mut masters[joins]);
        let index = client.set.join(&name(joins)).unwrap();
        client.set.end_joining();
        client.connect(index, &mut masters, now + 1, &dice);
        client.set.handle(now + 2, chosen);
        let ends = now + 3 + quarantine();
        connect_often(&mut client, &mut masters, &[now + 3, ends], &dice);
        let voters: Vec<usize> = members.iter().map(|(_, name)| named(name)).chain([joins]).collect();
        assert_eq!(client.voters(&masters, ends), voters, "{count}");
    }
}

/// The record that is written has the current second replication id.
#[test]
fn a_far_quarantine_is_bounded_after_a_replica_left() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters[0].replid2 = 7;
    let mut client = Client::new(&[0, 1, 2], None);
    connect_often(&mut client, &mut masters, &[1, quarantine()], &dice);
    masters[0].record.as_mut().unwrap().quarantine = 100 * quarantine();
    masters[0].replid2 = 0;
    Client::new(&[0, 1, 2], None).connect_to_all(&mut masters, 2 * quarantine(), &dice);
    assert_eq!(masters[0].record.as_ref().unwrap().quarantine, 3 * quarantine());
}

/// The master's clock, and the client's, were an hour ahead at first.
#[test]
fn promises_are_asked_for_again_when_the_time_goes_back() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1_000, &dice);
    restart(&mut masters[0]);
    let hour = 3_600_000_000;
    hello(&mut client.set, 0, masters[0].reading(hour), dice.ids());
    assert!(client.ask_for_promises(&mut masters, hour, &dice));
    for index in [1, 2, 0] {
        client.connect(index, &mut masters, 10_000_000, &dice);
    }
    assert_eq!(*masters[0].record.as_ref().unwrap().run_id, *masters[0].run_id.to_string());
}

/// One was emptied, and another set wants it. The others restarted with their records.
#[test]
fn a_candidate_counts_as_a_master_that_lost_state() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters.push(FakeMaster::new(5));
    masters[2] = FakeMaster::new(9);
    connect_often(&mut beginner(&[2, 3, 4], "another"), &mut masters, &[5], &dice);
    assert_eq!(*masters[2].record.clone().unwrap().set, *"another");
    masters.iter_mut().take(2).for_each(restart);
    let mut client = Client::new(&[0, 1, 2], None);
    connect_often(&mut client, &mut masters, &[6, 6 + quarantine()], &dice);
    assert_eq!(client.voters(&masters, 6 + quarantine()), [0, 1, 2]);
}

#[test]
fn a_removed_master_that_restarts_is_left_alone() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    the_third_leaves(&mut client, &mut masters, 1_000, &dice);
    restart(&mut masters[2]);
    let before = masters[2].record.clone();
    let step = client.connect(2, &mut masters, 2_000, &dice);
    assert_eq!(refusal(&step), Some(Refusal::Removed));
    assert_eq!(masters[2].record, before);
}

/// A master of the set is emptied, and another set is prepared on it.
#[test]
fn a_set_takes_back_a_master_that_another_one_wants() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters.push(FakeMaster::new(5));
    let mut clients = [Client::new(&[0, 1, 2], None), Client::new(&[2, 3, 4], Some(None))];
    clients[0].connect_to_all(&mut masters, 0, &dice);
    masters[2].record = None;
    for _ in 0..3 {
        clients[1].connect_to_all(&mut masters, 5, &dice);
    }
    assert_eq!(masters[2].record.as_ref().unwrap().state, MemberState::Candidate);
    clients[0].connect_to_all(&mut masters, 6, &dice);
    let ends = 6 + quarantine();
    for _ in 0..3 {
        clients.iter_mut().for_each(|client| drop(client.connect_to_all(&mut masters, ends, &dice)));
    }
    assert_eq!(clients[0].voters(&masters, ends), [0, 1, 2]);
    assert!(clients[1].voters(&masters, ends).len() < clients[1].quorum());
}

/// A client with other terms than the set counts another quarantine.
#[test]
fn a_client_with_other_terms_gives_no_master_its_record_again() {
    let dice = Dice::new(1);
    for prepared in [false, true] {
        let mut masters = set(&dice);
        masters.push(FakeMaster::new(5));
        masters[1].record = None;
        if prepared {
            let mut other = Client::new(&[1, 3, 4], Some(None));
            (0..3).for_each(|_| drop(other.connect_to_all(&mut masters, 5, &dice)));
        }
        let before = masters[1].record.clone();
        let mut client = Client::new(&[0, 1, 2], None);
        client.set = Set::new((0..3).map(name).collect(), terms(MAX_TTL / 30));
        for _ in 0..3 {
            let steps = client.connect_to_all(&mut masters, 6, &dice);
            assert_eq!(refusal(&steps[0]), Some(Refusal::OtherTerms));
        }
        assert_eq!(masters[1].record, before, "prepared: {prepared}");
    }
}

/// They restarted.
#[test]
fn a_master_without_a_record_waits_until_those_that_keep_theirs_have_rejoined() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    masters[0].record = None;
    masters[1..3].iter_mut().for_each(restart);
    for index in [0, 1, 2] {
        client.hello(index.into(), &masters, 5, dice.ids());
    }
    client.ask_for_promises(&mut masters, 5, &dice);
    for index in [1, 2] {
        client.hello(index.into(), &masters, 5, dice.ids());
    }
    let verdict = client.hello(0.into(), &masters, 5, dice.ids());
    assert!(matches!(&verdict, Verdict::AwaitPeers(why) if why.contains("rejoin first")), "{verdict:?}");
    connect_often(&mut client, &mut masters, &[6, 7 + quarantine()], &dice);
    assert_eq!(client.voters(&masters, 7 + quarantine()), [0, 1, 2]);
}

/// An operator says that the members that answer are enough.
#[test]
fn what_most_forgot_goes_on_without_those_that_are_gone_where_a_person_says_so() {
    let dice = Dice::new(1);
    for (awaited, goes_on) in [(None, false), (Some(indices([0, 1])), false), (Some(indices([2])), true)] {
        let mut masters = set(&dice);
        masters[0].record = None;
        let mut client = Client::new(&[0, 1, 2], None);
        client.set.recover(awaited);
        for now in [5, 5, 5 + quarantine()] {
            client.connect(1, &mut masters, now, &dice); // the third one is dead
            client.connect(0, &mut masters, now, &dice);
        }
        let now = 5 + quarantine();
        assert_eq!(client.voters(&masters, now - 1), [1]);
        assert_eq!(client.voters(&masters, now), if goes_on { &[0, 1][..] } else { &[1] });
    }
}

/// Most had accepted it, and nobody was told.
#[test]
fn recover_hands_on_a_change_that_masters_with_records_accepted() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    let members = client.set.newest().unwrap().members.without(3);
    choose(&mut client, &mut masters, members.clone(), 1_000, &dice);
    (masters[0].record, masters[0].acceptor) = (None, None);
    masters[1..3].iter_mut().for_each(restart);
    let mut operator = Client::new(&[0, 1, 2], None);
    for index in [0, 1, 2, 1, 2] {
        operator.hello(index.into(), &masters, 2_000, dice.ids());
    }
    operator.set.recover(Some(operator.met()));
    connect_often(&mut operator, &mut masters, &[2_000], &dice);
    let (_, acceptor) = masters[0].acceptor.as_ref().unwrap();
    assert_eq!(acceptor.accepted.as_ref().map(|accepted| &*accepted.value), Some(&*members.to_string()));
}

/// It may hold the only copy of a chosen change.
#[test]
fn recover_waits_for_a_member_that_answers() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters[0].record = None;
    let mut client = Client::new(&[0, 1, 2], None);
    client.set.recover(Some(client.met()));
    client.connect(2, &mut masters, 5, &dice);
    client.connections[2.into()] = FakeConnection::Closed; // it promises nothing yet
    client.connect(1, &mut masters, 5, &dice);
    assert!(is_wait(&client.connect(0, &mut masters, 5, &dice)));
    assert_eq!(client.connect(0, &mut masters, 3_000_000, &dice), Verdict::Vote);
}

/// Most masters of the set must be known. If most lost their records, all must be.
#[test]
fn a_master_gets_its_record_again_from_a_client_that_knows_enough_of_its_set() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters[0].record = None;
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect(1, &mut masters, 5, &dice);
    assert!(is_wait(&client.connect(0, &mut masters, 5, &dice)));
    client.connect(2, &mut masters, 5, &dice);
    assert_eq!(client.connect(0, &mut masters, 5, &dice), Verdict::Vote);
    // It is in nobody else's place.
    masters[0].record = None;
    client.set.peers[0.into()].history.member = Some(2);
    assert_eq!(refusal(&client.connect(0, &mut masters, 6, &dice)), Some(Refusal::OtherMembers));
    assert!(masters[0].record.is_none());
}

#[test]
fn a_master_that_restarted_has_no_vote_for_a_quarantine() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters[0].run_id = 9;
    let mut set = Set::new((0..3).map(name).collect(), terms(MAX_TTL));
    let mut next = |index: usize| hello(&mut set, index, masters[index].reading(5), dice.ids());
    let _ = [1, 2].map(&mut next);
    assert!(matches!(next(0), Verdict::AwaitPeers(_)));
    let ask = set.handle(5, Event::Propose { draw: 1 }).ask.unwrap();
    for master in [1, 2] {
        set.handle(5, Event::Promised { master: master.into(), ballot: ask.ballot, accepted: None });
    }
    let step = hello(&mut set, 0, masters[0].reading(5), dice.ids());
    let Verdict::Write(change) = step else { panic!("{step:?}") };
    assert_eq!(change.quarantine, Some(terms(MAX_TTL).quarantine()));
}

/// As above. The client with the old list saw the first master while that had no place yet.
#[test]
fn that_a_master_forgot_once_does_not_count_when_another_one_does() {
    for seen_at in [0, 2 * quarantine() + 3_000] {
        let dice = Dice::new(1);
        let mut masters = set(&dice);
        let before = masters[1].clone();
        let [mut client, mut late] = [(); 2].map(|()| Client::new(&[0, 1, 2], None));
        client.connect_to_all(&mut masters, 1, &dice);
        late.connect_to_all(&mut masters, 1, &dice);
        masters[0].run_id = 7;
        let step = hello(&mut late.set, 0, masters[0].reading(seen_at), dice.ids());
        assert!(matches!(step, Verdict::AwaitPeers(_)), "{step:?}");
        client.connect_to_all(&mut masters, 5, &dice);
        let joins = 2_000 + quarantine();
        let now = joins + 1_000 + quarantine();
        the_third_leaves_for_the_fourth(&mut client, &mut masters, [joins, now], &dice);
        masters[1] = FakeMaster { run_id: 9, ..before };
        has_no_quorum_without(&[0, 3], &mut late, &mut masters, now, &dice);
    }
}

/// As above. The second one had forgotten once before, in the same process, and the others had
/// promised then.
#[test]
fn what_was_promised_counts_once() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let [mut client, mut late] = [(); 2].map(|()| Client::new(&[0, 1, 2], None));
    client.connect_to_all(&mut masters, 1, &dice);
    late.connect_to_all(&mut masters, 1, &dice);
    let flush = |master: &mut FakeMaster| (master.record, master.acceptor) = (None, None);
    flush(&mut masters[1]);
    hello(&mut late.set, 1, masters[1].reading(4), dice.ids());
    assert!(late.ask_for_promises(&mut masters, 4, &dice));
    client.connect_to_all(&mut masters, 6, &dice);
    let joins = 2_000 + quarantine();
    let now = joins + 1_000 + quarantine();
    the_third_leaves_for_the_fourth(&mut client, &mut masters, [joins, now], &dice);
    flush(&mut masters[1]);
    // When others were asked is not when somebody else wants that.
    for (index, master) in [(2, &FakeMaster::new(9)), (1, &masters[1])] {
        let step = hello(&mut late.set, index, master.reading(now), dice.ids());
        assert!(matches!(step, Verdict::AwaitPeers(_)), "{step:?}");
    }
    has_no_quorum_without(&[0, 3], &mut late, &mut masters, now, &dice);
}

/// Of two masters, one accepted a change that is decided, and is not told of that. The other one
/// forgets it.
#[test]
fn what_one_of_two_accepted_is_not_passed_over_when_the_other_forgets() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    the_third_leaves(&mut client, &mut masters, 1_000, &dice);
    let now = 2_000 + quarantine();
    let before = masters.clone();
    client.cut_off = vec![2];
    the_fourth_joins(&mut client, &mut masters, now, &dice);
    assert_eq!(client.set.newest().unwrap().generation, 2);
    masters[1].record = before[1].record.clone();
    for record in [None, before[0].record.clone()] {
        let mut masters = masters.clone();
        masters[0] = FakeMaster { record, ..FakeMaster::new(9) };
        let mut late = Client::new(&[0, 1, 2], None);
        late.cut_off = vec![2, 3];
        for later in [0, 0, 1, 1, 2, 2, 3, 3].map(|waited| 5_000 + waited * quarantine()) {
            let now = now + later;
            late.connect_to_all(&mut masters, now, &dice);
            assert!(late.voters(&masters, now).len() < late.quorum());
        }
    }
}

/// The third one is cut off, and leaves the set for the fourth. The second one forgets that. A
/// client that reaches only those two has the old list.
#[test]
fn a_master_that_forgot_a_change_has_no_vote_under_the_list_before() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let before = masters[1].clone();
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    let mut late = Client::new(&[0, 1, 2], None);
    late.connect_to_all(&mut masters, 1, &dice);
    let now = 2_000 + quarantine();
    the_third_leaves_for_the_fourth(&mut client, &mut masters, [1_000, now], &dice);
    masters[1] = FakeMaster { run_id: 9, ..before };
    let mut new = Client::new(&[0, 1, 2], None);
    for other in [&mut late, &mut new] {
        has_no_quorum_without(&[0, 3], other, &mut masters, now, &dice);
    }
    // Whoever reaches the first one, too, learns what became of the set.
    let now = now + 1 + quarantine();
    late.cut_off = vec![];
    (0..4).for_each(|_| drop(late.connect_to_all(&mut masters, now, &dice)));
    assert_eq!(late.set.newest().unwrap().generation, 2);
    assert_eq!(masters[2].record.as_ref().unwrap().state, MemberState::Removed);
    let now = now + quarantine();
    (0..2).for_each(|_| drop(late.connect_to_all(&mut masters, now, &dice)));
    assert_eq!(late.voters(&masters, now), [0, 1, 3]);
}

/// A value was accepted by the first two, and the second one forgets it. It must not decide another
/// one with the third.
#[test]
fn a_master_that_forgot_is_told_what_the_others_accepted() {
    let dice = Dice::new(1);
    let (mut client, mut masters) = known_set(&dice);
    let ballot = Ballot::new(1_000, Ballot::default(), dice.draw());
    let set = client.set.newest().unwrap().set.clone();
    let proposal = Proposal { set, ballot, generation: 1, masters: MasterSet::first(2) };
    for value in [None, Some("value")] {
        assert_eq!(agreed(&client.ask(&mut masters, &proposal, value, 1_000)), 2);
    }
    masters[1] = FakeMaster { run_id: 9, record: masters[1].record.clone(), ..FakeMaster::new(9) };
    client.connect_to_all(&mut masters, 2_000, &dice);
    let (incarnation, promised) = masters[1].acceptor.clone().unwrap();
    assert_eq!(incarnation, masters[1].record.as_ref().unwrap().incarnation);
    assert_eq!(promised.accepted, Some(Accepted { ballot, value: "value".into() }));
    // What was on its way to it, or to the third one, comes too late.
    assert!(promised.promised > Some(ballot) && promised.generation == 1);
    let to_third = Proposal { masters: indices([2]), ..proposal };
    assert_eq!(agreed(&client.ask(&mut masters, &to_third, Some("value"), 2_000)), 0);
}

/// The others promised when another one rejoined. One of them accepted a value after that, and lost
/// its state.
#[test]
fn a_master_does_not_rejoin_by_promises_from_before_its_loss() {
    let dice = Dice::new(1);
    let (mut masters, all) = set_of(5, &dice);
    let mut client = Client::new(&all, None);
    client.connect_to_all(&mut masters, 1, &dice);
    restart(&mut masters[4]);
    client.connect(4, &mut masters, 1_000, &dice);
    let newest = client.set.newest().unwrap().clone();
    let proposal = Proposal { masters: MasterSet::first(3), ..client.proposal(&newest, 2_000, &dice) };
    for value in [None, Some("value")] {
        assert_eq!(agreed(&client.ask(&mut masters, &proposal, value, 2_000)), 3);
    }
    restart(&mut masters[0]);
    client.connect(0, &mut masters, 3_000, &dice);
    let (_, state) = masters[0].acceptor.clone().unwrap();
    assert_eq!(state.accepted.map(|accepted| accepted.value), Some("value".into()));
}
