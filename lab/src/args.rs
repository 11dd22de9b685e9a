//! The command line as typed.

use clap::{Parser, Subcommand};

use crate::chaos::ChaosArgs;
use crate::codes;
use crate::simulate::SimulateArgs;

/// Test how distributed locks survive failures, on real servers and in simulation.
#[derive(Debug, Parser)]
#[command(name = "quorate-lab", version, after_help = codes::HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Chaos(ChaosArgs),
    Simulate(SimulateArgs),
    /// A client process of `chaos`, which finds its job in its environment
    #[command(hide = true)]
    ChaosClient,
}
