//! Those who change the set, one master at a time, as `admin/change.rs` does.

use std::time::Duration;

use super::super::super::change::{Choice, Promises};
use super::super::super::handle::Event;
use super::super::super::record::{MasterRecord, Members};
use super::super::basics::{masters_of, name};
use super::super::client::{FakeConnection, moment, note_reply};
use super::super::fake::Reply;
use super::world::{AskedAcceptors, Flaw, Role, Task, World};
use crate::wire::{MasterIndex, MasterSet};

/// Which masters a changer adds next, and which it removes: one master.
fn next(world: &World, newest: &MasterRecord, role: &Role) -> (Vec<usize>, Vec<usize>) {
    let Role::Changer { to, removes_first } = role else { return Default::default() };
    let members = masters_of(&newest.members);
    let first_not_in = |of: &[usize], others: &[usize]| -> Vec<usize> {
        of.iter().filter(|at| !others.contains(at)).take(1).copied().collect()
    };
    let missing = first_not_in(to, &members);
    let surplus = first_not_in(&members, to);
    if missing.is_empty() || surplus.is_empty() || world.has(Flaw::TwoAtOnce) {
        (missing, surplus)
    } else if *removes_first && members.len() > 2 {
        (vec![], surplus)
    } else {
        (missing, vec![])
    }
}

/// For how long the changer has to wait for the leases of the previous list.
pub(super) fn barrier_left(world: &World, actor: usize) -> Option<Duration> {
    let client = &world.actors[actor].client;
    let newest = client.set.newest()?;
    client.set.barrier_left(newest, client.barrier.as_ref(), moment(world.now))
}

pub(super) fn ask(world: &mut World, actor: usize, index: MasterIndex, heard: bool) {
    let lax = world.has(Flaw::AcceptsUnasked);
    let World { fakes, actors, now, .. } = world;
    let who = &mut actors[actor];
    let (of, value) = match &mut who.task {
        Task::Barrier(of) | Task::Propose(of, _) => (of, None),
        Task::Accept { of, value, .. } => (of, Some(value.to_string())),
        _ => return,
    };
    of.asked = of.asked.or(index.into());
    if lax && value.is_some() {
        let state = fakes[who.client.list[index]].acceptor.as_mut();
        state.into_iter().for_each(|(_, state)| state.promised = Some(of.proposal.ballot));
    }
    let reply = who.client.ask_one(index, fakes, &of.proposal, value.as_deref(), *now);
    let Some(reply) = reply.filter(|_| heard) else { return };
    if reply == Reply::Forgot {
        who.client.connections[index] = FakeConnection::Closed; // it shakes hands again
    }
    match &mut who.task {
        Task::Barrier(of) | Task::Propose(of, _) => note_reply(&mut of.promises, index, reply),
        Task::Accept { accepted, .. } if reply == Reply::Accepted => *accepted = accepted.or(index.into()),
        _ => {}
    }
}

pub(super) fn go_on(world: &mut World, actor: usize) {
    let Some(newest) = world.actors[actor].newest().cloned() else { return };
    let now = world.now;
    let task = std::mem::replace(&mut world.actors[actor].task, Task::Idle);
    world.actors[actor].task = match task {
        Task::Idle => begin(world, actor, &newest),
        Task::Barrier(of) => {
            let client = &mut world.actors[actor].client;
            client.barrier = client.set.raise_barrier(&of.newest, &of.promises, moment(now)).ok();
            Task::Idle
        }
        Task::Prepare(at) => {
            let client = &mut world.actors[actor].client;
            let candidate = client.set.joining().map(|its| its.member);
            let (_, removes) = next(world, &newest, &world.actors[actor].role);
            let members = candidate.map(|id| without(&newest.members, &removes).with(id, name(at)));
            match members {
                Some(members) => Task::Propose(phase_one(world, actor, newest), Some(members)),
                None => Task::Idle,
            }
        }
        Task::Propose(of, _) if !is_current(&of, &newest) => Task::Idle,
        Task::Propose(of, own) => {
            let client = &mut world.actors[actor].client;
            let value =
                match client.set.choice(&of.newest, &of.promises, client.barrier.as_ref(), moment(now)) {
                    Choice::Accepted(found) => Some(found),
                    Choice::Own => own,
                    Choice::NoBarrier => {
                        client.barrier = None;
                        None
                    }
                    Choice::NoMajority | Choice::Unreadable => None,
                };
            match value {
                Some(value) => {
                    let asked = MasterSet::default();
                    Task::Accept { of: AskedAcceptors { asked, ..of }, value, since: now, accepted: asked }
                }
                None => Task::Idle,
            }
        }
        Task::Accept { of, value, since, accepted } => {
            if of.newest.members.have_majority(accepted.len()) {
                let client = &mut world.actors[actor].client;
                client.set.handle(since, Event::Chosen { from: of.newest, members: value });
                client.meet();
                world.done.changes += 1;
            }
            Task::Idle
        }
        other => other,
    };
}

/// Whether the client has not heard of a later generation since.
fn is_current(of: &AskedAcceptors, newest: &MasterRecord) -> bool {
    (&of.newest.set, of.newest.generation) == (&newest.set, newest.generation)
}

/// What comes first: the barrier, a candidate, or the proposal.
fn begin(world: &mut World, actor: usize, newest: &MasterRecord) -> Task {
    let (adds, removes) = next(world, newest, &world.actors[actor].role);
    if adds.is_empty() && removes.is_empty() {
        world.done.finished += 1;
        return Task::Done;
    }
    if barrier_left(world, actor).is_none() {
        return Task::Barrier(phase_one(world, actor, newest.clone()));
    }
    if let [at] = adds[..] {
        let client = &mut world.actors[actor].client;
        client.set.join(&name(at));
        client.meet();
        return Task::Prepare(at);
    }
    let own = without(&newest.members, &removes);
    Task::Propose(phase_one(world, actor, newest.clone()), Some(own))
}

fn without(members: &Members, masters: &[usize]) -> Members {
    let gone = masters.iter().filter_map(|at| members.id_of(&name(*at)));
    gone.fold(members.clone(), |left, id| left.without(id))
}

pub(super) fn phase_one(world: &mut World, actor: usize, newest: MasterRecord) -> AskedAcceptors {
    let ballot = world.new_ballot();
    let proposal = world.actors[actor].client.set.proposal(&newest, ballot);
    AskedAcceptors { newest, proposal, asked: MasterSet::default(), promises: Promises::default() }
}
