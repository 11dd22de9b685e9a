//! Beginning a set (`init`): all masters are read again and again. What was read a moment ago makes
//! each a candidate of the same set, which waits for a quarantine, and then a member.

use super::master::{Generation, Masters, Record, State};
use super::variants::Flaw;
use super::world::{FRESH, InitWrite, Q, Reading, Role, Task, World};

pub(crate) fn ask(world: &mut World, actor: usize, at: usize, heard: bool) {
    match world.actors[actor].task {
        Task::Init { write: Some(pending), .. } => write(world, actor, pending),
        Task::Init { id, .. } if heard && !is_to_be_taken_back(world, at) => {
            world.meet(actor, at, true);
            let master = &world.masters[at];
            let reading = Reading { time: world.now, of: master.process(), record: master.record };
            world.readings[actor][at] = Some(reading);
            leave_what_nobody_shows(world, actor);
            let write = decide(world, actor, at, &reading, id);
            world.actors[actor].task = Task::Init { id, write };
        }
        _ => {}
    }
}

/// Writes what was decided, if the master is what it was when it was read.
fn write(world: &mut World, actor: usize, InitWrite { at, set, since }: InitWrite) {
    let (late, at_once) = (world.has(Flaw::PromotesUnready), world.has(Flaw::BeginsByWriting));
    let list = world.actors[actor].list;
    let (now, master) = (world.now, &mut world.masters[at]);
    if let Task::Init { write, .. } = &mut world.actors[actor].task {
        *write = None;
    }
    let Some(reading) = world.readings[actor][at].take() else { return };
    if master.process() != reading.of || now - since > FRESH && !late {
        return;
    }
    if let Some(set) = set {
        let state = if at_once { State::Member } else { State::Candidate };
        master.record = Some(master.new_record(Generation::first(set, list), state, 0, now + Q));
    } else if let Some(record) = &mut master.record {
        record.state = State::Member;
        world.done.begun += 1;
    }
}

/// Forgets its set when all masters answered, and none is of it any more.
fn leave_what_nobody_shows(world: &mut World, actor: usize) {
    let who = &world.actors[actor];
    let Some(known) = who.knows else { return };
    let all = who.list.and(known.members.masters);
    let shows = |its: &Record| its.generation.set == known.set && its.state != State::Candidate;
    let left = |at: usize| {
        let reading = now(world, actor, at);
        reading.is_some_and(|reading| !reading.record.as_ref().is_some_and(shows))
    };
    if all.iter().all(left) {
        world.actors[actor].knows = None;
    }
}

/// What was read on a master a moment ago.
fn now(world: &World, actor: usize, at: usize) -> Option<&Reading> {
    world.readings[actor][at].as_ref().filter(|reading| world.now - reading.time <= FRESH)
}

/// Whether these are all of a list.
fn enough(world: &World, list: Masters, these: impl Fn(usize) -> bool) -> bool {
    let these: Masters = list.iter().filter(|&at| these(at)).collect();
    these == list || world.has(Flaw::BeginsWithoutAll) && these.has_majority_of(list)
}

fn decide(world: &World, actor: usize, at: usize, reading: &Reading, id: u16) -> Option<InitWrite> {
    let who = &world.actors[actor];
    let record = reading.record;
    let candidate = record.filter(|its| its.state == State::Candidate);
    if let (Some(known), Some(candidate)) = (who.knows, candidate) {
        let is_most = who.members_of(known.set, at) * 2 > known.members.masters.len();
        if candidate.generation.set != known.set && is_most {
            return None; // it rejoins the set of most
        }
    }
    let since = world.now;
    if let Some(set) = begun_set(world, actor, id).filter(|_| who.list.has(at)) {
        let remembers = world.masters[at].remembers();
        let is_of_list = |its: &Record| is_first_of(its, who.list);
        let is_intact = record.is_some_and(|its| is_of_list(&its) && its.generation.set == set && remembers);
        let may_be_written = candidate.is_none_or(|its| is_of_list(&its) || is_left_over(world, &its));
        if !is_intact {
            let write = InitWrite { at, set: Some(set), since };
            return Some(write).filter(|_| may_be_written && may_begin(world, who.list));
        }
    }
    let candidate = candidate.filter(|its| is_first_of(its, who.list) && world.masters[at].remembers())?;
    let is_ready = |other: usize| {
        let late = world.has(Flaw::PromotesUnready);
        let read = world.readings[actor][other].filter(|_| late).or(now(world, actor, other).copied());
        read.and_then(|read| Some((read.time, read.record?))).is_some_and(|(time, its)| {
            (its.generation.set, its.generation.number) == (candidate.generation.set, 0)
                && its.quarantine <= time
        })
    };
    let is_over = candidate.quarantine <= world.now;
    (is_over && enough(world, who.list, is_ready)).then_some(InitWrite { at, set: None, since })
}

/// Which set begins, where one may: no other set is there, and the one that there was is lost.
fn begun_set(world: &World, actor: usize, id: u16) -> Option<u16> {
    let who = &world.actors[actor];
    let stale = world.has(Flaw::StaleInit);
    let members = who.knows.map_or(who.list, |known| known.members.masters);
    let all = if stale { who.list } else { who.list.and(members) };
    let mut records = world.readings[actor].iter().flatten().filter_map(|reading| reading.record);
    let of_known = |its: &Record| who.knows.is_some_and(|known| known.set == its.generation.set);
    let is_foreign = records.any(|its| its.state != State::Candidate && !of_known(&its));
    if is_foreign || !enough(world, all, |at| now(world, actor, at).is_some()) {
        return None;
    }
    let is_other = members != who.list && !stale;
    if who.knows.is_some_and(|known| is_other || !is_lost(world, actor, &known, all)) {
        return None;
    }
    let candidates = who.list.iter().filter_map(|at| now(world, actor, at)?.record);
    let gives = |its: &Record| !is_left_over(world, its) || world.has(Flaw::GivesOldIds);
    let fresh = candidates.filter(|its| is_first_of(its, who.list) && gives(its));
    Some(fresh.map(|its| its.generation.set).min().unwrap_or(id))
}

/// Whether at most half of these keep their records as members. If all keep one in the first
/// generation, the set is about to begin.
fn is_lost(world: &World, actor: usize, known: &Generation, of: Masters) -> bool {
    let record = |at: usize| world.readings[actor][at]?.record.filter(|its| its.keeps(at, known.set));
    let keep: Vec<Record> = of.iter().filter_map(record).collect();
    let members = keep.iter().filter(|its| its.state == State::Member).count();
    members * 2 <= of.len() && (keep.len() < of.len() || known.number > 0)
}

/// Whether a set begins with this candidate, and this list.
fn is_first_of(record: &Record, list: Masters) -> bool {
    let first = Generation::first(record.generation.set, list);
    record.state == State::Candidate && record.generation == first
}

/// Whether a candidate came to nothing for as long as a quarantine lasts.
fn is_left_over(world: &World, record: &Record) -> bool {
    record.state == State::Candidate && record.quarantine + Q < world.now
}

/// The sets that live: more than half of the newest masters have a record.
fn living(world: &World) -> impl Iterator<Item = Generation> {
    world.newest().into_iter().filter(move |newest| {
        let members = newest.members.masters;
        let keep: Masters = members.iter().filter(|&at| world.masters[at].keeps(at, newest.set)).collect();
        keep.has_majority_of(members)
    })
}

/// What is true of whoever begins a set: each one that lives has this list, or one of these masters
/// shows its newest.
fn may_begin(world: &World, list: Masters) -> bool {
    let shows = |at: usize, newest: &Generation| {
        let record = world.masters[at].record.filter(|its| its.state != State::Candidate);
        record.is_some_and(|its| its.generation == *newest)
    };
    world.has(Flaw::IdOfList)
        || living(world)
            .all(|newest| newest.members.masters == list || list.iter().any(|at| shows(at, &newest)))
}

/// Whether a set that lives has to have taken back this master by now, which is a candidate of
/// another one: some client of that set connects within a quarantine.
fn is_to_be_taken_back(world: &World, at: usize) -> bool {
    let record = world.masters[at].record.filter(|its| its.state == State::Candidate);
    let over = record.filter(|its| its.quarantine <= world.now);
    over.is_some_and(|its| {
        living(world).any(|newest| newest.set != its.generation.set && newest.members.has(at))
    })
}

pub(crate) fn go_on(world: &mut World, actor: usize) {
    let Role::Beginner { of_current } = world.actors[actor].role else { return };
    match world.actors[actor].task {
        Task::Init { id, write: Some(_) } => {
            world.actors[actor].task = Task::Init { id, write: None };
        }
        Task::Init { .. } => world.actors[actor].task = Task::Idle,
        _ => {
            let newest = world.newest().into_iter().max_by_key(|newest| newest.set);
            if let Some(newest) = newest.filter(|_| of_current) {
                world.actors[actor].list = newest.members.masters;
            }
            let id = world.new_set(world.actors[actor].list);
            world.readings[actor] = Default::default();
            world.actors[actor].task = Task::Init { id, write: None };
        }
    }
}
