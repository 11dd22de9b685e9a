//! The rules by themselves, and random walks of many clients and masters that go by them.

use super::*;
use crate::seam::Random;

const MAX_TTL: Duration = Duration::from_secs(30);

/// Numbers that nobody drew before, and dice.
#[derive(Debug)]
struct Dice(std::sync::Mutex<u64>);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(std::sync::Mutex::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))
    }

    fn below(&self, limit: usize) -> usize {
        (self.next_u64() >> 33) as usize % limit
    }
}

impl Random for Dice {
    fn next_u64(&self) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state ^ (*state >> 29)
    }

    fn fresh_u64(&self) -> u64 {
        self.next_u64()
    }
}

fn terms(max_ttl: Duration) -> Terms {
    Terms { record: "r".into(), decree: "d".into(), max_ttl, strict: false, all_new: false }
}

/// A master: its process, its record, and until when it remembers a lock to be whose.
#[derive(Clone, Debug)]
struct MadeUpMaster {
    run_id: u64,
    replid2: u64,
    record: Option<MasterRecord>,
    held: Option<(usize, u64)>,
}

impl MadeUpMaster {
    fn new(run_id: u64) -> Self {
        Self { run_id, replid2: 0, record: None, held: None }
    }

    fn shown(&self, time: u64) -> Shown {
        Shown {
            time,
            run_id: self.run_id.to_string().into(),
            replid2: format!("{:04}", self.replid2).into(),
            has_replicas: false,
            record: self.record.clone(),
        }
    }

    /// What record.lua does.
    fn write(&mut self, change: &Change, now: u64) {
        let shown = self.shown(now);
        let ours = (&change.record.run_id, &change.record.replid2);
        let is_seen = self.record.as_ref().map(|record| &record.stamp) == change.found.as_ref();
        if !is_seen || ours != (&shown.run_id, &shown.replid2) {
            return;
        }
        self.record = Some(change.written(now));
    }
}

/// A client, and which masters its list names.
struct Client {
    membership: Membership,
    list: Vec<usize>,
    /// The stamps and the ends of quarantines of its connections.
    connections: Vec<Option<(Arc<str>, u64)>>,
}

fn name(master: usize) -> Arc<str> {
    format!("m{master}").into()
}

impl Client {
    fn new(list: &[usize], begins: Option<Option<Vec<Arc<str>>>>) -> Self {
        let names = list.iter().map(|&master| name(master)).collect();
        let mut membership = Membership::new(names, terms(MAX_TTL));
        membership
            .begin(begins.map(|never_used| Beginning { cold_start: ColdStart::Quarantine, never_used }));
        Self { membership, list: list.to_vec(), connections: vec![None; list.len()] }
    }

    /// One handshake, from its first hello to a vote or a refusal.
    fn connect(&mut self, index: usize, masters: &mut [MadeUpMaster], now: u64, dice: &Dice) -> HelloStep {
        self.connections[index] = None;
        for turn in 0..6 {
            let shown = masters[self.list[index]].shown(now);
            let step = self.membership.next(index, shown, Insight::NotTold, dice);
            match &step {
                HelloStep::Hear(_) if turn < 4 && self.ask_for_promises(masters, now, dice) => {}
                HelloStep::Write(change) => masters[self.list[index]].write(change, now),
                HelloStep::Vote => {
                    let record = masters[self.list[index]].record.as_ref().unwrap();
                    self.connections[index] = Some((record.stamp.clone(), record.quarantine));
                    return step;
                }
                _ => return step,
            }
        }
        panic!("a handshake that writes for ever");
    }

    /// Has the masters to which it is connected promise what one that forgot waits for.
    fn ask_for_promises(&mut self, masters: &[MadeUpMaster], now: u64, dice: &Dice) -> bool {
        let Some(question) = self.membership.take_question(now, dice) else { return false };
        for index in question.masters.iter() {
            let stamp = self.connections[index].as_ref().map(|(stamp, _)| stamp);
            let its = masters[self.list[index]].record.as_ref();
            if let Some(its) =
                its.filter(|its| Some(&its.stamp) == stamp && its.generation + 1 == question.generation)
            {
                assert_eq!(its.state, MemberState::Member);
                self.membership.note_promise(index, question.ballot, None);
            }
        }
        true
    }

    fn connect_to_all(&mut self, masters: &mut [MadeUpMaster], now: u64, dice: &Dice) -> Vec<HelloStep> {
        (0..self.list.len()).map(|index| self.connect(index, masters, now, dice)).collect()
    }

    /// Which of the masters vote for it.
    fn voters(&self, masters: &[MadeUpMaster], now: u64) -> Vec<usize> {
        let votes = |(index, connection): (usize, &Option<(Arc<str>, u64)>)| {
            let (stamp, until) = connection.as_ref()?;
            let master = self.list[index];
            let its = masters[master].record.as_ref()?;
            (its.stamp == *stamp && *until <= now).then_some(master)
        };
        self.connections.iter().enumerate().filter_map(votes).collect()
    }

    fn quorum(&self) -> usize {
        self.list.len() / 2 + 1
    }
}

fn quarantine() -> u64 {
    terms(MAX_TTL).quarantine().as_micros() as u64
}

fn is_wait(step: &HelloStep) -> bool {
    matches!(step, HelloStep::Wait(_) | HelloStep::Hear(_))
}

fn refusal(step: &HelloStep) -> Option<Refusal> {
    match step {
        HelloStep::Refuse(why, _) => Some(*why),
        _ => None,
    }
}

/// Three masters of a set that began at 0, and one more.
fn set(dice: &Dice) -> Vec<MadeUpMaster> {
    let mut masters: Vec<_> = (1..5).map(MadeUpMaster::new).collect();
    let mut client = Client::new(&[0, 1, 2], Some(Some(vec!["1".into(), "2".into(), "3".into()])));
    for _ in 0..3 {
        client.connect_to_all(&mut masters, 0, dice);
    }
    assert_eq!(client.voters(&masters, 0), [0, 1, 2]);
    masters
}

#[test]
fn only_init_begins_a_set_and_its_masters_vote_when_all_were_read_after_their_quarantines() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(MadeUpMaster::new).collect();
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
fn a_master_that_forgot_has_no_vote_for_a_quarantine() {
    type Change = fn(&mut [MadeUpMaster]);
    let changes: [(&str, Change); 4] = [
        ("it restarted", |masters| masters[0].run_id = 9),
        ("it was a replica", |masters| masters[0].replid2 = 9),
        ("it was emptied", |masters| masters[0].record = None),
        ("two were emptied", |masters| masters.iter_mut().take(2).for_each(|master| master.record = None)),
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
    // Another end is another record, though it is the same incarnation.
    masters[0] = newer;
    masters[0].record.as_mut().unwrap().quarantine -= 1;
    let mut client = Client::new(&[0, 1, 2], None);
    client.membership.seen[0].latest = masters[0].record.as_ref().unwrap().quarantine + 1;
    client.connect(0, &mut masters, 2 * quarantine(), &dice);
    assert!(!client.voters(&masters, 2 * quarantine()).contains(&0));
}

#[test]
fn a_list_or_terms_that_differ_are_refused() {
    let dice = Dice::new(1);
    let why = |steps: &[HelloStep]| steps.iter().filter_map(refusal).collect::<Vec<_>>();
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
    client.membership = Membership::new((0..3).map(name).collect(), terms(MAX_TTL * 2));
    let steps = client.connect_to_all(&mut masters, 0, &dice);
    assert_eq!(why(&steps), [Refusal::OtherTerms; 3]);
    // One server under two names is one member.
    let mut masters = set(&dice);
    masters[3] = masters[0].clone();
    let steps = Client::new(&[0, 1, 3], None).connect_to_all(&mut masters, 0, &dice);
    assert_eq!(refusal(&steps[2]), Some(Refusal::OtherMembers));
}

/// A master of the set is emptied, and another set is prepared on it.
#[test]
fn a_set_takes_back_a_master_that_another_one_wants() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters.push(MadeUpMaster::new(5));
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

/// Whoever has other terms than the set counts another quarantine.
#[test]
fn a_client_with_other_terms_gives_no_master_its_record_again() {
    let dice = Dice::new(1);
    for prepared in [false, true] {
        let mut masters = set(&dice);
        masters.push(MadeUpMaster::new(5));
        masters[1].record = None;
        if prepared {
            let mut other = Client::new(&[1, 3, 4], Some(None));
            (0..3).for_each(|_| drop(other.connect_to_all(&mut masters, 5, &dice)));
        }
        let before = masters[1].record.clone();
        let mut client = Client::new(&[0, 1, 2], None);
        client.membership = Membership::new((0..3).map(name).collect(), terms(MAX_TTL / 30));
        for _ in 0..3 {
            let steps = client.connect_to_all(&mut masters, 6, &dice);
            assert_eq!(refusal(&steps[0]), Some(Refusal::OtherTerms));
        }
        assert_eq!(masters[1].record, before, "prepared: {prepared}");
    }
}

/// The word of a person that a master was never used is about the time before its first record.
#[test]
fn a_master_that_loses_its_first_record_while_its_set_begins_is_not_new_again() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..6).map(MadeUpMaster::new).collect();
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

/// Nor for a client that does not know what became of the others since.
#[test]
fn a_master_that_had_its_first_record_is_not_new_for_a_client_that_saw_that() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(MadeUpMaster::new).collect();
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

/// Where a person says so, those that are there are enough.
#[test]
fn what_most_forgot_goes_on_without_those_that_are_gone_where_a_person_says_so() {
    let dice = Dice::new(1);
    for recovers in [false, true] {
        let mut masters = set(&dice);
        masters[0].record = None;
        let mut client = Client::new(&[0, 1, 2], None);
        client.membership.recover(recovers);
        for now in [5, 5, 5 + quarantine()] {
            client.connect(1, &mut masters, now, &dice); // the third one is dead
            client.connect(0, &mut masters, now, &dice);
        }
        let now = 5 + quarantine();
        assert_eq!(client.voters(&masters, now - 1), [1]);
        assert_eq!(client.voters(&masters, now), if recovers { &[0, 1][..] } else { &[1] });
        // Candidates, one of which died.
        let mut masters = set(&dice);
        masters.iter_mut().take(2).for_each(|master| master.record = None);
        let mut client = Client::new(&[0, 1, 2], None);
        (0..2).for_each(|_| drop(client.connect_to_all(&mut masters, 5, &dice)));
        let mut client = Client::new(&[0, 1, 2], None);
        client.membership.recover(recovers);
        (0..2).for_each(|_| {
            client.connect(0, &mut masters, now, &dice);
            client.connect(2, &mut masters, now, &dice);
        });
        assert_eq!(client.voters(&masters, now), if recovers { &[0, 2][..] } else { &[2] });
    }
}

/// A client with names of its own for the masters cannot tell one that lost its record from another
/// server: that one is refused, and the rest is enough.
#[test]
fn a_list_with_other_names_is_no_other_list() {
    let dice = Dice::new(1);
    for (names, is_other) in [(["m0", "m1", "m3"], true), (["a", "b", "c"], false)] {
        let mut masters = set(&dice);
        masters[2].record = None;
        let mut client = Client::new(&[0, 1, 2], None);
        client.membership = Membership::new(names.map(Arc::from).to_vec(), terms(MAX_TTL));
        let steps = client.connect_to_all(&mut masters, 5, &dice);
        assert_eq!(refusal(&steps[2]), Some(Refusal::OtherMembers));
        assert_eq!(client.membership.is_other_list(2), is_other);
        assert_eq!(client.voters(&masters, 5), [0, 1]);
    }
}

/// Most have to be known, or all of a set of which most lost theirs.
#[test]
fn a_master_gets_its_record_again_from_a_client_that_knows_enough_of_its_set() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters[0].record = None;
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect(1, &mut masters, 5, &dice);
    assert!(is_wait(&client.connect(0, &mut masters, 5, &dice)));
    client.connect(2, &mut masters, 5, &dice);
    assert_eq!(client.connect(0, &mut masters, 5, &dice), HelloStep::Vote);
    // It is in nobody else's place.
    masters[0].record = None;
    client.membership.seen[0].member = Some(2);
    assert_eq!(refusal(&client.connect(0, &mut masters, 6, &dice)), Some(Refusal::OtherMembers));
}

/// One server of another set behind one address keeps no other master from its vote.
#[test]
fn a_foreign_master_costs_its_own_vote_and_no_other() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters.push(MadeUpMaster::new(5));
    masters.push(MadeUpMaster::new(6));
    let mut others = Client::new(&[3, 4, 5], Some(Some(vec!["4".into(), "5".into(), "6".into()])));
    (0..3).for_each(|_| drop(others.connect_to_all(&mut masters, 0, &dice)));
    assert_eq!(others.voters(&masters, 0), [3, 4, 5]);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 0, &dice);
    client.list[2] = 3; // its address leads there now
    for _ in 0..2 {
        let steps = client.connect_to_all(&mut masters, 5, &dice);
        assert_eq!(refusal(&steps[2]), Some(Refusal::OtherMembers), "{steps:?}");
        assert_eq!(client.voters(&masters, 5), [0, 1]);
    }
}

/// A replica is promoted, and restarted: nothing tells it from the master that it was a copy of.
#[test]
fn a_master_with_a_replica_does_not_count_as_one_that_keeps_all() {
    let dice = Dice::new(1);
    let mut membership = Membership::new(vec![name(0)], terms(MAX_TTL));
    membership.begin(Some(Beginning { cold_start: ColdStart::Fsync, never_used: None }));
    for (has_replicas, insight, keeps_all) in [
        (false, Insight::KeepsAll(true), true),
        (true, Insight::NotTold, false),
        (false, Insight::NotTold, false),
        (false, Insight::KeepsAll(true), true),
        (true, Insight::KeepsAll(true), false),
    ] {
        let mut master = MadeUpMaster::new(1);
        master.record = membership.shown[0].as_ref().and_then(|shown| shown.record.clone());
        let shown = |master: &MadeUpMaster| Shown { has_replicas, ..master.shown(5) };
        if let HelloStep::Write(change) = membership.next(0, shown(&master), insight, &dice) {
            master.write(&change, 5);
        }
        membership.next(0, shown(&master), insight, &dice);
        assert_eq!(master.record.unwrap().keeps_all, keeps_all, "{has_replicas} {insight:?}");
    }
}

/// A master that restarted has a vote sooner where it keeps all, then and now, and was no replica.
#[test]
fn a_short_quarantine_is_for_masters_that_kept_all_alone() {
    let dice = Dice::new(1);
    let short = SHORTEST_QUARANTINE;
    let long = terms(MAX_TTL).quarantine();
    for (kept, keeps, replid2, expected) in [
        (true, Insight::KeepsAll(true), 0, short),
        (true, Insight::KeepsAll(true), 9, long),
        (true, Insight::KeepsAll(false), 0, long),
        (true, Insight::NotTold, 0, long),
        (false, Insight::KeepsAll(true), 0, long),
    ] {
        let mut masters = set(&dice);
        masters[0].record.as_mut().unwrap().keeps_all = kept;
        (masters[0].run_id, masters[0].replid2) = (9, replid2);
        let mut membership = Membership::new((0..3).map(name).collect(), terms(MAX_TTL));
        let mut next = |index: usize| membership.next(index, masters[index].shown(5), keeps, &dice);
        let _ = [1, 2].map(&mut next);
        assert!(matches!(next(0), HelloStep::Hear(_)));
        assert!(membership.is_promised_by_all(&dice));
        let HelloStep::Write(change) = membership.next(0, masters[0].shown(5), keeps, &dice) else {
            panic!()
        };
        assert_eq!(change.quarantine, Some(expected), "{kept} {keeps:?} {replid2}");
    }
}

/// An init that did not come to its end keeps no other one from the masters for ever, nor the rest
/// of a set from its members.
#[test]
fn what_was_prepared_and_came_to_nothing_is_in_nobodys_way_for_long() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..6).map(MadeUpMaster::new).collect();
    let mut other = Client::new(&[0, 3, 4], Some(None));
    (0..2).for_each(|_| drop(other.connect_to_all(&mut masters, 0, &dice)));
    let mut client = Client::new(&[0, 1, 2], Some(None));
    for now in [quarantine(), 2 * quarantine()] {
        let steps = [(); 2].map(|()| client.connect_to_all(&mut masters, now, &dice))[1].clone();
        assert_eq!(refusal(&steps[1]), Some(Refusal::OtherMembers), "{now}: {steps:?}");
    }
    let now = 2 * quarantine() + 1;
    for now in [now, now, now + quarantine(), now + quarantine(), now + quarantine()] {
        client.connect_to_all(&mut masters, now, &dice);
    }
    assert_eq!(client.voters(&masters, now + quarantine()), [0, 1, 2]);
    // One master of a set that another one prepares, when its quarantine is over.
    let mut masters = set(&dice);
    masters.push(MadeUpMaster::new(5));
    masters[2].record = None;
    let mut other = Client::new(&[2, 3, 4], Some(None));
    (0..2).for_each(|_| drop(other.connect_to_all(&mut masters, 0, &dice)));
    let mut client = Client::new(&[0, 1, 2], None);
    (0..2).for_each(|_| drop(client.connect_to_all(&mut masters, quarantine() + 1, &dice)));
    assert_eq!(client.voters(&masters, quarantine() + 1), [0, 1]);
}

/// How far (us) the time goes at a time, at least.
const STEP: u64 = 3_000_000;

/// Masters that restart, are emptied, were replicas or went back, and clients with one list or
/// another that begin sets, connect, and lock: whoever has a lock has it alone until its lease
/// ends.
fn walk(seed: u64, lists: &[&[usize]], faults: bool) -> usize {
    let dice = Dice::new(seed);
    let mut masters: Vec<_> = (1..6).map(MadeUpMaster::new).collect();
    let mut clients: Vec<Client> = Vec::new();
    let mut holder: Option<(usize, u64)> = None;
    let mut grants = 0;
    let mut now = 0;
    for next_run in 10..610 {
        let at = dice.below(masters.len());
        let what = if faults && dice.below(15) == 0 { 10 + dice.below(4) } else { dice.below(10) };
        match what {
            0 if clients.len() < 12 => {
                let list = dice.below(lists.len());
                // Whoever begins a second set with masters that the first one lost has two.
                let begins = (dice.below(2) == 0 && (list == 0 || !faults)).then_some(None);
                clients.push(Client::new(lists[list], begins));
            }
            1 => now += STEP * (1 + dice.below(8) as u64),
            10 => masters[at].run_id = next_run,
            11 | 12 => masters[at] = MadeUpMaster::new(next_run),
            13 => (masters[at].record, masters[at].held) = (None, None),
            _ if !clients.is_empty() => {
                let number = dice.below(clients.len());
                let client = &mut clients[number];
                client.connect_to_all(&mut masters, now, &dice);
                let free =
                    |&at: &usize| masters[at].held.is_none_or(|(owner, ends)| owner == number || ends <= now);
                let granted: Vec<_> = client.voters(&masters, now).into_iter().filter(free).collect();
                let ends = now + MAX_TTL.as_micros() as u64;
                // It reaches some of those only, and a grant of too few stays there all the same.
                let reached: Vec<_> = granted.into_iter().filter(|_| dice.below(4) > 0).collect();
                for &at in &reached {
                    masters[at].held = Some((number, ends));
                }
                if reached.len() >= client.quorum() {
                    let alone = holder.is_none_or(|(owner, ends)| owner == number || ends <= now);
                    assert!(alone, "seed {seed}: {number} and {holder:?} at {now}");
                    (holder, grants) = (Some((number, ends)), grants + 1);
                }
            }
            _ => {}
        }
    }
    grants
}

#[test]
fn whoever_has_the_lock_has_it_alone_whatever_lists_and_losses_there_are() {
    let lists: [&[&[usize]]; 4] = [
        &[&[0, 1, 2]],
        &[&[0, 1, 2], &[2, 3, 4]],
        &[&[0, 1, 2], &[0, 1, 3], &[0, 3, 4]],
        &[&[0, 1, 2, 3, 4], &[0, 1, 2]],
    ];
    for lists in lists {
        for faults in [false, true] {
            let grants: usize = (0..150).map(|seed| walk(seed, lists, faults)).sum();
            assert!(grants > 1_500, "{lists:?}, faults {faults}: {grants} grants only");
        }
    }
}
