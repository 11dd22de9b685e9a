//! `--permits`: several jobs at a time under one name, who they are, and how one is broken.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use quorate_testkit::Masters;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{output, quorate, read, start, wait_until, wait_until_released};

/// Runs a job that writes its permit's number, fence and owner to `file`, and then waits to be
/// ended.
fn job(masters: &Masters, permits: &str, file: &Path) -> Child {
    let job = format!(
        "echo $QUORATE_PERMIT $QUORATE_FENCE $QUORATE_OWNER > {0}.tmp; mv {0}.tmp {0}; exec sleep 60",
        file.display()
    );
    let mut run = quorate(masters);
    run.args(["run", "l", "--permits", permits, "--timeout", "2s", "--", "sh", "-c", &job]);
    run.stderr(Stdio::piped()).spawn().unwrap()
}

fn end(mut job: Child) {
    kill_process(Pid::from_child(&job), Signal::TERM).unwrap();
    assert_eq!(job.wait().unwrap().code(), Some(128 + 15));
}

fn permit(file: &Path) -> u32 {
    permit_and_owner(file).0
}

/// The number and the owner of a job's permit.
fn permit_and_owner(file: &Path) -> (u32, String) {
    let written = read(file);
    let words: Vec<_> = written.split_whitespace().collect();
    assert!(words[1].parse::<quorate::fence::FencingToken>().unwrap().get() > 0, "{written}");
    words[2].parse::<quorate::Owner>().unwrap();
    (words[0].parse().unwrap(), words[2].to_owned())
}

#[test]
fn as_many_jobs_run_as_there_are_permits_and_the_next_one_waits() {
    let masters = start(5);
    let folder = tempfile::TempDir::new().unwrap();
    let files: Vec<_> = (0..4).map(|i| folder.path().join(i.to_string())).collect();
    let mut jobs: Vec<_> = files[..3].iter().map(|file| job(&masters, "3", file)).collect();
    wait_until("three jobs", || files[..3].iter().all(|file| file.exists()));
    let permits: BTreeSet<_> = files[..3].iter().map(|file| permit(file)).collect();
    assert_eq!(permits, [0, 1, 2].into(), "each has another one");

    let (code, _, error) = output(quorate(&masters).args(["run", "l", "--permits", "3", "-n", "--", "true"]));
    assert_eq!(code, 75, "{error}");
    assert!(error.contains("all 3 permits of semaphore \"l\" are taken; the first is free in "), "{error}");

    let waiting = job(&masters, "3", &files[3]);
    wait_until("who waits to stand in the queue of each", || {
        masters.iter().all(|server| server.command::<i64>(&["ZCARD", "quorate:waiting:{l}"]) == 1)
    });
    assert!(!files[3].exists());
    let freed = permit(&files[1]);
    end(jobs.remove(1));
    wait_until("the fourth job", || files[3].exists());
    assert_eq!(permit(&files[3]), freed, "it is the only one");
    jobs.into_iter().chain([waiting]).for_each(end);
    wait_until_released(&masters);
}

#[test]
fn another_number_of_permits_is_refused_while_a_job_runs() {
    let masters = start(3);
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("job");
    let running = job(&masters, "2", &file);
    wait_until("the job", || file.exists());
    let run = |args: &[&str]| output(quorate(&masters).args(["run", "l"]).args(args).args(["--", "true"]));
    let (code, _, error) = run(&["--permits", "3"]);
    assert_eq!(code, 64, "{error}");
    assert!(error.starts_with("quorate: semaphore \"l\" has 2 permits, and not 3"), "{error}");
    let (code, _, error) = run(&[]);
    assert_eq!(code, 64, "{error}");
    assert!(error.contains("held as another kind of lock"), "{error}");

    end(running);
    wait_until_released(&masters);
    let (code, _, error) = run(&["--permits", "3"]);
    assert_eq!(code, 0, "it may change when nobody has one: {error}");
}

/// Asked for as what it is not, a lock is neither free nor out of reach.
#[test]
fn a_name_that_is_held_as_another_kind_is_said_to_be() {
    let masters = start(5);
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("job");
    let running = job(&masters, "2", &file);
    wait_until("the job", || file.exists());
    wait_until("the permit on every master", || masters.keys().len() == masters.iter().len());
    let before = masters.keys();
    let owner = permit_and_owner(&file).1;
    for kind in [None, Some("--fair"), Some("--exclusive")] {
        let mut command = quorate(&masters);
        command.args(["run", "l", "--timeout", "3s"]).args(kind).args(["--", "true"]);
        let (code, _, error) = output(&mut command);
        assert_eq!(code, 64, "{kind:?}: {error}");
        assert!(error.contains("\"l\" is held as another kind of lock, or is none"), "{error}");
        assert!(!error.contains("no quorum"), "{error}");
    }
    let (code, _, error) = output(quorate(&masters).args(["elect", "l", "--wait", "0s", "--", "true"]));
    assert_eq!(code, 64, "{error}");
    let status: Value = json(quorate(&masters).args(["status", "l", "--json"]), 0);
    assert_eq!((&status["kind"], &status["permits"]), (&"semaphore".into(), &2.into()));
    assert_eq!(status["held"][0]["owner"], *owner);
    assert_eq!(masters.keys(), before);
    end(running);
}

fn json(command: &mut Command, expected: i32) -> Value {
    let (code, out, error) = output(command);
    assert_eq!(code, expected, "{out}{error}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_status_shows_each_permit_that_is_held_and_a_release_takes_the_one_of_the_owner_it_names() {
    let masters = start(3);
    let folder = tempfile::TempDir::new().unwrap();
    let files = ["a", "b"].map(|name| folder.path().join(name));
    let with = |verb: &[&str]| {
        let mut command = quorate(&masters);
        command.args(verb).args(["--timeout", "3s"]);
        command
    };
    let status = || output(&mut with(&["status", "l"]));
    let seen = || json(&mut with(&["status", "l", "--json"]), 0);
    assert!(status().1.ends_with("\"l\" is free\n"), "nobody has asked for it");

    let one = job(&masters, "2", &files[0]);
    wait_until("a job", || files[0].exists());
    let (number, owner) = permit_and_owner(&files[0]);
    wait_until("the permit on every master", || seen()["held"][0]["masters"] == 3);
    let (code, out, _) = status();
    assert_eq!(code, 0, "{out}");
    assert!(out.contains(&format!("permit {number}  {owner} (")), "{out}");
    assert!(out.ends_with("semaphore \"l\": 1 of 2 permits are free\n"), "{out}");
    assert!(!out.contains(" \n"), "no line ends with a space: {out}");
    let shown = seen();
    assert_eq!((&shown["state"], &shown["free"], &shown["permits"]), (&"free".into(), &1.into(), &2.into()));
    let held = &shown["held"][0];
    assert_eq!((&held["permit"], &held["owner"]), (&number.into(), &owner.as_str().into()), "{shown}");
    assert!((1..=10_000).contains(&held["remaining_ms"].as_u64().unwrap()), "{shown}");
    assert_eq!(shown["votes"][0]["outcome"], "held");

    let two = job(&masters, "2", &files[1]);
    wait_until("both jobs", || status().1.ends_with("semaphore \"l\": all of 2 permits are held\n"));
    assert_eq!((&seen()["state"], &seen()["held"][1]["permit"]), (&"held".into(), &(1 - number).into()));

    let release = |owner: &str| output(&mut with(&["release", "l", "--owner", owner]));
    assert_eq!(release(&owner).0, 0);
    assert!(status().1.ends_with("semaphore \"l\": 1 of 2 permits are free\n"));
    assert_eq!(seen()["held"][0]["permit"], 1 - number);
    assert_eq!(release(&owner).0, 77, "it has none any more");
    let mut one = one;
    assert_eq!(one.wait().unwrap().code(), Some(76), "it notices when it renews");
    end(two);
    wait_until_released(&masters);
    assert!(status().1.ends_with("semaphore \"l\": 2 of 2 permits are free\n"));
}

#[test]
fn a_number_of_permits_outside_of_its_limits_is_refused() {
    let masters = start(3);
    for permits in ["0", "1001"] {
        let (code, _, error) =
            output(quorate(&masters).args(["run", "l", "--permits", permits, "--", "true"]));
        assert_eq!(code, 64, "{error}");
        let what = format!("quorate: a semaphore of {permits} permits: it must have 1 to 1000\n");
        assert_eq!(error, what);
    }
    for wrong in [
        &["run", "l", "--permits", "x"][..],
        &["run", "l", "--permits", "-1"],
        &["elect", "l", "--permits", "2"],
    ] {
        let (code, _, error) = output(quorate(&masters).args(wrong).args(["--", "true"]));
        assert_eq!(code, 64, "{wrong:?}: {error}");
        assert!(error.contains(wrong[3]) || error.contains("'--permits'"), "{error}");
    }
}

/// A job may run others: what it has is not what they have.
#[test]
fn a_job_without_a_permit_is_not_told_that_of_another() {
    let masters = start(3);
    let inner = format!(
        "echo $QUORATE_PERMIT; {} run inner -- sh -c 'echo ${{QUORATE_PERMIT-none}}'",
        env!("CARGO_BIN_EXE_quorate")
    );
    let (code, out, error) =
        output(quorate(&masters).args(["run", "outer", "--permits", "1", "--", "sh", "-c", &inner]));
    assert_eq!((code, &*out), (0, "0\nnone\n"), "{error}");
    wait_until_released(&masters);
}
