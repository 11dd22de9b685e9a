//! The `quorate` command: begin a set of masters, run jobs under a lock, or on the leader, show who
//! holds a lock, break it, examine the masters, measure them, and watch a demonstration.

mod args;
mod ask;
mod bench;
mod demo;
mod doctor;
mod elect;
mod init;
mod job;
mod lease_plan;
mod list;
mod members;
mod quarantine;
mod release;
mod run;
mod status;
mod terminal;

use std::process::ExitCode;

use quorate_cli::exit::{Code, Failure};
use quorate_cli::{exit, page, progress, say, signals, words};

use crate::args::{Cli, Verb};

fn main() -> ExitCode {
    terminal::never_stop_for_it();
    // The lock's engine has a thread of its own, so one thread is enough here. A bench measures
    // what a service has: several threads.
    quorate_cli::carry_out(|cli: &Cli| matches!(cli.verb, Verb::Bench(_)), carry_out)
}

async fn carry_out(cli: Cli) -> Result<Code, Failure> {
    match cli.verb {
        Verb::Init(args) => init::init(args).await,
        Verb::Members(args) => members::members(args).await,
        Verb::Run(args) => run::run(args).await,
        Verb::Elect(args) => elect::elect(args).await,
        Verb::Status(args) => status::status(args).await,
        Verb::List(args) => list::list(args).await,
        Verb::Release(args) => release::release(args).await,
        Verb::Doctor(args) => doctor::doctor(args).await,
        Verb::Bench(args) => bench::bench(args).await,
        Verb::Demo(args) => demo::demo(args).await,
    }
}
