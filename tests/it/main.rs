//! The library against real redis-servers.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(clippy::disallowed_methods, reason = "these tests bound their waits by the wall clock")]

mod altered;
mod attacks;
mod bad_input;
mod blocking;
mod cancel;
mod changes;
mod clock;
mod compose;
mod crowd;
mod doctor;
mod drops;
mod durations;
mod election;
mod env;
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
#[cfg(feature = "serde")]
mod json;
mod kinds;
mod label;
mod list;
mod listening;
mod lock_all;
mod loss;
mod lost_replies;
mod masters;
mod masters_kinds;
mod masters_suite;
mod named_waiters;
mod passwords;
mod peers;
mod quorum_first;
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
mod seen_before;
mod semaphore;
mod semaphore_crowd;
mod shared;
mod slots;
#[cfg(feature = "tls")]
mod tls;
mod tries;
mod waiting;
mod wake_ups;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use quorate::config::MAX_TTL;
use quorate::{Builder, Init, Redlock};
use quorate_testkit::{Masters, RedisServer};

/// A bound for what should happen at once, on a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(20);

/// A per-master time-out that a healthy server keeps even on a busy machine.
const PATIENT: Duration = Duration::from_secs(3);

const TTL: Duration = Duration::from_secs(30);

/// A client that takes masters for new ones whatever they forgot, for locks of any TTL.
fn begin() -> Builder {
    begin_new().max_ttl(MAX_TTL)
}

/// The same, with the TTLs that there may be where nothing else is said.
fn begin_new() -> Builder {
    Redlock::builder().all_new()
}

/// A client that takes these masters for new ones whatever they forgot: where they restart, where
/// nothing may have been sent to them, or where each has other settings.
fn all_new(masters: &Masters) -> Builder {
    begin().masters(masters.urls()).ttl(TTL).timeout(PATIENT)
}

/// A client of these masters, which are a set from now on, as users have it.
fn builder(masters: &Masters) -> Builder {
    let client = Redlock::builder().masters(masters.urls()).max_ttl(MAX_TTL).ttl(TTL).timeout(PATIENT);
    if masters[0].command::<i64>(&["EXISTS", "quorate:master"]) == 0 {
        let first = client.clone().build().unwrap();
        let init = move || first.init_blocking(Init::new().never_used(first.fingerprint_blocking()?));
        std::thread::spawn(init).join().unwrap().unwrap(); // the thread of a test must not block
    }
    client
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

/// A client whose masters no client ever used, begun as a set.
async fn begun(builder: Builder, init: Init) -> Redlock {
    let redlock = builder.build().unwrap();
    let fingerprint = redlock.fingerprint().await.unwrap();
    redlock.init(init.never_used(fingerprint)).await.unwrap();
    redlock
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
        local token = redis.call('HGET', KEYS[1], 'fence') + 1
        redis.call('HSET', KEYS[1], 'fence', string.format('%.0f', token), 'last', string.format('%.0f', token))
        return redis.call('HDEL', KEYS[1], 'x', 'o:x')";
    let _: i64 = server.command(&["EVAL", SCRIPT, "1", "quorate:{l}"]);
}

/// The client and the number of a ticket, which is `CLIENT:NUMBER LABEL`.
fn client_and_number(ticket: &str) -> (&str, &str) {
    ticket.split(' ').next().unwrap().split_once(':').unwrap()
}

/// Puts a ticket into the queue of the lock `l`, which has waited since then (us).
fn queue_up(server: &RedisServer, kind: &str, ticket: &str, since: u64) {
    let _: i64 = server.command(&["HSET", "quorate:{l}", "kind", kind, "queued", "1"]);
    let _: i64 = server.command(&["ZADD", "quorate:waiting:{l}", &since.to_string(), ticket]);
}

/// How many holds this owner has of a lock with one holder, or of a write lock, whether or not its
/// end has come.
fn holds(server: &RedisServer, key: &str, owner: &str) -> Option<u32> {
    let (entry, its): (Option<String>, Option<String>) = server.command(&["HMGET", key, "x", "o:x"]);
    let entry = entry.filter(|_| its.as_deref() == Some(owner))?;
    entry.split(' ').nth(3).map(|holds| holds.parse().unwrap())
}

/// For how long a master keeps the lock `l` from others, if it does.
fn kept_for(server: &RedisServer) -> Option<Duration> {
    let entry: Option<String> = server.command(&["HGET", "quorate:{l}", "x"]);
    let ends: u64 = entry?.split(' ').next().unwrap().parse().unwrap();
    let (seconds, micros): (u64, u64) = server.command(&["TIME"]);
    Some(Duration::from_micros(ends.saturating_sub(seconds * 1_000_000 + micros)))
}

/// Gives a lock to this owner, for so long from now on.
fn give(server: &RedisServer, name: &str, owner: &str, kept: Duration) {
    let (seconds, micros): (u64, u64) = server.command(&["TIME"]);
    let now = seconds * 1_000_000 + micros;
    let entry = format!("{} {now} 1 1", now + kept.as_micros() as u64);
    let (key, fence) = (format!("quorate:{{{name}}}"), now.to_string());
    let fields = ["kind", "lock", "fence", &fence, "x", &entry, "o:x", owner];
    let _: i64 = server.command(&[&["HSET", &key], &fields[..]].concat());
    let _: i64 = server.command(&["PEXPIRE", &key, "2592000000"]);
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
