//! The scripts that are no lock's: those of the handshake, and that of a resource which checks
//! fences itself. The scripts of locks are tried by the golden vectors (`golden`), and all of them
//! with a guard left out: some scene or scenario has to notice (`mutation`).

mod fenced;
mod free;
mod free_rw;
mod hello;
mod hot;
mod lab;
mod mutation;
mod record;
mod source;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use lab::Lab;
use quorate::seam::Script;

/// Something to try.
#[derive(Clone, Copy, Debug)]
struct Scenario {
    name: &'static str,
    run: fn(&Lab<'_>),
}

/// Lists the scenarios of a script, and makes tests of them: those that are `Exact` are about
/// moments that a real clock does not meet.
macro_rules! scenarios {
    ($script:expr; Real: $($real:ident),+; Exact: $($exact:ident),*;) => {
        pub(super) const SCENARIOS: &[super::Scenario] = &[
            $(super::Scenario { name: stringify!($real), run: $real },)+
            $(super::Scenario { name: stringify!($exact), run: $exact },)*
        ];

        mod on_a_real_server {
            $(#[test]
            fn $real() {
                super::super::try_on_a_real_server($script, super::$real);
            })+
        }

        #[test]
        fn all_pass_on_embedded_servers() {
            for scenario in SCENARIOS {
                println!("{}", scenario.name);
                scenario.try_embedded($script);
            }
        }
    };
}
use scenarios;

/// Where the machine stood still meanwhile, moments that were told before are long ago: that proves
/// nothing.
fn try_on_a_real_server(script: &Script, run: fn(&Lab<'_>)) {
    const STILL: Duration = Duration::from_millis(500);
    let mut tries = 5;
    loop {
        let lab = Lab::real(script);
        let begun = Instant::now();
        let Err(failure) = catch_unwind(AssertUnwindSafe(|| run(&lab))) else { return };
        tries -= 1;
        if tries == 0 || begun.elapsed() < STILL {
            resume_unwind(failure);
        }
    }
}

impl Scenario {
    /// Tries it on an embedded server; panics where it fails.
    fn try_embedded(&self, script: &Script) {
        (self.run)(&Lab::embedded(script));
    }
}
