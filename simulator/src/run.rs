//! One run: a storm, in which everything that was planned goes wrong; then calm, in which
//! everything has to work again.

use std::sync::Arc;
use std::time::Duration;

use quorate::config::DEFAULT_TIMEOUT;
use quorate_history::checkers::{NOT_CHANGING, WHATEVER_HAPPENS, check_all_but, check_only};
use quorate_history::{History, Time, Violation};

use crate::actor::act;
use crate::calm::calm;
use crate::changer::change;
use crate::client::process_name;
use crate::disruption::disrupt;
use crate::faults::{Kind, Profile, What};
use crate::founder::{begin_sets, watch_sets};
use crate::left::Left;
use crate::look::look;
use crate::plan::Plan;
use crate::size::ACTORS;
use crate::stage::Stage;
use crate::trace::Trace;
use crate::world::World;

/// How long after the last fault connections are back, and nothing is on its way any more.
const RECOVERY: Duration = Duration::from_millis(1_500);

/// How long the network is bad, at least, where it is.
const SHORTEST_STORM: Duration = Duration::from_secs(2);

/// How long after the last fault the work of the storm may take.
const LONGEST_STORM: Duration = Duration::from_secs(120);

/// What became of a run.
#[derive(Debug)]
pub struct Run {
    /// What happened.
    pub history: History,
    /// How often the set of masters was changed.
    pub changes: u64,
    /// What must never happen, and did.
    pub violations: Vec<Violation>,
    /// Every step, if that was wanted.
    pub trace: String,
}

/// Runs a plan, from its beginning to its end, in virtual time. A panic of the library ends it, and
/// is its violation.
pub fn run(plan: &Plan, traced: bool) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime needs no more than memory");
    let (history, changes, panic, trace) = runtime.block_on(async {
        let world = World::new(plan.seed, Trace::new(traced));
        let its = world.clone();
        drop(tokio::spawn(async move { its.guard(its.go_on()).await }));
        let stage = Stage::new(&world, plan);
        stage.world.recorder.with(|history| {
            history.timeout = DEFAULT_TIMEOUT;
            history.refused = plan.lists.refused().into_iter().map(process_name).collect();
        });
        let story = world.guard(async {
            plan.faults.iter().for_each(|fault| fault.arrange(&stage));
            begin_sets(&stage, plan).await;
            if !plan.is_cut_short() {
                watch_sets(&stage, plan); // there an operator recovers the set
            }
            storm(&stage, plan).await;
            calm(&stage, plan).await;
        });
        tokio::select! {
            biased;
            () = world.end() => {}
            () = story => {}
        }
        let trace = stage.with_short_names(world.trace.take());
        (stage.world.recorder.finish(world.look_at_the_time()), stage.changes(), world.panic(), trace)
    });
    // A run that was broken off says nothing about the rest.
    let check = || match plan.profile {
        Profile::Inside => check_all_but(&history, &[]),
        Profile::Outside(Kind::Members | Kind::LostSets | Kind::CutShort) => {
            check_all_but(&history, &NOT_CHANGING)
        }
        Profile::Outside(_) => check_only(&history, &WHATEVER_HAPPENS),
    };
    let violations = panic.map_or_else(check, |panic| vec![panic]);
    Run { trace: marked(trace, &violations), history, changes, violations }
}

/// The trace with each violation in its place.
fn marked(trace: String, violations: &[Violation]) -> String {
    if trace.is_empty() || violations.is_empty() {
        return trace;
    }
    let time_of = |line: &str| line.split_whitespace().next().and_then(|time| time.parse::<f64>().ok());
    let mut violations = violations.iter().peekable();
    let mut lines = Vec::new();
    for line in trace.lines() {
        let now = time_of(line).unwrap_or_default();
        while let Some(past) = violations.next_if(|violation| violation.at.as_secs_f64() < now) {
            lines.push(format!("!!!!!!!!!!  {past}"));
        }
        lines.push(line.to_owned());
    }
    lines.extend(violations.map(|last| format!("!!!!!!!!!!  {last}")));
    lines.join("\n") + "\n"
}

/// Everything that was planned.
async fn storm(stage: &Arc<Stage>, plan: &Plan) {
    let left = Left::of(stage);
    for client in 0..stage.clients.len() {
        for actor in 0..ACTORS {
            let tasks = plan.tasks.iter().filter(|task| (task.client, task.actor) == (client, actor));
            left.run(stage, client, act(stage.clone(), tasks.cloned().collect()));
        }
    }
    for fault in &plan.faults {
        match &fault.what {
            What::Change { client, change: what } => {
                left.run(stage, *client, change(stage.clone(), fault.at, *client, what.clone()));
            }
            What::Disaster { client, disaster } => disrupt(stage, plan, fault.at, *client, *disaster),
            _ => {}
        }
    }
    let is_over = |now: Time| {
        let all_done = left.clients(stage).next().is_none();
        now >= plan.healed.max(SHORTEST_STORM) + RECOVERY && (all_done || now >= plan.healed + LONGEST_STORM)
    };
    let its = stage.clone();
    stage.world.at(plan.healed.max(SHORTEST_STORM), move || its.clear_up());
    for look_now in (0..8).cycle() {
        if is_over(stage.world.look_at_the_time()) {
            break;
        }
        if look_now == 0 {
            look(stage);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    left.note(stage);
}
