//! `quorate-lab simulate`: runs seeds, and replays one.

mod many;

use std::fmt;
use std::num::ParseIntError;
use std::panic::resume_unwind;
use std::str::FromStr;
use std::time::Duration;

use clap::value_parser;
use quorate_cli::exit::{self, Code, Failure};
use quorate_cli::out;
use quorate_history::{Violation, checkers};
use quorate_simulator::{Kind, Locks, PANIC, Plan, Profile, run, shrink};

use crate::codes::VIOLATED;

/// Simulate clients, masters, and a network: one seed decides everything
///
/// Runs many seeds, until one violates a property, and says how to replay that one. With --seed it
/// runs one seed and says what that violates; with --trace besides it shows every step.
/// docs/SIMULATION.md says how to read that.
#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// Run this seed only
    #[arg(long)]
    seed: Option<u64>,
    /// The first of many seeds
    #[arg(long, default_value_t = 1, conflicts_with = "seed")]
    from: u64,
    /// How many seeds to run
    #[arg(long, default_value_t = 1_000, conflicts_with = "seed", value_parser = value_parser!(u64).range(1..))]
    seeds: u64,
    /// Run as many seeds as this time allows, in seconds
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["seed", "seeds"])]
    during: Option<u64>,
    /// How many threads; as many as there are cores, if not given
    #[arg(long, conflicts_with = "seed", value_parser = value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// A fault that Redlock's argument excludes: restart-empty, clock-step, clock-strobe,
    /// flush-all, promotion, rollback, relapse, clone, renewal-strobe, detour, shared-clock,
    /// or any: those of them in turn that the locks are guarded against; or eviction, which nothing
    /// guards against; or members: the set of masters changes all the time; or mixed-lists: some
    /// clients have another list of masters; or late-handshake: a client knows the time vaguely; or
    /// lost-sets: sets of masters are lost, and begin again; or cut-short: a change of the set of
    /// masters is cut short, and operators recover the set
    #[arg(long, value_parser = fault)]
    fault: Option<Choice<Kind>>,
    /// Masters vote whatever they forgot, and whatever their clocks show: plain Redlock
    #[arg(long)]
    trusting: bool,
    /// The kind of the locks: reentrant, mutex, plain-mutex, redisson, semaphore, lock-all (over
    /// several names, beside locks of one), fair, read-write (readers and writers of the same
    /// names), or any: all of them in turn
    #[arg(long, value_name = "KIND", value_parser = locks)]
    locks: Option<Choice<Locks>>,
    /// With --seed: only these tasks of its plan, as in 3,17 or none
    #[arg(long, requires = "seed", value_name = "NUMBERS")]
    tasks: Option<Numbers>,
    /// With --seed: only these faults of its plan, as in 3,17 or none
    #[arg(long, requires = "seed", value_name = "NUMBERS")]
    faults: Option<Numbers>,
    /// With --seed: show every step
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Do not look for a smaller plan that violates the same
    #[arg(long, conflicts_with = "seed")]
    no_shrink: bool,
    /// The other way round: exit with 0 only if this property is violated, to check that a known
    /// bug is found
    #[arg(long, value_name = "PROPERTY", value_parser = property)]
    expect: Option<String>,
}

impl SimulateArgs {
    /// The plan of a seed.
    fn whole_plan(&self, seed: u64) -> Plan {
        let locks = match self.locks {
            None => Locks::default(),
            Some(Choice(Some(locks))) => locks,
            Some(Choice(None)) => {
                let survives = |locks: &Locks| match self.fault {
                    Some(Choice(Some(kind))) => kind.is_survived_by(*locks),
                    _ => true,
                };
                let kinds: Vec<_> = Locks::ALL.into_iter().filter(survives).collect();
                kinds[seed as usize / SEEDS_OF_A_KIND % kinds.len()]
            }
        };
        let profile = match self.fault {
            None => Profile::Inside,
            Some(Choice(Some(kind))) => Profile::Outside(kind),
            Some(Choice(None)) => {
                let kinds = Kind::guarded(locks);
                Profile::Outside(kinds[seed as usize % kinds.len()])
            }
        };
        let plan = Plan::new(seed, profile).of(locks);
        if self.trusting { plan.trusting() } else { plan }
    }

    /// The plan of the one seed, or what was left of it.
    fn plan(&self, seed: u64) -> Result<Plan, String> {
        let plan = self.whole_plan(seed);
        check("tasks", self.tasks.as_ref(), &plan.task_numbers())?;
        check("faults", self.faults.as_ref(), &plan.fault_numbers())?;
        let plan = match &self.tasks {
            Some(tasks) => plan.with_tasks(&tasks.0),
            None => plan,
        };
        Ok(match &self.faults {
            Some(faults) => plan.with_faults(&faults.0),
            None => plan,
        })
    }

    /// What to type to run this seed.
    fn command(&self, seed: u64) -> String {
        let fault = self.fault.map(|fault| format!(" --fault {fault}")).unwrap_or_default();
        let trusting = if self.trusting { " --trusting" } else { "" };
        let locks = self.locks.map(|locks| format!(" --locks {locks}")).unwrap_or_default();
        format!("cargo run --release -p quorate-lab -- simulate --seed {seed}{fault}{trusting}{locks}")
    }
}

/// Numbers of a plan's tasks or faults: `3,17`, or `none`.
#[derive(Clone, Debug)]
struct Numbers(Vec<usize>);

impl FromStr for Numbers {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let words = text.split(',').filter(|word| *word != "none");
        words.map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_first() {
            Some((first, rest)) => {
                write!(f, "{first}")?;
                rest.iter().try_for_each(|number| write!(f, ",{number}"))
            }
            None => f.write_str("none"),
        }
    }
}

/// Whether a plan has all that is asked for: what it has not could not be missed.
fn check(what: &str, wanted: Option<&Numbers>, there_are: &[usize]) -> Result<(), String> {
    let missing = wanted.and_then(|wanted| wanted.0.iter().find(|number| !there_are.contains(number)));
    missing.map_or(Ok(()), |missing| {
        Err(format!("this plan has {} {what}, counted from 0: there is no {missing}", there_are.len()))
    })
}

fn property(name: &str) -> Result<String, String> {
    let names: Vec<_> = checkers::ALL.iter().map(|(name, _)| *name).chain([PANIC]).collect();
    if names.contains(&name) {
        Ok(name.to_owned())
    } else {
        Err(format!("it is none of {}", names.join(", ")))
    }
}

/// One of several kinds, or all of them in turn.
#[derive(Clone, Copy, Debug)]
struct Choice<T>(Option<T>);

const ANY: &str = "any";

/// With locks of any kind, so many seeds in turn have the same: as many as there are faults of
/// `any` at least, so that each kind has each of them.
const SEEDS_OF_A_KIND: usize = 16;

fn choice<T: Copy + fmt::Display>(kinds: &[T], name: &str) -> Result<Choice<T>, String> {
    let found = kinds.iter().find(|kind| kind.to_string() == name).map(|kind| Choice(Some(*kind)));
    found.or((name == ANY).then_some(Choice(None))).ok_or_else(|| {
        let names: Vec<_> = kinds.iter().map(T::to_string).chain([ANY.to_owned()]).collect();
        format!("it is none of {}", names.join(", "))
    })
}

impl<T: fmt::Display> fmt::Display for Choice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(kind) => kind.fmt(f),
            None => f.write_str(ANY),
        }
    }
}

fn fault(name: &str) -> Result<Choice<Kind>, String> {
    choice(&Kind::ALL, name)
}

fn locks(name: &str) -> Result<Choice<Locks>, String> {
    choice(&Locks::ALL, name)
}

pub(crate) fn simulate(args: SimulateArgs) -> Result<Code, Failure> {
    // On a thread of its own: a simulation has a runtime, which cannot run within another one.
    std::thread::spawn(move || carry_out(&args)).join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn carry_out(args: &SimulateArgs) -> Result<Code, Failure> {
    let found = match args.seed {
        Some(seed) => one(&args.plan(seed).map_err(|why| Failure::new(exit::USAGE, why))?, args.trace),
        None => many(args),
    };
    match &args.expect {
        None if found.is_empty() => Ok(exit::OK),
        None => Ok(VIOLATED),
        Some(property) if found.contains(property) => Ok(exit::OK),
        Some(property) => {
            Err(Failure::new(exit::FAILED, format!("{property} was to be violated, and was not")))
        }
    }
}

/// Runs one plan. Answers which properties it violates.
fn one(plan: &Plan, traced: bool) -> Vec<String> {
    let run = run(plan, traced);
    run.trace.lines().for_each(|line| out!("{line}"));
    let seed = plan.seed;
    let holds = run.history.holds.len();
    let end = run.history.end.as_secs_f64();
    let changes = many::Changes(run.changes);
    let violations = run.violations.len();
    out!("seed {seed}: {holds} holds{changes} in {end:.1} s, {violations} violations");
    say_each(&run.violations);
    names(&run.violations)
}

/// Runs many seeds. Answers which properties the first one that violates any does.
fn many(args: &SimulateArgs) -> Vec<String> {
    let seeds = args.during.map_or(args.seeds, |_| u64::MAX - args.from);
    let limits = many::Limits { from: args.from, seeds, during: args.during.map(Duration::from_secs) };
    let cores = || std::thread::available_parallelism().map_or(1, Into::into);
    let threads = args.threads.map_or_else(cores, Into::into);
    let report = many::run_all(limits, threads, |seed| args.whole_plan(seed));
    out!("{report}");
    let Some((seed, violations)) = report.found else { return Vec::new() };
    out!("\nseed {seed} violates:");
    say_each(&violations);
    out!("replay it:\n  {} --trace", args.command(seed));
    let shrinks = !args.no_shrink && args.expect.is_none();
    if let Some(first) = violations.first().filter(|first| shrinks && first.property != PANIC) {
        say_smaller(args, &args.whole_plan(seed), first.property);
    }
    names(&violations)
}

/// Says what a plan does without, for what it violates.
fn say_smaller(args: &SimulateArgs, plan: &Plan, property: &str) {
    let smaller = shrink(plan, property);
    let left = plan.clone().with_tasks(&smaller.tasks).with_faults(&smaller.faults);
    out!("or what is left of it after {} runs, which violates:", smaller.runs);
    say_each(&run(&left, false).violations);
    let tasks = Numbers(smaller.tasks);
    let faults = Numbers(smaller.faults);
    out!("replay that:\n  {} --tasks {tasks} --faults {faults} --trace", args.command(plan.seed));
}

fn names(violations: &[Violation]) -> Vec<String> {
    violations.iter().map(|violation| violation.property.to_owned()).collect()
}

fn say_each(violations: &[Violation]) {
    violations.iter().for_each(|violation| out!("  {violation}"));
}
