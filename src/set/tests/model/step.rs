//! The steps that are possible in a world, and their effects.

use super::super::super::handle::Event;
use super::super::super::record::{MasterRecord, MemberState};
use super::super::super::rules::Verdict;
use super::super::super::state::Beginning;
use super::super::basics::{masters_of, name};
use super::super::client::FakeConnection;
use super::world::{Back, Flaw, Role, Task, World};
use super::{change, lock};
use crate::wire::{MasterIndex, MasterSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ModelStep {
    /// Time goes by (us).
    Tick {
        by: u64,
    },
    /// A master restarts without its locks.
    Forget {
        at: usize,
        back: Back,
    },
    /// What a master has now is what a restart may bring back.
    Save {
        at: usize,
    },
    /// Somebody reads a master's record.
    Hello {
        actor: usize,
        index: MasterIndex,
    },
    /// Somebody writes it, after a hello.
    Write {
        actor: usize,
        index: MasterIndex,
    },
    /// Somebody begins phase 1 for masters that lost their state.
    Rejoin {
        actor: usize,
    },
    /// An acceptor gets that request. Its reply arrives or is lost.
    Promise {
        actor: usize,
        index: MasterIndex,
        heard: bool,
    },
    /// Somebody calls one master. The reply arrives or is lost.
    Ask {
        actor: usize,
        index: MasterIndex,
        heard: bool,
    },
    /// Somebody continues with the replies that it has, or gives up.
    GoOn {
        actor: usize,
    },
    Release {
        actor: usize,
    },
    /// Somebody is killed, and starts anew.
    Stop {
        actor: usize,
    },
}

/// Whom an actor may ask next.
fn to_ask(world: &World, actor: usize) -> MasterSet {
    let who = &world.actors[actor];
    let left = match &who.task {
        Task::Acquire(round) | Task::Extend(round) | Task::Confirm(round, _) => {
            who.client.set.voters().masters.without(round.asked)
        }
        Task::Undo(left) => *left,
        Task::Barrier(of) | Task::Propose(of, _) => of.proposal.masters.without(of.asked),
        Task::Accept { of, .. } => of.proposal.masters.without(of.asked),
        Task::Idle | Task::Done | Task::Prepare(_) => MasterSet::default(),
    };
    left.iter().filter(|index| who.reaches(*index)).collect()
}

/// Whether a handshake may tell this actor something: it has no connection to the master, the
/// master has another record by now, or the view is another one.
pub(super) fn is_to_read(world: &World, actor: usize, index: MasterIndex) -> bool {
    let client = &world.actors[actor].client;
    let set = &client.set;
    let is_of_use = set.listed().has(index) || !set.is_no_member(index);
    let stamp = world.fakes[client.list[index]].record.as_ref().map(|record| &record.stamp);
    match &client.connections[index] {
        FakeConnection::Closed => is_of_use,
        FakeConnection::Writes(..) => false,
        FakeConnection::Open(session) => {
            let is_outdated = session.view != set.voters().view && is_of_use;
            let is_locker = matches!(world.actors[actor].role, Role::Locker { .. });
            let takes_no_notice = world.has(Flaw::CountsAnyGeneration) && is_locker;
            (stamp != Some(&session.stamp) || is_outdated) && !takes_no_notice
        }
    }
}

/// Every step that somebody may take now.
pub(super) fn steps_of(world: &World, actor: usize, steps: &mut Vec<ModelStep>) {
    let Some(who) = world.actors.get(actor).filter(|who| who.starts <= world.now) else { return };
    let heard = [true, false];
    for index in to_ask(world, actor).iter() {
        steps.extend(heard.map(|heard| ModelStep::Ask { actor, index, heard }));
    }
    for index in who.client.met().iter().filter(|index| who.reaches(*index)) {
        if is_to_read(world, actor, index) && !is_left_out(world, actor, index) {
            steps.push(ModelStep::Hello { actor, index });
        }
        if matches!(who.client.connections[index], FakeConnection::Writes(..)) {
            steps.push(ModelStep::Write { actor, index });
        }
    }
    if let Some((_, left)) = &who.rejoin {
        for index in left.iter().filter(|index| who.reaches(*index)) {
            steps.extend(heard.map(|heard| ModelStep::Promise { actor, index, heard }));
        }
    }
    if who.client.set.proposer.is_wanted() {
        steps.push(ModelStep::Rejoin { actor });
    }
    let waits = change::barrier_left(world, actor).is_some_and(|left| !left.is_zero());
    let is_changer = matches!(who.role, Role::Changer { .. });
    let begins = matches!(who.role, Role::Beginner { .. }) && who.client.set.beginning.is_some();
    if who.task != Task::Done && !(is_changer && waits && who.task == Task::Idle) && !begins {
        steps.push(ModelStep::GoOn { actor });
    }
    match (&who.role, &who.task) {
        (Role::Locker { lease }, Task::Idle) => {
            if lease.is_some_and(|lease| lease.until > world.now) {
                steps.push(ModelStep::Release { actor });
            }
        }
        (Role::Changer { .. }, Task::Idle | Task::Done) => {}
        _ => steps.push(ModelStep::Stop { actor }),
    }
}

/// Whether a set that lives has to have taken back by now this master, which is a candidate of
/// another one: some client of that set connects within a quarantine. Other actors do not read it
/// before that.
fn is_left_out(world: &World, actor: usize, index: MasterIndex) -> bool {
    let who = &world.actors[actor];
    let record = world.fakes[who.client.list[index]].record.as_ref();
    let candidate = record.filter(|its| its.state == MemberState::Candidate && its.quarantine <= world.now);
    let is_wanted = |candidate: &MasterRecord| {
        let master = name(who.client.list[index]);
        world.living().any(|newest| newest.set != candidate.set && newest.members.id_of(&master).is_some())
    };
    let takes_back = |candidate: &MasterRecord| who.newest().is_some_and(|view| view.set != candidate.set);
    candidate.is_some_and(|candidate| is_wanted(candidate) && !takes_back(candidate))
}

/// A set may begin with this list only if each living set has the same list, or a master of the
/// list shows that set's newest generation.
fn may_begin(world: &World, list: &[usize]) -> bool {
    let shows = |at: &usize, newest: &MasterRecord| {
        let record = world.fakes[*at].record.as_ref().filter(|its| its.state != MemberState::Candidate);
        record.is_some_and(|its| (&its.set, its.generation) == (&newest.set, newest.generation))
    };
    let has_list = |newest: &MasterRecord| {
        let mut members = masters_of(&newest.members);
        members.sort_unstable();
        members == list
    };
    world.has(Flaw::IdOfList)
        || world.living().all(|newest| has_list(newest) || list.iter().any(|at| shows(at, newest)))
}

/// Whether a master may forget so. One alone may come back with an older record.
pub(super) fn may_forget(world: &World, back: Back) -> bool {
    world.losses > 0 && (back != Back::Saved || world.none_forgot)
}

pub(super) fn take(world: &mut World, step: ModelStep) {
    match step {
        ModelStep::Tick { by } => world.now += by,
        ModelStep::Forget { at, back } => world.forget(at, back),
        ModelStep::Save { at } => world.save(at),
        ModelStep::Hello { actor, index } => hello(world, actor, index),
        ModelStep::Write { actor, index } => write(world, actor, index),
        ModelStep::Rejoin { actor } => {
            let draw = world.draw_ballot();
            let now = world.now;
            let who = &mut world.actors[actor];
            let ask = who.client.set.handle(now, Event::Propose { draw }).ask;
            who.rejoin = ask.map(|proposal| (proposal.clone(), proposal.masters));
        }
        ModelStep::Promise { actor, index, heard } => {
            let World { fakes, actors, now, .. } = world;
            let who = &mut actors[actor];
            let Some((proposal, left)) = &mut who.rejoin else { return };
            *left = left.without(index.into());
            let reply = who.client.ask_one(index, fakes, proposal, None, *now);
            let ballot = proposal.ballot;
            if let Some(reply) = reply.filter(|_| heard) {
                who.client.hear(index, ballot, reply, *now);
            }
        }
        ModelStep::Ask { actor, index, heard } => match world.actors[actor].role {
            Role::Changer { .. } => change::ask(world, actor, index, heard),
            _ => lock::ask(world, actor, index, heard),
        },
        ModelStep::GoOn { actor } => match world.actors[actor].role {
            Role::Beginner { of_current } => begin(world, actor, of_current),
            Role::Changer { .. } => change::go_on(world, actor),
            Role::Locker { .. } => lock::go_on(world, actor),
        },
        ModelStep::Release { actor } => lock::release(world, actor),
        ModelStep::Stop { actor } => world.actors[actor].restart(),
    }
    world.check_lists();
    world.actors.iter_mut().for_each(|actor| actor.client.set.news = 0);
}

/// An `init`, with its own list or with that of the newest set.
fn begin(world: &mut World, actor: usize, of_current: bool) {
    let newest = world.newest().into_iter().max_by_key(|newest| newest.set.clone());
    if let Some(newest) = newest.filter(|_| of_current) {
        let mut list = masters_of(&newest.members);
        list.sort_unstable();
        world.actors[actor].list = list;
        world.actors[actor].restart();
    }
    let id = world.new_set(&world.actors[actor].list.clone());
    let beginning = Beginning { id, never_used: None };
    world.actors[actor].client.set.begin(Some(beginning));
}

fn hello(world: &mut World, actor: usize, index: MasterIndex) {
    let at = world.actors[actor].client.list[index];
    let ids = world.ids(actor, at);
    let World { fakes, actors, now, .. } = world;
    let who = &mut actors[actor];
    let view = who.client.set.voters().view;
    let verdict = who.client.hello(index, fakes, *now, ids);
    if let Verdict::Write(write) = verdict {
        let is_begun = write.record.state == MemberState::Candidate && write.record.generation == 0;
        let is_beginner = matches!(who.role, Role::Beginner { .. });
        let list = who.list.clone();
        if is_begun && is_beginner && !may_begin(world, &list) {
            world.actors[actor].client.connections[index] = FakeConnection::Closed;
        }
    }
    let who = &mut world.actors[actor];
    if who.client.set.voters().view != view {
        // Votes of one round count under one generation.
        let everywhere = who.client.met();
        who.task = match &who.task {
            Task::Acquire(_) | Task::Confirm(..) => Task::Undo(everywhere),
            Task::Done => Task::Done,
            _ => Task::Idle,
        };
    }
}

fn write(world: &mut World, actor: usize, index: MasterIndex) {
    let at = world.actors[actor].client.list[index];
    let before = world.fakes[at].record.clone();
    let World { fakes, actors, now, .. } = world;
    actors[actor].client.write(index, fakes, *now);
    let after = &world.fakes[at].record;
    if before == *after {
        return;
    }
    world.masters[at].writes += 1;
    let state = |record: &Option<MasterRecord>| record.as_ref().map(|its| (its.state, its.generation));
    let is_begun =
        state(&before) == Some((MemberState::Candidate, 0)) && state(after) == Some((MemberState::Member, 0));
    let incarnation = |record: &Option<MasterRecord>| record.as_ref().map(|its| its.incarnation.clone());
    let is_member = after.as_ref().is_some_and(|its| its.state == MemberState::Member);
    world.done.begun += usize::from(is_begun);
    world.done.rejoined += usize::from(is_member && incarnation(&before) != incarnation(after));
}
