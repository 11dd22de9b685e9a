//! `quorate run --permits`: so many jobs at a time under one name.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Stdio};

use quorate_testkit::Masters;
use rustix::process::{Pid, Signal, kill_process};

use crate::{output, quorate, read, wait_until, wait_until_released};

/// Runs a job that writes its permit's number, fence and owner to `file`, and then waits to be ended.
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
    let told = read(file);
    let words: Vec<_> = told.split_whitespace().collect();
    assert!(quorate::fence::parse(words[1]).unwrap() > 0, "{told}");
    words[2].parse::<quorate::Owner>().unwrap();
    words[0].parse().unwrap()
}

#[test]
fn as_many_jobs_run_as_there_are_permits_and_the_next_one_waits() {
    let masters = Masters::start(5);
    let folder = tempfile::TempDir::new().unwrap();
    let files: Vec<_> = (0..4).map(|i| folder.path().join(i.to_string())).collect();
    let mut jobs: Vec<_> = files[..3].iter().map(|file| job(&masters, "3", file)).collect();
    wait_until("three jobs", || files[..3].iter().all(|file| file.exists()));
    let permits: BTreeSet<_> = files[..3].iter().map(|file| permit(file)).collect();
    assert_eq!(permits, [0, 1, 2].into(), "each has another one");

    let (code, _, error) = output(quorate(&masters).args(["run", "l", "--permits", "3", "-n", "--", "true"]));
    assert_eq!(code, 75, "{error}");
    assert!(error.contains("is held by"), "{error}");

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
    let masters = Masters::start(3);
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("job");
    let running = job(&masters, "2", &file);
    wait_until("the job", || file.exists());
    let run = |args: &[&str]| output(quorate(&masters).args(["run", "l"]).args(args).args(["--", "true"]));
    let (code, _, error) = run(&["--permits", "3"]);
    assert_eq!(code, 64, "{error}");
    assert!(error.starts_with("quorate: semaphore \"l\" has 2 permits, and not 3"), "{error}");
    let (code, _, error) = run(&[]);
    assert_eq!(code, 70, "{error}");
    assert!(error.contains("held as another kind of lock"), "{error}");
    end(running);
    wait_until_released(&masters);
    let (code, _, error) = run(&["--permits", "3"]);
    assert_eq!(code, 0, "it may change when nobody has one: {error}");
}

#[test]
fn a_number_of_permits_outside_of_its_limits_is_refused() {
    let masters = Masters::start(3);
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
    let masters = Masters::start(3);
    let inner = format!(
        "echo $QUORATE_PERMIT; {} run inner --cold-start none -- sh -c 'echo ${{QUORATE_PERMIT-none}}'",
        env!("CARGO_BIN_EXE_quorate")
    );
    let (code, out, error) =
        output(quorate(&masters).args(["run", "outer", "--permits", "1", "--", "sh", "-c", &inner]));
    assert_eq!((code, &*out), (0, "0\nnone\n"), "{error}");
    wait_until_released(&masters);
}
