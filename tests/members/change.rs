//! Those who change the set, one master at a time: a watch, and a decree of the masters before it.

use super::master::{Accepted, Ballot, Generation, Masters, Members, N, Record, State};
use super::variants::Flaw;
use super::world::{Promised, Q, Role, SOON, Task, World};

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
        promised.found = later(promised.found, record.accepted);
    }
}

pub(crate) fn later(one: Accepted, other: Accepted) -> Accepted {
    [one, other].into_iter().flatten().max_by_key(|(ballot, _)| *ballot)
}

/// Which masters a changer adds next, and which it removes: one master.
fn next(world: &World, known: &Generation, role: Role) -> (Masters, Masters) {
    let Role::Changer { to, removes_first } = role else { return Default::default() };
    let members = known.members.masters;
    let one = |masters: Masters| masters.iter().take(1).collect::<Masters>();
    let (missing, surplus) = (one(to.without(members)), one(members.without(to)));
    if missing.is_empty() || surplus.is_empty() || world.has(Flaw::TwoAtOnce) {
        (missing, surplus)
    } else if removes_first && members.iter().count() > 2 {
        (Masters::default(), surplus)
    } else {
        (missing, Masters::default())
    }
}

/// Makes a candidate of a master that has no record, was removed, or is one of another set. The id
/// of the candidate.
fn prepare(world: &mut World, at: usize, known: &Generation) -> Option<u8> {
    let (now, master) = (world.now, &world.masters[at]);
    let remembers = master.remembers();
    let again = |record: Record| match record.state {
        State::Removed => record.generation.set == known.set,
        State::Candidate => !remembers || record.generation.set != known.set,
        State::Member => false,
    };
    if master.record.is_none_or(again) {
        let id = world.new_id();
        let master = &mut world.masters[at];
        master.record = Some(master.new_record(*known, State::Candidate, id, now + Q));
    }
    let candidate = world.masters[at].record_of(known.set).filter(|record| record.state == State::Candidate);
    candidate.map(|record| record.id)
}

pub(crate) fn ask(world: &mut World, changer: usize, at: usize, heard: bool) {
    let flaw = world.flaw;
    let (now, unasked) = (world.now, world.has(Flaw::AcceptsUnasked));
    let in_quarantine = world.has(Flaw::AcceptsInQuarantine);
    let Some(known) = world.actors[changer].knows else {
        world.meet(changer, at, heard);
        return;
    };
    if let Task::Carry { decided, since, .. } = world.actors[changer].task {
        if now <= since + SOON {
            world.masters[at].carry(at, &decided, flaw);
            world.decides(&decided);
        }
        world.meet(changer, at, heard);
        return;
    }
    world.meet(changer, at, heard);
    if world.actors[changer].knows != Some(known) {
        world.actors[changer].task = Task::Idle;
        return;
    }
    let prepared = match world.actors[changer].task {
        Task::Prepare { .. } => prepare(world, at, &known),
        _ => None,
    };
    let World { masters, actors, .. } = world;
    let (master, actor) = (&mut masters[at], &mut actors[changer]);
    let incarnation = master.incarnation;
    match &mut actor.task {
        Task::Prepare { ids, .. } if heard => ids[at] = prepared,
        Task::Propose { ballot, promised, .. } => {
            if let Some(record) = master.acceptor(&known) {
                promise(record, incarnation, at, *ballot, promised, heard);
            }
        }
        Task::Accept { ballot, value, promised, accepted, .. } => {
            let same = promised.of[at] == incarnation || unasked;
            let Some(record) = master.acceptor(&known).filter(|_| same) else { return };
            if record.promised <= *ballot && (record.quarantine <= now || in_quarantine) {
                record.promised = *ballot;
                record.accepted = Some((*ballot, *value));
                if heard {
                    *accepted = accepted.with(at);
                }
            }
        }
        Task::Watch { seen, of, .. } if heard && master.has_reached(&known) => {
            *seen = seen.with(at);
            of[at] = incarnation;
        }
        Task::Check { again, of, .. } if heard && of[at] == incarnation && master.has_reached(&known) => {
            *again = again.with(at);
        }
        _ => {}
    }
}

/// Whom a changer watches: those who could still grant under the generation before the last.
pub(crate) fn watched(world: &World, known: &Generation) -> Masters {
    if world.has(Flaw::WatchesItsOwn) { known.members.masters } else { known.earlier }
}

pub(crate) fn may_go_on(world: &World, changer: usize) -> bool {
    !matches!(world.actors[changer].task, Task::Wait { since, .. } if world.now <= since + Q)
}

pub(crate) fn go_on(world: &mut World, changer: usize) {
    let (now, actor) = (world.now, world.actors[changer]);
    let Some(known) = actor.knows else { return };
    let none = Masters::default();
    let (members, watched) = (known.members.masters, watched(world, &known));
    let (adds, removes) = next(world, &known, actor.role);
    let prepare = Task::Prepare { asked: none, adds, ids: [None; N] };
    world.actors[changer].task = match actor.task {
        Task::Idle if adds.is_empty() && removes.is_empty() => {
            world.done.finished += 1;
            Task::Done
        }
        Task::Idle if known.number == 0 || world.has(Flaw::NoWatch) => prepare,
        // What was accepted is finished without a watch.
        Task::Idle => propose(world, None),
        Task::Prepare { adds, ids, .. } if adds.iter().all(|at| ids[at].is_some()) => {
            let added = |members: Members, at: usize| members.add(at, ids[at].unwrap_or_default());
            let value = adds.iter().fold(known.members.remove(removes), added);
            propose(world, Some(value))
        }
        Task::Propose { ballot, value, promised, .. } if promised.by.has_majority_of(members) => {
            match promised.found.map(|(_, found)| found).or(value) {
                Some(value) => {
                    Task::Accept { ballot, since: now, asked: none, value, promised, accepted: none }
                }
                None => Task::Watch { asked: none, seen: none, of: [0; N] },
            }
        }
        Task::Accept { since, value, accepted, .. } => {
            let one = world.has(Flaw::OneAccepts) && !accepted.is_empty();
            if accepted.has_majority_of(members) || one {
                world.done.changes += 1;
                Task::Carry { decided: known.next(value), since, asked: none }
            } else {
                Task::Idle
            }
        }
        Task::Watch { seen, of, .. } if seen.is_in_each_majority_of(watched) => {
            Task::Wait { since: now, seen, of }
        }
        Task::Wait { seen, of, .. } => Task::Check { asked: none, seen, again: none, of },
        Task::Check { again, .. } if again.is_in_each_majority_of(watched) => prepare,
        _ => Task::Idle,
    };
}

fn propose(world: &mut World, value: Option<Members>) -> Task {
    let (ballot, asked, promised) = (world.new_ballot(), Masters::default(), Promised::default());
    Task::Propose { ballot, asked, value, promised }
}
