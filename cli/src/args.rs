//! The command line as typed, and the client it asks for.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use quorate::{Owner, Redlock};

use crate::exit::{self, Failure};

/// A distributed lock that is held when a majority of independent Redis masters say so.
#[derive(Debug, Parser)]
#[command(name = "quorate", version, after_help = exit::HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(RunArgs),
    Status(StatusArgs),
    Release(ReleaseArgs),
    Bench(BenchArgs),
    Demo(DemoArgs),
}

/// Where the masters are.
#[derive(Debug, Args)]
pub(crate) struct MasterArgs {
    /// A master's URL, once for each [default: QUORATE_MASTERS, separated by commas]:
    /// redis://[user:password@]host[:port][/database], the same with rediss://, valkey:// or valkeys://, or
    /// unix:///path?db=..&user=..&pass=.. Commas separate URLs, so in a password write %2C. Other users of this machine
    /// can read a command line, so put passwords into QUORATE_MASTERS
    #[arg(long = "master", value_name = "URL", value_delimiter = ',')]
    masters: Vec<String>,

    /// How long one master may take to answer [default: 250ms, or a quarter of the TTL if that is less]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,

    /// What keys begin with; clients with different prefixes have different locks [default: QUORATE_PREFIX if it is set
    /// and not empty, otherwise quorate:]
    #[arg(long)]
    prefix: Option<String>,

    /// A file with PEM certificates to trust for rediss://, besides Mozilla's roots
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE")]
    tls_root: Option<std::path::PathBuf>,
}

impl MasterArgs {
    /// The client for these masters.
    pub(crate) fn client(self) -> Result<Redlock, Failure> {
        let prefix = self.prefix();
        let urls = match variable("QUORATE_MASTERS") {
            Some(urls) if self.masters.is_empty() => urls.split(',').map(str::to_owned).collect(),
            _ => self.masters,
        };
        let urls: Vec<_> = urls.iter().map(|url| url.trim()).filter(|url| !url.is_empty()).collect();
        if urls.is_empty() {
            return Err(Failure::new(exit::USAGE, "no masters: give --master, or set QUORATE_MASTERS"));
        }
        let mut builder = Redlock::builder().masters(urls);
        if let Some(prefix) = prefix {
            builder = builder.prefix(prefix);
        }
        if let Some(timeout) = self.timeout {
            builder = builder.timeout(timeout);
        }
        #[cfg(feature = "tls")]
        if let Some(file) = self.tls_root {
            let pem = std::fs::read(&file).map_err(|error| {
                Failure::new(exit::USAGE, format!("--tls-root {}: {error}", file.display()))
            })?;
            builder = builder.tls_root(pem);
        }
        Ok(builder.build()?)
    }

    fn prefix(&self) -> Option<String> {
        self.prefix.clone().or_else(|| variable("QUORATE_PREFIX"))
    }

    /// What else was asked for than the masters, as a command line has it. There is no secret in it.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        let mut add = |option: &str, value: Option<String>| {
            options.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
        };
        add("--timeout", self.timeout.map(|timeout| humantime::format_duration(timeout).to_string()));
        add("--prefix", self.prefix());
        #[cfg(feature = "tls")]
        add("--tls-root", self.tls_root.as_ref().map(|file| file.display().to_string()));
        options
    }
}

/// The value of an environment variable. An empty one is one that is not set: it comes of a shell variable that is not.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Run a command while holding a lock
///
/// The command runs in a process group of its own, with QUORATE_LOCK and QUORATE_OWNER in its environment. The lease is
/// renewed while it runs, and released when it ends. Signals are passed on to its process group. If the lease is about
/// to end and cannot be renewed, the group gets SIGTERM, and SIGKILL after the grace, before the lease ends.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct RunArgs {
    /// The lock's name
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) masters: MasterArgs,

    /// How long the lease lasts without renewal, at least 1s: for so long others wait if this machine dies
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    pub(crate) ttl: Duration,

    /// How long to wait for the lock
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(crate) wait: Duration,

    /// Do not wait: if another owner has the lock, end at once
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,

    /// How long the command may take to end between SIGTERM and SIGKILL when the lease cannot be kept, up to a third of
    /// the TTL [default: a quarter of the TTL, at most 5s]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) grace: Option<Duration>,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Show who holds a lock, on which masters and for how long
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct StatusArgs {
    /// The lock's name
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) masters: MasterArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Break a stuck lock: take it away from the owner that `status` shows
///
/// If that owner still works, two may hold the lock at once: it is not told before it next renews.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct ReleaseArgs {
    /// The lock's name
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) masters: MasterArgs,

    /// Whom to take it from
    #[arg(long, value_name = "OWNER")]
    pub(crate) owner: Owner,
}

/// Measure what a lock costs on your masters
///
/// First one lock after the other: each master's round trip, how long an acquire and a release take, and what a quorum
/// would cost with fewer of the masters. Then how many locks a second this machine gets with so many at a time. It uses
/// locks of its own, which nobody else waits for, and leaves nothing behind. Ctrl-C ends it, and shows what was
/// measured. It is load on the masters: each holds a few short-lived keys and is asked as fast as it answers.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) masters: MasterArgs,

    /// How long to measure, from 100ms to 10m. The single locks and each concurrency get an equal part of it: ten
    /// seconds are thousands of locks in one data centre, and some hundred across a continent
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    pub(crate) duration: Duration,

    /// How many locks at a time, from 1 to 4096, each in turn: one is a lone job, 16 a service, and with 64 the limit
    /// is this machine or the masters, not the network
    #[arg(long, value_name = "NUMBER", default_value = "1,16,64", value_delimiter = ',')]
    pub(crate) concurrency: Vec<usize>,

    /// How long the leases last; each is released at once. It is how long a key stays where a release is not heard
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    pub(crate) ttl: Duration,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a report with charts to this file as well: one HTML page that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<std::path::PathBuf>,
}

/// Start five redis-servers, and show what the lock does while they die
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// How long to pause after each step
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = humantime::parse_duration)]
    pub(crate) pause: Duration,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
