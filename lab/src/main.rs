//! The `quorate-lab` command: puts locks through failures, on real servers and in simulation.

mod args;
mod chaos;
mod codes;
mod simulate;

use std::process::ExitCode;

use quorate_cli::exit::{Code, Failure};

use crate::args::{Cli, Verb};

/// A simulation allocates little things all the time, its scripts above all.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    quorate_cli::carry_out(|_: &Cli| false, carry_out)
}

async fn carry_out(cli: Cli) -> Result<Code, Failure> {
    match cli.verb {
        Verb::Chaos(args) => chaos::chaos(args).await,
        Verb::ChaosClient => chaos::client(),
        Verb::Simulate(args) => simulate::simulate(args),
    }
}
