//! What may happen next in a world, and what comes of it.

use super::master::{Masters, Time};
use super::variants::Flaw;
use super::world::{Actor, Role, Task, World};
use super::{begin, change, client};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Tick {
        by: Time,
    },
    /// A master restarts without what it knew.
    Forget {
        at: usize,
    },
    /// Somebody asks one master, and hears the reply or not.
    Ask {
        actor: usize,
        at: usize,
        heard: bool,
    },
    /// Somebody goes on with what it heard, or stops waiting.
    GoOn {
        actor: usize,
    },
    Release {
        client: usize,
    },
    /// A client gives the vote back to a master that forgot.
    Readmit {
        client: usize,
        at: usize,
    },
    /// Somebody is killed, and starts anew.
    Stop {
        actor: usize,
    },
}

/// Whom an actor may ask next.
fn to_ask(world: &World, actor: usize) -> Masters {
    let actor = &world.actors[actor];
    let members = actor.knows.map_or(Masters::default(), |known| known.members.all());
    let reaches = match actor.role {
        Role::Client { reaches, .. } => reaches,
        _ => Masters::ALL,
    };
    let left = match actor.task {
        Task::Look { asked, .. } => match actor.role {
            Role::Client { list, .. } => list.without(asked),
            _ => return Masters::default(),
        },
        Task::Acquire { asked, numbers, .. } => match &actor.knows {
            Some(known) => client::may_ask(world, known, &numbers).without(asked),
            None => return Masters::default(),
        },
        Task::Confirm { asked, among, .. } => among.without(asked),
        Task::Extend { asked, .. } | Task::Carry { asked } => members.without(asked),
        Task::Undo { at } => at,
        Task::Readmit { at, asked, .. } => members.without(asked).without(Masters::of(&[at])),
        Task::Write { at, .. } => Masters::of(&[at]),
        Task::Prepare { asked, .. } => match (&actor.knows, actor.role) {
            (Some(known), Role::Changer { to, .. }) => to.without(known.members.old).without(asked),
            _ => return Masters::default(),
        },
        Task::Propose { asked, .. } | Task::Watch { asked, .. } => match &actor.knows {
            Some(known) => known.members.old.without(asked),
            None => return Masters::default(),
        },
        Task::Accept { asked, promised, .. } => promised.by.without(asked),
        Task::Check { asked, seen, .. } => seen.without(asked),
        Task::Begin { begin, asked, .. }
        | Task::Reread { begin, asked, .. }
        | Task::Complete { begin, asked, .. } => begin.generation.members.all().without(asked),
        Task::Idle | Task::Done | Task::Wait { .. } | Task::Settle { .. } => return Masters::default(),
    };
    left.iter().filter(|&at| reaches.has(at)).collect()
}

/// Notes that an actor asks this master.
fn note_asked(task: &mut Task, at: usize) {
    match task {
        Task::Look { asked, .. }
        | Task::Acquire { asked, .. }
        | Task::Confirm { asked, .. }
        | Task::Extend { asked, .. }
        | Task::Readmit { asked, .. }
        | Task::Prepare { asked, .. }
        | Task::Propose { asked, .. }
        | Task::Accept { asked, .. }
        | Task::Carry { asked }
        | Task::Watch { asked, .. }
        | Task::Check { asked, .. }
        | Task::Begin { asked, .. }
        | Task::Reread { asked, .. }
        | Task::Complete { asked, .. } => *asked = asked.with(at),
        Task::Undo { at: left } => *left = left.without(Masters::of(&[at])),
        Task::Write { .. } | Task::Idle | Task::Done | Task::Wait { .. } | Task::Settle { .. } => {}
    }
}

fn may_go_on(world: &World, actor: usize) -> bool {
    let task = &world.actors[actor].task;
    !matches!(task, Task::Done)
        && begin::may_go_on(world, actor)
        && change::may_go_on(world, actor)
        && client::may_go_on(world, actor)
}

/// Every step that somebody may take now.
pub(crate) fn steps_of(world: &World, actor: usize, steps: &mut Vec<Step>) {
    let Some(who) = world.actors.get(actor).filter(|who| who.starts <= world.now) else { return };
    for at in to_ask(world, actor).iter() {
        steps.extend([true, false].map(|heard| Step::Ask { actor, at, heard }));
    }
    if may_go_on(world, actor) {
        steps.push(Step::GoOn { actor });
    }
    match (who.role, who.task) {
        (Role::Client { lease, reaches, .. }, Task::Idle) => {
            if lease.is_some_and(|lease| lease.until > world.now) {
                steps.push(Step::Release { client: actor });
            }
            let Some(known) = who.knows else { return };
            let mut forgot = known
                .members
                .all()
                .iter()
                .filter(|&at| reaches.has(at) && client::may_be_readmitted(world, at, &known));
            if let Some(at) = forgot.next() {
                steps.push(Step::Readmit { client: actor, at });
            }
        }
        (_, Task::Idle | Task::Done) => {}
        (Role::Client { .. }, _) if world.connected => {}
        _ => steps.push(Step::Stop { actor }),
    }
}

/// Whether time may go on for so long.
pub(crate) fn may_tick(world: &World, by: Time) -> bool {
    let in_time = |actor: &Actor| {
        let Some(known) = actor.knows.filter(|_| actor.starts <= world.now) else { return true };
        let Role::Client { reaches, .. } = actor.role else { return true };
        let taken = |at: usize| {
            let ends = world.masters[at].record.is_some_and(|record| record.quarantine <= world.now + by);
            ends && client::may_be_readmitted(world, at, &known)
        };
        !known.members.all().iter().any(|at| reaches.has(at) && taken(at))
    };
    world.now + by <= 80 && (!world.connected || world.actors.iter().all(in_time))
}

pub(crate) fn take(world: &mut World, step: Step) {
    match step {
        Step::Tick { by } => world.now += by,
        Step::Forget { at } => {
            world.losses -= 1;
            world.masters[at].forget();
        }
        Step::Ask { actor, at, heard } => {
            note_asked(&mut world.actors[actor].task, at);
            match world.actors[actor].task {
                Task::Begin { .. } | Task::Reread { .. } | Task::Complete { .. } => {
                    begin::ask(world, actor, at, heard)
                }
                Task::Prepare { .. }
                | Task::Propose { .. }
                | Task::Accept { .. }
                | Task::Carry { .. }
                | Task::Watch { .. }
                | Task::Check { .. } => change::ask(world, actor, at, heard),
                _ => client::ask(world, actor, at, heard),
            }
        }
        Step::GoOn { actor } => match (world.actors[actor].role, world.actors[actor].task) {
            (_, Task::Begin { .. } | Task::Settle { .. } | Task::Reread { .. } | Task::Complete { .. })
            | (Role::Beginner { .. }, _) => begin::go_on(world, actor),
            (Role::Changer { .. }, _) | (_, Task::Accept { .. } | Task::Carry { .. }) => {
                change::go_on(world, actor)
            }
            (Role::Client { .. }, _) => client::go_on(world, actor),
        },
        Step::Release { client } => client::release(world, client),
        Step::Readmit { client, at } => {
            client::begin_readmission(world, client, at);
            if world.has(Flaw::ReadmitsAtOnce) {
                client::go_on(world, client);
            }
        }
        Step::Stop { actor } => {
            let actor = &mut world.actors[actor];
            actor.task = Task::Idle;
            // A client starts anew with its list.
            if let Role::Client { lease, .. } = &mut actor.role {
                (*lease, actor.knows) = (None, None);
            }
        }
    }
}
