//! The library against real redis-servers.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(clippy::disallowed_methods, reason = "these tests bound their waits by the wall clock")]

mod bad_input;
mod cancel;
mod clock;
mod compose;
mod drops;
mod errors;
mod exclusion;
mod extend;
mod faults;
mod first_attempt;
mod group_commit;
mod group_faults;
mod hand_over;
mod house;
mod inspect;
mod listening;
mod loss;
mod lost_replies;
mod masters;
mod masters_kinds;
mod masters_suite;
mod named_waiters;
mod readme;
mod reentrancy;
mod release;
mod renewal;
mod scripts;
mod seams;
mod secrets;
#[cfg(feature = "tls")]
mod tls;
mod waiting;
mod wake_ups;

use std::time::Duration;

use quorate::{Builder, Redlock};
use quorate_testkit::Masters;

/// A bound for what should happen at once, on a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(20);

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

/// Waits for a condition that has to be asked for.
async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !condition().await {
        assert!(begun.elapsed() < SOON, "waited {SOON:?} for {what}");
        tokio::time::sleep(ms(2)).await;
    }
}

/// Waits until so many masters answer this client.
async fn answering(redlock: &Redlock, count: usize) {
    until("the masters to answer", async || redlock.lock("l").inspect().await.unwrap().answered() >= count)
        .await;
}

/// Waits until every master has a key: the stragglers of an acquire have come in.
async fn on_all(masters: &Masters) {
    until("the key on every master", async || masters.keys().len() == masters.iter().len()).await;
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
