//! One run: a storm, in which everything that was planned goes wrong; then calm, in which everything has to work again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::actor::act;
use crate::calm::calm;
use crate::checkers;
use crate::history::{History, Key, Place, Stuck, Time, Violation};
use crate::plan::{ACTORS, Plan};
use crate::recorder::short_name;
use crate::stage::Stage;
use crate::trace::Trace;
use crate::world::World;

/// How long after the last fault connections are back, and nothing is on its way any more.
const RECOVERY: Duration = Duration::from_millis(1_500);

/// How long the network is bad, at least, where it is.
const SHORTEST_STORM: Duration = Duration::from_secs(2);

/// How long the work of the storm may take.
const LONGEST_STORM: Duration = Duration::from_secs(120);

/// How long a client may take for what it does when all is calm: more than it waits, or the next needs.
const LONGEST_CALM: Duration = Duration::from_secs(60);

/// What became of a run.
#[derive(Debug)]
pub struct Run {
    /// What happened.
    pub history: History,
    /// What must never happen, and did.
    pub violations: Vec<Violation>,
    /// Every step, if that was wanted.
    pub trace: String,
}

/// Runs a plan, from its beginning to its end, in virtual time. A panic of the library ends it, and is its violation.
pub fn run(plan: &Plan, traced: bool) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime needs no more than memory");
    let (history, panic, trace) = runtime.block_on(async {
        let world = World::new(plan.seed, Trace::new(traced));
        let its = world.clone();
        drop(tokio::spawn(async move { its.guard(its.go_on()).await }));
        let stage = Stage::new(&world, plan);
        stage.world.recorder.with(|history| history.permits = stage.permits);
        let story = world.guard(async {
            storm(&stage, plan).await;
            calm(&stage, plan).await;
        });
        tokio::select! {
            biased;
            () = world.end() => {}
            () = story => {}
        }
        let trace = stage.with_short_names(world.trace.take());
        (stage.world.recorder.finish(world.look_at_the_time()), world.panic(), trace)
    });
    // A run that was broken off says nothing about the rest.
    let check = if plan.is_outside() { checkers::check_safety } else { checkers::check_all };
    let violations = panic.map_or_else(|| check(&history), |panic| vec![panic]);
    Run { trace: marked(trace, &violations), history, violations }
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
    plan.faults.iter().for_each(|fault| fault.arrange(stage));
    let left = Left::of(stage);
    for client in 0..stage.clients.len() {
        for actor in 0..ACTORS {
            let tasks = plan.tasks.iter().filter(|task| (task.client, task.actor) == (client, actor));
            left.run(stage, client, act(stage.clone(), tasks.cloned().collect()));
        }
    }
    let is_over = |now: Time| {
        let all_done = left.clients(stage).next().is_none();
        now >= plan.healed.max(SHORTEST_STORM) + RECOVERY && (all_done || now >= LONGEST_STORM)
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

/// How much each client still has to do.
#[derive(Clone)]
pub(crate) struct Left(Arc<Vec<AtomicUsize>>, Arc<Notify>);

impl Left {
    pub(crate) fn of(stage: &Arc<Stage>) -> Self {
        Self(Arc::new(stage.clients.iter().map(|_| AtomicUsize::new(0)).collect()), Arc::default())
    }

    /// Has a client do something.
    pub(crate) fn run(
        &self,
        stage: &Arc<Stage>,
        client: usize,
        acting: impl Future<Output = ()> + Send + 'static,
    ) {
        let its = self.clone();
        its.0[client].fetch_add(1, Ordering::Relaxed);
        stage.clients[client].process.run(async move {
            acting.await;
            its.0[client].fetch_sub(1, Ordering::Relaxed);
            its.1.notify_one();
        });
    }

    /// The clients that live, and are not done.
    fn clients(&self, stage: &Arc<Stage>) -> impl Iterator<Item = usize> {
        stage.living().filter(|client| self.0[*client].load(Ordering::Relaxed) > 0)
    }

    /// Waits for all that live, for so long as it may take.
    pub(crate) async fn wait(&self, stage: &Arc<Stage>) {
        let all_done = async {
            while self.clients(stage).next().is_some() {
                self.1.notified().await;
            }
        };
        if tokio::time::timeout(LONGEST_CALM, all_done).await.is_err() {
            self.note(stage);
        }
    }

    /// It is too late for those that are not done.
    fn note(&self, stage: &Arc<Stage>) {
        let now = stage.world.look_at_the_time();
        stage.world.recorder.with(|history| {
            history.stuck.extend(self.clients(stage).map(|client| Stuck { client, at: now }));
        });
    }
}

/// Looks who stands in the queues of all masters.
pub(crate) fn look_for_places(stage: &Arc<Stage>) {
    let found = stage.servers.iter().flat_map(|server| server.places());
    let found = found.filter_map(|place| {
        let client = stage.client_of(&place.ticket)?;
        Some(Place { client, ticket: short_name(&place.ticket, client), ..place })
    });
    let found: Vec<_> = found.collect();
    stage.world.note(|| format!("{} places in the queues", found.len()));
    stage.world.recorder.with(|history| history.places = found);
}

/// Looks at what all masters keep.
pub(crate) fn look(stage: &Arc<Stage>) {
    stage.world.look_at_the_time();
    let found = stage.servers.iter().flat_map(|server| server.locks());
    let found = found.map(|key| match stage.client_of(&key.owner) {
        Some(client) => Key { client: Some(client), owner: short_name(&key.owner, client), ..key },
        None => key,
    });
    let found: Vec<_> = found.collect();
    let names = stage.servers.iter().flat_map(|server| server.names());
    stage.world.note(|| format!("{} entries on the masters", found.len()));
    stage.world.recorder.with(|history| {
        history.keys.extend(found);
        history.names.extend(names);
    });
}
