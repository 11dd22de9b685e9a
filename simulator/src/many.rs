//! Many seeds, over all cores.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use quorate_simulator::history::Violation;
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
    /// How much virtual time passed.
    simulated: Duration,
    /// The first seed that violated anything.
    pub(crate) found: Option<(u64, Vec<Violation>)>,
}

#[derive(Default)]
struct Sum {
    seeds: u64,
    holds: u64,
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
    let Sum { seeds, holds, simulated, found } = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    Report { from: limits.from, seeds, took: now().duration_since(began), threads, holds, simulated, found }
}

/// One seed: how many holds, how much time, and what it violates.
fn attempt(seed: u64, plan: impl Fn(u64) -> Plan) -> (usize, Duration, Vec<Violation>) {
    let outcome = catch_unwind(AssertUnwindSafe(|| run(&plan(seed), false)));
    match outcome {
        Ok(run) => (run.history.holds.len(), run.history.end, run.violations),
        Err(panic) => {
            let what = words_of(&*panic);
            (0, Duration::ZERO, vec![Violation { property: PANIC, what, at: Duration::ZERO }])
        }
    }
}

impl Sum {
    fn add(&mut self, seed: u64, (holds, simulated, violations): (usize, Duration, Vec<Violation>)) {
        self.seeds += 1;
        self.holds += holds as u64;
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
        let rate = *seeds as f64 / took.as_secs_f64();
        let to = from + seeds.saturating_sub(1);
        let threads = if *threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
        write!(f, "{seeds} seeds, {from} to {to}, in {:.1} s on {threads}: ", took.as_secs_f64())?;
        write!(
            f,
            "{rate:.0} a second; {holds} holds, {:.1} min of virtual time",
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
