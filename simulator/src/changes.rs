//! The set of masters changes: who adds, removes or replaces one, and when, and what goes wrong
//! meanwhile. Each change is made by a process of its own, as by the command: it begins with the
//! first list, and ends with what it has to do, or before.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorate::SetChange;
use quorate_testkit::Dice;

use crate::faults::{Fault, Kind, Scope, What, ordinary_fault};
use crate::history::{Stuck, Time};
use crate::plan::{OFF, Plan, RATE, Step, healed, tasks};
use crate::size::{CLIENTS, JOINERS, LONGER, MASTERS, OPERATIONS};
use crate::stage::Stage;

/// How long a process that changes the set waits for masters.
pub(crate) const WAIT: Duration = Duration::from_secs(10);

/// For how long changes and faults begin: a change takes two quarantines at most.
const STORM: Duration = Duration::from_secs(45);

/// How long an actor does nothing before a task, at most.
const THINK: Duration = Duration::from_secs(5);

/// The longest usual TTL: the shorter, the more changes there are.
const LONGEST_TTL: Duration = Duration::from_secs(1);

/// A run is so much longer than others that masters' clocks would be too far apart at its end.
const LONGER_RUN: i64 = 20;

/// How many more operations than in other runs there are.
const MORE_OPERATIONS: usize = 2;

/// The fewest and the most changes that somebody begins, in one run.
const CHANGES: (usize, usize) = (5, 14);

/// Of how many a change makes the set at least and at most, if all before it were made.
const MEMBERS: (usize, usize) = (3, 7);

/// How often a process begins a change again that was not made.
const TRIES: usize = 3;

/// How many messages a process may send before it is killed: more than a change takes.
const MESSAGES: usize = 150;

/// How long after the end of one quarantine, at most, the next master restarts empty.
const NEXT_LOSS: Duration = Duration::from_secs(8);

/// How long masters are down, and nothing gets through, at most, where that is long.
const LONG: Duration = Duration::from_secs(12);

/// What one process changes.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    what: Replacement,
    /// How many messages it sends before it is killed.
    dies_after: Option<u64>,
}

/// Which master joins, and which leaves, by their numbers.
#[derive(Clone, Copy, Debug)]
struct Replacement {
    joins: Option<usize>,
    leaves: Option<usize>,
}

/// Makes the plan one of a run in which the set changes.
pub(crate) fn plan(plan: &mut Plan) {
    let dice = |purpose| Dice::new(plan.seed, purpose, 0);
    plan.ttl = plan.ttl.min(LONGEST_TTL);
    plan.tasks = tasks(&dice("tasks"), plan.ttl, OPERATIONS * MORE_OPERATIONS, THINK);
    let changers = {
        let dice = dice("changers");
        CHANGES.0 + dice.below(CHANGES.1 - CHANGES.0 + 1)
    };
    let dice = dice("changes");
    let clock = |_| (dice.between(-RATE, RATE), dice.between(-OFF, OFF));
    plan.masters.extend((0..JOINERS).map(clock));
    plan.masters.iter_mut().for_each(|(rate, _)| *rate /= LONGER_RUN);
    plan.clients.extend((0..=changers).map(clock));
    plan.latecomer = Some(CLIENTS + changers);
    linger(plan, &dice);
    plan.faults = faults(plan, changers, &dice);
    plan.healed = healed(&plan.faults);
}

/// Some guards are kept for long, so that their leases go on from one set to the next; and some
/// clients begin late, with a list that is old.
fn linger(plan: &mut Plan, dice: &Dice) {
    for task in plan.tasks.iter_mut().filter(|_| dice.happens(100)) {
        task.steps.push((dice.time(Duration::ZERO, LONG / 2), Step::Extend(plan.ttl)));
    }
    for client in (0..CLIENTS).filter(|_| dice.happens(250)) {
        let late = dice.time(Duration::ZERO, STORM);
        let mut actors = Vec::new();
        for task in plan.tasks.iter_mut().filter(|task| task.client == client) {
            if !actors.contains(&task.actor) {
                actors.push(task.actor);
                task.think += late;
            }
        }
    }
}

fn faults(plan: &Plan, changers: usize, dice: &Dice) -> Vec<Fault> {
    let scope = Scope { clients: CLIENTS + changers, masters: MASTERS + JOINERS, storm: STORM };
    let ordinary = *dice.one_of(&[0, 10, 30, 60]);
    let mut faults: Vec<Fault> =
        (0..ordinary).map(|number| ordinary_fault(dice, number, plan.ttl, scope)).collect();
    for fault in faults.iter_mut().filter(|_| dice.happens(200)) {
        fault.until = fault.at + dice.time(Duration::ZERO, LONG);
    }
    let mut add = |at, until, what| faults.push(Fault { number: faults.len(), at, until, what });
    for _ in 0..dice.below(3) {
        let at = dice.time(Duration::ZERO, STORM);
        let master = dice.below(MASTERS + JOINERS);
        add(at, at + dice.time(LONG / 4, LONG * 2), What::Restart { master });
    }
    for (at, until, master) in losses(dice, quarantine(plan.ttl)) {
        let masters = vec![master];
        add(at, until, What::Excluded { kind: Kind::RestartEmpty, masters, by: 0 });
    }
    for (number, (at, change)) in changes(dice, changers).into_iter().enumerate() {
        add(at, at, What::Change { client: CLIENTS + number, change });
    }
    faults
}

/// When masters restart empty, one after the other, and which.
fn losses(dice: &Dice, quarantine: Duration) -> Vec<(Time, Time, usize)> {
    let mut losses = Vec::new();
    let mut at = dice.time(Duration::ZERO, NEXT_LOSS);
    let is_wanted = dice.happens(750);
    while at < STORM && is_wanted {
        let lasts = if dice.happens(700) { dice.millis(5, 200) } else { dice.time(Duration::ZERO, LONG) };
        losses.push((at, at + lasts, dice.below(MASTERS + JOINERS)));
        at += lasts + quarantine + dice.time(Duration::ZERO, NEXT_LOSS);
    }
    losses
}

/// So many changes, some of them two at once. Most make sense if all those before were made.
fn changes(dice: &Dice, count: usize) -> Vec<(Time, Change)> {
    let mut members: Vec<usize> = (0..MASTERS).collect();
    let mut at = Duration::ZERO;
    let change = |_| {
        at += if dice.happens(400) { dice.millis(0, 500) } else { dice.time(Duration::ZERO, STORM / 6) };
        let what = if dice.happens(100) { any(dice) } else { sensible(dice, &members) };
        members.retain(|member| Some(*member) != what.leaves);
        members.extend(what.joins.filter(|joins| !members.contains(joins)));
        let dies_after = dice.happens(400).then(|| 1 + dice.below(MESSAGES) as u64);
        (at, Change { what, dies_after })
    };
    (0..count).map(change).collect()
}

/// One that may change nothing.
fn any(dice: &Dice) -> Replacement {
    let some = |_: ()| Some(dice.below(MASTERS + JOINERS));
    match dice.below(3) {
        0 => Replacement { joins: some(()), leaves: None },
        1 => Replacement { joins: None, leaves: some(()) },
        _ => Replacement { joins: some(()), leaves: some(()) },
    }
}

fn sensible(dice: &Dice, members: &[usize]) -> Replacement {
    let others: Vec<usize> = (0..MASTERS + JOINERS).filter(|master| !members.contains(master)).collect();
    let one_of = |masters: &[usize]| (!masters.is_empty()).then(|| *dice.one_of(masters));
    match (one_of(&others), one_of(members), dice.below(10)) {
        (joins, leaves, 0..=2) if members.len() < MEMBERS.1 || leaves.is_none() => {
            Replacement { joins, leaves: None }
        }
        (joins, leaves, 3..=5) if members.len() > MEMBERS.0 || joins.is_none() => {
            Replacement { joins: None, leaves }
        }
        (joins, leaves, _) => Replacement { joins, leaves },
    }
}

/// For how long a master that may have forgotten something has no vote (docs/PROTOCOL.md).
fn quarantine(ttl: Duration) -> Duration {
    ttl * LONGER + ttl * LONGER / 100 + Duration::from_secs(4)
}

impl Replacement {
    fn wanted(self, stage: &Stage) -> SetChange {
        let name = |number: usize| stage.servers[number].name();
        match (self.joins, self.leaves) {
            (Some(joins), Some(leaves)) => SetChange::replace(name(leaves), name(joins)),
            (Some(joins), None) => SetChange::add(name(joins)),
            (None, Some(leaves)) => SetChange::remove(name(leaves)),
            (None, None) => unreachable!("it changes something"),
        }
    }
}

/// A process begins at this time to change the set.
pub(crate) async fn change(stage: Arc<Stage>, at: Time, client: usize, change: Change) {
    tokio::time::sleep(at).await;
    if let Some(messages) = change.dies_after {
        let its = Arc::downgrade(&stage); // its process must not keep the stage
        let kill = move || {
            if let Some(stage) = its.upgrade() {
                stage.world.note(|| format!("c{client} is killed"));
                stage.kill(client);
            }
        };
        stage.clients[client].process.dies_after(messages, kill);
    }
    for _ in 0..TRIES {
        if make(&stage, client, change.what).await {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let its = stage.clone();
    stage.world.at(stage.world.now(), move || its.kill(client)); // the command has ended
}

/// In the calm a change is made at once.
pub(crate) async fn change_once_more(stage: Arc<Stage>, client: usize) {
    let newest = stage.servers.iter().max_by_key(|server| server.generation());
    let members = newest.and_then(|server| server.record("members")).unwrap_or_default();
    let is_member = |number: usize| {
        let name = stage.servers[number].name();
        members.lines().any(|line| line.split_once(' ').is_some_and(|(_, its)| *its == *name))
    };
    let joins = (0..stage.servers.len()).find(|number| !is_member(*number));
    let leaves = joins.is_none().then_some(0);
    if !make(&stage, client, Replacement { joins, leaves }).await {
        let at = stage.world.now();
        stage.world.recorder.with(|history| history.stuck.push(Stuck { client, at }));
    }
}

/// Whether it was made.
async fn make(stage: &Arc<Stage>, client: usize, what: Replacement) -> bool {
    stage.world.note(|| format!("c{client}     {what}"));
    let made = stage.clients[client].redlock.change_members(what.wanted(stage)).await;
    stage.world.note(|| match &made {
        Ok(()) => format!("c{client}     {what}: done"),
        Err(error) => format!("c{client}     {what}: {error:#}"),
    });
    made.is_ok()
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.joins, self.leaves) {
            (Some(joins), Some(leaves)) => write!(f, "replaces m{leaves} by m{joins}"),
            (Some(joins), None) => write!(f, "adds m{joins}"),
            (None, Some(leaves)) => write!(f, "removes m{leaves}"),
            (None, None) => f.write_str("changes nothing"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what.fmt(f)?;
        self.dies_after.map_or(Ok(()), |messages| write!(f, ", and is killed after {messages} messages"))
    }
}
