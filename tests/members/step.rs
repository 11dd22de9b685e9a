//! What may happen next in a world, and what comes of it.

use super::master::{Back, Masters, N, Time};
use super::variants::Flaw;
use super::world::{Role, Task, World};
use super::{begin, change, client};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Tick {
        by: Time,
    },
    /// A master restarts without its locks.
    Forget {
        at: usize,
        back: Back,
    },
    /// What a master has now is what a restart may bring back.
    Save {
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
    /// A client has a master that forgot rejoin.
    Rejoin {
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
    let members = actor.knows.map_or(Masters::default(), |known| known.members.masters);
    let reaches = match actor.role {
        Role::Client { reaches, .. } => reaches,
        _ => Masters::ALL,
    };
    let left = match actor.task {
        Task::Look { asked } => actor.list.without(asked),
        Task::Init { write: Some(pending), .. } => Masters::of(&[pending.at]),
        Task::Init { .. } => actor.list.and(members),
        Task::Confirm { asked, among, .. } => among.without(asked),
        Task::Acquire { asked, .. } | Task::Extend { asked, .. } | Task::Propose { asked, .. } => {
            members.without(asked)
        }
        Task::Carry { decided, asked, .. } => decided.reached().without(asked),
        Task::Undo { at } => at,
        Task::Rejoin { at, asked, .. } => members.without(asked).without(Masters::of(&[at])),
        Task::Write { at, .. } => Masters::of(&[at]),
        Task::Prepare { asked, adds, .. } => adds.without(asked),
        Task::Watch { asked, .. } => match &actor.knows {
            Some(known) => change::watched(world, known).without(asked),
            None => return Masters::default(),
        },
        Task::Accept { asked, .. } if world.has(Flaw::AcceptsUnasked) => members.without(asked),
        Task::Accept { asked, promised, .. } => promised.by.without(asked),
        Task::Check { asked, seen, .. } => seen.without(asked),
        Task::Idle | Task::Done | Task::Wait { .. } => return Masters::default(),
    };
    left.iter().filter(|&at| reaches.has(at)).collect()
}

/// Notes that an actor asks this master.
fn note_asked(task: &mut Task, at: usize) {
    match task {
        Task::Look { asked }
        | Task::Acquire { asked, .. }
        | Task::Confirm { asked, .. }
        | Task::Extend { asked, .. }
        | Task::Rejoin { asked, .. }
        | Task::Prepare { asked, .. }
        | Task::Propose { asked, .. }
        | Task::Accept { asked, .. }
        | Task::Carry { asked, .. }
        | Task::Watch { asked, .. }
        | Task::Check { asked, .. } => *asked = asked.with(at),
        Task::Undo { at: left } => *left = left.without(Masters::of(&[at])),
        Task::Write { .. } | Task::Init { .. } | Task::Idle | Task::Done | Task::Wait { .. } => {}
    }
}

fn may_go_on(world: &World, actor: usize) -> bool {
    let task = &world.actors[actor].task;
    !matches!(task, Task::Done) && change::may_go_on(world, actor) && client::may_go_on(world, actor)
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
            let old_evidence = world.has(Flaw::ReadmitsByOldEvidence);
            let forgot =
                |at: &usize| client::may_rejoin(world, actor, *at) || old_evidence && known.members.has(*at);
            let forgot = reaches.iter().filter(forgot);
            steps.extend(forgot.map(|at| Step::Rejoin { client: actor, at }));
        }
        (_, Task::Idle | Task::Done) => {}
        _ => steps.push(Step::Stop { actor }),
    }
}

/// Whether a master may forget so. One alone may come back with an older record.
pub(crate) fn may_forget(world: &World, back: Back) -> bool {
    world.losses > 0 && (back != Back::Saved || world.none_forgot)
}

pub(crate) fn may_tick(world: &World, by: Time) -> bool {
    world.now + by <= 160
}

pub(crate) fn take(world: &mut World, step: Step) {
    match step {
        Step::Tick { by } => world.now += by,
        Step::Forget { at, back } => {
            world.losses = if back == Back::Saved { 0 } else { world.losses - 1 };
            world.none_forgot = false;
            world.masters[at].forget(back);
        }
        Step::Save { at } => world.masters[at].saved = world.masters[at].record,
        Step::Ask { actor, at, heard } => {
            note_asked(&mut world.actors[actor].task, at);
            match world.actors[actor].task {
                Task::Init { .. } => begin::ask(world, actor, at, heard),
                Task::Prepare { .. }
                | Task::Propose { .. }
                | Task::Accept { .. }
                | Task::Carry { .. }
                | Task::Watch { .. }
                | Task::Check { .. } => change::ask(world, actor, at, heard),
                _ => client::ask(world, actor, at, heard),
            }
        }
        Step::GoOn { actor } => go_on(world, actor),
        Step::Release { client } => client::release(world, client),
        Step::Rejoin { client, at } => {
            client::begin_rejoin(world, client, at);
            if world.has(Flaw::ReadmitsAtOnce) {
                client::go_on(world, client);
            }
        }
        Step::Stop { actor } => {
            let actor = &mut world.actors[actor];
            (actor.task, actor.knows, actor.shown) = (Task::Idle, None, [None; N]);
            if let Role::Client { lease, .. } = &mut actor.role {
                *lease = None;
            }
        }
    }
}

/// Whoever knows no set looks for the one of its list.
fn go_on(world: &mut World, actor: usize) {
    let who = &mut world.actors[actor];
    match who.role {
        Role::Beginner { .. } => begin::go_on(world, actor),
        _ if matches!(who.task, Task::Look { .. }) && who.knows.is_some() => who.task = Task::Idle,
        _ if who.knows.is_none() => who.task = Task::Look { asked: Masters::default() },
        Role::Changer { .. } => change::go_on(world, actor),
        Role::Client { .. } => client::go_on(world, actor),
    }
}
