//! The steps of beginning: candidates on all masters, a quarantine, the same candidates on all of
//! them, members.

use super::master::{Generation, Masters, Members, N, Record, State};
use super::variants::Flaw;
use super::world::{Begin, Q, Role, Task, World};

/// The set that one who begins would write.
fn set_of(world: &World, actor: usize, list: Masters, set: u8) -> Generation {
    // All who begin the same set write the same.
    let set = if world.has(Flaw::BeginsByWriting) { 10 + u8::try_from(actor).unwrap_or(0) } else { set };
    Generation { set, number: 0, members: Members::only(list) }
}

pub(crate) fn ask(world: &mut World, actor: usize, at: usize, heard: bool) {
    let now = world.now;
    let by_writing = world.has(Flaw::BeginsByWriting);
    let at_once = world.has(Flaw::BeginsAgainAtOnce);
    let World { masters, actors, done, .. } = world;
    let master = &mut masters[at];
    let incarnation = master.incarnation;
    match &mut actors[actor].task {
        Task::Begin { begin, noted, of, .. } => {
            let Begin { generation, again } = *begin;
            let same = |record: &Record| record.generation == generation;
            let remembers = |record: &Record| {
                again && same(record) && record.state == State::Member && record.accepted.is_none()
            };
            if master.record.as_ref().is_none_or(remembers) {
                let state = if by_writing || (again && at_once) { State::Member } else { State::Candidate };
                master.record = Some(Record::new(generation, state, now + Q));
            }
            if heard && master.record.as_ref().is_some_and(same) {
                *noted = noted.with(at);
                of[at] = incarnation;
            }
        }
        Task::Reread { begin, same, of, .. } => {
            // A member among them may have taken part in a decree, which the candidates forgot:
            // they are readmitted, or most of them forgot and it begins again with the others.
            let Some(record) = &master.record else { return };
            let same_one = record.generation == begin.generation && of[at] == incarnation;
            if heard && same_one && record.state == State::Candidate && record.quarantine <= now {
                *same = same.with(at);
            }
        }
        Task::Complete { begin, of, .. } => {
            let Some(record) = &mut master.record else { return };
            let same = record.generation == begin.generation && of[at] == incarnation;
            if same && record.state == State::Candidate {
                record.state = State::Member;
                done.begun += 1;
            }
        }
        _ => {}
    }
}

pub(crate) fn may_go_on(world: &World, actor: usize) -> bool {
    !matches!(world.actors[actor].task, Task::Settle { since, .. } if world.now <= since + Q)
}

pub(crate) fn go_on(world: &mut World, actor: usize) {
    let (now, none) = (world.now, Masters::default());
    world.actors[actor].task = match world.actors[actor].task {
        Task::Begin { begin, noted, of, .. } if noted == begin.generation.members.all() => {
            Task::Settle { begin, since: now, of }
        }
        Task::Settle { begin, of, .. } => Task::Reread { begin, asked: none, same: none, of },
        Task::Reread { begin, same, of, .. } if same == begin.generation.members.all() => {
            Task::Complete { begin, asked: none, of }
        }
        Task::Idle => match world.actors[actor].role {
            Role::Beginner { list, set } => {
                let begin = Begin { generation: set_of(world, actor, list, set), again: false };
                Task::Begin { begin, asked: none, noted: none, of: [0; N] }
            }
            _ => Task::Idle,
        },
        _ => Task::Idle,
    };
}
