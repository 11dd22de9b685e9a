//! How worlds begin.

use super::master::{Decree, Generation, Masters, Members, N, Record, State};
use super::world::{Actor, Promised, Role, Task, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scene {
    /// Clients of {0, 1, 2}, and several changes of that set.
    Change,
    /// The same, of a lock whose tokens are ahead of the time on some masters.
    Tokens,
    /// Two clients of {0, 1, 2}, which becomes {0, 3, 4}; those are ready.
    Finish,
    /// Two changes are proposed at once, and a master forgets: no time goes by.
    Decree,
    /// Several begin the same set.
    Begin,
    /// Lists that overlap in one master are begun at once.
    Overlap,
    /// {0, 1, 2} became {0, 3, 4}; 1 and 2 were emptied when they were removed. A client has the
    /// old list.
    OldList,
    /// The same, where 1 was cut off and has the old record.
    OldRecord,
}

const OLD: Masters = Masters::of(&[0, 1, 2]);
const TARGETS: [Masters; 4] =
    [Masters::of(&[2, 3, 4]), Masters::of(&[0, 3, 4]), Masters::of(&[0, 1, 3]), Masters::of(&[3, 4, 5])];

const fn client(list: Masters, knows: Option<Generation>, starts: u8) -> Actor {
    let role = Role::Client { list, reaches: Masters::ALL, lease: None };
    Actor { role, task: Task::Idle, knows, starts }
}

const fn acts(role: Role, knows: Option<Generation>) -> Actor {
    Actor { role, task: Task::Idle, knows, starts: 0 }
}

/// The set 1 of these masters, in this generation.
const fn generation(number: u8, old: Masters) -> Generation {
    Generation { set: 1, number, members: Members::only(old) }
}

fn write(world: &mut World, at: usize, generation: Generation) {
    world.masters[at].record = Some(Record::new(generation, State::Member, 0));
}

/// Somebody who is about to propose {0, 1} and one that is ready.
fn proposes(world: &mut World, from: Generation, new: usize) -> Actor {
    let mut named = [None; N];
    named[new] = Some(0);
    let decree = Decree { new: Masters::of(&[0, 1, new]), named };
    let role = Role::Changer { from: from.number, to: decree.new };
    let ballot = world.new_ballot();
    let task = Task::Propose { ballot, asked: Masters::default(), decree, promised: Promised::default() };
    Actor { task, ..acts(role, Some(from)) }
}

impl Scene {
    pub(crate) fn world(self, losses: u8, rng: &mut fastrand::Rng) -> World {
        let mut world = World {
            now: 1,
            masters: Default::default(),
            actors: vec![],
            ballots: 0,
            losses,
            decided: Default::default(),
            highest: 0,
            broken: None,
            flaw: None,
            connected: matches!(self, Self::Begin | Self::Overlap | Self::OldList | Self::OldRecord),
            done: Default::default(),
        };
        match self {
            Self::Change | Self::Tokens => self.change(&mut world, rng),
            Self::Finish | Self::Decree => self.decree(&mut world),
            Self::Begin | Self::Overlap => self.begin(&mut world),
            Self::OldList | Self::OldRecord => self.old_list(&mut world, rng),
        }
        world
    }

    fn change(self, world: &mut World, rng: &mut fastrand::Rng) {
        let mut any = |these: &[u8]| these[rng.usize(..these.len())];
        let first = generation(0, OLD);
        OLD.iter().for_each(|at| write(world, at, first));
        if self == Self::Tokens {
            (0..3).for_each(|at| world.masters[at].fence = 16 + u16::from(any(&[0, 1, 4])));
        }
        for starts in [0, 0, any(&[0, 20, 30, 40])] {
            world.actors.push(client(OLD, Some(first), starts));
        }
        let mut change = |from| Role::Changer { from, to: TARGETS[usize::from(any(&[0, 1, 2, 3]))] };
        for role in [change(0), change(0), change(2)] {
            world.actors.push(acts(role, Some(first)));
        }
    }

    fn decree(self, world: &mut World) {
        let first = generation(0, OLD);
        OLD.iter().for_each(|at| write(world, at, first));
        for at in [3, 4] {
            write(world, at, first);
            world.masters[at].record.as_mut().unwrap().state = State::Candidate;
        }
        world.actors.push(client(OLD, Some(first), 0));
        if self == Self::Finish {
            world.actors.push(client(OLD, Some(first), 0));
            let role = Role::Changer { from: 0, to: Masters::of(&[0, 3, 4]) };
            world.actors.push(acts(role, Some(first)));
            return;
        }
        for new in [3, 4] {
            let changer = proposes(world, first, new);
            world.actors.push(changer);
        }
    }

    fn begin(self, world: &mut World) {
        let other = if self == Self::Begin { OLD } else { Masters::of(&[2, 3, 4]) };
        for (list, set) in [(OLD, 1), (other, if self == Self::Begin { 1 } else { 2 }), (OLD, 1)] {
            world.actors.push(acts(Role::Beginner { list, set }, None));
            world.actors.push(client(list, None, 0));
        }
    }

    fn old_list(self, world: &mut World, rng: &mut fastrand::Rng) {
        let mut any = |these: &[u8]| these[rng.usize(..these.len())];
        let now = Masters::of(&[0, 3, 4]);
        now.iter().for_each(|at| write(world, at, generation(2, now)));
        if self == Self::OldRecord {
            write(world, 1, generation(0, OLD));
        }
        world.actors.push(client(now, Some(generation(2, now)), 0));
        world.actors.push(client(OLD, None, any(&[0, 5, 10])));
        let mut late = client(OLD, None, any(&[5, 20, 30]));
        if let Role::Client { reaches, .. } = &mut late.role
            && any(&[0, 1]) == 1
        {
            *reaches = Masters::of(&[1, 2]);
        }
        world.actors.push(late);
        world.actors.push(acts(Role::Beginner { list: OLD, set: 2 }, None));
    }
}
