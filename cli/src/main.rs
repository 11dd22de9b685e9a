//! The `quorate` command: run jobs under a lock, see who holds it, break it, and watch a demonstration.

mod args;
mod demo;
mod exit;
mod job;
mod lease_plan;
mod release;
mod run;
mod status;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Verb};

/// The lock's engine has a thread of its own, so one thread is enough here.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    log_if_asked();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print(); // there is nowhere to tell that standard error is closed
            return if error.use_stderr() { exit::USAGE.into() } else { exit::OK.into() };
        }
    };
    let ended = match cli.verb {
        Verb::Run(args) => run::run(args).await,
        Verb::Status(args) => status::status(args).await,
        Verb::Release(args) => release::release(args).await,
        Verb::Demo(args) => demo::demo(args).await,
    };
    match ended {
        Ok(code) => code.into(),
        Err(failure) => {
            eprintln!("quorate: {}", failure.message);
            failure.code.into()
        }
    }
}

/// Logs to standard error what `QUORATE_LOG` asks for, as in `QUORATE_LOG=quorate=debug`.
fn log_if_asked() {
    if let Ok(filter) = std::env::var("QUORATE_LOG") {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
}
