//! `quorate-lab chaos`: locks put through failures, and what their history shows.

mod args;
mod charts;
mod containers;
mod files;
mod html;
mod kinds;
mod lanes;
mod machine;
mod run_progress;
#[cfg(test)]
mod sample;
mod summary;
mod timeline;
mod violations;
mod votes;

use std::any::Any;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use futures::stream::Stream;
use nix::sys::signal::Signal;
use quorate_chaos::run::{Job, Stop, Trial, TrialOutcome};
use quorate_chaos::scenario::Scenario;
use quorate_chaos::{Arena, scenario};
use quorate_cli::exit::{self, Code, Failure};
use quorate_cli::signals;
use quorate_cli::{out, say};
use serde::Serialize;
use tokio::sync::oneshot;

pub(crate) use self::args::ChaosArgs;
use self::files::Files;
use self::run_progress::RunProgress;
use self::summary::Summary;

/// How much longer than its faults a run takes about: its end waits for leases to end.
const BESIDES: Duration = Duration::from_secs(8);

/// How long everything may take to end that was started, when a signal ends the run.
const END: Duration = Duration::from_secs(5);

/// Seeds that are drawn are short enough to be read out.
const SEEDS: u128 = 1_000_000;

pub(crate) async fn chaos(args: ChaosArgs) -> Result<Code, Failure> {
    if args.list {
        return list(args.json);
    }
    let ran_at = UNIX_EPOCH.elapsed().unwrap_or_default();
    let mut trial = args.trial(u64::try_from(ran_at.as_micros() % SEEDS).unwrap_or_default())?;
    args.compose.iter().try_for_each(|file| containers::check(file))?;
    let files = Files::open(&args)?;
    machine::check()?;
    let command = args.command(trial.seed);
    // Before anything is said: a signal that comes while this is set up may be lost.
    let signals = signals::fatal_signals()?;
    if args.seed.is_none() {
        // However this ends: it is no loss then that nobody has typed the seed.
        say::say(format_args!("seed {}; again: {}", trial.seed, command.join(" ")));
    }
    let containers = args.compose.as_ref().map(|file| containers::start(file, &mut trial)).transpose()?;
    let outcome = run(&trial, containers, args.history.clone(), signals).await?;
    let summary = Summary::new(&trial, &outcome, &command, ran_at);
    if args.json {
        say::json(&summary)?;
    } else {
        out!("{}", summary.text());
    }
    files.end(summary.code(), || html::page(&trial, &outcome.history, &summary))
}

/// A scenario, for the list.
#[derive(Serialize)]
struct Named {
    name: &'static str,
    about: &'static str,
}

fn list(as_json: bool) -> Result<Code, Failure> {
    if as_json {
        let list = scenario::ALL.map(|Scenario { name, about, .. }| Named { name, about });
        say::json(&list)?;
    } else {
        scenario::ALL.iter().for_each(|scenario| out!("{:<10} {}", scenario.name, scenario.about));
    }
    Ok(exit::OK)
}

/// What a client process does.
pub(crate) fn client() -> Result<Code, Failure> {
    let failed = |why: String| Failure::new(exit::FAILED, why);
    let job = Job::of_this_process().ok_or_else(|| {
        Failure::new(exit::USAGE, "this is for the client processes that quorate-lab chaos starts")
    })?;
    let ended = std::thread::spawn(|| job.run()).join(); // it has a runtime of its own
    ended.map_err(|panic| failed(words(&panic)))?.map_err(|error| failed(error.to_string()))?;
    Ok(exit::OK)
}

fn another_client() -> Command {
    // By this name it is the same executable, though a newer one may have taken its place.
    let mut command = Command::new("/proc/self/exe");
    command.arg("chaos-client");
    command
}

/// Runs it on a thread of its own, as it waits for processes, until it is over or a signal comes.
async fn run(
    trial: &Trial,
    containers: Option<Arena>,
    history: Option<PathBuf>,
    mut signals: impl Stream<Item = Signal> + Unpin,
) -> Result<TrialOutcome, Failure> {
    std::panic::set_hook(Box::new(|_| {})); // what went wrong is said as everything else is
    let stop = Stop::default();
    let progress = Arc::new(RunProgress::new(trial.lasts() + BESIDES));
    let (ended, mut end) = oneshot::channel();
    let trial = trial.clone();
    let shown = progress.clone();
    let stopped = stop.clone();
    let thread = std::thread::spawn(move || {
        let arena = containers.unwrap_or_else(|| trial.arena());
        let outcome = trial.run(arena, another_client, history, &stopped, |phase| shown.step(phase));
        let _ = ended.send(outcome); // nobody waits for it any more after a signal
    });
    let outcome = tokio::select! {
        outcome = &mut end => outcome,
        signal = signals::next(&mut signals) => {
            stop.stop();
            let _ = tokio::time::timeout(END, end).await; // what is left then ends with this process
            return Err(Failure::new(signals::code_of(signal), format!("ended by {signal}")));
        }
        never = progress.follow() => match never {},
    };
    match outcome {
        Ok(Some(outcome)) => Ok(outcome),
        Ok(None) => Err(Failure::new(exit::FAILED, "it was stopped")),
        Err(_) => {
            let why = thread.join().err().map(|panic| words(&panic)).unwrap_or_default();
            Err(Failure::new(exit::FAILED, why))
        }
    }
}

/// What a thread said that panicked.
fn words(panic: &Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
