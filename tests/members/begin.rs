//! The steps of beginning: candidates on all masters, a quarantine, the same candidates on all of
//! them, members.

use super::master::{Generation, Masters, N, Record, State};
use super::variants::Flaw;
use super::world::{Begin, Q, Role, SOON, Task, World};

/// The set that one who begins would write.
fn set_of(world: &World, actor: usize, list: Masters, set: u8) -> Generation {
    // All who begin the same set write the same.
    let set = if world.has(Flaw::BeginsByWriting) { 10 + u8::try_from(actor).unwrap_or(0) } else { set };
    Generation::first(set, list)
}

pub(crate) fn ask(world: &mut World, actor: usize, at: usize, heard: bool) {
    let now = world.now;
    let by_writing = world.has(Flaw::BeginsByWriting);
    let at_once = world.has(Flaw::BeginsAgainAtOnce);
    let skips = world.has(Flaw::BeginsAgainWithoutSteps);
    let late = world.has(Flaw::CompletesLate);
    let World { masters, actors, done, .. } = world;
    let master = &mut masters[at];
    let incarnation = master.incarnation;
    let remembers = master.remembers();
    match &mut actors[actor].task {
        Task::Begin { begin, noted, of, .. } => {
            let Begin { generation, again } = *begin;
            let same = |record: &Record| record.generation == generation;
            let finishes = again.is_some_and(|(_, found)| found.is_some());
            let forgot = |record: &Record| {
                let is_older = same(record) && record.state == State::Candidate
                    || finishes && record.generation.number <= generation.number;
                record.generation.set == generation.set && is_older && !remembers
            };
            if master.record.as_ref().is_none_or(forgot) {
                let skips_steps = by_writing || (again.is_some() && (at_once || skips));
                let state = if skips_steps { State::Member } else { State::Candidate };
                let quarantine = if again.is_some() && at_once { now } else { now + Q };
                let (promised, accepted) = again.unwrap_or_default();
                let record = master.new_record(generation, state, generation.members.ids[at], quarantine);
                master.record = Some(Record { promised, accepted, ..record });
            }
            if heard && master.record.as_ref().is_some_and(same) && master.remembers() {
                *noted = noted.with(at);
                of[at] = incarnation;
            }
        }
        Task::Reread { begin, same, of, .. } => {
            // Where a set begins, a member among them may have taken part in a decree, which the
            // candidates forgot: they are readmitted.
            let Some(record) = master.record.filter(|_| remembers) else { return };
            let same_one = record.generation == begin.generation && of[at] == incarnation;
            let ready = record.state == State::Candidate || begin.again.is_some();
            if heard && same_one && ready && record.quarantine <= now {
                *same = same.with(at);
            }
        }
        Task::Complete { begin, since, of, .. } => {
            // What was read may be another one by now.
            if now - *since > SOON && !late {
                return;
            }
            let Some(record) = &mut master.record else { return };
            let same = record.generation == begin.generation && of[at] == incarnation;
            if same && remembers && record.state == State::Candidate {
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
    let passes_over = world.has(Flaw::PassesOver);
    world.actors[actor].task = match world.actors[actor].task {
        Task::Begin { begin, noted, of, .. } if noted == begin.generation.members.masters => {
            Task::Settle { begin, since: now, of }
        }
        Task::Settle { begin, of, .. } => Task::Reread { begin, since: now, asked: none, same: none, of },
        Task::Reread { begin, since, same, of, .. } if same == begin.generation.members.masters => {
            match begin.again {
                Some((_, Some((_, members)))) if !passes_over => {
                    Task::Carry { decided: begin.generation.next(members), since, asked: none }
                }
                _ => Task::Complete { begin, since, asked: none, of },
            }
        }
        Task::Idle => match world.actors[actor].role {
            Role::Beginner { list, set } => {
                let begin = Begin { generation: set_of(world, actor, list, set), again: None };
                Task::Begin { begin, asked: none, noted: none, of: [0; N] }
            }
            _ => Task::Idle,
        },
        _ => Task::Idle,
    };
}
