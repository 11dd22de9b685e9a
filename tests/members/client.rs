//! Those who take the lock.

use super::change::promise;
use super::master::{Ballot, Entry, Generation, Masters, N, Record, State, Time, Token};
use super::variants::Flaw;
use super::world::{Begin, Broken, FRESH, Lease, PER_TICK, Promised, Q, Role, TTL, Task, World};

/// A client asks a master under the generation that it knows: false where that is not the master's,
/// which one of them learns.
fn same_generation(world: &mut World, client: usize, at: usize, heard: bool) -> bool {
    let Some(known) = world.actors[client].knows else { return false };
    let Some(record) = world.masters[at].record_of(known.set) else { return false };
    if record.generation.number < known.number {
        world.masters[at].carry(at, &known);
        return false;
    }
    if record.generation.number > known.number {
        if heard {
            world.learn(client, at);
        }
        return false;
    }
    true
}

/// Whether a master may vote on what was sent then, and nobody else has the lock there.
fn votes(world: &World, client: usize, at: usize, sent: Time) -> bool {
    let master = &world.masters[at];
    let may_vote = |record: &Record| record.state == State::Member && record.quarantine <= world.now;
    let others = master.entry.is_some_and(|entry| entry.client != client && entry.until >= world.now);
    master.record.as_ref().is_some_and(may_vote) && world.now - sent <= FRESH && !others
}

/// Whom a new grant may ask: in a joint generation those of the old set first.
pub(crate) fn may_ask(world: &World, known: &Generation, numbers: &[Token; N]) -> Masters {
    let members = &known.members;
    if granted(numbers).has_majority_of(members.old) || world.has(Flaw::AsksAll) {
        members.all()
    } else {
        members.old
    }
}

pub(crate) fn granted(numbers: &[Token; N]) -> Masters {
    (0..N).filter(|&at| numbers[at] > 0).collect()
}

pub(crate) fn ask(world: &mut World, client: usize, at: usize, heard: bool) {
    let before = world.actors[client].knows;
    match world.actors[client].task {
        Task::Look { .. } => look(world, client, at),
        Task::Acquire { sent, .. } => acquire(world, client, at, sent, heard),
        Task::Confirm { sent, token, .. } => confirm(world, client, at, sent, token, heard),
        Task::Extend { sent, .. } => extend(world, client, at, sent, heard),
        Task::Undo { .. } => {
            let entry = &mut world.masters[at].entry;
            *entry = entry.filter(|entry| entry.client != client);
        }
        Task::Readmit { at: forgot, .. } => readmit(world, client, at, forgot, heard),
        Task::Write { ballot, .. } => write(world, client, at, ballot),
        _ => {}
    }
    if world.actors[client].knows != before {
        // Votes of one round count under one generation.
        let members = before.map_or(Masters::default(), |known| known.members.all());
        let task = &mut world.actors[client].task;
        *task = match *task {
            Task::Acquire { .. } | Task::Confirm { .. } => Task::Undo { at: members },
            _ => Task::Idle,
        };
    }
}

fn acquire(world: &mut World, client: usize, at: usize, sent: Time, heard: bool) {
    let Some(known) = world.actors[client].knows else { return };
    if !same_generation(world, client, at, heard) || !votes(world, client, at, sent) {
        return;
    }
    let (now, master) = (world.now, &mut world.masters[at]);
    let token = (master.fence + 1).max(Token::from(now) * PER_TICK);
    master.fence = token;
    master.entry = Some(Entry { client, until: now + TTL, token });
    let before_it = |lease: Lease| lease.by <= known.number;
    if !known.members.old.has(at) && world.other_lease(client).is_some_and(before_it) {
        world.breaks(Broken::InTheWay);
    }
    if let Task::Acquire { numbers, .. } = &mut world.actors[client].task
        && heard
    {
        numbers[at] = token;
    }
}

fn confirm(world: &mut World, client: usize, at: usize, sent: Time, token: Token, heard: bool) {
    if !same_generation(world, client, at, heard) || !votes(world, client, at, sent) {
        return;
    }
    let master = &mut world.masters[at];
    let Some(entry) = master.entry.as_mut().filter(|entry| entry.client == client) else { return };
    entry.token = token;
    master.fence = master.fence.max(token);
    if let Task::Confirm { confirmed, .. } = &mut world.actors[client].task
        && heard
    {
        *confirmed = confirmed.with(at);
    }
}

fn extend(world: &mut World, client: usize, at: usize, sent: Time, heard: bool) {
    let Some(Lease { token, .. }) = world.actors[client].lease() else { return };
    if !same_generation(world, client, at, heard) || !votes(world, client, at, sent) {
        return;
    }
    let (now, master) = (world.now, &mut world.masters[at]);
    let own = master.entry.is_some_and(|entry| entry.client == client && entry.until >= now);
    if !own && master.fence > token {
        return;
    }
    master.fence = master.fence.max(token);
    master.entry = Some(Entry { client, until: now + TTL, token });
    if let Task::Extend { extended, .. } = &mut world.actors[client].task
        && heard
    {
        *extended = extended.with(at);
    }
}

/// Writes the record of a master that forgot, with the ballot of the first phase as promised.
fn write(world: &mut World, client: usize, at: usize, ballot: Ballot) {
    world.actors[client].task = Task::Idle;
    let Some(known) = world.actors[client].knows.filter(|known| may_be_readmitted(world, at, known)) else {
        return;
    };
    let without_promise = world.has(Flaw::ReadmitsAtOnce) || world.has(Flaw::ReadmitsByReading);
    let promised = if without_promise { 0 } else { ballot };
    world.masters[at].record = Some(Record { promised, ..Record::new(known, State::Member, world.now + Q) });
    world.done.readmitted += 1;
}

/// Whether a master forgot its record, or has that of a candidate of another set, or of an earlier
/// generation, whose quarantine is not over.
pub(crate) fn may_be_readmitted(world: &World, at: usize, known: &Generation) -> bool {
    world.masters[at].record.is_none_or(|record| {
        let foreign = record.generation.set != known.set || record.generation.number < known.number;
        record.state == State::Candidate && foreign && record.quarantine > world.now
    })
}

fn readmit(world: &mut World, client: usize, at: usize, forgot: usize, heard: bool) {
    let Some(known) = world.actors[client].knows.filter(|_| at != forgot) else { return };
    world.masters[at].carry(at, &known);
    if heard && world.learn(client, at) {
        return;
    }
    let only_reads = known.is_joint() || world.has(Flaw::ReadmitsByReading);
    let Task::Readmit { ballot, promised, .. } = &mut world.actors[client].task else { return };
    let incarnation = world.masters[at].incarnation;
    let Some(record) = world.masters[at].record_of(known.set) else { return };
    if record.generation.number != known.number || record.state != State::Member {
        return;
    }
    if only_reads {
        promised.by = promised.by.with(at);
    } else {
        promise(record, incarnation, at, *ballot, promised, heard);
    }
}

/// A client that was started with a list looks at one of its masters.
fn look(world: &mut World, client: usize, at: usize) {
    let record = world.masters[at].record;
    let Task::Look { newest, agree, bare, stale, .. } = &mut world.actors[client].task else { return };
    match record {
        None => *bare = bare.with(at),
        Some(record) if record.state == State::Candidate => *stale = stale.with(at),
        Some(record) => match newest {
            Some(known) if known.set != record.generation.set => *agree = Masters::default(),
            Some(known) if known.number > record.generation.number => *stale = stale.with(at),
            Some(known) if known.number == record.generation.number => *agree = agree.with(at),
            _ => {
                (*newest, *agree) = (Some(record.generation), Masters::of(&[at]));
            }
        },
    }
}

pub(crate) fn may_go_on(world: &World, client: usize) -> bool {
    match world.actors[client].task {
        Task::Write { .. } => false,
        Task::Readmit { promised, .. } => {
            world.has(Flaw::ReadmitsAtOnce)
                || world.actors[client].knows.is_some_and(|known| known.members.have_quorum(promised.by))
        }
        _ => true,
    }
}

pub(crate) fn go_on(world: &mut World, client: usize) {
    let (now, actor) = (world.now, world.actors[client]);
    let Role::Client { list, lease, .. } = actor.role else { return };
    let Some(known) = actor.knows else {
        return go_on_looking(world, client, list);
    };
    world.actors[client].task = match actor.task {
        Task::Idle => match lease {
            Some(lease) if lease.until > now => {
                Task::Extend { sent: now, asked: Masters::default(), extended: Masters::default() }
            }
            _ => {
                Task::Acquire { sent: now, asked: Masters::default(), numbers: [0; N], floor: world.highest }
            }
        },
        Task::Acquire { sent, numbers, floor, .. } => {
            let granted = granted(&numbers);
            if !quorum(world, &known, granted) || now >= sent + TTL {
                Task::Undo { at: known.members.all() }
            } else if let Some(token) = agreed(world, &known, &numbers) {
                hold(world, client, Lease { by: known.number, until: sent + TTL, token }, floor);
                Task::Idle
            } else {
                let token = numbers.into_iter().max().unwrap_or(0);
                Task::Confirm {
                    sent,
                    asked: Masters::default(),
                    among: granted,
                    confirmed: Masters::default(),
                    token,
                    floor,
                }
            }
        }
        Task::Confirm { sent, confirmed, token, floor, .. } => {
            if quorum(world, &known, confirmed) && now < sent + TTL {
                hold(world, client, Lease { by: known.number, until: sent + TTL, token }, floor);
                Task::Idle
            } else {
                Task::Undo { at: known.members.all() }
            }
        }
        Task::Extend { sent, extended, .. } => {
            if let Some(lease) = lease
                && lease.until > now
                && quorum(world, &known, extended)
                && now < sent + TTL
            {
                hold(world, client, Lease { by: known.number, until: sent + TTL, ..lease }, 0);
            }
            Task::Idle
        }
        Task::Readmit { at, ballot, promised, .. } => match promised.found {
            // What was accepted is finished first.
            Some((_, decree)) if !known.is_joint() => Task::Accept {
                ballot,
                asked: Masters::default(),
                decree,
                promised,
                accepted: Masters::default(),
            },
            _ => Task::Write { at, ballot },
        },
        _ => Task::Idle,
    };
}

fn quorum(world: &World, known: &Generation, votes: Masters) -> bool {
    if world.has(Flaw::OneQuorum) {
        votes.has_majority_of(known.members.old)
    } else {
        known.members.have_quorum(votes)
    }
}

/// The token on which enough masters agree, in a joint generation those of both sets.
fn agreed(world: &World, known: &Generation, numbers: &[Token; N]) -> Option<Token> {
    let gave = |token: Token| (0..N).filter(|&at| numbers[at] == token).collect::<Masters>();
    let enough = |token: Token| {
        if world.has(Flaw::TokenOfUnion) {
            gave(token).has_majority_of(known.members.all())
        } else {
            quorum(world, known, gave(token))
        }
    };
    numbers.iter().copied().find(|&token| token > 0 && enough(token))
}

fn hold(world: &mut World, client: usize, lease: Lease, floor: Token) {
    if world.other_lease(client).is_some() {
        world.breaks(Broken::TwoHold);
    }
    if lease.token <= floor {
        world.breaks(Broken::TokenFell);
    }
    world.highest = world.highest.max(lease.token);
    world.done.leases += 1;
    if let Role::Client { lease: held, .. } = &mut world.actors[client].role {
        *held = Some(lease);
    }
}

/// A list is accepted where most of it are members of one set that has it, or had it.
fn go_on_looking(world: &mut World, client: usize, list: Masters) {
    let nothing = Task::Look {
        asked: Masters::default(),
        newest: None,
        agree: Masters::default(),
        bare: Masters::default(),
        stale: Masters::default(),
    };
    let actor = &mut world.actors[client];
    let Task::Look { newest, agree, bare, stale, .. } = actor.task else {
        actor.task = nothing;
        return;
    };
    actor.task = nothing;
    let Some(newest) = newest else { return };
    let earlier = newest.number > 0 && !agree.is_empty();
    if earlier || (newest.members.old == list && agree.has_majority_of(list)) {
        actor.knows = Some(newest);
        actor.task = Task::Idle;
    } else if newest.members.old == list && bare.and(agree).and(stale) == list && !bare.is_empty() {
        // Most of the newest generation that it finds forgot, and all of it answer.
        actor.task = Task::Begin {
            begin: Begin { generation: newest, again: true },
            asked: Masters::default(),
            noted: Masters::default(),
            of: [0; N],
        };
    }
}

/// A client gives up its lease.
pub(crate) fn release(world: &mut World, client: usize) {
    let actor = &mut world.actors[client];
    if let Role::Client { lease, .. } = &mut actor.role {
        *lease = None;
    }
    actor.task = Task::Undo { at: actor.knows.map_or(Masters::default(), |known| known.members.all()) };
}

pub(crate) fn begin_readmission(world: &mut World, client: usize, at: usize) {
    let ballot = world.new_ballot();
    world.actors[client].task =
        Task::Readmit { at, ballot, asked: Masters::default(), promised: Promised::default() };
}
