//! `quorate-simulate`: runs seeds, and replays one.

use std::fmt;
use std::io::Write;
use std::num::ParseIntError;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::{Parser, value_parser};
use quorate_simulator::history::Violation;
use quorate_simulator::{Kind, Locks, PANIC, Plan, Profile, checkers, run, shrink};

mod many;

/// A run allocates little things all the time, its scripts above all.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Simulate Quorate: one seed decides everything
///
/// Runs many seeds, until one violates a property, and says how to replay that one. With --seed it
/// runs one seed and says what that violates; with --trace besides it shows every step.
/// docs/SIMULATION.md says how to read that.
///
/// It exits with 0 when nothing was violated, 1 when something was, and 2 for wrong usage.
#[derive(Debug, Parser)]
#[command(name = "quorate-simulate", version)]
struct Args {
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
    /// lost-sets: sets of masters are lost, and begin again
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

impl Args {
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
        format!("cargo run --release -p quorate-simulator -- --seed {seed}{fault}{trusting}{locks}")
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
    let names: Vec<_> = checkers::ALL.iter().map(|checker| checker.name).chain([PANIC]).collect();
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

fn main() -> ExitCode {
    let args = Args::parse();
    let found = match args.seed {
        Some(seed) => match args.plan(seed) {
            Ok(plan) => one(&plan, args.trace),
            Err(why) => {
                eprintln!("quorate-simulate: {why}");
                return ExitCode::from(2);
            }
        },
        None => many(&args),
    };
    let as_expected = match &args.expect {
        Some(property) => found.iter().any(|found| found == property),
        None => found.is_empty(),
    };
    if as_expected {
        return ExitCode::SUCCESS;
    }
    if let Some(property) = &args.expect {
        say(format_args!("{property} was to be violated, and was not"));
    }
    ExitCode::FAILURE
}

/// Runs one plan. Answers which properties it violates.
fn one(plan: &Plan, traced: bool) -> Vec<String> {
    let run = run(plan, traced);
    let _ = write!(std::io::stdout(), "{}", run.trace); // as `say`
    let seed = plan.seed;
    let holds = run.history.holds.len();
    let end = run.history.end.as_secs_f64();
    let changes = many::Changes(run.history.changes);
    let violations = run.violations.len();
    say(format_args!("seed {seed}: {holds} holds{changes} in {end:.1} s, {violations} violations"));
    say_each(&run.violations);
    names(&run.violations)
}

/// Runs many seeds. Answers which properties the first one that violates any does.
fn many(args: &Args) -> Vec<String> {
    let seeds = args.during.map_or(args.seeds, |_| u64::MAX - args.from);
    let limits = many::Limits { from: args.from, seeds, during: args.during.map(Duration::from_secs) };
    let cores = || std::thread::available_parallelism().map_or(1, Into::into);
    let threads = args.threads.map_or_else(cores, Into::into);
    let report = many::run_all(limits, threads, |seed| args.whole_plan(seed));
    say(format_args!("{report}"));
    let Some((seed, violations)) = report.found else { return Vec::new() };
    say(format_args!("\nseed {seed} violates:"));
    say_each(&violations);
    say(format_args!("replay it:\n  {} --trace", args.command(seed)));
    let shrinks = !args.no_shrink && args.expect.is_none();
    if let Some(first) = violations.first().filter(|first| shrinks && first.property != PANIC) {
        say_smaller(args, &args.whole_plan(seed), first.property);
    }
    names(&violations)
}

/// Says what a plan does without, for what it violates.
fn say_smaller(args: &Args, plan: &Plan, property: &str) {
    let smaller = shrink(plan, property);
    let left = plan.clone().with_tasks(&smaller.tasks).with_faults(&smaller.faults);
    say(format_args!("or what is left of it after {} runs, which violates:", smaller.runs));
    say_each(&run(&left, false).violations);
    let tasks = Numbers(smaller.tasks);
    let faults = Numbers(smaller.faults);
    say(format_args!(
        "replay that:\n  {} --tasks {tasks} --faults {faults} --trace",
        args.command(plan.seed)
    ));
}

fn names(violations: &[Violation]) -> Vec<String> {
    violations.iter().map(|violation| violation.property.to_owned()).collect()
}

fn say_each(violations: &[Violation]) {
    violations.iter().for_each(|violation| say(format_args!("  {violation}")));
}

/// Prints a line, if standard output is still open.
fn say(what: impl fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{what}");
}
