//! Those who change the set: a decree of the old masters, a joint generation, the new set alone.

use super::master::{Ballot, Decree, Generation, Master, Masters, N, Record, State, Time};
use super::variants::Flaw;
use super::world::{Broken, Promised, Q, Role, Task, World};

/// A master promises to accept nothing of an earlier ballot, and says what it accepted.
pub(crate) fn promise(
    record: &mut Record,
    incarnation: u8,
    at: usize,
    ballot: Ballot,
    promised: &mut Promised,
    heard: bool,
) {
    if ballot <= record.promised {
        return;
    }
    record.promised = ballot;
    if heard {
        promised.by = promised.by.with(at);
        promised.of[at] = incarnation;
        let later = |found: (Ballot, Decree)| promised.found.is_none_or(|known| known.0 < found.0);
        if let Some(found) = record.accepted.filter(|&found| later(found)) {
            promised.found = Some(found);
        }
    }
}

/// Makes a candidate of a master that has no record, was removed, or was one of another set that
/// did not go on.
fn prepare(master: &mut Master, known: &Generation, now: Time) {
    let again = |record: &Record| match record.state {
        State::Removed => record.generation.set == known.set && record.generation.number < known.number,
        State::Candidate => record.generation.set != known.set && record.quarantine + Q < now,
        State::Member => false,
    };
    if master.record.as_ref().is_none_or(again) {
        master.record = Some(Record::new(*known, State::Candidate, now + Q));
    }
}

pub(crate) fn ask(world: &mut World, changer: usize, at: usize, heard: bool) {
    let now = world.now;
    let Some(known) = world.actors[changer].knows else { return };
    let World { masters, actors, .. } = world;
    let (master, actor) = (&mut masters[at], &mut actors[changer]);
    let incarnation = master.incarnation;
    match &mut actor.task {
        Task::Prepare { ready, named, .. } => {
            prepare(master, &known, now);
            let is_ready =
                |record: &&mut Record| record.state == State::Candidate && record.quarantine <= now;
            if heard && master.record_of(known.set).as_ref().is_some_and(is_ready) {
                *ready = ready.with(at);
                named[at] = Some(incarnation);
            }
        }
        Task::Propose { ballot, promised, .. } => {
            let Some(record) = master.record_of(known.set) else { return };
            if record.votes_after(&known) {
                promise(record, incarnation, at, *ballot, promised, heard);
            }
        }
        Task::Accept { ballot, decree, promised, accepted, .. } => {
            let same = promised.of[at] == incarnation;
            let Some(record) = master.record_of(known.set) else { return };
            if same && record.votes_after(&known) && record.promised <= *ballot {
                record.promised = *ballot;
                record.accepted = Some((*ballot, *decree));
                if heard {
                    *accepted = accepted.with(at);
                }
            }
        }
        Task::Carry { .. } => master.carry(at, &known),
        Task::Watch { seen, of, .. } => {
            master.carry(at, &known);
            if heard && master.has_reached(&known) {
                *seen = seen.with(at);
                of[at] = incarnation;
            }
        }
        Task::Check { again, of, .. } => {
            if heard && of[at] == incarnation && master.has_reached(&known) {
                *again = again.with(at);
            }
        }
        _ => return,
    }
    if heard
        && matches!(
            actor.task,
            Task::Prepare { .. } | Task::Propose { .. } | Task::Watch { .. } | Task::Carry { .. }
        )
        && world.learn(changer, at)
    {
        world.actors[changer].task = Task::Idle;
    }
}

pub(crate) fn may_go_on(world: &World, changer: usize) -> bool {
    let actor = &world.actors[changer];
    let (Some(known), Role::Changer { .. } | Role::Client { .. }) = (&actor.knows, actor.role) else {
        return true;
    };
    match actor.task {
        Task::Wait { since, .. } => world.now > since + Q || world.has(Flaw::FinishesAtOnce),
        Task::Watch { seen, .. } => seen.has_majority_of(known.members.old),
        Task::Check { again, .. } => again.has_majority_of(known.members.old),
        _ => true,
    }
}

pub(crate) fn go_on(world: &mut World, changer: usize) {
    let (now, actor) = (world.now, world.actors[changer]);
    let Some(known) = actor.knows else { return };
    let none = Masters::default();
    world.actors[changer].task = match actor.task {
        Task::Idle if known.is_joint() => Task::Watch { asked: none, seen: none, of: [0; N] },
        Task::Idle => match actor.role {
            Role::Changer { from, .. } if from == known.number => {
                Task::Prepare { asked: none, ready: none, named: [None; N] }
            }
            Role::Changer { from, .. } if from > known.number => Task::Carry { asked: none },
            _ => Task::Done,
        },
        Task::Prepare { ready, named, .. } => match actor.role {
            Role::Changer { to, .. } if ready.contains(to.without(known.members.old)) => {
                let ballot = world.new_ballot();
                Task::Propose {
                    ballot,
                    asked: none,
                    decree: Decree { new: to, named },
                    promised: Promised::default(),
                }
            }
            _ => Task::Idle,
        },
        Task::Propose { ballot, decree, promised, .. } if promised.by.has_majority_of(known.members.old) => {
            let decree = promised.found.map_or(decree, |(_, found)| found);
            Task::Accept { ballot, asked: none, decree, promised, accepted: none }
        }
        Task::Accept { decree, accepted, .. } => {
            let enough = accepted.has_majority_of(known.members.old)
                || (world.has(Flaw::OneAccepts) && accepted != none);
            if enough {
                decide(world, known.number, decree);
                world.actors[changer].knows = Some(known.joint(decree));
                Task::Carry { asked: none }
            } else {
                Task::Idle
            }
        }
        Task::Watch { seen, of, .. } => Task::Wait { since: now, seen, of },
        Task::Wait { seen, of, .. } => Task::Check { asked: none, seen, again: none, of },
        Task::Check { .. } => {
            world.done.changes += 1;
            world.actors[changer].knows = Some(known.finished());
            Task::Carry { asked: none }
        }
        _ => Task::Idle,
    };
}

fn decide(world: &mut World, number: u8, decree: Decree) {
    match world.decided[usize::from(number)] {
        Some(decided) if decided != decree => world.breaks(Broken::TwoDecrees),
        _ => world.decided[usize::from(number)] = Some(decree),
    }
}
