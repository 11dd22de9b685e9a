//! The calm after the storm: everything works again, and what is given up leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use quorate_history::checkers::hand_off::HAND_OFF;
use quorate_history::checkers::left_behind::SETTLING;
use quorate_history::checkers::order::{self, IN_LINE};

use crate::actor::Acting;
use crate::changer::change_once_more;
use crate::founder::LOOK;
use crate::left::Left;
use crate::locks::Locks;
use crate::look::{look, look_for_places};
use crate::plan::{End, Plan};
use crate::size::{CLIENTS, LOCKS, LONGER, MASTERS};
use crate::stage::Stage;

/// How long a client is ready to wait when all is calm.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the last of all clients waits for a lock when all is calm, besides what was left
/// before.
const BOUND: Duration = Duration::from_millis(1_000);

/// How long a client works under a lock when all is calm.
const WORK: Duration = Duration::from_millis(2);

/// How many come while others wait, and how long after the one before, at most. They work for twice
/// as long.
const NEWCOMERS: usize = 24;
const NEXT: Duration = Duration::from_millis(50);

/// How long after the last operation nothing is under way any more, when all is calm.
const SETTLED: Duration = Duration::from_millis(600);

/// How long a quarantine lasts besides 1.01 of the max TTL, how long a name is remembered besides a
/// quarantine, and how long a queue is kept (docs/PROTOCOL.md).
const QUARANTINE: Duration = Duration::from_secs(4);
const REMEMBERED: Duration = Duration::from_secs(60);
const QUEUE_LIFE: Duration = Duration::from_secs(120);

/// How long a set that is lost may take to begin again: what begins it is under way already, and
/// may have to be run once more.
const BEGINS_AGAIN: Duration = Duration::from_secs(60);

/// How long clients take to hear of a set that began again, at most.
const HEARD: Duration = Duration::from_secs(10);

/// Waits until the set has begun again, if it was lost. Whether all clients are clients of it then:
/// not one that has an older list, and does not know that of before; nor as long as a master that
/// left shows the set of before.
async fn until_it_goes_on(stage: &Arc<Stage>, plan: &Plan) -> bool {
    let calm = stage.world.look_at_the_time();
    loop {
        if let Some(set) = stage.set_of(&stage.newest_list()) {
            stage.goes_on(set);
            break;
        }
        tokio::time::sleep(LOOK).await;
        let at = stage.world.look_at_the_time();
        if at > calm + BEGINS_AGAIN {
            stage.world.recorder.stuck(CLIENTS, at);
            return false;
        }
    }
    if stage.times_begun() > 1 {
        tokio::time::sleep(HEARD).await;
    }
    let list = stage.newest_list();
    stage.times_begun() <= 1 || list == plan.lists.of(0)
}

/// Everything works again: each client gets each lock, and what is given up leaves nothing behind.
pub(crate) async fn calm(stage: &Arc<Stage>, plan: &Plan) {
    let one_lock = |client: usize, lock: usize| client % LOCKS == lock;
    if plan.latecomer.is_some() {
        if !until_it_goes_on(stage, plan).await {
            stage.world.note(|| "not all clients know the set that began again".to_owned());
            stage.world.recorder.with(|history| history.remembered = remembered(plan));
            return;
        }
        // A master that joined and lost its record waits for those that restarted.
        together(stage, one_lock, |client, lock| get(stage.clone(), client, lock)).await;
    }
    let began = stage.world.look_at_the_time();
    stage.world.note(|| "calm".to_owned());
    stage.world.recorder.with(|history| {
        history.calm = Some(began);
        history.longest_ttl = plan.ttl * LONGER;
        history.bound = BOUND + (plan.ttl * 4).max(quarantine(plan));
        history.in_turn = (plan.locks == Locks::Fair).then_some(order::APART);
        history.remembered = remembered(plan);
    });
    together(stage, one_lock, |client, lock| get(stage.clone(), client, lock)).await;
    // From then on nothing that was left from the storm is in anybody's way.
    let settled = SETTLING + plan.ttl * 2 * LONGER;
    tokio::time::sleep(settled.saturating_sub(stage.world.look_at_the_time() - began)).await;
    together(stage, |client, lock| !one_lock(client, lock), |client, lock| get(stage.clone(), client, lock))
        .await;
    if let Some(latecomer) = plan.latecomer
        && !come_late(stage, latecomer).await
    {
        return stage.world.note(|| "not all clients know the set that began again".to_owned());
    }
    die_in_line(stage).await;
    parts_in_line(stage).await;
    match plan.locks {
        Locks::Fair => newcomers(stage).await,
        Locks::ReadWrite => a_reader_dies(stage).await,
        _ => {}
    }
    together(stage, one_lock, |client, lock| change_mind(stage.clone(), client, lock)).await;
    tokio::time::sleep(SETTLED).await;
    look(stage);
    tokio::time::sleep(plan.ttl * (LONGER + 1)).await;
    look(stage);
    look_for_places(stage);
    stage.living().for_each(|client| stage.world.recorder.note_deadlines(client));
}

/// For how long a master that was restarted has no vote (docs/PROTOCOL.md). The calm begins a
/// moment after the last fault.
fn quarantine(plan: &Plan) -> Duration {
    let longest = plan.ttl * LONGER;
    longest + longest / 100 + QUARANTINE
}

/// For how long masters remember a name that nobody has: as clients ask them to, or for as long as
/// a queue.
fn remembered(plan: &Plan) -> Duration {
    (quarantine(plan) + REMEMBERED).max(QUEUE_LIFE)
}

/// Has each client that lives do something with each of these locks, all at once.
async fn together<F>(
    stage: &Arc<Stage>,
    wanted: impl Fn(usize, usize) -> bool,
    act: impl Fn(usize, usize) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let left = Left::of(stage);
    for client in stage.lockers() {
        for lock in (0..LOCKS).filter(|lock| wanted(client, *lock)) {
            left.run(stage, client, act(client, lock));
        }
    }
    left.wait(stage).await;
}

/// A client that knows nothing of what became of its masters gets a lock, if one of them can tell
/// it, and changes the set once more; then all get the lock. Not if that went on with a change that
/// somebody else left, to masters that lost it, and the set began again: that is false.
async fn come_late(stage: &Arc<Stage>, client: usize) -> bool {
    let newest = stage.changes();
    if stage.servers[..MASTERS].iter().all(|server| stage.generation_of(server) != Some(newest)) {
        stage.world.note(|| format!("c{client}     nobody on its list knows the set"));
        return true;
    }
    let left = Left::of(stage);
    left.run(stage, client, get(stage.clone(), client, 0));
    left.wait(stage).await;
    let left = Left::of(stage);
    let begun = stage.times_begun();
    left.run(stage, client, change_once_more(stage.clone(), client));
    left.wait(stage).await;
    if stage.times_begun() > begun {
        return false;
    }
    let left = Left::of(stage);
    stage.lockers().chain([client]).for_each(|client| left.run(stage, client, get(stage.clone(), client, 0)));
    left.wait(stage).await;
    true
}

/// A client dies at the head of a queue, and then the lock is given back: the next one gets it.
async fn die_in_line(stage: &Arc<Stage>) {
    let living: Vec<usize> = stage.lockers().take(3).collect();
    let [holder, dying, next] = living[..] else { return };
    let left = Left::of(stage);
    for _ in 0..stage.permits.unwrap_or(1) {
        left.run(stage, holder, get_for(stage.clone(), holder, 0, IN_LINE * 4));
    }
    for client in [dying, next] {
        tokio::time::sleep(IN_LINE).await;
        left.run(stage, client, get(stage.clone(), client, 0));
    }
    tokio::time::sleep(IN_LINE).await;
    stage.world.look_at_the_time();
    stage.kill(dying);
    left.wait(stage).await;
}

/// Of a lock that has parts (permits, names or readers), one is given back while others are kept.
/// The head of the queue gives up then, or cannot use it: the next one gets it.
async fn parts_in_line(stage: &Arc<Stage>) {
    let living: Vec<usize> = stage.lockers().take(3).collect();
    let [holder, first, next] = living[..] else { return };
    let (parts, whole) = stage.parts();
    let Some(part) = parts.first().cloned() else { return };
    let acting = |client, wish| Acting::wishing(stage.clone(), client, wish);
    let left = Left::of(stage);
    for (number, part) in parts.into_iter().enumerate() {
        let work = if number == 0 { IN_LINE * 3 } else { IN_LINE * 3 + HAND_OFF * 2 };
        left.run(stage, holder, hold(acting(holder, part), PATIENCE, work));
    }
    tokio::time::sleep(IN_LINE).await;
    let dice = stage.world.dice("giving up", 0);
    let after = if dice.happens(500) { PATIENCE } else { IN_LINE * 2 + dice.millis(0, 40) };
    left.run(stage, first, give_up(acting(first, whole), after));
    tokio::time::sleep(IN_LINE).await;
    left.run(stage, next, hold(acting(next, part), PATIENCE, WORK));
    left.wait(stage).await;
}

/// A reader dies while another reads on until the dead one's lease is long over: a waiting writer
/// then has only the other before it.
async fn a_reader_dies(stage: &Arc<Stage>) {
    let living: Vec<usize> = stage.lockers().take(3).collect();
    let ([dying, reading, next], (readers, writer)) = (&living[..], stage.parts()) else { return };
    let left = Left::of(stage);
    for (client, reader) in [dying, reading].into_iter().zip(readers) {
        left.run(
            stage,
            *client,
            hold(Acting::wishing(stage.clone(), *client, reader), PATIENCE, stage.ttl * 7 / 2),
        );
    }
    tokio::time::sleep(IN_LINE).await;
    stage.world.look_at_the_time();
    stage.kill(*dying);
    tokio::time::sleep(IN_LINE).await;
    left.run(stage, *next, hold(Acting::wishing(stage.clone(), *next, writer), PATIENCE, WORK));
    left.wait(stage).await;
}

/// While some wait in line others keep coming, to wait as well, or to ask once; and some give up.
async fn newcomers(stage: &Arc<Stage>) {
    let (living, dice): (Vec<usize>, _) = (stage.lockers().collect(), stage.world.dice("newcomers", 0));
    let left = Left::of(stage);
    for _ in 0..NEWCOMERS {
        tokio::time::sleep(dice.time(Duration::ZERO, NEXT)).await;
        let Some(client) = living.get(dice.below(CLIENTS)).copied() else { continue };
        let acting = Acting::on(stage.clone(), client, 0);
        let time = dice.time(Duration::ZERO, NEXT * 2);
        match dice.below(10) {
            0 => left.run(stage, client, give_up(acting, time * 2)),
            1..=3 => left.run(stage, client, hold(acting, Duration::ZERO, time)),
            _ => left.run(stage, client, hold(acting, PATIENCE, time)),
        }
    }
    left.wait(stage).await;
}

/// A client gets a lock, and gives it back.
async fn get(stage: Arc<Stage>, client: usize, lock: usize) {
    get_for(stage, client, lock, WORK).await;
}

/// The same, after so long.
async fn get_for(stage: Arc<Stage>, client: usize, lock: usize, work: Duration) {
    hold(Acting::on(stage, client, lock), PATIENCE, work).await;
}

async fn hold(acting: Acting, wait: Duration, work: Duration) {
    let lock = acting.lock();
    if let Some(holding) = acting.acquire(lock, wait).await {
        tokio::time::sleep(work).await;
        acting.end(holding, End::Release).await;
    }
}

/// A client asks for a lock, and gives up before it can know whether it has it, or right after.
async fn change_mind(stage: Arc<Stage>, client: usize, lock: usize) {
    let after = stage.world.dice("change of mind", (client * LOCKS + lock) as u64).millis(0, 12);
    give_up(Acting::on(stage, client, lock), after).await;
}

async fn give_up(acting: Acting, after: Duration) {
    let lock = acting.lock();
    if let Some(holding) = acting.acquire_for(lock, after).await {
        acting.end(holding, End::Drop).await;
    }
}
