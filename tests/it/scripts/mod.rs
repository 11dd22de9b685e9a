//! The Lua scripts by themselves: what each says and writes, once and again.
//!
//! Each scenario is tried on a real server. All of them are tried on embedded ones, too, and with scripts that lack a guard:
//! one of them has to fail then (`mutation`).

mod ear;
mod lab;
mod mutation;
mod operation;
mod said;
mod source;

mod acquire;
mod denied;
mod fair;
mod fenced;
mod head;
mod heal;
mod hello;
mod inspecting;
mod kinds;
mod longer;
mod parted;
mod reading;
mod semaphore;
mod several;
mod strange;
mod tokens;
mod transferring;
mod turns;
mod undone;
mod unreleased;
mod waiting;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lab::{Lab, Scripts};

/// Something to try.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    name: &'static str,
    run: fn(&Lab),
    mode: Mode,
}

/// What a scenario is tried with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A client with guards, and one without.
    Both,
    /// A client with guards.
    Guarded,
    /// The same, on an embedded server only: it is about moments that a real clock does not meet.
    Exact,
}

/// Lists the scenarios of a file, and makes tests of them.
macro_rules! scenarios {
    ($($mode:ident: $($name:ident),+;)+) => {
        pub(super) const SCENARIOS: &[super::Scenario] = &[$($(
            super::Scenario { name: stringify!($name), run: $name, mode: super::Mode::$mode },
        )+)+];

        mod on_a_real_server {
            $($(super::super::real_test! { $mode $name })+)+
        }
    };
}
use scenarios;

macro_rules! real_test {
    (Exact $name:ident) => {};
    ($mode:ident $name:ident) => {
        #[test]
        fn $name() {
            super::super::try_on_a_real_server(stringify!($name), super::$name, super::super::Mode::$mode);
        }
    };
}
use real_test;

/// All scenarios.
fn all() -> Vec<Scenario> {
    [
        acquire::SCENARIOS,
        denied::SCENARIOS,
        fair::SCENARIOS,
        fenced::SCENARIOS,
        head::SCENARIOS,
        heal::SCENARIOS,
        hello::SCENARIOS,
        inspecting::SCENARIOS,
        kinds::SCENARIOS,
        longer::SCENARIOS,
        parted::SCENARIOS,
        reading::SCENARIOS,
        semaphore::SCENARIOS,
        several::SCENARIOS,
        strange::SCENARIOS,
        tokens::SCENARIOS,
        transferring::SCENARIOS,
        turns::SCENARIOS,
        undone::SCENARIOS,
        unreleased::SCENARIOS,
        waiting::SCENARIOS,
    ]
    .concat()
}

impl Mode {
    /// Whether the client has guards, for each time.
    fn guards(self) -> &'static [bool] {
        if self == Self::Both { &[true, false] } else { &[true] }
    }
}

/// Where the machine stood still meanwhile, tokens that were proposed before are stale: that proves nothing.
fn try_on_a_real_server(name: &'static str, run: fn(&Lab), mode: Mode) {
    const STILL: Duration = Duration::from_millis(500);
    let scripts = Arc::new(source::scripts());
    for (kind, has_guards) in (Scenario { name, run, mode }).times() {
        let mut tries = 5;
        loop {
            let lab = Lab::real(scripts.clone(), kind, has_guards);
            let begun = Instant::now();
            let Err(failure) = catch_unwind(AssertUnwindSafe(|| run(&lab))) else { break };
            tries -= 1;
            if tries == 0 || begun.elapsed() < STILL {
                resume_unwind(failure);
            }
        }
    }
}

impl Scenario {
    /// How often it is tried: for which kind of lock, and whether with guards.
    fn times(&self) -> impl Iterator<Item = (usize, bool)> {
        let kinds = kinds::of(self.name).iter();
        kinds.flat_map(|&kind| self.mode.guards().iter().map(move |&has_guards| (kind, has_guards)))
    }

    /// Tries it on embedded servers; panics where it fails.
    fn try_embedded(&self, scripts: &Arc<Scripts>) {
        for (kind, has_guards) in self.times() {
            (self.run)(&Lab::embedded(scripts.clone(), kind, has_guards));
        }
    }
}

#[test]
fn all_scenarios_pass_on_embedded_servers() {
    let scripts = Arc::new(source::scripts());
    for scenario in all() {
        println!("{}", scenario.name);
        scenario.try_embedded(&scripts);
    }
}
