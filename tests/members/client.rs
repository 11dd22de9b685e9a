//! Those who take the lock.

use super::change::promise;
use super::master::{Accepted, Ballot, Entry, Generation, Masters, N, Process, Record, State, Time, Token};
use super::variants::Flaw;
use super::world::{Broken, FRESH, Lease, PER_TICK, Promised, Q, Role, SOON, TTL, Task, World};

/// A client asks a master under the generation that it knows: false where that is not the master's,
/// which one of them learns.
fn same_generation(world: &mut World, client: usize, at: usize, heard: bool) -> bool {
    let shown = world.masters[at].record.map(|record| record.generation);
    let is_newer = shown.zip(world.actors[client].knows).is_some_and(|(its, known)| its.follows(&known));
    if is_newer && world.has(Flaw::CountsAnyGeneration) {
        return true;
    }
    let known = world.actors[client].knows;
    let is_same = shown.is_some() && shown == known;
    world.meet(client, at, heard);
    is_same
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
        Task::Acquire { sent, .. } => acquire(world, client, at, sent, heard),
        Task::Confirm { sent, token, .. } => confirm(world, client, at, sent, token, heard),
        Task::Extend { sent, .. } => extend(world, client, at, sent, heard),
        Task::Look { .. } => drop(world.meet(client, at, heard)),
        Task::Undo { .. } => {
            let entry = &mut world.masters[at].entry;
            *entry = entry.filter(|entry| entry.client != client);
            same_generation(world, client, at, heard);
        }
        Task::Rejoin { .. } => first_phase(world, client, at, heard),
        Task::Write { of, since, decree, .. } => write(world, client, at, of, since, decree),
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

/// Whether a master forgot, or is a candidate that its set does not wait for: of another set, with
/// another id, or with which the set began without it.
pub(crate) fn may_rejoin(world: &World, client: usize, at: usize) -> bool {
    let who = &world.actors[client];
    let Some(known) = &who.knows else { return false };
    let (member, master) = (known.members.has(at), &world.masters[at]);
    let Some(record) = &master.record else { return member };
    let is_ours = record.generation.set == known.set;
    if is_ours && !master.remembers() && record.generation.number <= known.number {
        return record.state == State::Member || member;
    }
    let another = record.id != known.members.ids[at];
    let is_most = who.members_of(known.set, at) * 2 > known.members.masters.len();
    let waits = !is_ours || another || record.generation.number == known.number;
    record.state == State::Candidate && member && waits && (is_most || is_ours && another)
}

pub(crate) fn begin_rejoin(world: &mut World, client: usize, at: usize) {
    let before = world.actors[client].knows;
    world.meet(client, at, true);
    let by_old_evidence = world.has(Flaw::ReadmitsByOldEvidence);
    if world.actors[client].knows != before || !may_rejoin(world, client, at) && !by_old_evidence {
        return;
    }
    let (ballot, since, none) = (world.new_ballot(), world.now, Masters::default());
    let of = world.masters[at].process();
    let promised = Promised::default();
    world.actors[client].task =
        Task::Rejoin { at, of, ballot, since, asked: none, lost: none, kept: none, promised };
}

/// Another master promises, or has lost state as well.
fn first_phase(world: &mut World, client: usize, at: usize, heard: bool) {
    world.meet(client, at, heard);
    let (flaw, master) = (world.flaw, &mut world.masters[at]);
    let actor = &mut world.actors[client];
    let Some(known) = actor.knows else { return };
    let Task::Rejoin { ballot, lost, kept, promised, .. } = &mut actor.task else { return };
    if heard && master.lost_state(known.set) {
        *lost = lost.with(at);
        if master.keeps(at, known.set) {
            *kept = kept.with(at);
        }
    }
    let incarnation = master.incarnation;
    let Some(record) = master.acceptor(&known) else { return };
    if flaw == Some(Flaw::ReadmitsByReading) {
        promised.by = promised.by.with(at);
    } else {
        promise(record, incarnation, at, *ballot, promised, heard);
    }
}

/// A master that forgot is written by what a majority promised. If most forgot, it keeps what it
/// has where more than half have their records, or promised. Otherwise the set is lost.
fn after_first_phase(world: &World, known: &Generation, task: Task) -> Task {
    let Task::Rejoin { at, of, ballot, since, lost, kept, promised, .. } = task else { return Task::Idle };
    let members = known.members.masters;
    let record = world.masters[at].record;
    let keeps = record.is_some_and(|its| its.keeps(at, known.set) && its.id == known.members.ids[at]);
    let all_are_heard = promised.by.and(lost).with(at).contains(members);
    let is_lost = !keeps || !promised.by.and(kept).with(at).has_majority_of(members);
    let by_promises = Some((ballot, promised.found));
    if promised.by.has_majority_of(members) || world.has(Flaw::ReadmitsAtOnce) {
        Task::Write { at, of, since, decree: by_promises }
    } else if all_are_heard && !is_lost {
        Task::Write { at, of, since, decree: by_promises.filter(|_| world.has(Flaw::OverwritesDecree)) }
    } else if all_are_heard && world.has(Flaw::ResumesItself) {
        Task::Write { at, of, since, decree: by_promises }
    } else {
        Task::Idle
    }
}

/// Writes the record of a master that forgot, with what the first phase promised and found, or with
/// what it has.
fn write(
    world: &mut World,
    client: usize,
    at: usize,
    of: Process,
    since: Time,
    decree: Option<(Ballot, Accepted)>,
) {
    world.actors[client].task = Task::Idle;
    let Some(known) = world.actors[client].knows else { return };
    let by_old_evidence = world.has(Flaw::ReadmitsByOldEvidence) && may_rejoin(world, client, at);
    let asked = !world.has(Flaw::ReadmitsAtOnce) && !world.has(Flaw::ReadmitsByReading);
    let forgets = world.has(Flaw::ForgetsAccepted);
    let (now, master) = (world.now, &mut world.masters[at]);
    if !by_old_evidence && (master.process() != of || now - since > SOON) {
        return;
    }
    let state = if known.members.has(at) { State::Member } else { State::Removed };
    let before = master.record.filter(|its| its.generation == known);
    let (promised, accepted) = match decree {
        Some((ballot, found)) if asked => (ballot, found.filter(|_| !forgets)),
        None => before.map_or((0, None), |its| (its.promised, its.accepted)),
        Some(_) => (0, None),
    };
    let record = master.new_record(known, state, known.members.ids[at], now + Q);
    master.record = Some(Record { promised, accepted, ..record });
    world.done.rejoined += 1;
}

pub(crate) fn may_go_on(world: &World, client: usize) -> bool {
    !matches!(world.actors[client].task, Task::Write { .. })
}

pub(crate) fn go_on(world: &mut World, client: usize) {
    let (now, actor) = (world.now, world.actors[client]);
    let (Role::Client { lease, .. }, Some(known)) = (actor.role, actor.knows) else { return };
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
        Task::Rejoin { .. } => after_first_phase(world, &known, actor.task),
        _ => Task::Idle,
    };
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

/// A client gives up its lease.
pub(crate) fn release(world: &mut World, client: usize) {
    let actor = &mut world.actors[client];
    if let Role::Client { lease, .. } = &mut actor.role {
        *lease = None;
    }
    actor.task = Task::Undo { at: actor.knows.map_or(Masters::default(), |known| known.reached()) };
}
