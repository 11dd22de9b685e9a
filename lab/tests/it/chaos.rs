//! `quorate-lab chaos`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{output, read, wait_until};

/// As short as a run can be, and with some faults all the same.
const SHORT: &str = "--duration 3s --masters 3 --clients 2 --ttl 1s";

fn command(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate-lab"));
    command.arg("chaos").args(words.split_whitespace());
    command
}

/// The faults of a history: what they are and what they strike, in their order.
fn faults(history: &Path) -> Vec<Value> {
    let text = read(history);
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == "strikes").map(|line| line["fault"].clone()).collect()
}

#[test]
fn nothing_is_found_and_the_command_that_it_prints_has_the_same_faults() {
    let folder = TempDir::new().unwrap();
    let [page, first, second] = ["report.html", "first", "second"].map(|name| folder.path().join(name));
    let words = format!("{SHORT} --scenario servers --seed 5 --kind reentrant,semaphore");
    let mut good = command(&words);
    let (code, out, error) = output(good.arg("--report").arg(&page).arg("--history").arg(&first));
    assert_eq!(code, 0, "{out}");
    let lines = error.lines().collect::<Vec<_>>();
    let is_line = |line: &&str| line.starts_with("quorate: ") && line.contains(" s: ") && !line.contains('[');
    assert!(lines.iter().all(is_line), "no progress bar where there is no terminal: {error}");
    assert!(lines[0].contains("masters and clients start") && !error.contains("seed"), "{error}");
    assert!(lines.len() > 4, "some faults are shown: {error}");
    for part in ["Nothing was found", "acquires granted", "Availability: ", "without a grant: "] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    let page = read(&page);
    assert!(page.contains("Nothing was found") && page.contains("semaphore-1") && page.contains("master 2"));
    for outside in ["http:", "https:", "<link", "<script", "<img", "@import", "url(", " src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    let again = out.lines().find_map(|line| line.strip_prefix("Again: quorate-lab chaos ")).unwrap();
    let (code, json, _) = output(command(again).arg("--json").arg("--history").arg(&second));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json["verdict"], &json["seed"]), (0, &"nothing".into(), &5.into()));
    assert!(json["kinds"]["semaphore"]["granted"].as_u64().unwrap() > 0, "{json}");
    assert!(json["acquire"]["p50_ms"].as_f64().unwrap() > 0.0, "{json}");
    assert_eq!((&json["subject"], &json["duration_ms"]), (&"quorate".into(), &3_000.0.into()));
    let head: Value = serde_json::from_str(read(&first).lines().next().unwrap()).unwrap();
    assert_eq!((&head["event"], &head["seed"], &head["ttl"]), (&"run".into(), &5.into(), &1_000_000.into()));
    assert!(!faults(&first).is_empty());
    assert_eq!(faults(&first), faults(&second));
}

#[test]
fn what_is_wrong_with_a_lock_is_named_and_has_an_exit_code() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("report.html");
    let words = "--scenario clocks --subject getset --seed 1 --duration 10s --masters 1 --clients 5";
    let (code, out, _) = output(command(words).arg("--report").arg(&page));
    assert_eq!(code, 79, "{out}");
    assert!(out.starts_with("Violated: ") && out.lines().next().unwrap().contains("windows"), "{out}");
    let page = read(&page);
    assert!(page.contains("Around the first violation") && page.contains("class=\"two\""));
}

#[test]
fn the_scenarios_are_listed() {
    let (code, json, _) = output(&mut command("--list --json"));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &json[0]["name"]), (0, &"calm".into()), "{json}");
    assert!(json[0]["about"].is_string(), "{json}");
    let (code, out, _) = output(&mut command("--list"));
    assert_eq!(code, 0);
    for scenario in ["calm", "servers", "network", "minority", "members", "inside", "outside"] {
        assert!(out.lines().any(|line| line.starts_with(&format!("{scenario} "))), "{scenario}: {out}");
    }
}

#[test]
fn values_outside_of_their_limits_are_named_with_the_limit() {
    for (words, parts) in [
        ("--masters 0", ["--masters 0", "15"]),
        ("--clients 99", ["99", "16"]),
        ("--ttl 1ms", ["1ms", "500ms"]),
        ("--scenario storm", ["storm", "outside"]),
        ("--kind none", ["none", "[possible values: reentrant, all, "]),
        ("--duration 5", ["--duration", "5s"]),
        ("--compose /nowhere/c.yml", ["--compose", "/nowhere/c.yml"]),
        ("--history /dev/null", ["--history /dev/null", "no regular file"]),
        ("--report /dev/full", ["--report /dev/full", "no regular file"]),
        ("--subject nothing", ["nothing", "textbook"]),
        ("--report /nowhere/r.html", ["--report", "/nowhere"]),
    ] {
        let (code, _, error) = output(&mut command(words));
        assert_eq!(code, 64, "{words}: {error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{words}: {error}");
    }
}

#[test]
fn it_says_what_has_to_be_installed() {
    let nothing = TempDir::new().unwrap();
    let (code, _, error) = output(command("").env("PATH", nothing.path()));
    assert_eq!(code, 70, "{error}");
    assert!(error.contains("apt-get install redis-server gcc"), "{error}");
    let history = nothing.path().join("history");
    std::os::unix::fs::symlink("/bin/true", nothing.path().join("redis-server")).unwrap();
    let (code, _, error) = output(command("").env("PATH", nothing.path()).arg("--history").arg(&history));
    assert_eq!(code, 70, "{error}");
    assert!(error.contains("needs a C compiler, cc: ") && error.contains("install gcc"), "{error}");
    assert!(!history.exists(), "nothing came of it");
}

#[test]
fn one_file_cannot_be_the_report_and_the_history() {
    let folder = TempDir::new().unwrap();
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    fs::write(&one, "dear").unwrap();
    fs::hard_link(&one, &other).unwrap();
    let (code, _, error) = output(command("").arg("--report").arg(&one).arg("--history").arg(&other));
    assert_eq!(code, 64, "{error}");
    assert!(error.contains("--report is the same file"), "{error}");
    assert_eq!(read(&one), "dear");
}

#[test]
fn a_drawn_seed_is_told_before_anything_else() {
    let mut chaos = command("--duration 1m").stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(chaos.stderr.take().unwrap()).read_line(&mut first).unwrap();
    kill_process(Pid::from_child(&chaos), Signal::INT).unwrap();
    assert_eq!(chaos.wait().unwrap().code(), Some(130));
    let (seed, again) = first.strip_prefix("quorate: seed ").unwrap().split_once("; again: ").unwrap();
    assert!(again.starts_with(&format!("quorate-lab chaos --scenario inside --seed {seed} ")), "{first}");
}

#[test]
fn a_client_that_ends_by_itself_ends_the_run() {
    let folder = TempDir::new().unwrap();
    let history = folder.path().join("history");
    let mut chaos = command("--scenario calm --duration 1m --clients 1");
    let chaos = chaos.arg("--history").arg(&history).stderr(std::process::Stdio::piped()).spawn().unwrap();
    wait_until("a client that works", || read(&history).contains("client-0.1"));
    let is_client = |pid: &&str| read(Path::new(&format!("/proc/{pid}/cmdline"))).contains("chaos-client");
    let threads = fs::read_dir(format!("/proc/{}/task", chaos.id())).unwrap();
    let children = threads.map(|thread| read(&thread.unwrap().path().join("children"))).collect::<String>();
    let client = children.split_whitespace().find(is_client).unwrap();
    kill_process(Pid::from_raw(client.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    let ended = chaos.wait_with_output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(70), "{error}");
    assert!(error.contains("quorate: client 0 has ended by itself: signal: 9"), "{error}");
}

/// Whether a process knows of this folder, by its command line or its environment.
fn is_known(folder: &Path) -> bool {
    let folder = folder.to_str().unwrap().as_bytes();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut texts = processes.flat_map(|process| {
        ["cmdline", "environ"].map(|file| fs::read(process.path().join(file)).unwrap_or_default())
    });
    texts.any(|text| text.windows(folder.len()).any(|part| part == folder))
}

#[test]
fn a_signal_ends_it_and_everything_that_it_started() {
    let folder = TempDir::new().unwrap();
    let history = folder.path().join("history");
    let mut chaos = command("--scenario clients --seed 1 --duration 1m");
    let mut chaos = chaos.env("TMPDIR", folder.path()).arg("--history").arg(&history).spawn().unwrap();
    wait_until("a client that stands still", || read(&history).contains("\"paused\""));
    kill_process(Pid::from_child(&chaos), Signal::INT).unwrap();
    assert_eq!(chaos.wait().unwrap().code(), Some(130));
    wait_until("its processes to end", || !is_known(folder.path()));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["history"]);
}
