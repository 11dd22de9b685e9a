//! The `quorate` command against real redis-servers.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "these tests watch processes by the wall clock, on plain threads"
)]

mod bench;
mod doctor;
mod durations;
mod elect;
mod guards;
mod init;
mod neighbours;
mod operations;
mod permits;
mod run;
mod show;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use quorate_testkit::{Masters, RedisServer};

/// A bound for what should happen at once, on a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(20);

/// The command, with these masters in its environment.
fn quorate(masters: &Masters) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.env("QUORATE_MASTERS", masters.urls().join(",")).stdin(Stdio::null());
    command
}

/// New masters that are a set, and vote at once.
fn start(count: usize) -> Masters {
    let masters = Masters::start(count);
    begin(&masters, &[]);
    masters
}

/// Has new masters begin as a set on these terms, as a person does who knows that they are new.
fn begin(masters: &Masters, terms: &[&str]) {
    let begun = init(masters, &format!("--never-used={}", fingerprint(masters)), terms);
    assert_eq!(begun.0, 0, "{begun:?}");
}

fn init(masters: &Masters, never_used: &str, terms: &[&str]) -> (i32, String, String) {
    output(quorate(masters).args(["init", never_used]).args(terms))
}

/// What a refused init prints.
fn fingerprint(masters: &Masters) -> String {
    let (code, _, error) = init(masters, "--never-used", &["--prefix", "nobody:"]);
    let (_, command) = error.split_once("quorate init --never-used=").expect(&error);
    assert_eq!(code, 81, "{error}");
    command.split_whitespace().next().unwrap().to_owned()
}

/// So many masters of a set lose their keys, one after the other, and have no vote for a while.
fn forget(masters: &Masters, count: usize, terms: &[&str]) {
    for server in masters.iter().take(count) {
        let _: String = server.command(&["FLUSHALL"]);
        assert_eq!(output(quorate(masters).arg("init").args(terms)).0, 0, "it has its record again");
    }
}

/// The lock `l` is this owner's on a master, so often, for a minute: the fields of
/// docs/PROTOCOL.md.
fn hold(server: &RedisServer, owner: &str, holds: u32) {
    let (seconds, micros): (u64, u64) = server.command(&["TIME"]);
    let now = seconds * 1_000_000 + micros;
    let (fence, entry) = (now.to_string(), format!("{} {now} 1 {holds}", now + 60_000_000));
    let fields = ["kind", "lock", "fence", &fence, "x", &entry, "o:x", owner];
    let _: i64 = server.command(&[&["HSET", "quorate:{l}"][..], &fields].concat());
    let _: i64 = server.command(&["PEXPIRE", "quorate:{l}", "2592000000"]);
}

fn output(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < SOON, "waited {SOON:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until no master has a key, for less than the ten seconds of a TTL where nothing else is
/// said.
fn wait_until_released(masters: &Masters) {
    let begun = Instant::now();
    while let Err(keys) = masters.empty() {
        assert!(begun.elapsed() < Duration::from_secs(8), "{keys:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
