//! Those who take the lock.

use super::super::super::record::MasterRecord;
use super::super::client::FakeConnection;
use super::world::{Actor, Broken, FRESH, Flaw, LockEntry, LockRound, ModelLease, Role, TTL, Task, World};
use crate::wire::{MasterIndex, MasterSet};

/// A call reaches a master. Whether the master may grant something: it has the record that the
/// client knows, and no other client has the lock there.
fn may_grant(world: &mut World, actor: usize, index: MasterIndex, round: &LockRound) -> bool {
    let client = &world.actors[actor].client;
    let at = client.list[index];
    let Some(session) = client.session(index) else { return false };
    let is_lax = world.has(Flaw::CountsAnyGeneration);
    let is_known = |its: &&MasterRecord| its.stamp == session.stamp || is_lax;
    let Some(record) = world.fakes[at].record.as_ref().filter(is_known) else {
        world.actors[actor].client.connections[index] = FakeConnection::Closed; // it shakes hands again
        return false;
    };
    let is_of_view = session.view == round.view || is_lax;
    let is_free = world.masters[at].entry.is_none_or(|its| its.actor == actor || its.until < world.now);
    let is_fresh = world.now - round.sent <= FRESH;
    is_of_view && is_free && is_fresh && record.quarantine <= world.now && session.quarantine <= world.now
}

pub(super) fn ask(world: &mut World, actor: usize, index: MasterIndex, heard: bool) {
    let at = world.actors[actor].client.list[index];
    let mut task = std::mem::replace(&mut world.actors[actor].task, Task::Idle);
    let granted = match &mut task {
        Task::Acquire(round) => vote(world, actor, index, round, acquire),
        Task::Confirm(round, token) => {
            let token = *token;
            vote(world, actor, index, round, |world, actor, at| confirm(world, actor, at, token))
        }
        Task::Extend(round) => vote(world, actor, index, round, extend),
        Task::Undo(left) => {
            *left = left.without(index.into());
            let entry = &mut world.masters[at].entry;
            *entry = entry.filter(|entry| entry.actor != actor);
            None
        }
        _ => None,
    };
    if let (Some(token), Task::Acquire(round) | Task::Confirm(round, _) | Task::Extend(round)) =
        (granted, &mut task)
        && heard
    {
        round.votes.insert(index, token);
    }
    world.actors[actor].task = task;
}

/// The token that a master grants, if it does.
fn vote(
    world: &mut World,
    actor: usize,
    index: MasterIndex,
    round: &mut LockRound,
    grant: impl Fn(&mut World, usize, usize) -> Option<u64>,
) -> Option<u64> {
    round.asked = round.asked.or(index.into());
    let at = world.actors[actor].client.list[index];
    may_grant(world, actor, index, round).then(|| grant(world, actor, at)).flatten()
}

fn acquire(world: &mut World, actor: usize, at: usize) -> Option<u64> {
    let master = &mut world.masters[at];
    let token = world.now.max(master.fence + 1);
    master.fence = token;
    master.entry = Some(LockEntry { actor, until: world.now + TTL, token });
    Some(token)
}

fn confirm(world: &mut World, actor: usize, at: usize, token: u64) -> Option<u64> {
    let master = &mut world.masters[at];
    let entry = master.entry.as_mut().filter(|entry| entry.actor == actor)?;
    entry.token = token;
    master.fence = master.fence.max(token);
    Some(token)
}

fn extend(world: &mut World, actor: usize, at: usize) -> Option<u64> {
    let token = world.actors[actor].lease()?.token;
    let master = &mut world.masters[at];
    let is_own = master.entry.is_some_and(|entry| entry.actor == actor && entry.until >= world.now);
    if !is_own && master.fence > token {
        return None;
    }
    master.fence = master.fence.max(token);
    master.entry = Some(LockEntry { actor, until: world.now + TTL, token });
    Some(token)
}

pub(super) fn go_on(world: &mut World, actor: usize) {
    let now = world.now;
    let Actor { client, task, .. } = &world.actors[actor];
    let lease = world.actors[actor].lease();
    let voters = client.set.voters();
    let is_majority = |round: &LockRound| {
        voters.have_majority(round.votes.keys().copied().collect()) && round.view == voters.view
    };
    let round = |floor| LockRound {
        sent: now,
        view: voters.view,
        asked: MasterSet::default(),
        votes: [].into(),
        floor,
    };
    let everywhere = client.met();
    let next = match task.clone() {
        Task::Idle if client.set.newest().is_none() => Task::Idle,
        Task::Idle if lease.is_some_and(|lease| lease.until > now) => Task::Extend(round(0)),
        Task::Idle => Task::Acquire(round(world.highest)),
        Task::Acquire(its) | Task::Confirm(its, _) if !is_majority(&its) || now >= its.sent + TTL => {
            Task::Undo(everywhere)
        }
        Task::Acquire(its) => {
            let gave = |token: u64| -> MasterSet {
                its.votes.iter().filter(|(_, its)| **its == token).map(|(index, _)| *index).collect()
            };
            let agreed = its.votes.values().find(|token| voters.have_majority(gave(**token)));
            match agreed {
                Some(&token) => {
                    hold(world, actor, ModelLease { until: its.sent + TTL, token }, its.floor);
                    Task::Idle
                }
                None => {
                    let token = its.votes.values().copied().max().unwrap_or(0);
                    Task::Confirm(LockRound { asked: MasterSet::default(), votes: [].into(), ..its }, token)
                }
            }
        }
        Task::Confirm(its, token) => {
            hold(world, actor, ModelLease { until: its.sent + TTL, token }, its.floor);
            Task::Idle
        }
        Task::Extend(its) => {
            let held = lease.filter(|lease| lease.until > now && is_majority(&its) && now < its.sent + TTL);
            if let Some(held) = held {
                hold(world, actor, ModelLease { until: its.sent + TTL, ..held }, 0);
            }
            Task::Idle
        }
        _ => Task::Idle,
    };
    world.actors[actor].task = next;
}

fn hold(world: &mut World, actor: usize, lease: ModelLease, floor: u64) {
    if world.other_lease(actor).is_some() {
        world.breaks(Broken::TwoHold);
    }
    if lease.token <= floor {
        world.breaks(Broken::TokenFell);
    }
    world.highest = world.highest.max(lease.token);
    world.done.leases += 1;
    world.actors[actor].role = Role::Locker { lease: Some(lease) };
}

/// A client gives up its lease.
pub(super) fn release(world: &mut World, actor: usize) {
    let actor = &mut world.actors[actor];
    actor.role = Role::Locker { lease: None };
    actor.task = Task::Undo(actor.client.met());
}
