//! The `quorate-lab` command against real redis-servers.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "these tests watch processes by the wall clock, on plain threads"
)]

mod chaos;
mod compose;
mod simulate;

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use quorate_testkit::eventually_blocking;

/// A bound for what should happen at once, on a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(20);

fn output(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    eventually_blocking(SOON, || condition().then_some(()).ok_or(what));
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
