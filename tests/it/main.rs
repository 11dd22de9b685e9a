//! The library against real redis-servers.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod bad_input;
mod cancel;
mod compose;
mod drops;
mod errors;
mod exclusion;
mod extend;
mod faults;
mod house;
mod inspect;
mod lost_replies;
mod masters;
mod readme;
mod reentrancy;
mod release;
mod scripts;
mod seams;
mod secrets;
#[cfg(feature = "tls")]
mod tls;

use std::time::Duration;

use quorate::{Builder, Redlock};
use quorate_testkit::Masters;

/// A bound for what should happen at once, on a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(10);

/// A per-master time-out that a healthy server keeps even on a busy machine.
const PATIENT: Duration = Duration::from_secs(3);

const TTL: Duration = Duration::from_secs(30);

fn builder(masters: &Masters) -> Builder {
    Redlock::builder().masters(masters.urls()).ttl(TTL).timeout(PATIENT)
}

/// A client that no stall of the machine disturbs.
fn patient(masters: &Masters) -> Redlock {
    builder(masters).build().unwrap()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
