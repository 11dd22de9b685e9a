//! A client in another language, which was written from docs/PROTOCOL.md, beside `quorate run`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use quorate_testkit::{Masters, RedisServer};
use serde_json::Value;

use crate::{begin, output, quorate, read, wait_until};

/// The settings of both clients; the one in Python takes milliseconds.
const OURS: [&str; 4] = ["--max-ttl", "3s", "--ttl", "2s"];
const THEIRS: [&str; 4] = ["--max-ttl", "3000", "--ttl", "2000"];

const HOUR_MS: i64 = 3_600_000;

/// How many runs there are between two faults.
const BETWEEN: usize = 20;

#[test]
fn a_client_in_python_counts_beside_run_and_nothing_is_lost_whatever_one_master_does() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|said| said.status.success()) {
        println!("skipped: there is no python3");
        return;
    }
    let mut masters = Masters::start_with_clocks(5, &[]);
    begin(&masters, &OURS[..2]);
    let folder = tempfile::TempDir::new().unwrap();
    let [count, log] = ["count", "log"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&count, "0").unwrap();
    // It adds one, with a pause in which nobody else may.
    let job = format!(
        "n=$(cat {count}); sleep 0.01; echo $((n + 1)) > {count}.new; mv {count}.new {count}; echo $0 >> {log}"
    );
    let urls = masters.urls().join(",");
    let theirs = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/neighbours/python/quorate.py");
    let ended = AtomicBool::new(false);
    let runs = || read(Path::new(&log)).lines().count();
    let lines_of = |who: &str| read(Path::new(&log)).lines().filter(|line| *line == who).count();
    let command = |program: &str, verb: &[&str], options: &[&str], who: &str| {
        let mut command = Command::new(program);
        command.args(verb).args(options).args(["l", "--", "sh", "-c", &job, who]);
        command.env("QUORATE_MASTERS", &urls).stdin(Stdio::null()).stderr(Stdio::null());
        command
    };
    let ours = || command(env!("CARGO_BIN_EXE_quorate"), &["run"], &OURS, "ours");
    let python = || command("python3", &[theirs, "run", "--masters", &urls], &THEIRS, "theirs");
    let repeat = |command: &dyn Fn() -> Command| {
        while !ended.load(Ordering::Relaxed) {
            command().status().unwrap();
        }
    };
    std::thread::scope(|scope| {
        let _ends = Ends(&ended);
        for _ in 0..2 {
            scope.spawn(|| repeat(&ours));
            scope.spawn(|| repeat(&python));
        }
        let faults: [fn(&mut RedisServer); 3] = [
            |server| server.command::<()>(&["FLUSHALL"]),
            |server| {
                server.kill();
                server.restart();
            },
            |server| server.step_clock(HOUR_MS),
        ];
        for (place, fault) in faults.into_iter().enumerate() {
            let before = runs();
            wait_until("runs", || runs() >= before + BETWEEN);
            fault(&mut masters[place]);
            // One after the other: a quorum of the five has always seen all that was granted.
            wait_until("its vote", || place == 2 || standing(&masters, place) == "trusted");
        }
        let [before_ours, before_theirs] = [lines_of("ours"), lines_of("theirs")];
        wait_until("both", || lines_of("ours") > before_ours + 2 && lines_of("theirs") > before_theirs + 2);
    });
    assert_eq!(read(Path::new(&count)).trim().parse(), Ok(runs()));
}

/// Ends those that repeat, also where the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How a master stands with a new client.
fn standing(masters: &Masters, place: usize) -> String {
    let (_, out, _) = output(quorate(masters).args(["status", "l", "--max-ttl", "3s", "--json"]));
    let status: Value = serde_json::from_str(&out).unwrap();
    status["masters"][place]["standing"].as_str().unwrap().to_owned()
}
