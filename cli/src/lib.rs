//! What the commands `quorate` and `quorate-lab` share: exit codes, output, signals, and pages with
//! charts. It may change with any version.

pub mod exit;
pub mod page;
pub mod progress;
pub mod say;
pub mod signals;
pub mod words;

use std::process::ExitCode;

use clap::Parser;
use futures::future::LocalBoxFuture;
use tokio::runtime::Builder;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

use crate::exit::{Code, Failure};

/// The environment variable that asks for a log.
const LOG: &str = "QUORATE_LOG";

/// Reads the command line, carries it out, and reports a failure. `threads` says whether it needs
/// several.
pub fn carry_out<C: Parser>(
    threads: impl FnOnce(&C) -> bool,
    command: impl AsyncFnOnce(C) -> Result<Code, Failure>,
) -> ExitCode {
    let mut code = ended(threads, command);
    if code == exit::OK && say::is_output_lost() {
        code = exit::FAILED;
    }
    say::flush();
    code.into()
}

fn ended<C: Parser>(
    threads: impl FnOnce(&C) -> bool,
    command: impl AsyncFnOnce(C) -> Result<Code, Failure>,
) -> Code {
    let line = match C::try_parse() {
        Ok(line) => line,
        Err(error) => {
            let _ = error.print(); // if standard error is closed, there is nowhere to report it
            return if error.use_stderr() { exit::USAGE } else { exit::OK };
        }
    };
    let ended = log_if_asked().and_then(|()| {
        let mut runtime =
            if threads(&line) { Builder::new_multi_thread() } else { Builder::new_current_thread() };
        let no_threads = |error| Failure::new(exit::FAILED, format!("no threads: {error}"));
        // Boxed, so that it is compiled once, and not for each kind of runtime.
        let carried_out: LocalBoxFuture<'_, _> = Box::pin(command(line));
        runtime.enable_all().build().map_err(no_threads)?.block_on(carried_out)
    });
    ended.unwrap_or_else(|failure| {
        say::say(failure.message);
        failure.code
    })
}

/// Logs to standard error what `QUORATE_LOG` asks for, as in `QUORATE_LOG=quorate=debug`.
fn log_if_asked() -> Result<(), Failure> {
    let Ok(asked) = std::env::var(LOG) else { return Ok(()) };
    let filter: Targets = asked.parse().map_err(|why| {
        Failure::new(exit::USAGE, format!("{LOG}={asked:?} is not like quorate=debug: {why}"))
    })?;
    let written = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(written.with_filter(filter)).init();
    Ok(())
}
