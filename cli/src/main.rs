//! The `quorate` command: begin a set of masters, run jobs under a lock, or on the leader, show who
//! holds a lock, break it, examine the masters, measure them, watch a demonstration, and put locks
//! through failures.

mod args;
mod ask;
mod bench;
#[cfg(feature = "chaos")]
mod chaos;
mod demo;
mod doctor;
mod elect;
mod exit;
mod init;
mod job;
mod lease_plan;
mod list;
mod members;
mod page;
mod progress;
mod quarantine;
mod release;
mod run;
mod say;
mod status;
mod terminal;
mod words;

use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Builder;

use crate::args::{Cli, Verb};
use crate::exit::{Code, Failure};

fn main() -> ExitCode {
    terminal::never_stop_for_it();
    log_if_asked();
    let mut code = quorate();
    if code == exit::OK && say::is_output_lost() {
        code = exit::FAILED;
    }
    say::flush();
    code.into()
}

fn quorate() -> Code {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print(); // if standard error is closed, there is nowhere to report it
            return if error.use_stderr() { exit::USAGE } else { exit::OK };
        }
    };
    // The lock's engine has a thread of its own, so one thread is enough here. A bench measures
    // what a service has: several threads.
    let runtime = match cli.verb {
        Verb::Bench(_) => Builder::new_multi_thread().enable_all().build(),
        _ => Builder::new_current_thread().enable_all().build(),
    };
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(carry_out(cli.verb)),
        Err(error) => Err(Failure::new(exit::FAILED, format!("no threads: {error}"))),
    };
    match ended {
        Ok(code) => code,
        Err(failure) => {
            say::say(failure.message);
            failure.code
        }
    }
}

async fn carry_out(verb: Verb) -> Result<Code, Failure> {
    match verb {
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
        #[cfg(feature = "chaos")]
        Verb::Chaos(args) => chaos::chaos(args).await,
        #[cfg(feature = "chaos")]
        Verb::ChaosClient => chaos::client(),
    }
}

/// Logs to standard error what `QUORATE_LOG` asks for, as in `QUORATE_LOG=quorate=debug`.
fn log_if_asked() {
    if let Ok(filter) = std::env::var("QUORATE_LOG") {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
}
