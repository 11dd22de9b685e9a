//! The library against real redis-servers.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(clippy::disallowed_methods, reason = "these tests bound their waits by the wall clock")]

mod attacks;
mod bad_input;
mod blocking;
mod cancel;
mod clock;
mod compose;
mod crowd;
mod doctor;
mod drops;
mod election;
mod errors;
mod exclusion;
mod extend;
mod fair;
mod faults;
mod fenced;
mod fencing;
mod first_attempt;
mod foreign;
mod golden;
mod group_commit;
mod group_faults;
mod hand_over;
mod handshake;
mod house;
mod inspect;
mod kinds;
mod listening;
mod lock_all;
mod loss;
mod lost_replies;
mod masters;
mod masters_kinds;
mod masters_suite;
mod named_waiters;
mod peers;
mod read_write;
mod read_write_crowd;
mod readme;
mod redisson;
mod reentrancy;
mod release;
mod renewal;
mod rivals;
mod scripts;
mod seams;
mod secrets;
mod semaphore;
mod semaphore_crowd;
mod shared;
mod slots;
#[cfg(feature = "tls")]
mod tls;
mod waiting;
mod wake_ups;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use quorate::config::MAX_TTL;
use quorate::{Builder, ColdStart, Redlock};
use quorate_testkit::{Masters, RedisServer};

/// A bound for what should happen at once, on a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(20);

/// A per-master time-out that a healthy server keeps even on a busy machine.
const PATIENT: Duration = Duration::from_secs(3);

const TTL: Duration = Duration::from_secs(30);

/// A client of masters that are new, and vote at once, for locks of any TTL.
fn begin() -> Builder {
    Redlock::builder().cold_start(ColdStart::None).max_ttl(MAX_TTL)
}

/// The same, with the TTLs that there may be where nothing else is said.
fn begin_new() -> Builder {
    Redlock::builder().cold_start(ColdStart::None)
}

fn builder(masters: &Masters) -> Builder {
    begin().masters(masters.urls()).ttl(TTL).timeout(PATIENT)
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

/// An example as a command, with not even a path to look for anything on.
fn example(name: &str) -> Command {
    let deps = std::env::current_exe().unwrap();
    let example = deps.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(example.exists(), "cargo build --examples, in this profile, makes {}", example.display());
    let mut command = Command::new(example);
    command.env_clear();
    command
}

/// This master granted the lock `l` to somebody else meanwhile, who released it: all at once, or a
/// renewal in between would be in time.
fn granted_since(server: &RedisServer) {
    const SCRIPT: &str = "
        local token = string.match(redis.call('GET', KEYS[1]), '^%d+')
        redis.call('SET', KEYS[1], string.format('%.0f', token + 1))
        redis.call('DEL', KEYS[2])";
    let _: () = server.command(&["EVAL", SCRIPT, "2", "quorate:fence:{l}", "quorate:{l}"]);
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
