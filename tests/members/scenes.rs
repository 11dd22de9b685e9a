//! How worlds begin.

use super::master::{Back, Generation, Masters, Members, N, State};
use super::world::{Actor, FIRST_SET, OLD, Promised, Role, Task, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scene {
    /// Clients of {0, 1, 2}, and several changes of that set.
    Change,
    /// The same, of a lock whose tokens are ahead of the time on some masters.
    Tokens,
    /// Two clients of {0, 1, 2}, which one changer makes {0, 3, 4}.
    InARow,
    /// Two changes are proposed at once, and a master forgets: no time goes by.
    Decree,
    /// The first of them is decided, nobody else knows it yet, and those who accepted it forgot.
    Decided,
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

const TARGETS: [Masters; 4] =
    [Masters::of(&[2, 3, 4]), Masters::of(&[0, 3, 4]), Masters::of(&[0, 1, 3]), Masters::of(&[3, 4, 5])];

const fn acts(role: Role, list: Masters, knows: Option<Generation>) -> Actor {
    Actor { role, list, task: Task::Idle, shown: [None; N], knows, starts: 0 }
}

const fn client(list: Masters, knows: Option<Generation>, starts: u8) -> Actor {
    let role = Role::Client { reaches: Masters::ALL, lease: None };
    Actor { starts, ..acts(role, list, knows) }
}

const fn beginner(list: Masters, of_current: bool) -> Actor {
    acts(Role::Beginner { of_current }, list, None)
}

/// {0, 1, 2} as it becomes {0, 3, 4}: the masters 3 and 4 are added, 1 and 2 removed.
fn generations() -> [Generation; 5] {
    let first = Generation::first(FIRST_SET, OLD);
    let second = first.next(first.members.add(3, 1));
    let third = second.next(second.members.remove(Masters::of(&[1])));
    let fourth = third.next(third.members.add(4, 2));
    [first, second, third, fourth, fourth.next(fourth.members.remove(Masters::of(&[2])))]
}

fn write(world: &mut World, at: usize, generation: Generation, state: State) {
    let master = &mut world.masters[at];
    master.record = Some(master.new_record(generation, state, generation.members.ids[at], 0));
    master.saved = master.record;
}

/// Somebody who is about to propose these.
fn proposes(world: &mut World, from: Generation, value: Members) -> Actor {
    let role = Role::Changer { to: value.masters, removes_first: false };
    let ballot = world.new_ballot();
    let (asked, promised) = (Masters::default(), Promised::default());
    Actor {
        task: Task::Propose { ballot, asked, value: Some(value), promised },
        ..acts(role, OLD, Some(from))
    }
}

impl Scene {
    pub(crate) fn world(self, losses: u8, rng: &mut fastrand::Rng) -> World {
        let mut world = World {
            now: 1,
            masters: Default::default(),
            actors: vec![],
            ballots: 0,
            disorder: [0, 0, 1, 3][rng.usize(..4)],
            candidates: 10,
            sets: 0,
            losses,
            none_forgot: true,
            readings: vec![],
            highest: 0,
            broken: None,
            flaw: None,
            done: Default::default(),
        };
        match self {
            Self::Change | Self::Tokens | Self::InARow => self.change(&mut world, rng),
            Self::Decree | Self::Decided => self.decree(&mut world),
            Self::Added => self.added(&mut world),
            Self::Begin | Self::Overlap => self.begin(&mut world, rng),
            Self::OldList | Self::OldRecord => self.old_list(&mut world, rng),
            Self::Lost => self.lost(&mut world, rng),
            Self::Dead => self.dead(&mut world),
        }
        if world.actors.iter().any(|actor| matches!(actor.role, Role::Beginner { .. })) {
            world.readings = vec![[None; N]; world.actors.len()];
        }
        world
    }

    fn change(self, world: &mut World, rng: &mut fastrand::Rng) {
        let mut any = |these: &[u8]| these[rng.usize(..these.len())];
        let [first, ..] = generations();
        OLD.iter().for_each(|at| write(world, at, first, State::Member));
        if self == Self::Tokens {
            (0..3).for_each(|at| world.masters[at].fence = 16 + u16::from(any(&[0, 1, 4])));
        }
        if self == Self::InARow {
            (0..2).for_each(|_| world.actors.push(client(OLD, Some(first), 0)));
            let removes_first = any(&[0, 1]) == 1;
            let role = Role::Changer { to: Masters::of(&[0, 3, 4]), removes_first };
            world.actors.push(acts(role, OLD, Some(first)));
            return;
        }
        for starts in [0, 0, any(&[0, 20, 30, 40])] {
            world.actors.push(client(OLD, Some(first), starts));
        }
        for starts in [0, 0, any(&[20, 40])] {
            let to = TARGETS[usize::from(any(&[0, 1, 2, 3]))];
            let role = Role::Changer { to, removes_first: any(&[0, 1]) == 1 };
            world.actors.push(Actor { starts, ..acts(role, OLD, Some(first)) });
        }
    }

    fn decree(self, world: &mut World) {
        let [first, second, ..] = generations();
        OLD.iter().for_each(|at| write(world, at, first, State::Member));
        write(world, 3, first, State::Candidate);
        world.masters[3].record.as_mut().unwrap().id = 1;
        world.actors.push(client(OLD, Some(first), 0));
        for value in [second.members, first.members.remove(Masters::of(&[2]))] {
            let changer = proposes(world, first, value);
            world.actors.push(changer);
        }
        if self == Self::Decided {
            for at in 0..2 {
                let record = world.masters[at].record.as_mut().unwrap();
                (record.promised, record.accepted) = (1, Some((1, second.members)));
                world.masters[at].forget(Back::Last);
            }
            world.none_forgot = false;
            world.actors[1].task = Task::Carry { decided: second, since: 1, asked: Masters::default() };
        }
    }

    fn added(self, world: &mut World) {
        let first = Generation::first(FIRST_SET, Masters::of(&[0, 1]));
        world.candidates = 1;
        let second = first.next(first.members.add(3, world.candidates));
        second.members.masters.iter().for_each(|at| write(world, at, second, State::Member));
        for gone in [0, 1] {
            let changer = proposes(world, second, second.members.remove(Masters::of(&[gone])));
            world.actors.push(changer);
        }
        let task = Task::Prepare { asked: Masters::default(), adds: Masters::of(&[3]), ids: [None; N] };
        let role = Role::Changer { to: second.members.masters, removes_first: false };
        world.actors.push(Actor { task, ..acts(role, OLD, Some(first)) });
    }

    fn begin(self, world: &mut World, rng: &mut fastrand::Rng) {
        let other = if self == Self::Begin { OLD } else { Masters::of(&[2, 3, 4]) };
        for list in [OLD, other, OLD] {
            world.actors.push(beginner(list, self == Self::Begin));
            world.actors.push(client(list, None, 0));
        }
        if self == Self::Begin {
            let role = Role::Changer { to: TARGETS[rng.usize(..4)], removes_first: rng.bool() };
            world.actors.push(acts(role, OLD, None));
        }
    }

    fn lost(self, world: &mut World, rng: &mut fastrand::Rng) {
        Self::Change.change(world, rng);
        world.actors.truncate(5);
        for starts in [0, [0, 20, 40][rng.usize(..3)]] {
            world.actors.push(Actor { starts, ..beginner(OLD, true) });
        }
    }

    fn dead(self, world: &mut World) {
        let [_, second, ..] = generations();
        let newest = second.next(second.members.remove(Masters::of(&[2])));
        write(world, 3, newest, State::Member);
        world.actors.push(client(OLD, Some(newest), 0));
        world.actors.push(client(OLD, None, 0));
        world.actors.push(beginner(OLD, false));
    }

    fn old_list(self, world: &mut World, rng: &mut fastrand::Rng) {
        let mut any = |these: &[u8]| these[rng.usize(..these.len())];
        let [first, .., newest] = generations();
        let now = newest.members.masters;
        now.iter().for_each(|at| write(world, at, newest, State::Member));
        if self == Self::OldRecord {
            write(world, 1, first, State::Member);
        }
        world.actors.push(client(now, Some(newest), 0));
        world.actors.push(client(OLD, None, any(&[0, 5, 10])));
        let mut late = client(OLD, None, any(&[5, 20, 30]));
        if let Role::Client { reaches, .. } = &mut late.role
            && any(&[0, 1]) == 1
        {
            *reaches = Masters::of(&[1, 2]);
        }
        world.actors.push(late);
        world.actors.push(beginner(OLD, false));
    }
}
