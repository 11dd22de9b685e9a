//! Many seeds, over all cores.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use quorate_history::Violation;
use quorate_simulator::{PANIC, Plan, run, words_of};

/// Which seeds to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) from: u64,
    pub(crate) seeds: u64,
    pub(crate) during: Option<Duration>,
}

/// What came out.
#[derive(Debug)]
pub(crate) struct Report {
    from: u64,
    seeds: u64,
    took: Duration,
    threads: usize,
    holds: u64,
    changes: u64,
    /// How much virtual time passed.
    simulated: Duration,
    /// The first seed that violated anything.
    pub(crate) found: Option<(u64, Vec<Violation>)>,
}

/// How often the sets of masters were changed, for a list.
pub(crate) struct Changes(pub(crate) u64);

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, ", {} changes of the set", self.0) }
    }
}

/// What came of one seed.
struct Outcome {
    holds: usize,
    changes: u64,
    simulated: Duration,
    violations: Vec<Violation>,
}

#[derive(Default)]
struct Sum {
    seeds: u64,
    holds: u64,
    changes: u64,
    simulated: Duration,
    found: Option<(u64, Vec<Violation>)>,
}

/// Runs seeds on `threads` threads, until one violates a property. Which one is found does not
/// depend on the threads: it is the lowest.
pub(crate) fn run_all(limits: Limits, threads: usize, plan: impl Fn(u64) -> Plan + Sync) -> Report {
    let began = now();
    let next = AtomicU64::new(limits.from);
    let sum = Mutex::new(Sum::default());
    let sum_of = || sum.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || loop {
        let is_late = limits.during.is_some_and(|time| now().duration_since(began) >= time);
        // Seeds are taken in their order, and each that was taken is run: the lower ones are under
        // way.
        if is_late || sum_of().found.is_some() {
            return;
        }
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed - limits.from >= limits.seeds {
            return;
        }
        let outcome = attempt(seed, &plan);
        sum_of().add(seed, outcome);
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let Sum { seeds, holds, changes, simulated, found } =
        sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    let took = now().duration_since(began);
    Report { from: limits.from, seeds, took, threads, holds, changes, simulated, found }
}

fn attempt(seed: u64, plan: impl Fn(u64) -> Plan) -> Outcome {
    let outcome = catch_unwind(AssertUnwindSafe(|| run(&plan(seed), false)));
    match outcome {
        Ok(run) => Outcome {
            holds: run.history.holds.len(),
            changes: run.changes,
            simulated: run.history.end,
            violations: run.violations,
        },
        Err(panic) => {
            let what = words_of(&*panic);
            let violations = vec![Violation { property: PANIC, what, at: Duration::ZERO }];
            Outcome { holds: 0, changes: 0, simulated: Duration::ZERO, violations }
        }
    }
}

impl Sum {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        let Outcome { holds, changes, simulated, violations } = outcome;
        self.seeds += 1;
        self.holds += holds as u64;
        self.changes += changes;
        self.simulated += simulated;
        let is_lower = self.found.as_ref().is_none_or(|(lowest, _)| seed < *lowest);
        if !violations.is_empty() && is_lower {
            self.found = Some((seed, violations));
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, seeds, took, threads, holds, simulated, .. } = self;
        let changes = Changes(self.changes);
        let rate = *seeds as f64 / took.as_secs_f64();
        let to = from + seeds.saturating_sub(1);
        let threads = if *threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        write!(f, "{seeds} seeds, {from} to {to}, in {:.1} s on {threads}: ", took.as_secs_f64())?;
        write!(
            f,
            "{rate:.0} a second; {holds} holds{changes}, {:.1} min of virtual time",
            simulated.as_secs_f64() / 60.0
        )
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the speed of the simulation is printed; nothing in a run sees it"
)]
fn now() -> Instant {
    Instant::now()
}
