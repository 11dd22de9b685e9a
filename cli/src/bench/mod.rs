//! `quorate bench`: what a lock costs on these masters.

mod chart;
mod html;
mod measure;
mod plan;
mod report;
mod rounds;
#[cfg(test)]
mod sample;
mod statistics;
mod table;

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use quorate_cli::out;

use self::measure::{Bench, Measured};
use self::plan::Plan;
use self::report::{Report, Setting};

use crate::args::BenchArgs;
use crate::exit::{self, Code, Failure};
use crate::page;
use crate::progress::Progress;
use crate::say;
use crate::signals;

/// How long masters have to hear of the last releases, before those are left to the TTL.
const FLUSH: Duration = Duration::from_secs(2);

pub(crate) async fn bench(args: BenchArgs) -> Result<Code, Failure> {
    let plan = Plan::new(args.duration, args.concurrency, args.ttl)?;
    if let Some(file) = &args.html {
        page::check_place("--html", file)?;
    }
    let mut signals = signals::fatal_signals()?;
    let options = args.masters.options()?;
    let began = UNIX_EPOCH.elapsed().unwrap_or_default();
    let redlock = args.masters.client()?;

    let progress = Progress::new(plan.duration);
    let mut measured = Measured::new();
    let bench = Bench::new(&redlock, &plan, &progress);
    let ended = tokio::select! {
        ended = bench.measure(&mut measured) => ended.map_err(Failure::from),
        signal = signals::next(&mut signals) => Err(Failure::new(signals::code_of(signal), format!("ended by {signal}"))),
        never = progress.follow() => match never {},
    };
    redlock.shutdown(FLUSH).await; // a master that is dead never hears of it
    drop(progress);

    if !measured.is_empty() {
        let stopped = ended.as_ref().err().map(|failure| failure.message.clone());
        let report = Report::new(&plan, Setting { began, stopped, options }, &measured);
        show(&report, args.json, args.html.as_deref())?;
    }
    ended.map(|()| exit::OK)
}

fn show(report: &Report, json: bool, page: Option<&Path>) -> Result<(), Failure> {
    if json {
        say::json(report)?;
    } else {
        out!("{}", table::text(report));
    }
    match page {
        Some(file) => page::write("--html", file, html::page(report)),
        None => Ok(()),
    }
}
