//! The options of `quorate-lab chaos`: as typed, and checked against their limits. Pure.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use quorate::config::{DEFAULT_MAX_TTL, MAX_MASTERS};
use quorate_chaos::Host;
use quorate_chaos::naive::Naive;
use quorate_chaos::run::Trial;
use quorate_chaos::scenario::{self, Scenario};
use quorate_chaos::workload::{Kind, Subject};
use quorate_cli::exit::{self, Failure};
use quorate_cli::words::{joined, quoted};

use super::kinds;

/// Below this a run has hardly a fault; an hour has thousands, and a history of gigabytes.
const DURATION: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(60 * 60);

/// Each is a process with five tasks; more show nothing new.
const CLIENTS: RangeInclusive<usize> = 1..=16;

/// How many masters there are, unless it is said.
const MASTERS: usize = 5;

/// A set that changes loses one to begin with a majority of live ones, and grows by two.
const CHANGING_MASTERS: RangeInclusive<usize> = 3..=MAX_MASTERS - 2;

/// A busy machine loses shorter leases by itself. The longest is the clients' default.
const TTL: RangeInclusive<Duration> = Duration::from_millis(500)..=DEFAULT_MAX_TTL;

/// Put locks through failures of servers of its own, and look whether one was ever held by two
///
/// It starts redis-servers behind fault proxies, and client processes that take locks of all kinds,
/// write to what they protect, and record every call. Meanwhile servers are killed, frozen and
/// wiped, the network between them fails, clocks jump and clients die, as the scenario and the seed
/// decide. At the end, checkers examine the history. A scenario and a seed give the same faults at
/// the same times again; what happens in between is up to the machine. It needs redis-server and a
/// C compiler, and touches no master but its own. Ctrl-C ends it and everything that it started.
#[derive(Debug, Args)]
#[command(after_help = crate::codes::HELP)]
pub(crate) struct ChaosArgs {
    /// What may go wrong: --list names them
    #[arg(long, value_name = "NAME", default_value = "inside")]
    pub(crate) scenario: String,

    /// Name the scenarios, and end; as JSON with --json
    #[arg(long)]
    pub(crate) list: bool,

    /// Decides which faults happen, when, and which masters and clients they strike [default: a
    /// random one]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,

    /// How long new faults begin, from 1s to 1h. The last may end some seconds later. Of the
    /// scenario members: how long clients work before the first change
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) duration: Duration,

    /// How many masters, from 1 to 15; of the scenario members at first, from 3 to 13 [default: 5,
    /// of members 3]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) masters: Option<usize>,

    /// The masters are containers: a new one for each service of this compose file, in a project of
    /// its own. What containers cannot have is left out
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "docker-compose.yml", conflicts_with = "masters")]
    pub(crate) compose: Option<PathBuf>,

    /// How many client processes, from 1 to 16
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    pub(crate) clients: usize,

    /// How long leases last, from 500ms to 30s. A master that may have forgotten has no vote for a
    /// little longer
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub(crate) ttl: Duration,

    /// The lock under test: quorate; Redlock as in the textbook, or by the crate rslock; or a lock
    /// of one master that is known to be wrong, to see what a violation looks like
    #[arg(long, value_name = "LOCK", default_value = "quorate")]
    pub(crate) subject: Locks,

    /// Locks of these kinds only, separated by commas [default: each of them]
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kinds::parser())]
    pub(crate) kind: Vec<Kind>,

    /// Write a report with a timeline to this file, a new or a regular one: one HTML page that
    /// needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Write the history to this file, a new or a regular one: a JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is put through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Locks {
    /// This library, as it is
    Quorate,
    /// Redlock as in the textbook, without Quorate's guards
    Textbook,
    /// Redlock as the crate rslock has it
    Rslock,
    /// SETNX, and then EXPIRE
    SetnxExpire,
    /// GETSET, by the clients' clocks
    Getset,
    /// SET NX PX, and DEL to give it back
    Del,
    /// SET NX PX on one master, which is right until a replica takes its place
    OneMaster,
    /// A hash with one field for all readers
    NaiveReadWrite,
}

impl ChaosArgs {
    /// The run, with this seed if none was given.
    pub(crate) fn trial(&self, seed: u64) -> Result<Trial, Failure> {
        let time = |time: &Duration| joined(*time);
        within("--duration", &self.duration, &DURATION, time)?;
        within("--clients", &self.clients, &CLIENTS, usize::to_string)?;
        within("--ttl", &self.ttl, &TTL, time)?;
        let scenario = self.scenario()?;
        let masters = self.masters();
        if scenario.changes_members() {
            within("--masters", &masters, &CHANGING_MASTERS, usize::to_string)?;
        } else {
            check_masters("--masters", masters)?;
        }
        Ok(Trial {
            scenario,
            seed: self.seed.unwrap_or(seed),
            length: self.duration,
            masters,
            clients: self.clients,
            subject: self.subject(&scenario)?,
            ttl: self.ttl,
        })
    }

    /// The words that give the same run again.
    pub(crate) fn command(&self, seed: u64) -> Vec<String> {
        let mut words: Vec<_> =
            ["quorate-lab", "chaos", "--scenario", &self.scenario].map(str::to_owned).into();
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        add("--seed", seed.to_string());
        add("--duration", joined(self.duration));
        match &self.compose {
            None => add("--masters", self.masters().to_string()),
            Some(file) => add("--compose", file.display().to_string()),
        }
        add("--clients", self.clients.to_string());
        add("--ttl", joined(self.ttl));
        add("--subject", name(&self.subject));
        if !self.kind.is_empty() {
            add("--kind", self.kind.iter().map(|kind| kind.typed()).collect::<Vec<_>>().join(","));
        }
        words.iter().map(|word| quoted(word)).collect()
    }

    fn masters(&self) -> usize {
        let changes = Scenario::named(&self.scenario).is_some_and(|scenario| scenario.changes_members());
        self.masters.unwrap_or(if changes { *CHANGING_MASTERS.start() } else { MASTERS })
    }

    fn scenario(&self) -> Result<Scenario, Failure> {
        let names = || scenario::ALL.map(|scenario| scenario.name).join(", ");
        let none = || format!("--scenario {} is none of {}", self.scenario, names());
        let scenario = Scenario::named(&self.scenario).ok_or_else(|| Failure::new(exit::USAGE, none()))?;
        let host = if self.compose.is_some() { Host::Container } else { Host::Process };
        let no_fault = || format!("--scenario {} has no fault that containers can have", self.scenario);
        scenario.on(host).ok_or_else(|| Failure::new(exit::USAGE, no_fault()))
    }

    fn subject(&self, scenario: &Scenario) -> Result<Subject, Failure> {
        if self.subject != Locks::Quorate && !self.kind.is_empty() {
            let wrong = format!("--kind is for --subject quorate; {} has one kind", name(&self.subject));
            return Err(Failure::new(exit::USAGE, wrong));
        }
        if self.subject != Locks::Quorate && scenario.changes_members() {
            let wrong = format!("--scenario {} is for --subject quorate", self.scenario);
            return Err(Failure::new(exit::USAGE, wrong));
        }
        Ok(match self.subject {
            Locks::Quorate if self.kind.is_empty() => Subject::Quorate(Kind::ALL.to_vec()),
            Locks::Quorate => Subject::Quorate(self.kind.clone()),
            Locks::Textbook => Subject::Naive(Naive::Textbook),
            Locks::Rslock => Subject::Rslock,
            Locks::SetnxExpire => Subject::Naive(Naive::SetnxExpire),
            Locks::Getset => Subject::Naive(Naive::Getset),
            Locks::Del => Subject::Naive(Naive::Del),
            Locks::OneMaster => Subject::Naive(Naive::OneMaster),
            Locks::NaiveReadWrite => Subject::Naive(Naive::ReadWrite),
        })
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "a duration is written like 500ms, 5s or 10m".to_owned())
}

/// A value as it is typed.
fn name(value: &Locks) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Whether this number of masters is within the limits; `what` says where it comes from.
pub(super) fn check_masters(what: &str, count: usize) -> Result<(), Failure> {
    within(what, &count, &(1..=MAX_MASTERS), usize::to_string)
}

fn within<T: PartialOrd>(
    option: &str,
    value: &T,
    limits: &RangeInclusive<T>,
    text: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    if limits.contains(value) {
        return Ok(());
    }
    let least = text(limits.start());
    let most = text(limits.end());
    Err(Failure::new(exit::USAGE, format!("{option} {} is not within {least} and {most}", text(value))))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Verb};

    fn typed(words: &str) -> ChaosArgs {
        let words = format!("quorate-lab chaos {words}");
        let Verb::Chaos(args) = Cli::parse_from(words.split_whitespace()).verb else { panic!("{words}") };
        args
    }

    #[test]
    fn the_command_gives_the_same_plan_again() {
        let args = typed("--scenario outside --masters 3 --kind fair,plain-mutex");
        let again = args.command(7).join(" ");
        assert_eq!(
            again,
            "quorate-lab chaos --scenario outside --seed 7 --duration 10s --masters 3 --clients 3 --ttl 2s --subject quorate \
             --kind fair,plain-mutex"
        );
        let again = typed(again.strip_prefix("quorate-lab chaos ").unwrap()).trial(8).unwrap();
        let first = args.trial(7).unwrap();
        assert_eq!((again.plan(), again.subject), (first.plan(), first.subject));
    }

    #[test]
    fn containers_are_those_of_a_file() {
        let args = typed("--compose --scenario failover");
        assert_eq!(args.compose.as_deref(), Some("docker-compose.yml".as_ref()));
        let again = typed("--compose other.yml").command(7).join(" ");
        assert!(again.contains("--compose other.yml") && !again.contains("--masters"), "{again}");
        let on_containers = args.trial(7).unwrap().plan();
        assert_ne!(on_containers, typed("--scenario failover").trial(7).unwrap().plan());
        assert!(Cli::try_parse_from(["quorate-lab", "chaos", "--compose", "--masters", "3"]).is_err());
    }

    #[test]
    fn a_value_outside_of_its_limits_is_named_with_the_limit() {
        for (words, parts) in [
            ("--masters 0", ["--masters 0", "15"]),
            ("--masters 16", ["16", "15"]),
            ("--clients 0", ["--clients 0", "16"]),
            ("--clients 17", ["17", "16"]),
            ("--ttl 499ms", ["499ms", "500ms"]),
            ("--ttl 31s", ["31s", "30s"]),
            ("--duration 999ms", ["999ms", "1s"]),
            ("--duration 61m", ["1h1m", "1h"]),
            ("--scenario storm", ["storm", "inside"]),
            ("--subject del --kind fair", ["--kind", "del"]),
            ("--compose --scenario replicas", ["replicas", "containers"]),
            ("--scenario members --masters 2", ["--masters 2", "13"]),
            ("--scenario members --subject del", ["members", "quorate"]),
            ("--compose --scenario members", ["members", "containers"]),
        ] {
            let failure = typed(words).trial(1).unwrap_err();
            assert_eq!(failure.code, exit::USAGE);
            assert!(parts.iter().all(|part| failure.message.contains(part)), "{}", failure.message);
        }
        assert!(typed("--masters 15 --clients 16 --ttl 500ms --duration 1h").trial(1).is_ok());
    }
}
