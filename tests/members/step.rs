//! What may happen next in a world, and what comes of it.

use super::master::{Back, Generation, Masters, Record, State, Time};
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
    let members = actor.knows.map_or(Masters::default(), |known| known.members.masters);
    let reaches = match actor.role {
        Role::Client { reaches, .. } => reaches,
        _ => Masters::ALL,
    };
    let left = match actor.task {
        Task::Look { asked, .. } => match actor.role {
            Role::Client { list, .. } => list.without(asked),
            _ => return Masters::default(),
        },
        Task::Confirm { asked, among, .. } => among.without(asked),
        Task::Acquire { asked, .. } | Task::Extend { asked, .. } | Task::Propose { asked, .. } => {
            members.without(asked)
        }
        Task::Carry { decided, asked, .. } => decided.reached().without(asked),
        Task::Undo { at } => at,
        Task::Readmit { at, asked, .. } => members.without(asked).without(Masters::of(&[at])),
        Task::Write { at, .. } => Masters::of(&[at]),
        Task::Prepare { asked, adds, .. } => adds.without(asked),
        Task::Watch { asked, .. } => match &actor.knows {
            Some(known) => change::watched(world, known).without(asked),
            None => return Masters::default(),
        },
        Task::Accept { asked, .. } if world.has(Flaw::AcceptsUnasked) => members.without(asked),
        Task::Accept { asked, promised, .. } => promised.by.without(asked),
        Task::Check { asked, seen, .. } => seen.without(asked),
        Task::Begin { begin, asked, .. }
        | Task::Reread { begin, asked, .. }
        | Task::Complete { begin, asked, .. } => begin.generation.members.masters.without(asked),
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
        | Task::Carry { asked, .. }
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
            let anew = |at: usize| {
                client::may_be_readmitted(world, at, &known)
                    || (world.has(Flaw::ReadmitsByOldEvidence) && known.members.has(at))
            };
            let forgot = reaches.iter().filter(|&at| anew(at));
            steps.extend(forgot.map(|at| Step::Readmit { client: actor, at }));
        }
        (_, Task::Idle | Task::Done) => {}
        (Role::Client { .. }, _) if world.connected => {}
        _ => steps.push(Step::Stop { actor }),
    }
}

/// Whether time may go on for so long: where somebody is connected, the quarantine of a master does
/// not end before a newer generation that anybody knows was written there.
pub(crate) fn may_tick(world: &World, by: Time) -> bool {
    let shown = world.masters.iter().filter_map(|master| master.record);
    let shown = shown.filter(|record| record.state != State::Candidate).map(|record| record.generation);
    let known = world.actors.iter().filter_map(|actor| actor.knows);
    let connected = world.connected && !world.has(Flaw::NobodyConnected);
    let known: Vec<Generation> = if connected { shown.chain(known).collect() } else { vec![] };
    let in_time = |at: usize| {
        let Some(Record { generation, quarantine, state, .. }) = world.masters[at].record else {
            return true;
        };
        let behind = |known: &Generation| {
            if known.set == generation.set {
                known.number > generation.number && known.reached().has(at)
            } else {
                state == State::Candidate && known.members.has(at)
            }
        };
        let ends = world.now < quarantine && quarantine <= world.now + by;
        !ends || !known.iter().any(behind)
    };
    world.now + by <= 160 && Masters::ALL.iter().all(in_time)
}

pub(crate) fn take(world: &mut World, step: Step) {
    match step {
        Step::Tick { by } => world.now += by,
        Step::Forget { at, back } => {
            world.losses -= 1;
            world.masters[at].forget(back);
        }
        Step::Save { at } => world.masters[at].saved = world.masters[at].record,
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
            (Role::Changer { .. }, _) => change::go_on(world, actor),
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
            let first = world.first;
            let actor = &mut world.actors[actor];
            actor.task = Task::Idle;
            actor.knows = None;
            match &mut actor.role {
                // A client starts anew with its list.
                Role::Client { lease, .. } => *lease = None,
                Role::Changer { .. } => actor.knows = first,
                Role::Beginner { .. } => {}
            }
        }
    }
}
