//! Carries out a disaster in the middle of a change.

use std::sync::Arc;
use std::time::Duration;

use quorate_history::Time;
use quorate_testkit::Restart;

use crate::changes::quarantine;
use crate::disaster::Disaster;
use crate::founder::recover;
use crate::plan::Plan;
use crate::stage::Stage;

/// How often it looks how far the change is.
const LOOK: Duration = Duration::from_millis(1);

/// How much longer than a quarantine it waits for the change.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often an operator looks whether the set goes on.
const AGAIN: Duration = Duration::from_secs(1);

/// How long an answer takes, at most.
const HEARD: Duration = Duration::from_millis(20);

/// For how long masters are down that lose their data, at most.
const DOWN: Duration = Duration::from_secs(4);

/// How long before the end of a quarantine a process forgets what it alone knows to be decided.
const LATE: Duration = Duration::from_secs(3);

/// Has a disaster happen to the masters, and to the process that changes the set from this time on,
/// if that comes so far.
pub(crate) fn disrupt(stage: &Arc<Stage>, plan: &Plan, at: Time, client: usize, disaster: Disaster) {
    let its = stage.clone();
    let plan = plan.clone();
    let strikes = async move {
        tokio::time::sleep(at.saturating_sub(its.world.now())).await;
        let members = its.newest_list();
        let has_accepted = |master: &&usize| its.servers[**master].has_accepted();
        let most_have_accepted = || members.iter().filter(has_accepted).count() * 2 > members.len();
        if !until(&its, quarantine(its.ttl) + PATIENCE, most_have_accepted).await {
            return;
        }
        match disaster {
            Disaster::Loss => lose_most(&its, &plan, client, members).await,
            Disaster::RollingRestart => restart_in_turn(&its, client, members).await,
        }
    };
    let its = stage.clone();
    drop(tokio::spawn(async move { its.world.guard(strikes).await }));
}

/// The process learns that its change is decided, and reaches nobody, until shortly before it
/// forgets that; or it is killed. Most masters lose their data, but one at least does not. An
/// operator recovers the set, whenever it is lost.
async fn lose_most(stage: &Arc<Stage>, plan: &Plan, client: usize, mut masters: Vec<usize>) {
    let dice = stage.world.dice("disaster", 0);
    cut_off(stage, client, &masters, true);
    masters.sort_by_key(|master| !stage.servers[*master].has_accepted());
    tokio::time::sleep(dice.time(Duration::ZERO, HEARD)).await;
    let its = stage.clone();
    let members = masters.clone();
    let longest = quarantine(stage.ttl) - LATE;
    let away = dice.time(longest / 2, longest);
    if dice.happens(200) {
        stage.kill(client);
    }
    stage.world.after(away, move || cut_off(&its, client, &members, false));
    let all = masters.len();
    for &master in masters.iter().take(all / 2 + 1 + dice.below(all / 2)) {
        let down = if dice.happens(500) { dice.millis(5, 200) } else { dice.time(Duration::ZERO, DOWN) };
        restart(stage, master, down, Restart::Empty);
    }
    tokio::time::sleep(dice.millis(0, 300)).await;
    loop {
        recover(stage, plan, &masters).await;
        tokio::time::sleep(AGAIN).await;
        // What was decided may be a list of which too few masters were told, and that set is lost.
        while stage.set_of(&stage.newest_list()).is_some() {
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// The process reaches one master yet, which is told of the change and is down then, for longer
/// than a quarantine; and the process is killed. The others restart, each when the one before has
/// rejoined.
async fn restart_in_turn(stage: &Arc<Stage>, client: usize, mut masters: Vec<usize>) {
    let dice = stage.world.dice("disaster", 0);
    let told = masters.swap_remove(dice.below(masters.len()));
    cut_off(stage, client, &masters, true);
    let before = stage.generation_of(&stage.servers[told]);
    let is_told = || stage.generation_of(&stage.servers[told]) > before;
    let was_told = until(stage, PATIENCE, is_told).await;
    stage.kill(client);
    if !was_told {
        return;
    }
    let long = quarantine(stage.ttl) * 2;
    restart(stage, told, dice.time(long, long * 3 / 2), Restart::Whole);
    for master in masters {
        let with = if dice.happens(500) { Restart::Empty } else { Restart::Whole };
        let down = dice.millis(5, 200);
        restart(stage, master, down, with);
        tokio::time::sleep(down + LOOK).await;
        if !until(stage, PATIENCE, || stage.servers[master].has_rejoined()).await {
            return; // it waits for the one that is down
        }
    }
}

/// Waits for so long. Whether it came to that.
async fn until(stage: &Stage, patience: Duration, is_so: impl Fn() -> bool) -> bool {
    let end = stage.world.now() + patience;
    while stage.world.look_at_the_time() < end {
        if is_so() {
            return true;
        }
        tokio::time::sleep(LOOK).await;
    }
    false
}

/// A master is killed, and started again after a while.
fn restart(stage: &Arc<Stage>, master: usize, down: Duration, with: Restart) {
    stage.world.note(|| format!("m{master} is down for {down:?}"));
    stage.stop(master);
    let its = stage.clone();
    stage.world.after(down, move || its.start(master, with));
}

/// From now on nothing that a process sends gets through to these masters; or it does again.
fn cut_off(stage: &Stage, client: usize, masters: &[usize], is_cut: bool) {
    masters.iter().for_each(|master| stage.link(client, *master).block(is_cut, false));
}
