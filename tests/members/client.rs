//! Those who take the lock.

use super::change::promise;
use super::master::{Accepted, Ballot, Entry, Generation, Masters, N, Record, State, Time, Token};
use super::variants::Flaw;
use super::world::{Begin, Broken, FRESH, Lease, PER_TICK, Promised, Q, Role, TTL, Task, World};

/// A client asks a master under the generation that it knows: false where that is not the master's,
/// which one of them learns.
fn same_generation(world: &mut World, client: usize, at: usize, heard: bool) -> bool {
    let Some(known) = world.actors[client].knows else { return false };
    let flaw = world.flaw;
    let Some(record) = world.masters[at].record_of(known.set) else { return false };
    if record.generation.number < known.number {
        world.masters[at].carry(at, &known, flaw);
        return false;
    }
    if record.generation.number > known.number {
        if flaw == Some(Flaw::CountsAnyGeneration) {
            return true;
        }
        if heard {
            world.learn(client, at);
        }
        world.masters[at].carry(at, &known, flaw);
        return false;
    }
    record.generation == known
}

/// Whether a master may vote on what was sent then, and nobody else has the lock there.
fn votes(world: &World, client: usize, at: usize, sent: Time) -> bool {
    let master = &world.masters[at];
    let may_vote = |record: &Record| record.state == State::Member && record.quarantine <= world.now;
    let others = master.entry.is_some_and(|entry| entry.client != client && entry.until >= world.now);
    master.remembers() && master.record.as_ref().is_some_and(may_vote) && world.now - sent <= FRESH && !others
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
            same_generation(world, client, at, heard);
        }
        Task::Readmit { at: forgot, .. } => readmit(world, client, at, forgot, heard),
        Task::Write { of, ballot, found, .. } => write(world, client, at, of, ballot, found),
        _ => {}
    }
    if world.actors[client].knows != before {
        // Votes of one round count under one generation.
        let at = before.map_or(Masters::default(), |known| known.reached());
        let task = &mut world.actors[client].task;
        *task = match *task {
            Task::Acquire { .. } | Task::Confirm { .. } => Task::Undo { at },
            _ => Task::Idle,
        };
    }
}

fn acquire(world: &mut World, client: usize, at: usize, sent: Time, heard: bool) {
    if !same_generation(world, client, at, heard) || !votes(world, client, at, sent) {
        return;
    }
    let (now, master) = (world.now, &mut world.masters[at]);
    let token = (master.fence + 1).max(Token::from(now) * PER_TICK);
    master.fence = token;
    master.entry = Some(Entry { client, until: now + TTL, token });
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

/// Writes the record of a master that forgot, with what the first phase promised and found.
fn write(world: &mut World, client: usize, at: usize, of: u8, ballot: Ballot, found: Accepted) {
    world.actors[client].task = Task::Idle;
    let Some(known) = world.actors[client].knows.filter(|known| may_be_readmitted(world, at, known)) else {
        return;
    };
    if world.masters[at].incarnation != of && !world.has(Flaw::ReadmitsByOldEvidence) {
        return;
    }
    let asked = !world.has(Flaw::ReadmitsAtOnce) && !world.has(Flaw::ReadmitsByReading);
    let state = if known.members.has(at) { State::Member } else { State::Removed };
    let record = world.masters[at].new_record(known, state, known.members.ids[at], world.now + Q);
    world.masters[at].record = Some(Record {
        promised: if asked { ballot } else { 0 },
        accepted: found.filter(|_| asked && !world.has(Flaw::ForgetsAccepted)),
        ..record
    });
    world.done.readmitted += 1;
}

/// Whether a master forgot, or is a candidate that its generation does not wait for any more: of
/// another set, of another id, or of a generation that is complete.
pub(crate) fn may_be_readmitted(world: &World, at: usize, known: &Generation) -> bool {
    let member = known.members.has(at);
    let Some(record) = &world.masters[at].record else { return member };
    let candidate = member && record.state == State::Candidate;
    if record.generation.set != known.set {
        return candidate && record.quarantine > world.now;
    }
    let another = member && record.id != known.members.ids[at];
    let incomplete = candidate && record.generation.number == known.number;
    record.generation.number <= known.number && (!world.masters[at].remembers() || another || incomplete)
}

fn readmit(world: &mut World, client: usize, at: usize, forgot: usize, heard: bool) {
    let Some(known) = world.actors[client].knows.filter(|_| at != forgot) else { return };
    let flaw = world.flaw;
    let master = &mut world.masters[at];
    master.carry(at, &known, flaw);
    if heard && world.learn(client, at) {
        return;
    }
    let Task::Readmit { ballot, read, remember, promised, .. } = &mut world.actors[client].task else {
        return;
    };
    if heard {
        *read = read.with(at);
    }
    let master = &mut world.masters[at];
    let incarnation = master.incarnation;
    let Some(record) = master.acceptor(&known) else { return };
    if heard {
        *remember = remember.with(at);
    }
    if flaw == Some(Flaw::ReadmitsByReading) {
        promised.by = promised.by.with(at);
    } else {
        promise(record, incarnation, at, *ballot, promised, heard);
    }
}

/// A client that was started with a list looks at one of its masters.
fn look(world: &mut World, client: usize, at: usize) {
    let Some(Record { generation, state, .. }) = world.masters[at].record else { return };
    let Task::Look { newest, agree, .. } = &mut world.actors[client].task else { return };
    if state == State::Candidate {
        return;
    }
    match newest {
        Some(known) if known.set != generation.set => *agree = Masters::default(),
        Some(known) if known.number > generation.number => {}
        Some(known) if known.number == generation.number => *agree = agree.with(at),
        _ => {
            (*newest, *agree) = (Some(generation), Masters::of(&[at]));
        }
    }
}

pub(crate) fn may_go_on(world: &World, client: usize) -> bool {
    !matches!(world.actors[client].task, Task::Write { .. })
}

pub(crate) fn go_on(world: &mut World, client: usize) {
    let (now, actor) = (world.now, world.actors[client]);
    let Role::Client { list, lease, .. } = actor.role else { return };
    let Some(known) = actor.knows else {
        return go_on_looking(world, client, list);
    };
    let members = known.members.masters;
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
            if !granted.has_majority_of(members) || now >= sent + TTL {
                Task::Undo { at: known.reached() }
            } else if let Some(token) = agreed(members, &numbers) {
                hold(world, client, Lease { until: sent + TTL, token }, floor);
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
            if confirmed.has_majority_of(members) && now < sent + TTL {
                hold(world, client, Lease { until: sent + TTL, token }, floor);
                Task::Idle
            } else {
                Task::Undo { at: known.reached() }
            }
        }
        Task::Extend { sent, extended, .. } => {
            if let Some(lease) = lease
                && lease.until > now
                && extended.has_majority_of(members)
                && now < sent + TTL
            {
                hold(world, client, Lease { until: sent + TTL, ..lease }, 0);
            }
            Task::Idle
        }
        Task::Readmit { .. } => after_first_phase(world, &known, actor.task),
        _ => Task::Idle,
    };
}

/// A master that forgot is written by what a majority promised. Where most forgot, by what the rest
/// promised: at once where it has a record and they accepted nothing, else by the steps of
/// beginning, after which what they accepted is decided.
fn after_first_phase(world: &World, known: &Generation, task: Task) -> Task {
    let Task::Readmit { at, of, ballot, read, remember, promised, .. } = task else { return Task::Idle };
    let (none, members) = (Masters::default(), known.members.masters);
    let record = world.masters[at].record.filter(|record| record.generation.set == known.set);
    let has_record = record.is_some_and(|record| record.state != State::Candidate);
    // A ballot that was only too low is no loss: another one is tried.
    let refused = remember.has_majority_of(members) || !promised.by.contains(remember);
    let most_forgot = read.with(at).contains(members) && (!refused || world.has(Flaw::TakesRefusalForLoss));
    let by_majority = promised.by.has_majority_of(members) || world.has(Flaw::ReadmitsAtOnce);
    let goes_on = promised.found.is_none() || world.has(Flaw::PassesOver);
    if by_majority || (most_forgot && goes_on && (has_record || !known.members.has(at))) {
        Task::Write { at, of, ballot, found: promised.found }
    } else if most_forgot {
        let begin = Begin { generation: *known, again: Some((ballot, promised.found)) };
        Task::Begin { begin, asked: none, noted: none, of: [0; N] }
    } else {
        Task::Idle
    }
}

/// The token on which a majority agrees.
fn agreed(members: Masters, numbers: &[Token; N]) -> Option<Token> {
    let gave = |token: Token| (0..N).filter(|&at| numbers[at] == token).collect::<Masters>();
    numbers.iter().copied().find(|&token| token > 0 && gave(token).has_majority_of(members))
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

/// A list is accepted where a master of it is a member of a set that has it, or had it, and none is
/// one of another set.
fn go_on_looking(world: &mut World, client: usize, list: Masters) {
    let actor = &mut world.actors[client];
    let looked = std::mem::replace(
        &mut actor.task,
        Task::Look { asked: Masters::default(), newest: None, agree: Masters::default() },
    );
    if let Task::Look { newest: Some(newest), agree, .. } = looked
        && !agree.is_empty()
        && (newest.number > 0 || newest.members.masters == list)
    {
        (actor.knows, actor.task) = (Some(newest), Task::Idle);
    }
}

/// A client gives up its lease.
pub(crate) fn release(world: &mut World, client: usize) {
    let actor = &mut world.actors[client];
    if let Role::Client { lease, .. } = &mut actor.role {
        *lease = None;
    }
    actor.task = Task::Undo { at: actor.knows.map_or(Masters::default(), |known| known.reached()) };
}

pub(crate) fn begin_readmission(world: &mut World, client: usize, at: usize) {
    if world.learn(client, at) {
        return;
    }
    let (ballot, of) = (world.new_ballot(), world.masters[at].incarnation);
    let (none, promised) = (Masters::default(), Promised::default());
    world.actors[client].task =
        Task::Readmit { at, of, ballot, asked: none, read: none, remember: none, promised };
}
