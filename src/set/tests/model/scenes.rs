//! How worlds begin.

use std::sync::Arc;

use super::super::super::change::Promises;
use super::super::super::handle::Event;
use super::super::super::proposer::{Accepted, AcceptorState};
use super::super::super::record::{MasterRecord, MemberState, Members, SetTerms};
use super::super::basics::{Dice, masters_of, name};
use super::super::client::moment;
use super::super::fake::FakeMaster;
use super::change::phase_one;
use super::world::{Actor, Back, LockMaster, N, Role, TICK, Task, World, model_terms};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scene {
    /// Clients of {0, 1, 2}, and several changes of that set.
    Change,
    /// The same, of a lock whose tokens are ahead of the time on some masters.
    Tokens,
    /// Two clients of {0, 1, 2}, which one changer makes {0, 3, 4}.
    InARow,
    /// Two changes are proposed at once, and a master forgets: no time goes by.
    Proposals,
    /// The first of them is chosen, only its proposer knows, and the acceptors restarted.
    Chosen,
    /// {0, 1} became {0, 1, 3}, and two changes of that are proposed. A changer that knows only
    /// {0, 1} adds 3 once more.
    Added,
    /// Several begin a set of {0, 1, 2}, which somebody changes.
    Begin,
    /// Lists that overlap in one master are begun at once.
    Overlap,
    /// {0, 1, 2} became {0, 3, 4}; 1 and 2 were emptied when they were removed. A client has the
    /// old list.
    OldList,
    /// The same, where 1 was cut off and has the old record.
    OldRecord,
    /// Clients of {0, 1, 2}, several changes, and `init` with the current list at any time.
    Lost,
    /// {0, 1, 2} became {0, 1, 3}. All but 3 were emptied, and `init` has the old list.
    Dead,
}

const OLD: [usize; 3] = [0, 1, 2];
const TARGETS: [&[usize]; 4] = [&[2, 3, 4], &[0, 3, 4], &[0, 1, 3], &[3, 4, 5]];

fn locker(list: &[usize]) -> Actor {
    Actor::new(Role::Locker { lease: None }, list)
}

fn changer(to: &[usize], removes_first: bool, list: &[usize]) -> Actor {
    Actor::new(Role::Changer { to: to.to_vec(), removes_first }, list)
}

fn beginner(list: &[usize], of_current: bool) -> Actor {
    Actor::new(Role::Beginner { of_current }, list)
}

/// The record of a member of a first generation with this list.
fn first(list: &[usize]) -> MasterRecord {
    let names: Vec<Arc<str>> = list.iter().map(|&at| name(at)).collect();
    MasterRecord {
        set: format!("{list:?}").into(),
        member: 0,
        members: Members::first(&names),
        incarnation: "".into(),
        run_id: "".into(),
        replid2: "".into(),
        stamp: "".into(),
        quarantine: 0,
        generation: 0,
        terms: SetTerms::of(&model_terms()),
        earlier: Vec::new(),
        state: MemberState::Member,
    }
}

fn without(record: &MasterRecord, at: usize) -> MasterRecord {
    record.next(record.members.without(record.members.id_of(&name(at)).unwrap()))
}

/// {0, 1, 2} as it becomes {0, 3, 4}: the masters 3 and 4 are added, 1 and 2 removed.
fn generations() -> [MasterRecord; 5] {
    let first = first(&OLD);
    let second = first.next(first.members.with(100, name(3)));
    let third = without(&second, 1);
    let fourth = third.next(third.members.with(101, name(4)));
    let fifth = without(&fourth, 2);
    [first, second, third, fourth, fifth]
}

/// Writes the record of this generation on a master. One that is no member is a candidate with this
/// number.
fn write(world: &mut World, at: usize, generation: &MasterRecord, candidate: u32) {
    let member = generation.members.id_of(&name(at));
    let state = if member.is_some() { MemberState::Member } else { MemberState::Candidate };
    let reading = world.fakes[at].reading(0);
    let incarnation: Arc<str> = format!("first {at}").into();
    let fake = &mut world.fakes[at];
    fake.record = Some(MasterRecord {
        member: member.unwrap_or(candidate),
        incarnation: incarnation.clone(),
        run_id: reading.run_id,
        replid2: reading.replid2,
        stamp: incarnation.clone(),
        state,
        ..generation.clone()
    });
    fake.acceptor = Some((incarnation, AcceptorState::default()));
    world.save(at);
}

/// Connects an actor to all that it reaches.
fn connect(world: &mut World, mut actor: Actor) -> usize {
    let dice = Dice::new(1);
    for _ in 0..2 {
        actor.client.connect_to_all(&mut world.fakes, world.now, &dice);
    }
    world.actors.push(actor);
    world.actors.len() - 1
}

/// Somebody who is about to propose these. The leases of the previous list are over.
fn proposes(world: &mut World, list: &[usize], value: Members) {
    let actor = connect(world, changer(&masters_of(&value), false, list));
    let newest = world.actors[actor].newest().unwrap().clone();
    let of = phase_one(world, actor, newest);
    let who = &mut world.actors[actor];
    let all_are_here = Promises { later: who.client.set.voters().masters, ..Promises::default() };
    who.client.barrier = who.client.set.raise_barrier(&of.newest, &all_are_here, moment(0)).ok();
    who.task = Task::Propose(of, Some(value));
}

impl Scene {
    pub(super) fn world(self, losses: u8, rng: &mut fastrand::Rng) -> World {
        let fakes: Vec<_> = (0..N).map(|at| FakeMaster::new(at as u64 + 1)).collect();
        let master = LockMaster { saved: (None, None), entry: None, fence: 0, writes: 0 };
        let mut world = World {
            now: 100 * TICK,
            masters: vec![master; N],
            fakes,
            actors: vec![],
            ballots: 0,
            disorder: [0, 0, 1, 3][rng.usize(..4)],
            sets: 0,
            losses,
            none_forgot: true,
            highest: 0,
            broken: None,
            flaw: None,
            done: Default::default(),
        };
        match self {
            Self::Change | Self::Tokens | Self::InARow => self.change(&mut world, rng),
            Self::Proposals | Self::Chosen => self.proposals(&mut world),
            Self::Added => added(&mut world),
            Self::Begin | Self::Overlap => self.begin(&mut world, rng),
            Self::OldList | Self::OldRecord => self.old_list(&mut world, rng),
            Self::Lost => lost(&mut world, rng),
            Self::Dead => dead(&mut world),
        }
        world
    }

    fn change(self, world: &mut World, rng: &mut fastrand::Rng) {
        let [first, ..] = generations();
        OLD.iter().for_each(|&at| write(world, at, &first, 0));
        if self == Self::Tokens {
            let ahead = |at: usize| world.now + (at as u64 + 1) * 20 * TICK;
            let fences = [ahead(0), ahead(1), 0];
            fences.into_iter().zip(&mut world.masters).for_each(|(fence, master)| master.fence = fence);
        }
        world.actors = vec![locker(&OLD), locker(&OLD)];
        if self == Self::InARow {
            world.actors.push(changer(&[0, 3, 4], false, &OLD));
            return;
        }
        for late in [0, 20, 40] {
            let target = TARGETS[rng.usize(..TARGETS.len())];
            let starts = world.now + late * TICK;
            world.actors.push(Actor { starts, ..changer(target, rng.bool(), &OLD) });
        }
        world.actors.push(Actor { starts: world.now + 30 * TICK, ..locker(&OLD) });
    }

    fn proposals(self, world: &mut World) {
        let [first, second, ..] = generations();
        OLD.iter().for_each(|&at| write(world, at, &first, 0));
        write(world, 3, &first, 100);
        connect(world, locker(&OLD));
        proposes(world, &OLD, second.members.clone());
        proposes(world, &OLD, without(&first, 2).members);
        if self == Self::Chosen {
            let ballot = world.new_ballot();
            let accepted = Some(Accepted { ballot, value: second.members.to_string().into() });
            for at in 0..2 {
                let state =
                    AcceptorState { generation: 1, promised: Some(ballot), accepted: accepted.clone() };
                world.fakes[at].acceptor.as_mut().unwrap().1 = state;
                world.losses += 1;
                world.forget(at, Back::Last);
            }
            let event = Event::Chosen { from: first, members: second.members };
            world.actors[1].client.set.handle(world.now, event);
            world.actors[1].client.meet();
            world.actors[1].task = Task::Idle;
        }
    }

    fn begin(self, world: &mut World, rng: &mut fastrand::Rng) {
        let other = if self == Self::Begin { &OLD } else { &[2, 3, 4] };
        for list in [&OLD, other, &OLD] {
            world.actors.push(beginner(list, self == Self::Begin));
            world.actors.push(locker(list));
        }
        if self == Self::Begin {
            world.actors.push(changer(TARGETS[rng.usize(..TARGETS.len())], rng.bool(), &OLD));
        }
    }

    fn old_list(self, world: &mut World, rng: &mut fastrand::Rng) {
        let [first, .., newest] = generations();
        [0, 3, 4].iter().for_each(|&at| write(world, at, &newest, 0));
        if self == Self::OldRecord {
            write(world, 1, &first, 0);
        }
        world.actors.push(locker(&[0, 3, 4]));
        let mut late = |these: &[u64]| world.now + these[rng.usize(..these.len())] * TICK;
        let soon = late(&[0, 5, 10]);
        let later = late(&[5, 20, 30]);
        world.actors.push(Actor { starts: soon, ..locker(&OLD) });
        let mut cut_off = Actor { starts: later, ..locker(&OLD) };
        if rng.bool() {
            cut_off.client.cut_off = vec![0, 3, 4, 5];
        }
        world.actors.push(cut_off);
        world.actors.push(beginner(&OLD, false));
    }
}

fn added(world: &mut World) {
    let first = first(&[0, 1]);
    let second = first.next(first.members.with(16, name(3)));
    [0, 1].iter().for_each(|&at| write(world, at, &first, 0));
    let late = connect(world, changer(&[0, 1, 3], false, &[0, 1]));
    [0, 1, 3].iter().for_each(|&at| write(world, at, &second, 0));
    connect(world, locker(&[0, 1]));
    for gone in [0, 1] {
        proposes(world, &[0, 1], without(&second, gone).members);
    }
    // The late one goes last.
    let late = world.actors.remove(late);
    world.actors.push(late);
    let late = world.actors.last_mut().unwrap();
    late.client.set.join(&name(3));
    late.client.meet();
    late.task = Task::Prepare(3);
}

fn lost(world: &mut World, rng: &mut fastrand::Rng) {
    Scene::Change.change(world, rng);
    world.actors.truncate(5);
    for late in [0, [0, 20, 40][rng.usize(..3)]] {
        let starts = world.now + late * TICK;
        world.actors.push(Actor { starts, ..beginner(&OLD, true) });
    }
}

fn dead(world: &mut World) {
    let [_, second, ..] = generations();
    let newest = without(&second, 2);
    write(world, 3, &newest, 0);
    // It knew the set before all but one were emptied.
    [0, 1].iter().for_each(|&at| write(world, at, &newest, 0));
    connect(world, locker(&OLD));
    for at in [0, 1] {
        world.losses += 1;
        world.forget(at, Back::Empty);
    }
    world.none_forgot = true;
    world.actors.push(locker(&OLD));
    world.actors.push(beginner(&OLD, false));
}
