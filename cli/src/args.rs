//! The command line as typed, and the client it asks for.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use quorate::config::{DEFAULT_TTL, label_of_process};
use quorate::{Builder, Error, Lock, Owner, Redlock, env};

use crate::exit::{self, Failure};

/// A distributed lock that is held when a majority of independent Redis masters grant it.
#[derive(Debug, Parser)]
#[command(name = "quorate", version, after_help = exit::HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Init(InitArgs),
    Members(MembersArgs),
    Run(RunArgs),
    Elect(ElectArgs),
    Status(StatusArgs),
    List(ListArgs),
    Release(ReleaseArgs),
    Doctor(DoctorArgs),
    Bench(BenchArgs),
    Demo(DemoArgs),
}

/// Where the masters are.
#[derive(Clone, Debug, Args)]
pub(crate) struct MasterArgs {
    /// A master's URL, once for each [default: QUORATE_MASTERS, separated by commas]:
    /// redis://[user:password@]host[:port][/database], the same with rediss://, valkey:// or
    /// valkeys://, or unix:///path?db=..&user=..&pass=.. Commas separate URLs, so in a password
    /// write %2C. Other users of this machine can read a command line, so put passwords into
    /// QUORATE_MASTERS
    #[arg(long = "master", value_name = "URL", value_delimiter = ',')]
    masters: Vec<String>,

    /// How long one master may take to answer [default: 250ms, or a quarter of the TTL if that is
    /// less]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,

    /// The prefix of all keys; clients with different prefixes have different locks [default:
    /// QUORATE_PREFIX if it is set and not empty, otherwise quorate:]
    #[arg(long)]
    prefix: Option<String>,

    /// The longest TTL of any lock, a term of the set of masters: all its clients must have the
    /// same [default: QUORATE_MAX_TTL if it is set and not empty, otherwise 30s]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) max_ttl: Option<Duration>,

    /// A file with PEM certificates to trust for rediss://, besides Mozilla's roots
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE")]
    tls_root: Option<std::path::PathBuf>,
}

impl MasterArgs {
    /// The client for these masters.
    pub(crate) fn client(self) -> Result<Redlock, Failure> {
        Ok(self.builder()?.build()?)
    }

    /// The same, not built yet.
    pub(crate) fn builder(self) -> Result<Builder, Failure> {
        let prefix = self.prefix();
        let max_ttl = self.max_ttl()?;
        let default_ttl = self.default_ttl()?;
        let urls = match &self.masters[..] {
            [] => env::masters(),
            given => given.iter().flat_map(|urls| env::urls(urls)).map(str::to_owned).collect(),
        };
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
        if let Some(max_ttl) = max_ttl {
            // Each verb that has leases sets their TTL itself; that of the client only must not be
            // too long.
            builder = builder.max_ttl(max_ttl).ttl(default_ttl);
        }
        #[cfg(feature = "tls")]
        if let Some(file) = self.tls_root {
            let pem = std::fs::read(&file).map_err(|error| {
                Failure::new(exit::USAGE, format!("--tls-root {}: {error}", file.display()))
            })?;
            builder = builder.tls_root(pem);
        }
        Ok(builder)
    }

    /// Whether the command line has the masters, and not the environment.
    pub(crate) fn are_given(&self) -> bool {
        !self.masters.is_empty()
    }

    fn prefix(&self) -> Option<String> {
        self.prefix.clone().or_else(env::prefix)
    }

    fn max_ttl(&self) -> Result<Option<Duration>, Failure> {
        let given = self.max_ttl.map(|given| Ok(Some(given)));
        Ok(given.unwrap_or_else(env::max_ttl).map_err(Error::from)?)
    }

    /// The TTL of a lease where none is given.
    fn default_ttl(&self) -> Result<Duration, Failure> {
        Ok(self.max_ttl()?.map_or(DEFAULT_TTL, |max_ttl| max_ttl.min(DEFAULT_TTL)))
    }

    /// The options other than the masters, as a command line has them. They contain no secrets.
    pub(crate) fn options(&self) -> Result<Vec<String>, Failure> {
        let mut options = Vec::new();
        let mut add = |option: &str, value: Option<String>| {
            options.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
        };
        let duration = |time| humantime::format_duration(time).to_string();
        add("--timeout", self.timeout.map(duration));
        add("--prefix", self.prefix());
        add("--max-ttl", self.max_ttl()?.map(duration));
        #[cfg(feature = "tls")]
        add("--tls-root", self.tls_root.as_ref().map(|file| file.display().to_string()));
        Ok(options)
    }
}

/// The lease that a command runs under.
#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    /// How long the lease lasts without renewal, at least 1s; if this machine dies, others wait
    /// this long [default: 10s, or this client's max TTL if that is shorter]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    ttl: Option<Duration>,

    /// How long the command may take to end between SIGTERM and SIGKILL when the lease cannot be
    /// renewed, up to a third of the TTL [default: a quarter of the TTL, at most 5s]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) grace: Option<Duration>,

    /// How long the lock stays taken after a lease that ended without a release, for what the job
    /// sent before it died; together with the TTL no longer than the max TTL
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = humantime::parse_duration)]
    pub(crate) lock_delay: Duration,

    /// A label for the holder, at most 64 bytes, which `status` and waiters show beside its owner
    /// [default: this host, this process and the command's name]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
}

impl LeaseArgs {
    /// The TTL of a lease on these masters.
    pub(crate) fn ttl(&self, masters: &MasterArgs) -> Result<Duration, Failure> {
        self.ttl.map_or_else(|| masters.default_ttl(), Ok)
    }

    /// The label of a holder that runs this command.
    pub(crate) fn label(&self, command: &[OsString]) -> String {
        self.label.clone().unwrap_or_else(|| {
            let job = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
            label_of_process(&job.to_string_lossy())
        })
    }
}

/// Which kind of lock it is about.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct KindArgs {
    /// Take the read side of a read-write lock, which several may hold. An --exclusive waiter goes
    /// before later --shared ones
    #[arg(long)]
    pub(crate) shared: bool,

    /// Take the write side of a read-write lock, which excludes all others
    #[arg(long)]
    pub(crate) exclusive: bool,

    /// Take a fair lock: waiters get it in the order of arrival, across machines, and --no-wait
    /// gets it only while nobody waits. All who take it must give --fair: while it is held, others
    /// are refused
    #[arg(long)]
    pub(crate) fair: bool,

    /// Take a permit of a semaphore: up to this many holders at a time, 1 to 1000. All must give
    /// the same number. The command of `run` finds its permit's number, from 0 on, in
    /// QUORATE_PERMIT; fences are counted for each permit
    #[arg(long, value_name = "NUMBER")]
    pub(crate) permits: Option<u32>,
}

impl KindArgs {
    /// The lock of this name.
    pub(crate) fn lock(&self, redlock: &Redlock, name: &str) -> Lock {
        match self {
            Self { shared: true, .. } => redlock.read_lock(name),
            Self { exclusive: true, .. } => redlock.write_lock(name),
            Self { fair: true, .. } => redlock.fair_lock(name),
            Self { permits: Some(permits), .. } => redlock.semaphore(name, *permits),
            _ => redlock.lock(name),
        }
    }
}

/// Begin the masters as a set, once; without that no client gets a lock
///
/// Plain `init` is right for all masters, and for whatever runs at each start of the machines: they
/// may have been used, so it waits until all that they may have granted is over, a little more than
/// the max TTL. It leaves a set alone that is complete, completes one that was begun, and begins it
/// again where all masters lost their keys. A person who knows that no client ever used these
/// masters may say so with --never-used, and has nothing to wait for.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) masters: MasterArgs,

    /// No client ever used these masters: begin without waiting. On a terminal it asks first. Not
    /// on one it refuses, and prints the command with the masters' FINGERPRINT, which names their
    /// processes. It is refused where any master has a record of a set
    #[arg(
        long,
        value_name = "FINGERPRINT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub(crate) never_used: Option<String>,

    /// Go on until a signal, and begin the set again whenever at least half of its masters lost
    /// their records. Stop it before `members add`, `remove` or `replace`, and start it with the
    /// new list: with an old one it begins a second set if all masters of that list are empty one
    /// day
    #[arg(long, conflicts_with = "never_used")]
    pub(crate) watch: bool,

    /// How long to wait for all masters to be reached, besides the time that they have no vote
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = humantime::parse_duration)]
    pub(crate) wait: Duration,
}

/// Show the set of masters, and each member
///
/// Its name and its terms, and whether each member remembers what it granted, or for how long it
/// has no vote. It is what the masters say: nothing is written there, unless it is to --wait.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct MembersArgs {
    #[command(subcommand)]
    pub(crate) change: Option<MembersChange>,

    /// First wait until every master has a vote, for this long at most; it ends with 78 where one
    /// has none by then. It connects as any client does, so a master that restarted while there was
    /// none gets its quarantine now
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) wait: Option<Duration>,

    #[command(flatten)]
    pub(crate) masters: MasterArgs,
}

/// What is done to a set.
#[derive(Debug, Subcommand)]
pub(crate) enum MembersChange {
    Add(AddArgs),
    Remove(RemoveArgs),
    Replace(ReplaceArgs),
    Recover(RecoverArgs),
}

/// Have one more master in the set, while clients hold and wait for locks
///
/// It has no vote for a little more than the max TTL first, and this waits for that. Clients that
/// run learn of it from the masters, and connect to it with their own users and passwords; those
/// that start with the old list find the set by it.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct AddArgs {
    /// The URL of the new master
    #[arg(value_name = "URL")]
    pub(crate) master: String,

    #[command(flatten)]
    pub(crate) how: ChangeArgs,
}

/// Have one master less in the set, dead or not, while clients hold and wait for locks
///
/// Most of the masters have to answer for that.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct RemoveArgs {
    /// The master's URL, as `quorate members` shows it
    #[arg(value_name = "URL")]
    pub(crate) master: String,

    #[command(flatten)]
    pub(crate) how: ChangeArgs,
}

/// Have another master in place of one, dead or not, while clients hold and wait for locks
///
/// The new one joins before the old one leaves; where the old one does not answer, afterwards.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct ReplaceArgs {
    /// The old master's URL, as `quorate members` shows it
    #[arg(value_name = "OLD")]
    pub(crate) old: String,

    /// The URL of the new master
    #[arg(value_name = "NEW")]
    pub(crate) new: String,

    #[command(flatten)]
    pub(crate) how: ChangeArgs,
}

/// How a set is changed.
#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    /// How long to wait for masters that have to be there
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, default_value = "60s")]
    pub(crate) wait: Duration,

    #[command(flatten)]
    pub(crate) masters: MasterArgs,
}

/// Have masters that forgot their set go on without those that are gone for good
///
/// Where most masters of a set forgot it, the rest waits for all of them: of three, one is dead,
/// and another one came back without its keys. This shows what each knows, and asks whether to go
/// on without those that do not answer; elsewhere than at a terminal --yes says so. Whoever forgot
/// has no vote for a little more than the max TTL from then on. A master that was not waited for
/// and comes back is one of the set as before. If it is not gone, but cut off, a change of the
/// set that the others missed or forgot is passed over: two sets may go on, and two may hold a
/// lock.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct RecoverArgs {
    /// Go on without those that do not answer, without asking
    #[arg(long)]
    pub(crate) yes: bool,

    /// How long to wait for masters that have to be there
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, default_value = "60s")]
    pub(crate) wait: Duration,

    #[command(flatten)]
    pub(crate) masters: MasterArgs,
}

/// Run a command while holding a lock
///
/// The command runs in a process group of its own, with QUORATE_LOCK, QUORATE_OWNER and
/// QUORATE_FENCE, the fencing token, in its environment, and QUORATE_PERMIT where there are
/// --permits. The lease is renewed while it runs, and released when it ends. Signals are passed on
/// to its process group. If the lease is about to end and cannot be renewed, the group gets
/// SIGTERM, and SIGKILL after the grace, before the lease ends.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct RunArgs {
    /// The lock's name
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) masters: MasterArgs,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    #[command(flatten)]
    pub(crate) kind: KindArgs,

    /// How long to wait for the lock. The default outlives the quarantine of masters that restarted
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = humantime::parse_duration)]
    pub(crate) wait: Duration,

    /// Do not wait: if another owner has the lock, end at once
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Run a command while this process leads
///
/// At most one of those that campaign under one name leads. This waits to lead without limit, and
/// runs the command as `run` does. If the lease is about to end and cannot be renewed, it ends the
/// command in time and campaigns again: the command is started again when this process leads again.
/// When the command ends by itself, this ends with its exit code, and the next one leads at once; a
/// restart is up to the supervisor of this process.
///
/// While it waits, a signal ends it. While the command runs, signals are passed on to its process
/// group; after SIGINT, SIGQUIT or SIGTERM there is no other campaign.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct ElectArgs {
    /// The election's name: who leads holds the lock of this name
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) masters: MasterArgs,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    /// How long each campaign waits; 0s is one try [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) wait: Option<Duration>,

    /// Do not campaign: print who leads, and again when that changes, until a signal comes
    #[arg(long, conflicts_with_all = ["ttl", "grace", "lock_delay", "wait"])]
    pub(crate) observe: bool,

    /// How often to look who leads: a change is printed at most this late
    #[arg(long, conflicts_with = "command", value_name = "DURATION", default_value = "1s", value_parser = humantime::parse_duration)]
    pub(crate) every: Duration,

    /// Print who leads as JSON, an object a line
    #[arg(long, conflicts_with = "command")]
    pub(crate) json: bool,

    /// The command and its arguments
    #[arg(
        last = true,
        required_unless_present = "observe",
        conflicts_with = "observe",
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

/// Show who holds a lock, on which masters and for how long
///
/// It finds out what kind of lock it is: of a read-write lock it shows each who reads, of a
/// semaphore each permit that is held.
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

/// Show all names that are held or waited for
///
/// Each master scans a thousand keys at a time, of any kind, so it takes a while if there are
/// millions, but blocks nobody. Locks in the layout of another library are not shown.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) masters: MasterArgs,

    /// Print JSON, an object a name and line, as `status --json` has it
    #[arg(long)]
    pub(crate) json: bool,
}

/// Break a stuck lock: take it away from the owner that `status` shows
///
/// If that owner still works, two may hold the lock at once: it notices only at its next renewal.
/// Other holders of a read-write lock or a semaphore keep what they have.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct ReleaseArgs {
    /// The lock's name
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) masters: MasterArgs,

    /// The owner to take it from
    #[arg(long, value_name = "OWNER")]
    pub(crate) owner: Owner,
}

/// Examine the masters: what is wrong, and how to fix it
///
/// A line for each thing that was looked at, for each master and then for all of them: ok, warn or
/// fail, and what to do about it. At last, how many masters can vote, and whether that is a quorum.
/// It writes nothing on the masters, and works whatever is wrong with them. Give it the options
/// that the masters' clients have.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) masters: MasterArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measure what a lock costs on your masters
///
/// First one lock after the other: each master's round trip, how long an acquire and a release
/// take, and what a quorum would cost with fewer of the masters. Then how many locks a second this
/// machine gets at each concurrency. It uses locks of its own, which nobody else waits for, and
/// leaves nothing behind. Ctrl-C ends it, and shows what was measured. It is load on the masters:
/// each holds a few short-lived keys and is asked as fast as it answers.
#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) masters: MasterArgs,

    /// How long to measure, from 100ms to 10m. The single locks and each concurrency get an equal
    /// part of it: ten seconds are thousands of locks in one data centre, and some hundred across a
    /// continent
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    pub(crate) duration: Duration,

    /// How many locks at a time, from 1 to 4096, each in turn: one is a lone job, 16 a service, and
    /// with 64 the limit is this machine or the masters, not the network
    #[arg(long, value_name = "NUMBER", default_value = "1,16,64", value_delimiter = ',')]
    pub(crate) concurrency: Vec<usize>,

    /// How long the leases last; each is released at once. If a release does not arrive, its key
    /// stays this long
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

    #[test]
    fn a_command_to_repeat_has_every_option() {
        let words = "quorate status l --master redis://:hunter2@h --timeout 2s --prefix p: --max-ttl 1m";
        let Verb::Status(args) = Cli::parse_from(words.split_whitespace()).verb else { panic!("{words}") };
        let options = args.masters.options().unwrap().join(" ");
        assert_eq!(options, "--timeout 2s --prefix p: --max-ttl 1m");
    }
}
