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
    Terms { record: "r".into(), decree: "d".into(), max_ttl, all_new: false }
}

/// A master: its process, its record, and until when it remembers a lock to be whose.
#[derive(Clone, Debug)]
struct MadeUpMaster {
    run_id: u64,
    replid2: u64,
    record: Option<MasterRecord>,
    /// What which incarnation promised.
    decree: Option<(Arc<str>, Promised)>,
    held: Option<(usize, u64)>,
}

impl MadeUpMaster {
    fn new(run_id: u64) -> Self {
        Self { run_id, replid2: 0, record: None, decree: None, held: None }
    }

    fn shown(&self, time: u64) -> Shown {
        Shown {
            time,
            later: time,
            run_id: self.run_id.to_string().into(),
            replid2: format!("{:04}", self.replid2).into(),
            decree: self.decree.as_ref().map_or_else(|| "".into(), |(incarnation, _)| incarnation.clone()),
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
        let written = change.written(now);
        match (&change.decree, &mut self.decree) {
            (Decree::Unchanged, _) => {}
            (Decree::Kept, Some((incarnation, _))) => *incarnation = written.incarnation.clone(),
            (Decree::Kept, None) => panic!("nothing to keep"),
            (Decree::New(promised), decree) => {
                *decree = Some((written.incarnation.clone(), promised.clone()));
            }
        }
        self.record = Some(written);
    }

    /// What decree.lua does for a connection that knows this stamp: without a value it promises.
    /// `None` where it does neither, or the value that it accepted before.
    fn decree(
        &mut self,
        stamp: &str,
        Proposal { set, ballot, generation, .. }: Proposal,
        value: Option<&str>,
        now: u64,
    ) -> Option<Option<Accepted>> {
        let record = self.record.as_ref()?;
        let is_asked = *record.stamp == *stamp
            && record.set == set
            && record.state == MemberState::Member
            && record.generation + 1 == generation;
        let (incarnation, promised) = self.decree.as_mut()?;
        if !is_asked || *incarnation != record.incarnation {
            return None;
        }
        if promised.generation != generation {
            *promised = Promised { generation, ..Promised::default() };
        }
        let is_late = promised.ballot.is_some_and(|before| ballot < before);
        if is_late || (value.is_some() && (promised.ballot != Some(ballot) || record.quarantine > now)) {
            return None;
        }
        promised.ballot = Some(ballot);
        let before = promised.accepted.clone();
        if let Some(value) = value {
            promised.accepted = Some(Accepted { ballot, value: value.into() });
        }
        Some(before)
    }
}

/// What masters said that promised, or accepted: what each had accepted before.
type Said = Vec<(usize, Option<Accepted>)>;

/// That masters of the list before are in this generation, and some in each majority of it.
struct ListBefore {
    set: Arc<str>,
    generation: u64,
    since: u64,
    seen: Vec<(usize, Arc<str>)>,
}

/// A client, and which masters its list names.
struct Client {
    membership: Membership,
    list: Vec<usize>,
    /// Since when half of the list before were seen in this generation, and who they were.
    watched: Option<ListBefore>,
    /// The masters that it does not reach for a while.
    cut_off: Vec<usize>,
    /// When it connected last.
    now: u64,
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
        membership.begin(begins.map(|never_used| Beginning { id: format!("{list:?}").into(), never_used }));
        Self {
            membership,
            list: list.to_vec(),
            watched: None,
            cut_off: vec![],
            now: 0,
            connections: vec![None; list.len()],
        }
    }

    /// One handshake, from its first hello to a vote or a refusal.
    fn connect(&mut self, index: usize, masters: &mut [MadeUpMaster], now: u64, dice: &Dice) -> HelloStep {
        self.meet();
        self.now = now;
        self.connections[index] = None;
        for turn in 0..6 {
            let shown = masters[self.list[index]].shown(now);
            let step = self.membership.next(index, shown, false, dice);
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
    fn ask_for_promises(&mut self, masters: &mut [MadeUpMaster], now: u64, dice: &Dice) -> bool {
        let Some(proposal) = self.membership.take_proposal(now, dice) else { return false };
        let ballot = proposal.ballot;
        for (index, accepted) in self.ask(masters, proposal, None, |_| true) {
            self.membership.note_promise(index, ballot, accepted);
        }
        true
    }

    /// Asks those of the masters to which it is connected, and that are reached.
    fn ask(
        &self,
        masters: &mut [MadeUpMaster],
        proposal: Proposal,
        value: Option<&str>,
        is_reached: impl Fn(usize) -> bool,
    ) -> Said {
        let is_cut_off = |index: &usize| self.list.get(*index).is_none_or(|at| self.cut_off.contains(at));
        let asked = proposal.masters.iter().filter(|index| is_reached(*index) && !is_cut_off(index));
        asked
            .filter_map(|index| {
                let (stamp, _) = self.connections.get(index)?.as_ref()?;
                Some((index, masters[self.list[index]].decree(stamp, proposal.clone(), value, self.now)?))
            })
            .collect()
    }

    /// The masters that joined the set have their places, too.
    fn meet(&mut self) {
        for name in &self.membership.names[self.list.len()..] {
            self.list.push(name[1..].parse().unwrap());
            self.connections.push(None);
        }
    }

    fn connect_to_all(&mut self, masters: &mut [MadeUpMaster], now: u64, dice: &Dice) -> Vec<HelloStep> {
        let reached: Vec<usize> =
            (0..self.list.len()).filter(|index| !self.cut_off.contains(&self.list[*index])).collect();
        let steps = reached.into_iter().map(|index| self.connect(index, masters, now, dice)).collect();
        self.meet();
        steps
    }

    /// Which of the masters vote for it.
    fn voters(&self, masters: &[MadeUpMaster], now: u64) -> Vec<usize> {
        let voters = self.membership.voters();
        let votes = |(index, connection): (usize, &Option<(Arc<str>, u64)>)| {
            let (stamp, until) = connection.as_ref()?;
            let master = self.list[index];
            let its = masters[master].record.as_ref()?;
            let is_voter = voters.masters.has(index) && self.membership.view_of(its) == voters.view;
            let is_reached = !self.cut_off.contains(&master);
            (is_voter && is_reached && its.stamp == *stamp && *until <= now).then_some(master)
        };
        self.connections.iter().enumerate().filter_map(votes).collect()
    }

    fn quorum(&self) -> usize {
        self.membership.voters().len() / 2 + 1
    }

    /// Those of these masters that are on the list before this generation, and who they are.
    fn of_list_before(&self, newest: &MasterRecord, promised: &Said) -> Vec<(usize, Arc<str>)> {
        let is_on_it = |id| newest.earlier.first().is_some_and(|before| before.has(id));
        let one = |(index, _): &(usize, Option<Accepted>)| {
            let record = self.membership.record_of(*index)?;
            is_on_it(record.member).then(|| (*index, record.incarnation.clone()))
        };
        promised.iter().filter_map(one).collect()
    }

    /// Whether a lease that the list before alone granted may be valid yet.
    fn may_be_held_by_list_before(&mut self, newest: &MasterRecord, promised: &Said, now: u64) -> bool {
        let Some(before) = newest.earlier.first() else { return false };
        let seen = self.of_list_before(newest, promised);
        let is_in_each_majority = |count: usize| count * 2 >= before.len();
        match &self.watched {
            Some(watched) if (&watched.set, watched.generation) == (&newest.set, newest.generation) => {
                if now < watched.since + quarantine() {
                    return true;
                }
                let same = watched.seen.iter().filter(|one| seen.contains(one)).count();
                if !is_in_each_majority(same) {
                    self.watched = None;
                }
                !is_in_each_majority(same)
            }
            _ => {
                let set = newest.set.clone();
                let generation = newest.generation;
                self.watched = is_in_each_majority(seen.len()).then_some(ListBefore {
                    set,
                    generation,
                    since: now,
                    seen,
                });
                true
            }
        }
    }

    /// What it would make of the set: one master more or less.
    fn next_members(
        &mut self,
        newest: &MasterRecord,
        masters: &mut [MadeUpMaster],
        now: u64,
        dice: &Dice,
    ) -> Option<Members> {
        let is_new = |master: &usize| newest.members.id_of(&name(*master)).is_none();
        let joins = (0..masters.len()).filter(is_new).find(|_| dice.below(3) == 0);
        match joins {
            Some(master) if newest.members.len() < 4 => {
                let index = self.membership.make_room(&name(master))?;
                self.connect(index, masters, now, dice);
                let id = self.membership.joining(0)?.member;
                self.membership.end_joining();
                Some(newest.members.with(id, name(master)))
            }
            _ if newest.members.len() > 2 => {
                let leaves = dice.below(newest.members.len());
                Some(newest.members.without(newest.members.iter().nth(leaves)?.0))
            }
            _ => None,
        }
    }

    /// Goes on with a change of one master, as far as it comes: some masters are not reached. True
    /// where something was decided.
    fn change(&mut self, masters: &mut [MadeUpMaster], now: u64, dice: &Dice) -> bool {
        let Some(newest) = self.membership.newest().cloned() else { return false };
        let is_cut_off = |index: &usize| self.cut_off.contains(&self.list[*index]);
        let reached: MasterSet =
            (0..self.list.len()).filter(|index| !is_cut_off(index) && dice.below(5) > 0).collect();
        let ballot = Ballot::new(now, Ballot::default(), dice);
        let voters = self.membership.voters().masters;
        let set = newest.set.clone();
        let proposal = Proposal { set, ballot, generation: newest.generation + 1, masters: voters };
        let promised = self.ask(masters, proposal.clone(), None, |index| reached.has(index));
        let is_most = |those: &Said| those.len() * 2 > newest.members.len();
        let waits = self.may_be_held_by_list_before(&newest, &promised, now);
        let found = promised.iter().filter_map(|(_, accepted)| accepted.clone()).max();
        if !is_most(&promised) || (found.is_none() && waits) {
            return false;
        }
        let next = match found {
            Some(found) => Members::read(&found.value),
            None => self.next_members(&newest, masters, now, dice),
        };
        let Some(next) = next else { return false };
        let accepts = |index| reached.has(index) && dice.below(4) > 0;
        let accepted = self.ask(masters, proposal, Some(&next.to_string()), accepts);
        if is_most(&accepted) {
            self.membership.decided(&newest, next, now);
            self.meet();
        }
        is_most(&accepted)
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

/// Its quarantine was over when it began, so that counts from then on.
#[test]
fn what_a_person_began_and_left_makes_room_for_another_set_after_a_quarantine() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..5).map(MadeUpMaster::new).collect();
    let never_used = Some(Some(vec!["1".into()]));
    let began = 10_000_000;
    let mut cut_short = Client::new(&[0, 1, 2], never_used);
    cut_short.cut_off = vec![1, 2];
    for index in [1, 2] {
        cut_short.membership.next(index, masters[index].shown(began), false, &dice);
    }
    cut_short.connect(0, &mut masters, began, &dice);
    assert_eq!(masters[0].record.as_ref().map(|its| its.state), Some(MemberState::Candidate));
    assert!(masters[0].record.as_ref().unwrap().quarantine <= began, "it would vote at once");
    let mut client = Client::new(&[0, 1, 3], Some(None));
    client.connect_to_all(&mut masters, began + quarantine() / 2, &dice);
    let set =
        |masters: &[MadeUpMaster], index: usize| masters[index].record.as_ref().map(|its| its.set.clone());
    assert_ne!(set(&masters, 0), set(&masters, 1));
    for later in [2, 4] {
        for _ in 0..3 {
            client.connect_to_all(&mut masters, began + later * quarantine(), &dice);
        }
    }
    assert_eq!(client.voters(&masters, began + 4 * quarantine()), [0, 1, 3]);
}

#[test]
fn a_master_that_forgot_has_no_vote_for_a_quarantine() {
    type Change = fn(&mut [MadeUpMaster]);
    let changes: [(&str, Change); 3] = [
        ("it restarted", |masters| masters[0].run_id = 9),
        ("it was a replica", |masters| masters[0].replid2 = 9),
        ("it was emptied", |masters| masters[0].record = None),
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
            let shown = Shown { later: u64::MAX, ..masters[0].shown(5) };
            assert_eq!(client.membership.next(0, shown, false, &dice), HelloStep::Vote);
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
    let ahead = masters[0].shown(far - 1_000_000);
    assert_eq!(saw_it.membership.next(0, ahead, false, &dice), HelloStep::Vote);
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
    let mut seen = SeenIncarnations { latest: longest + 7, ..SeenIncarnations::default() };
    seen.bound(longest + 7);
    assert_eq!(seen.latest, longest + 7);
    seen.bound(longest + 6);
    seen.bound(u64::MAX);
    assert_eq!(seen.latest, 0);
    let dice = Dice::new(1);
    let mut record = set(&dice)[0].record.clone().unwrap();
    for (quarantine, latest) in [(8, 0), (7, 7)] {
        record.quarantine = quarantine;
        seen.note(&record, 7);
        assert_eq!(seen.latest, latest);
    }
}

/// A client that begins a set with this id.
fn beginner(list: &[usize], id: &str) -> Client {
    let mut client = Client::new(list, Some(None));
    client.membership.begins.as_mut().unwrap().id = id.into();
    client
}

/// `count` masters of a set, and who voted for a client that was there.
fn set_of(count: usize, dice: &Dice) -> (Vec<MadeUpMaster>, Vec<usize>) {
    let mut masters: Vec<_> = (1..=count as u64).map(MadeUpMaster::new).collect();
    let all: Vec<usize> = (0..count).collect();
    let run_ids = (1..=count).map(|run_id| run_id.to_string().into()).collect();
    let mut client = Client::new(&all, Some(Some(run_ids)));
    (0..3).for_each(|_| drop(client.connect_to_all(&mut masters, 0, dice)));
    assert_eq!(client.voters(&masters, 0), all);
    (masters, all)
}

fn connect_often(client: &mut Client, masters: &mut [MadeUpMaster], times: &[u64], dice: &Dice) {
    for now in times {
        (0..4).for_each(|_| drop(client.connect_to_all(masters, *now, dice)));
    }
}

fn restart(master: &mut MadeUpMaster) {
    master.run_id += 100;
}

#[test]
fn restarted_masters_rejoin_with_their_decrees() {
    for count in [1, 2, 3, 5] {
        let dice = Dice::new(1);
        let (mut masters, all) = set_of(count, &dice);
        let accepted = Accepted { ballot: Ballot::default(), value: "value".into() };
        for (_, promised) in masters.iter_mut().filter_map(|master| master.decree.as_mut()) {
            *promised = Promised { generation: 1, ballot: None, accepted: Some(accepted.clone()) };
        }
        masters.iter_mut().for_each(restart);
        let mut client = Client::new(&all, None);
        let ends = 5 + quarantine();
        connect_often(&mut client, &mut masters, &[5, ends - 1], &dice);
        assert!(client.voters(&masters, ends - 1).is_empty(), "{count}");
        connect_often(&mut client, &mut masters, &[ends], &dice);
        assert_eq!(client.voters(&masters, ends), all, "{count}");
        for master in &masters {
            let (incarnation, promised) = master.decree.clone().unwrap();
            assert_eq!(incarnation, master.record.clone().unwrap().incarnation);
            assert_eq!(promised.accepted.as_ref(), Some(&accepted), "{count}");
        }
    }
}

/// It was accepted by the first two, and told to nobody.
#[test]
fn a_restarted_master_keeps_what_it_accepted() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    let newest = client.membership.newest().unwrap().clone();
    let value = newest.members.without(3).to_string();
    let ballot = Ballot::new(1_000, Ballot::default(), &dice);
    let masters_of_it = MasterSet::first(2);
    let proposal = Proposal { set: newest.set.clone(), ballot, generation: 1, masters: masters_of_it };
    for value in [None, Some(&*value)] {
        assert_eq!(client.ask(&mut masters, proposal.clone(), value, |_| true).len(), 2);
    }
    masters.iter_mut().take(3).for_each(restart);
    let mut late = Client::new(&[0, 1, 2], None);
    connect_often(&mut late, &mut masters, &[2_000], &dice);
    for index in [0, 1] {
        let (_, promised) = masters[index].decree.clone().unwrap();
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
            *master = MadeUpMaster::new(50 + master.run_id);
        }
        masters.iter_mut().skip(empty).for_each(restart);
        let mut client = Client::new(&all, None);
        let later = 5 + 3 * quarantine();
        connect_often(&mut client, &mut masters, &[5, later], &dice);
        let steps = client.connect_to_all(&mut masters, later, &dice);
        assert!(client.voters(&masters, later).is_empty(), "{count}");
        assert!(steps.iter().all(|step| refusal(step) == Some(Refusal::NoSet)), "{count}: {steps:?}");
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
        if index < 2 { *master = MadeUpMaster::new(50 + index as u64) } else { restart(master) }
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
        let mut masters = set(&dice);
        let mut client = Client::new(&[0, 1, 2], None);
        client.connect_to_all(&mut masters, 1, &dice);
        let members = client.membership.newest().unwrap().members.without(3);
        decide(&mut client, &mut masters, members, 1_000, &dice);
        the_fourth_joins(&mut client, &mut masters, 2_000 + quarantine(), &dice);
        for index in [0, 1] {
            masters[index] = MadeUpMaster::new(50 + index as u64);
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

/// One of them keeps its record.
#[test]
fn init_replaces_a_lost_set_under_another_id() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    let before = masters[2].record.clone().unwrap().set;
    for index in [0, 1] {
        masters[index] = MadeUpMaster::new(50 + index as u64);
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
        masters[index] = MadeUpMaster::new(50 + index as u64);
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
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    let members = client.membership.newest().unwrap().members.without(3);
    decide(&mut client, &mut masters, members, 1_000, &dice);
    masters[1] = MadeUpMaster::new(9);
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
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    let older = masters[2].record.clone();
    let members = client.membership.newest().unwrap().members.without(1);
    decide(&mut client, &mut masters, members, 1_000, &dice);
    connect_often(&mut client, &mut masters, &[2_000], &dice);
    masters[1] = MadeUpMaster::new(9);
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
    masters[1] = MadeUpMaster::new(9);
    let mut begins = beginner(&[1, 2], "another");
    connect_often(&mut begins, &mut masters, &[5, 5 + quarantine()], &dice);
    let steps = begins.connect_to_all(&mut masters, 5 + quarantine(), &dice);
    assert!(steps.iter().all(|step| refusal(step) == Some(Refusal::OtherMembers)), "{steps:?}");
    assert!(masters[1].record.is_none());
    assert_eq!(begins.membership.newest().unwrap().members.len(), 3);
    begins.membership.begin(None);
    assert!(begins.membership.newest().is_none());
}

/// It was killed when it had made one of them a member, or all but one.
#[test]
fn init_does_not_take_its_own_set_for_lost() {
    for members in [1, 2] {
        let dice = Dice::new(1);
        let mut masters: Vec<_> = (1..4).map(MadeUpMaster::new).collect();
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
    let mut masters: Vec<_> = (1..4).map(MadeUpMaster::new).collect();
    let mut others = [beginner(&[0, 1, 2], "b"), beginner(&[0, 1, 2], "a")];
    // The first one has heard all before the second one writes.
    for index in [0, 1, 2] {
        for client in &mut others {
            client.membership.next(index, masters[index].shown(1), false, &dice);
        }
    }
    others[0].connect(0, &mut masters, 1, &dice);
    for index in [1, 2] {
        let shown = MadeUpMaster::new(1 + index as u64);
        if let HelloStep::Write(change) = others[1].membership.next(index, shown.shown(1), false, &dice) {
            masters[index].write(&change, 1);
        }
    }
    let ids = |masters: &[MadeUpMaster]| {
        masters.iter().map(|master| master.record.clone().unwrap().set).collect::<Vec<_>>()
    };
    assert_eq!(ids(&masters), ["b", "a", "a"].map(Arc::from));
    for now in [2, 2, 2 + quarantine(), 2 + quarantine()] {
        others.iter_mut().for_each(|client| drop(client.connect_to_all(&mut masters, now, &dice)));
    }
    assert_eq!(ids(&masters), ["a", "a", "a"].map(Arc::from));
    assert_eq!(others[0].voters(&masters, 2 + quarantine()), [0, 1, 2]);
}

/// It is in the way of a lower id, though it was told of the other one first.
#[test]
fn a_member_beats_a_lower_id() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(MadeUpMaster::new).collect();
    let mut begins = beginner(&[0, 1, 2], "b");
    connect_often(&mut begins, &mut masters, &[0, quarantine()], &dice);
    assert_eq!(begins.voters(&masters, quarantine()), [0, 1, 2]);
    masters[2] = MadeUpMaster::new(9);
    let mut lower = beginner(&[0, 1, 2], "a");
    lower.membership.next(2, masters[2].shown(quarantine()), false, &dice);
    connect_often(&mut lower, &mut masters, &[quarantine(), 2 * quarantine()], &dice);
    assert!(masters.iter().all(|master| *master.record.clone().unwrap().set == *"b"));
}

/// Its set may have begun once already, and have lost all but that.
#[test]
fn a_candidate_left_over_gives_no_id() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(MadeUpMaster::new).collect();
    connect_often(&mut beginner(&[0, 1, 2], "a"), &mut masters, &[0], &dice);
    for index in [0, 1] {
        masters[index] = MadeUpMaster::new(50 + index as u64);
    }
    let now = 2 * quarantine() + 1;
    let mut next = beginner(&[0, 1, 2], "b");
    connect_often(&mut next, &mut masters, &[now, now + quarantine()], &dice);
    assert!(masters.iter().all(|master| *master.record.clone().unwrap().set == *"b"));
    assert_eq!(next.voters(&masters, now + quarantine()), [0, 1, 2]);
}

/// It has the number of a generation that the other set has, too.
#[test]
fn a_client_joins_another_set_when_none_shows_its_own() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    let before = client.membership.voters().view;
    let old = masters[2].clone();
    for (index, master) in masters.iter_mut().enumerate() {
        *master = MadeUpMaster::new(50 + index as u64);
    }
    let mut begins = beginner(&[0, 1, 2], "another");
    connect_often(&mut begins, &mut masters, &[5, 5 + quarantine()], &dice);
    let now = 5 + quarantine();
    client.connect(0, &mut masters, now, &dice);
    assert_eq!(refusal(&client.connect(0, &mut masters, now, &dice)), Some(Refusal::OtherMembers));
    assert_eq!(client.membership.voters().view, before, "it showed its own set last");
    client.connect(2, &mut masters, now, &dice);
    client.connect_to_all(&mut masters, now, &dice);
    assert_eq!(client.voters(&masters, now), [0, 1, 2]);
    assert_ne!(client.membership.voters().view, before);
    // A master of the set of before is of another one.
    masters[2] = old;
    let steps = client.connect_to_all(&mut masters, now, &dice);
    assert_eq!(refusal(&steps[2]), Some(Refusal::OtherMembers), "{steps:?}");
}

/// The third one left its set for the fourth, and the client went along.
#[test]
fn a_client_joins_a_set_that_begins_with_the_newest_list() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    the_third_leaves_for_the_fourth(&mut client, &mut masters, [1_000, 2_000 + quarantine()], &dice);
    for index in [0, 1, 3] {
        masters[index] = MadeUpMaster::new(50 + index as u64);
    }
    let now = 3_000 + quarantine();
    let mut begins = beginner(&[0, 1, 3], "another");
    connect_often(&mut begins, &mut masters, &[now, now + quarantine()], &dice);
    assert_eq!(begins.voters(&masters, now + quarantine()), [0, 1, 3]);
    client.cut_off = vec![];
    connect_often(&mut client, &mut masters, &[now + quarantine()], &dice);
    assert_eq!(client.voters(&masters, now + quarantine()), [0, 1, 3]);
}

/// One was emptied, and another set wants it. The others restarted with their records.
#[test]
fn a_candidate_counts_as_a_master_that_lost_state() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters.push(MadeUpMaster::new(5));
    masters[2] = MadeUpMaster::new(9);
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
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    let members = client.membership.newest().unwrap().members.without(3);
    decide(&mut client, &mut masters, members, 1_000, &dice);
    restart(&mut masters[2]);
    let before = masters[2].record.clone();
    let step = client.connect(2, &mut masters, 2_000, &dice);
    assert_eq!(refusal(&step), Some(Refusal::Removed));
    assert_eq!(masters[2].record, before);
}

/// Its set began without it, as what it showed was known for a moment.
#[test]
fn a_late_candidate_gets_its_place() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(MadeUpMaster::new).collect();
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

/// Nor if nobody heard that its first record was written.
#[test]
fn a_master_that_was_to_get_its_first_record_is_not_new_again() {
    let dice = Dice::new(1);
    let mut masters: Vec<_> = (1..4).map(MadeUpMaster::new).collect();
    let all = (1..4).map(|run_id: u64| run_id.to_string().into()).collect();
    let mut client = Client::new(&[0, 1, 2], Some(Some(all)));
    let begins_now = |step: &HelloStep| matches!(step, HelloStep::Write(change) if change.quarantine == Some(Duration::ZERO));
    for index in [0, 1, 2] {
        client.membership.next(index, masters[index].shown(5), false, &dice);
    }
    assert!(begins_now(&client.membership.next(0, masters[0].shown(5), false, &dice)));
    assert!(!begins_now(&client.membership.next(0, masters[0].shown(5), false, &dice)), "it is asked once");
    let id = client.membership.begins.clone().unwrap().id;
    let mut other = Client::new(&[0, 1, 2], Some(None));
    (0..3).for_each(|_| drop(other.connect_to_all(&mut masters, 5, &dice)));
    let now = quarantine() + 5;
    (0..3).for_each(|_| drop(other.connect_to_all(&mut masters, now, &dice)));
    assert_eq!(other.voters(&masters, now), [0, 1, 2]);
    masters[1].record = None;
    for index in [2, 1] {
        assert!(
            !begins_now(&client.membership.next(index, masters[index].shown(now), false, &dice)),
            "{index}"
        );
    }
    assert_ne!(client.membership.begins.unwrap().id, id, "its set has begun");
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
    }
}

/// A client with names of its own for the masters cannot tell one that lost its record from another
/// server: that one is refused, and the rest is enough.
/// The set had more masters when the list was written; one of those is of another set by now.
#[test]
fn a_list_of_before_is_judged_by_the_set_of_now() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    the_fourth_joins(&mut client, &mut masters, 1_000, &dice);
    let newest = client.membership.newest().unwrap().clone();
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
    masters[2] = MadeUpMaster::new(9);
    masters.extend([10, 11].map(MadeUpMaster::new));
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
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    while client.membership.make_room(&format!("seen {}", client.membership.names.len()).into()).is_some() {}
    let newest = client.membership.newest().unwrap().clone();
    client.membership.decided(&newest, newest.members.with(9, "new".into()), 1);
    assert_eq!((client.quorum(), client.membership.voters().len()), (2, 3));
}

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

#[test]
fn a_master_that_restarted_has_no_vote_for_a_quarantine() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    masters[0].run_id = 9;
    let mut membership = Membership::new((0..3).map(name).collect(), terms(MAX_TTL));
    let mut next = |index: usize| membership.next(index, masters[index].shown(5), false, &dice);
    let _ = [1, 2].map(&mut next);
    assert!(matches!(next(0), HelloStep::Hear(_)));
    assert!(membership.is_promised_by_all(&dice));
    let step = membership.next(0, masters[0].shown(5), false, &dice);
    let HelloStep::Write(change) = step else { panic!("{step:?}") };
    assert_eq!(change.quarantine, Some(terms(MAX_TTL).quarantine()));
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
        assert_eq!(refusal(&steps[0]), Some(Refusal::OtherMembers), "{now}: {steps:?}");
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
fn walk(seed: u64, lists: &[&[usize]], faults: bool, changes: bool) -> Walked {
    let dice = Dice::new(seed);
    let mut masters: Vec<_> = (1..6).map(MadeUpMaster::new).collect();
    let mut clients: Vec<Client> = Vec::new();
    let mut holder: Option<(usize, u64)> = None;
    let mut grants = 0;
    let mut newest = 0;
    let mut now = 0;
    let mut faulty_until = 0;
    for next_run in 10..610 {
        let at = dice.below(masters.len());
        let is_faulty = faults && now >= faulty_until && dice.below(15) == 0;
        let what = if is_faulty { 10 + dice.below(4) } else { dice.below(10) };
        if is_faulty && changes {
            faulty_until = now + quarantine(); // most remember
        }
        match what {
            0 if clients.len() < 12 => {
                let list = dice.below(lists.len());
                // Whoever begins a second set with masters that the first one lost has two.
                let begins = (dice.below(2) == 0 && (list == 0 || !faults)).then_some(None);
                let current = newest_list(&masters);
                let list = if changes { &current } else { lists[list] };
                let mut client = Client::new(list, begins);
                if let Some(begins) = &mut client.membership.begins {
                    begins.id = fresh(&dice);
                }
                clients.push(client);
            }
            1 => now += STEP * (1 + dice.below(8) as u64),
            10 => masters[at].run_id = next_run,
            11 | 12 => masters[at] = MadeUpMaster::new(next_run),
            13 => (masters[at].record, masters[at].held) = (None, None),
            _ if !clients.is_empty() => {
                let number = dice.below(clients.len());
                let client = &mut clients[number];
                if changes && dice.below(8) == 0 {
                    client.cut_off = (0..masters.len()).filter(|_| dice.below(3) == 0).collect();
                }
                client.connect_to_all(&mut masters, now, &dice);
                if changes && what > 6 && client.change(&mut masters, now, &dice) {
                    let record = client.membership.newest().unwrap();
                    newest = newest.max(record.generation);
                    if dice.below(2) == 0 {
                        continue; // it is killed, or cut off, before it tells a master
                    }
                    client.connect_to_all(&mut masters, now, &dice);
                }
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
    Walked { grants, newest, ends: is_begun_again(&mut masters, now, &dice) }
}

/// Whether a quorum votes after one more `init` with the list of the set, and no more faults.
fn is_begun_again(masters: &mut [MadeUpMaster], mut now: u64, dice: &Dice) -> bool {
    let mut last = Client::new(&newest_list(masters), Some(None));
    for _ in 0..8 {
        now += quarantine();
        (0..6).for_each(|_| drop(last.connect_to_all(masters, now, dice)));
    }
    last.voters(masters, now).len() >= last.quorum()
}

/// The list of the newest generation that a master shows.
fn newest_list(masters: &[MadeUpMaster]) -> Vec<usize> {
    let records = masters.iter().filter_map(|master| master.record.as_ref());
    let of_set = records.filter(|its| its.state != MemberState::Candidate);
    let Some(newest) = of_set.max_by_key(|its| its.generation) else { return vec![0, 1, 2] };
    newest.members.iter().map(|(_, name)| name[1..].parse().unwrap()).collect()
}

/// What came of a walk.
struct Walked {
    grants: usize,
    /// The highest generation.
    newest: u64,
    /// Whether locks can be had in the end.
    ends: bool,
}

/// Has most masters of the set accept another list, and tells those that are reached.
fn decide(client: &mut Client, masters: &mut [MadeUpMaster], members: Members, now: u64, dice: &Dice) {
    client.connect_to_all(masters, now, dice);
    let newest = client.membership.newest().unwrap().clone();
    let voters = client.membership.voters().masters;
    let ballot = Ballot::new(now, Ballot::default(), dice);
    let set = newest.set.clone();
    let proposal = Proposal { set, ballot, generation: newest.generation + 1, masters: voters };
    for value in [None, Some(members.to_string())] {
        let said = client.ask(masters, proposal.clone(), value.as_deref(), |_| true);
        assert!(said.len() * 2 > newest.members.len());
    }
    client.membership.decided(&newest, members, now);
    (0..3).for_each(|_| drop(client.connect_to_all(masters, now + 1, dice)));
}

/// The first and second one decide it at these times.
fn the_third_leaves_for_the_fourth(
    client: &mut Client,
    masters: &mut [MadeUpMaster],
    [joins, leaves]: [u64; 2],
    dice: &Dice,
) {
    client.cut_off = vec![2];
    the_fourth_joins(client, masters, joins, dice);
    let members = client.membership.newest().unwrap().members.clone();
    decide(client, masters, members.without(3), leaves, dice);
    assert_eq!(client.membership.newest().unwrap().generation, 2);
}

fn the_fourth_joins(client: &mut Client, masters: &mut [MadeUpMaster], now: u64, dice: &Dice) {
    let members = client.membership.newest().unwrap().members.clone();
    let index = client.membership.make_room(&name(3)).unwrap();
    client.connect(index, masters, now, dice);
    let id = client.membership.joining(0).unwrap().member;
    client.membership.end_joining();
    decide(client, masters, members.with(id, name(3)), now, dice);
}

/// As above, and whoever has the list of before saw the first one when that had no place yet.
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
        let step = late.membership.next(0, masters[0].shown(seen_at), false, &dice);
        assert!(matches!(step, HelloStep::Hear(_)), "{step:?}");
        client.connect_to_all(&mut masters, 5, &dice);
        let joins = 2_000 + quarantine();
        let now = joins + 1_000 + quarantine();
        the_third_leaves_for_the_fourth(&mut client, &mut masters, [joins, now], &dice);
        masters[1] = MadeUpMaster { run_id: 9, ..before };
        late.cut_off = vec![0, 3];
        for now in [now, now, now + quarantine(), now + quarantine()] {
            late.connect_to_all(&mut masters, now, &dice);
            assert!(late.voters(&masters, now).len() < late.quorum(), "{seen_at}");
        }
    }
}

/// As above, and the second one forgot before as well, in the same process, when others promised
/// that they would let nothing come about.
#[test]
fn what_was_promised_counts_once() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let [mut client, mut late] = [(); 2].map(|()| Client::new(&[0, 1, 2], None));
    client.connect_to_all(&mut masters, 1, &dice);
    late.connect_to_all(&mut masters, 1, &dice);
    let flush = |master: &mut MadeUpMaster| (master.record, master.decree) = (None, None);
    flush(&mut masters[1]);
    late.membership.next(1, masters[1].shown(4), false, &dice);
    assert!(late.ask_for_promises(&mut masters, 4, &dice));
    client.connect_to_all(&mut masters, 6, &dice);
    let joins = 2_000 + quarantine();
    let now = joins + 1_000 + quarantine();
    the_third_leaves_for_the_fourth(&mut client, &mut masters, [joins, now], &dice);
    flush(&mut masters[1]);
    // When others were asked is not when somebody else wants that.
    for (index, master) in [(2, &MadeUpMaster::new(9)), (1, &masters[1])] {
        let step = late.membership.next(index, master.shown(now), false, &dice);
        assert!(matches!(step, HelloStep::Hear(_)), "{step:?}");
    }
    late.cut_off = vec![0, 3];
    for now in [now, now, now + quarantine(), now + quarantine()] {
        late.connect_to_all(&mut masters, now, &dice);
        assert!(late.voters(&masters, now).len() < late.quorum());
    }
}

/// Of two masters, one accepted a change that is decided, and is not told of that. The other one
/// forgets it.
#[test]
fn what_one_of_two_accepted_is_not_passed_over_when_the_other_forgets() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    let members = client.membership.newest().unwrap().members.without(3);
    decide(&mut client, &mut masters, members, 1_000, &dice);
    let now = 2_000 + quarantine();
    let before = masters.clone();
    client.cut_off = vec![2];
    the_fourth_joins(&mut client, &mut masters, now, &dice);
    assert_eq!(client.membership.newest().unwrap().generation, 2);
    masters[1].record = before[1].record.clone();
    for record in [None, before[0].record.clone()] {
        let mut masters = masters.clone();
        masters[0] = MadeUpMaster { record, ..MadeUpMaster::new(9) };
        let mut late = Client::new(&[0, 1, 2], None);
        late.cut_off = vec![2, 3];
        for later in [0, 0, 1, 1, 2, 2, 3, 3].map(|waited| 5_000 + waited * quarantine()) {
            let now = now + later;
            late.connect_to_all(&mut masters, now, &dice);
            assert!(late.voters(&masters, now).len() < late.quorum());
        }
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
    let newest = client.membership.newest().unwrap().clone();
    alone.membership.decided(&newest, newest.members.without(1), 1);
    decide(&mut client, &mut masters, newest.members.without(2), 1_000, &dice);
    (0..2).for_each(|_| drop(alone.connect_to_all(&mut masters, quarantine(), &dice)));
    assert_eq!(alone.membership.newest().unwrap().members, newest.members.without(2));
}

/// The third one is cut off, and leaves the set for the fourth. The second one forgets that.
/// Whoever reaches those two alone has the list of before.
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
    masters[1] = MadeUpMaster { run_id: 9, ..before };
    let mut new = Client::new(&[0, 1, 2], None);
    for other in [&mut late, &mut new] {
        other.cut_off = vec![0, 3];
        for now in [now, now, now + quarantine(), now + quarantine()] {
            other.connect_to_all(&mut masters, now, &dice);
            assert!(other.voters(&masters, now).len() < other.quorum(), "{now}");
        }
    }
    // Whoever reaches the first one, too, learns what became of the set.
    let now = now + 1 + quarantine();
    late.cut_off = vec![];
    (0..4).for_each(|_| drop(late.connect_to_all(&mut masters, now, &dice)));
    assert_eq!(late.membership.newest().unwrap().generation, 2);
    assert_eq!(masters[2].record.as_ref().unwrap().state, MemberState::Removed);
    let now = now + quarantine();
    (0..2).for_each(|_| drop(late.connect_to_all(&mut masters, now, &dice)));
    assert_eq!(late.voters(&masters, now), [0, 1, 3]);
}

/// Its list is of so long ago that no record tells of it.
#[test]
fn a_client_that_runs_goes_along_with_any_number_of_changes() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let [mut operator, mut runs] = [(); 2].map(|()| Client::new(&[0, 1, 2], None));
    runs.connect_to_all(&mut masters, 1, &dice);
    operator.connect_to_all(&mut masters, 1, &dice);
    let members = operator.membership.newest().unwrap().members.without(3);
    decide(&mut operator, &mut masters, members, 1_000, &dice);
    for turn in 1..=20 {
        let members = operator.membership.newest().unwrap().members.clone();
        decide(&mut operator, &mut masters, members, 1_000 + turn * 1_000, &dice);
        for _ in 0..2 {
            runs.connect_to_all(&mut masters, 1_000 + turn * 1_000, &dice);
        }
        assert_eq!(runs.voters(&masters, 1_000 + turn * 1_000), [0, 1], "{turn}");
    }
    assert_eq!(operator.membership.newest().unwrap().generation, 21);
    let steps = Client::new(&[0, 1, 2], None).connect_to_all(&mut masters, 30_000, &dice);
    assert_eq!(refusal(&steps[0]), Some(Refusal::OtherMembers), "nobody tells whether its list was ever one");
}

/// The first one is back with what it had before the set was begun anew, and is heard first.
#[test]
fn what_most_masters_are_of_counts_and_not_what_is_heard_first() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    let members = client.membership.newest().unwrap().members.clone();
    decide(&mut client, &mut masters, members, 1_000, &dice);
    let from_before = masters[0].clone();
    for master in &mut masters {
        (master.record, master.decree) = (None, None);
    }
    let mut begins = Client::new(&[0, 1, 2], Some(Some(vec!["1".into(), "2".into(), "3".into()])));
    begins.membership.begins.as_mut().unwrap().id = "another".into();
    (0..3).for_each(|_| drop(begins.connect_to_all(&mut masters, 10_000, &dice)));
    assert_eq!(begins.voters(&masters, 10_000), [0, 1, 2]);
    masters[0] = from_before;
    let mut client = Client::new(&[0, 1, 2], None);
    for _ in 0..2 {
        let steps = client.connect_to_all(&mut masters, 20_000, &dice);
        assert_eq!(client.membership.newest().unwrap().generation, 0, "{steps:?}");
    }
    assert_eq!(client.voters(&masters, 20_000), [1, 2]);
}

#[test]
fn a_master_is_known_by_the_clients_own_name_for_it_too() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.membership = Membership::new(["m0", "b", "c"].map(Arc::from).to_vec(), terms(MAX_TTL));
    let own_name = |client: &Client, name: &str| client.membership.own_name(&name.into());
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
    let members = client.membership.newest().unwrap().members.without(3);
    decide(&mut client, &mut masters, members, 6_000, &dice);
    for name in ["m2", "c"] {
        assert_eq!(own_name(&client, name).as_deref(), Some(name), "it has left");
    }
}

/// A value was accepted by the first two, and the second one forgets it. It must not decide another
/// one with the third.
#[test]
fn a_master_that_forgot_is_told_what_the_others_accepted() {
    let dice = Dice::new(1);
    let mut masters = set(&dice);
    let mut client = Client::new(&[0, 1, 2], None);
    client.connect_to_all(&mut masters, 1, &dice);
    let ballot = Ballot::new(1_000, Ballot::default(), &dice);
    let set = client.membership.newest().unwrap().set.clone();
    let proposal = Proposal { set, ballot, generation: 1, masters: MasterSet::first(2) };
    for value in [None, Some("value")] {
        assert_eq!(client.ask(&mut masters, proposal.clone(), value, |_| true).len(), 2);
    }
    masters[1] = MadeUpMaster { run_id: 9, record: masters[1].record.clone(), ..MadeUpMaster::new(9) };
    client.connect_to_all(&mut masters, 2_000, &dice);
    let (incarnation, promised) = masters[1].decree.clone().unwrap();
    assert_eq!(incarnation, masters[1].record.as_ref().unwrap().incarnation);
    assert_eq!(promised.accepted, Some(Accepted { ballot, value: "value".into() }));
    // What was on its way to it, or to the third one, comes too late.
    assert!(promised.ballot > Some(ballot) && promised.generation == 1);
    let to_third = Proposal { masters: 2.into(), ..proposal };
    assert!(client.ask(&mut masters, to_third, Some("value"), |_| true).is_empty());
}

/// The members change meanwhile, one at a time.
#[test]
fn whoever_has_the_lock_has_it_alone_however_the_members_change() {
    for faults in [false, true] {
        let mut grants = 0;
        let mut changes = 0;
        let mut stuck = 0;
        for seed in 0..600 {
            let walked = walk(seed, &[&[0, 1, 2]], faults, true);
            grants += walked.grants;
            changes += walked.newest;
            stuck += usize::from(!walked.ends);
        }
        println!("{grants} grants, {changes} changes, {stuck} stuck, faults {faults}");
        assert!(faults || stuck == 0, "{stuck} sets that `init` does not help");
        assert!(grants > 4_000 && changes > 600, "faults {faults}: {grants} grants, {changes} changes");
    }
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
            let grants: usize = (0..150).map(|seed| walk(seed, lists, faults, false).grants).sum();
            assert!(grants > 1_000, "{lists:?}, faults {faults}: {grants} grants only");
        }
    }
}
