//! `quorate run`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorate_testkit::{Masters, RedisServer};
use rustix::process::{Pid, Signal, kill_process};

use crate::{begin, output, quorate, read, start, wait_until, wait_until_released};

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Read, sleep, write, in a file: an update is lost as soon as two are inside.
#[test]
fn eight_processes_never_lose_an_update() {
    let masters = start(5);
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("counter");
    std::fs::write(&file, "0").unwrap();
    let job = format!("n=$(cat {0}); sleep 0.01; echo $((n + 1)) > {0}", file.display());
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let mut command = quorate(&masters);
            command.args(["run", "counter", "--wait", "2m", "--timeout", "2s", "--", "sh", "-c", &job]);
            std::thread::spawn(move || (0..6).for_each(|_| assert!(command.status().unwrap().success())))
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    assert_eq!(read(&file).trim(), "48");
    wait_until_released(&masters);
}

#[test]
fn the_jobs_exit_code_output_and_environment_are_passed_on() {
    let masters = start(3);
    let job = "echo $QUORATE_LOCK; echo $QUORATE_OWNER; echo $QUORATE_FENCE; exit 7";
    let (code, out, _) = output(quorate(&masters).args(["run", "a lock", "--", "sh", "-c", job]));
    assert_eq!(code, 7);
    let lines: Vec<_> = out.lines().collect();
    assert!(lines.len() == 3 && lines[0] == "a lock", "{out}");
    lines[1].parse::<quorate::Owner>().unwrap();
    assert!(
        lines[2].parse::<quorate::fence::FencingToken>().unwrap().get() > 1_600_000_000_000_000,
        "microseconds since 1970"
    );
    let (code, ..) = output(quorate(&masters).args(["run", "l", "--", "sh", "-c", "kill -9 $$"]));
    assert_eq!(code, 128 + 9);
    wait_until_released(&masters);
}

#[test]
fn a_job_that_wants_its_own_lock_is_told_so() {
    let masters = start(3);
    let me = env!("CARGO_BIN_EXE_quorate");
    let job = ["run", "l", "--", me, "run", "l", "--no-wait", "--", "true"];
    let (code, _, said) = output(quorate(&masters).args(job));
    assert_eq!(code, 75, "{said}");
    assert!(said.contains("this job runs under that lock itself"), "{said}");
}

/// The job asks for the status of its own lock.
#[test]
fn others_are_told_where_a_job_runs_and_what_it_is() {
    let masters = start(3);
    let of_job = |options: &[&str]| {
        let me = env!("CARGO_BIN_EXE_quorate");
        let status = [me, "status", "l", "--timeout", "2s"];
        output(quorate(&masters).args(["run", "l"]).args(options).arg("--").args(status)).1
    };
    assert!(of_job(&["--label", "nightly backup"]).contains(" (nightly backup) on "));
    let by_default = of_job(&[]);
    let label = by_default.rsplit_once(" (").and_then(|(_, rest)| rest.split_once(") on ")).unwrap().0;
    let words: Vec<_> = label.split(' ').collect();
    let [host, process, "quorate"] = words[..] else { panic!("{by_default}") };
    assert!(!host.is_empty() && process.parse::<u32>().is_ok(), "{by_default}");
    let (code, _, said) = output(quorate(&masters).args(["run", "l", "--label", "a\nb", "--", "true"]));
    assert!(code == 64 && said.contains("at most 64"), "{code}: {said}");
}

#[test]
fn each_failure_has_its_own_exit_code() {
    let masters = start(3);
    let folder = tempfile::TempDir::new().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "x").unwrap();
    std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o644)).unwrap();
    let run = |args: &[&str]| output(quorate(&masters).arg("run").args(args));

    assert_eq!(run(&["l", "--", "no-such-command"]).0, 127);
    assert_eq!(run(&["l", "--", plain.to_str().unwrap()]).0, 126);
    for wrong in [
        &["l"][..],
        &["l", "--ttl", "x", "--", "true"],
        &["l", "--ttl", "900ms", "--", "true"],
        &["l", "--ttl", "10s", "--grace", "5s", "--", "true"],
        &["l", "--ttl", "30h", "--", "true"],
        &["l", "--ttl", "10s", "--lock-delay", "21s", "--", "true"],
        &["l", "--timeout", "10s", "--", "true"],
        &["", "--", "true"],
        &["l", "--no-wait", "--wait", "1s", "--", "true"],
    ] {
        let (code, _, error) = run(wrong);
        assert_eq!(code, 64, "{wrong:?}: {error}");
        assert!(!error.is_empty());
    }
    let (code, _, error) = output(
        quorate(&masters).env("QUORATE_MASTERS", "redis://:secret@h:x").args(["run", "l", "--", "true"]),
    );
    assert_eq!(code, 64);
    assert!(error.contains("***@h:x") && !error.contains("secret"), "{error}");

    let mut holder = quorate(&masters).args(["run", "l", "--", "sleep", "60"]).spawn().unwrap();
    wait_until("the lock", || masters.keys().len() == 3);
    let (code, _, error) = run(&["l", "--no-wait", "--", "true"]);
    assert_eq!(code, 75);
    assert!(error.contains("is held by"), "{error}");
    let (code, _, error) = run(&["l", "--wait", "200ms", "--", "true"]);
    assert_eq!(code, 75);
    assert!(error.contains("waiting for up to 200ms") && error.contains("waited"), "{error}");
    signal(&holder, Signal::TERM);
    assert_eq!(holder.wait().unwrap().code(), Some(128 + 15));

    masters[0].kill();
    masters[1].kill();
    let (code, _, error) = run(&["l", "-n", "--", "true"]);
    assert_eq!(code, 69);
    assert!(error.contains("no quorum") && error.contains(&masters[0].url()), "{error}");
}

#[test]
fn the_default_ttl_is_no_longer_than_the_max_ttl() {
    let masters = Masters::start(3);
    begin(&masters, &["--max-ttl", "6s"]);
    for verb in ["run", "elect"] {
        let (code, _, error) = output(quorate(&masters).args([verb, "l", "--max-ttl", "6s", "--", "true"]));
        assert_eq!(code, 0, "{verb}: {error}");
        let (code, _, error) =
            output(quorate(&masters).env("QUORATE_MAX_TTL", "6s").args([verb, "l", "--", "true"]));
        assert_eq!(code, 0, "{verb}: {error}");
    }
}

#[test]
fn signals_go_to_the_jobs_whole_process_group() {
    let masters = start(3);
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("log");
    // A shell, and a child of its own that a signal to the shell alone would not reach.
    let child_is_ready = folder.path().join("child");
    let job = format!(
        "sh -c 'trap \"echo child >> {0}; exit\" HUP; echo > {1}; while :; do sleep 0.01; done' & \
         trap 'wait; echo shell >> {0}; exit 3' HUP; echo ready >> {0}; while :; do sleep 0.01; done",
        file.display(),
        child_is_ready.display()
    );
    let mut run = quorate(&masters).args(["run", "l", "--", "sh", "-c", &job]).spawn().unwrap();
    wait_until("the job", || read(&file).contains("ready") && child_is_ready.exists());
    signal(&run, Signal::HUP);
    assert_eq!(run.wait().unwrap().code(), Some(3));
    assert_eq!(read(&file), "ready\nchild\nshell\n");
    wait_until_released(&masters);
}

#[test]
fn a_signal_while_waiting_ends_it_and_leaves_nothing() {
    let masters = Masters::start(3);
    begin(&masters, &["--max-ttl", "5m"]);
    (0..2).for_each(|i| crate::hold(&masters[i], "7c9e6679-7425-40de-944b-e07fc1f90ae7:1", 1));
    let _: String = masters[2].command(&["CONFIG", "RESETSTAT"]);
    let mut run = quorate(&masters)
        .args(["run", "l", "--ttl", "5m", "--max-ttl", "5m", "--", "true"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("an attempt", || masters[2].command::<String>(&["INFO", "commandstats"]).contains("evalsha"));
    signal(&run, Signal::INT);
    assert_eq!(run.wait().unwrap().code(), Some(128 + 2));
    wait_until("the end of its key", || masters[2].keys().is_empty());
}

#[test]
fn the_lease_is_renewed_while_the_job_runs() {
    let masters = start(3);
    let mut run = quorate(&masters)
        .args(["run", "l", "--ttl", "3s", "--timeout", "1s", "--", "sleep", "5"])
        .spawn()
        .unwrap();
    wait_until("the lock", || masters.keys().len() == 3);
    let mut looks = 0;
    while run.try_wait().unwrap().is_none() {
        let (code, ..) = output(quorate(&masters).args(["run", "l", "-n", "--timeout", "3s", "--", "true"]));
        looks += u32::from(code == 75);
        assert!(code == 75 || run.wait().unwrap().success(), "somebody else got it after {looks} looks");
    }
    assert!(looks > 10, "{looks}");
    assert!(run.wait().unwrap().success());
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// What becomes of the messages.
#[derive(Clone, Copy, PartialEq)]
enum Messages {
    Read,
    /// Nobody reads them: writing is an error.
    Closed,
    /// The pipe is full: writing never returns.
    Stuck,
}

/// A job that ignores SIGTERM, with a child that does too, and that writes down when it was last
/// alive.
fn a_stubborn_job_is_gone_before_the_lease(fault: fn(&RedisServer), messages: Messages) {
    let ttl = Duration::from_secs(2);
    let masters = start(5);
    let folder = tempfile::TempDir::new().unwrap();
    let (beat, terms) = (folder.path().join("beat"), folder.path().join("terms"));
    let noise = if messages == Messages::Stuck { "yes >&2 &" } else { "" };
    let job = format!(
        "{noise} exec 2>/dev/null; trap 'echo term >> {1}' TERM; \
         sh -c 'trap \"\" TERM; while :; do date +%s%N > {0}.tmp; mv {0}.tmp {0}; sleep 0.005; done' & \
         while :; do sleep 0.01; done",
        beat.display(),
        terms.display()
    );
    let mut run = quorate(&masters)
        .args(["run", "l", "--ttl", "2s", "--grace", "400ms", "--", "sh", "-c", &job])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = run.stderr.take();
    if messages == Messages::Closed {
        stderr = None;
    }
    wait_until("the job", || beat.exists());
    (0..3).for_each(|i| fault(&masters[i]));
    let faulty = since_epoch(); // nothing is renewed from here on
    let status = run.wait().unwrap();
    assert_eq!(status.code(), Some(76));
    let last_beat = Duration::from_nanos(read(&beat).trim().parse().unwrap());
    assert!(last_beat < faulty + ttl, "it lived {:?} too long", last_beat - (faulty + ttl));
    assert_eq!(read(&terms), "term\n", "it was asked to end first");
    // And it is dead, not late: no beat comes any more.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(Duration::from_nanos(read(&beat).trim().parse().unwrap()), last_beat);
    if messages == Messages::Read {
        let error = std::io::read_to_string(stderr.unwrap()).unwrap();
        assert!(error.contains("no quorum") && error.contains("could not be renewed"), "{error}");
    }
}

#[test]
fn a_stubborn_job_is_gone_before_its_lease_when_masters_die() {
    a_stubborn_job_is_gone_before_the_lease(RedisServer::kill, Messages::Read);
}

#[test]
fn a_stubborn_job_is_gone_before_its_lease_when_masters_freeze() {
    a_stubborn_job_is_gone_before_the_lease(RedisServer::freeze, Messages::Read);
}

#[test]
fn a_job_does_not_outlive_its_lease_when_nobody_reads_the_messages() {
    a_stubborn_job_is_gone_before_the_lease(RedisServer::kill, Messages::Closed);
}

#[test]
fn a_job_does_not_outlive_its_lease_when_messages_cannot_be_written() {
    a_stubborn_job_is_gone_before_the_lease(RedisServer::kill, Messages::Stuck);
}

/// Suspended, it would renew nothing and kill nobody while the job goes on.
#[test]
fn it_does_not_let_itself_be_suspended_from_the_keyboard() {
    let masters = start(3);
    let mut run = quorate(&masters)
        .args(["run", "l", "--ttl", "3s", "--timeout", "1s", "--", "sleep", "5"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the lock", || masters.keys().len() == 3);
    signal(&run, Signal::TSTP);
    assert!(run.wait().unwrap().success(), "the lease was renewed to the end");
    let error = std::io::read_to_string(run.stderr.take().unwrap()).unwrap();
    assert!(error.contains("cannot be suspended"), "{error}");
}

/// As the first process of a container it inherits the job's orphans, and has to bury them to see
/// that they are gone.
#[test]
fn as_the_first_process_it_ends_when_the_job_was_killed() {
    let unshare = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    if !Command::new("unshare").args(unshare).arg("true").status().is_ok_and(|status| status.success()) {
        return quorate_testkit::skipped("the first process", "no namespaces here");
    }
    let masters = start(3);
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("ready");
    let job =
        format!("sh -c 'trap \"\" TERM; while :; do sleep 0.01; done' & echo > {}; wait", file.display());
    let mut run = Command::new("unshare")
        .args(unshare)
        .arg(env!("CARGO_BIN_EXE_quorate"))
        .args(["run", "l", "--ttl", "1s", "--", "sh", "-c", &job])
        .env("QUORATE_MASTERS", masters.urls().join(","))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the job", || file.exists());
    masters[0].kill();
    masters[1].kill();
    wait_until("its end", || run.try_wait().unwrap().is_some());
    assert_eq!(run.wait().unwrap().code(), Some(76));
}

/// Process 1 of a container gets orphans, and may never reap them: so does this test, in a process
/// of its own.
#[test]
fn a_zombie_that_nobody_reaps_is_no_part_of_a_job() {
    const IS_ALONE: &str = "TEST_IS_ALONE";
    if std::env::var_os(IS_ALONE).is_none() {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "run::a_zombie_that_nobody_reaps_is_no_part_of_a_job", "--nocapture"]);
        let (code, out, error) = output(alone.env(IS_ALONE, ""));
        assert_eq!(code, 0, "{out}{error}");
        return;
    }
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let masters = start(3);
    let folder = tempfile::TempDir::new().unwrap();
    for (verb, terms) in [("run", 1), ("elect", 2)] {
        let file = folder.path().join(verb);
        let job = format!("echo $QUORATE_OWNER >> {}; sleep 60 & wait", file.display());
        let mut command = quorate(&masters)
            .args([verb, "l", "--ttl", "6s", "--timeout", "2s", "--", "sh", "-c", &job])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let owners = || read(&file).lines().map(str::to_owned).collect::<Vec<_>>();
        wait_until("the job", || owners().len() == 1);
        let (code, out, error) = output(quorate(&masters).args(["release", "l", "--owner", &owners()[0]]));
        assert_eq!(code, 0, "{out}{error}");
        if terms > 1 {
            wait_until("another term", || owners().len() == terms || command.try_wait().unwrap().is_some());
            signal(&command, Signal::TERM);
        }
        let said = std::io::read_to_string(command.stderr.take().unwrap()).unwrap();
        let code = command.wait().unwrap().code();
        assert!(said.contains("the job was ended: lock \"l\" was lost"), "{verb}: {said}");
        assert_eq!(
            (code, owners().len()),
            (Some(if terms > 1 { 128 + 15 } else { 76 }), terms),
            "{verb}: {said}"
        );
    }
}

#[test]
fn a_job_that_ends_in_its_grace_is_not_killed() {
    let masters = start(3);
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("log");
    let job = format!(
        "trap 'echo tidy >> {0}; exit 0' TERM; echo ready >> {0}; while :; do sleep 0.01; done",
        file.display()
    );
    let mut run = quorate(&masters)
        .args(["run", "l", "--ttl", "6s", "--grace", "2s", "--", "sh", "-c", &job]) // time to be tidy on a busy machine
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the job", || read(&file).contains("ready"));
    masters[0].kill();
    masters[1].kill();
    assert_eq!(run.wait().unwrap().code(), Some(76), "the lease was lost, whatever the job says");
    assert_eq!(read(&file), "ready\ntidy\n");
}

#[test]
fn a_job_whose_lock_is_broken_is_ended_at_its_next_renewal() {
    let masters = start(3);
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("owner");
    let job = format!("echo $QUORATE_OWNER > {0}.tmp; mv {0}.tmp {0}; sleep 60", file.display());
    let mut run = quorate(&masters)
        .args(["run", "l", "--ttl", "6s", "--timeout", "2s", "--", "sh", "-c", &job])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the job", || file.exists() && masters.keys().len() == 3);
    let owner = read(&file);
    let (code, out, error) = output(quorate(&masters).args(["release", "l", "--owner", owner.trim()]));
    assert_eq!(code, 0, "{out}{error}");
    assert_eq!(run.wait().unwrap().code(), Some(76));
    let error = std::io::read_to_string(run.stderr.take().unwrap()).unwrap();
    assert!(error.contains("was lost"), "{error}");
}

/// What it sent before it was ended may be under way.
#[test]
fn a_job_that_was_ended_leaves_the_lock_delay() {
    let masters = start(3);
    let lease = ["--ttl", "2s", "--grace", "600ms", "--lock-delay", "20s"];
    let mut run =
        quorate(&masters).args(["run", "l"]).args(lease).args(["--", "sleep", "60"]).spawn().unwrap();
    wait_until("the lock", || masters.keys().len() == 3);
    (0..2).for_each(|i| masters[i].freeze());
    assert_eq!(run.wait().unwrap().code(), Some(76));
    (0..2).for_each(|i| masters[i].thaw());
    let (code, _, error) =
        output(quorate(&masters).args(["run", "l", "-n", "--timeout", "2s", "--", "true"]));
    assert_eq!(code, 75, "{error}");
}

/// A job that ends with 7 when the gate is removed; its lease is not renewed meanwhile.
struct Gated {
    run: Child,
    gate: PathBuf,
    owner: String,
    _folder: tempfile::TempDir,
}

impl Gated {
    fn start(masters: &Masters, verb: &str) -> Self {
        let folder = tempfile::TempDir::new().unwrap();
        let (file, gate) = (folder.path().join("owner"), folder.path().join("gate"));
        std::fs::write(&gate, "").unwrap();
        let job = format!(
            "echo $QUORATE_OWNER > {0}.tmp; mv {0}.tmp {0}; while [ -e {1} ]; do sleep 0.01; done; exit 7",
            file.display(),
            gate.display()
        );
        let run = quorate(masters)
            .args([verb, "l", "--ttl", "25s", "--", "sh", "-c", &job])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until("the job", || file.exists() && masters.keys().len() == masters.iter().count());
        Self { run, gate, owner: read(&file).trim().to_owned(), _folder: folder }
    }

    /// Lets the job end; the exit code, and what was said.
    fn end(mut self) -> (Option<i32>, String) {
        std::fs::remove_file(&self.gate).unwrap();
        let said = std::io::read_to_string(self.run.stderr.take().unwrap()).unwrap();
        (self.run.wait().unwrap().code(), said)
    }
}

/// Nobody has the lock when the job ends, but another job had it meanwhile.
#[test]
fn a_job_that_ends_by_itself_after_its_lock_was_broken_says_so() {
    for verb in ["run", "elect"] {
        let masters = start(3);
        let job = Gated::start(&masters, verb);
        let (code, _, error) = output(quorate(&masters).args(["release", "l", "--owner", &job.owner]));
        assert_eq!(code, 0, "{error}");
        assert_eq!(output(quorate(&masters).args(["run", "l", "-n", "--", "true"])).0, 0, "another job");
        let (code, said) = job.end();
        assert_eq!(code, Some(76), "{verb}: {said}");
        let lost = "the lease was lost before the job ended, and another job may have run meanwhile";
        assert!(said.contains(lost), "{said}");
        assert!(said.contains("the job's own code was 7"), "{said}");
    }
}

/// The one that is silent may have granted it to somebody else, as the other one may.
#[test]
fn a_job_whose_lock_is_gone_on_half_of_the_masters_has_lost_it() {
    let masters = start(2);
    let job = Gated::start(&masters, "run");
    masters[0].command::<i64>(&["HDEL", "quorate:{l}", "x"]);
    masters[1].freeze();
    let (code, said) = job.end();
    assert_eq!(code, Some(76), "{said}");
}

/// Their quarantine keeps all others out, so the job was alone.
#[test]
fn a_job_whose_lock_was_forgotten_by_its_masters_ends_with_its_own_code() {
    let masters = start(3);
    let job = Gated::start(&masters, "run");
    crate::forget(&masters, 2, &[]);
    let (code, said) = job.end();
    assert_eq!(code, Some(7), "{said}");
}

/// Each begins to wait before the next one comes; whoever asks without waiting is refused while
/// they do.
#[test]
fn fair_locks_are_had_in_the_order_of_arrival_across_processes() {
    let masters = start(3);
    let folder = tempfile::TempDir::new().unwrap();
    let (log, gate) = (folder.path().join("log"), folder.path().join("gate"));
    let run = |args: &[&str]| {
        let mut command = quorate(&masters);
        command.args(["run", "l", "--fair", "--ttl", "20s", "--timeout", "3s"]).args(args);
        command
    };
    let waits = format!("while [ ! -e {} ]; do sleep 0.01; done", gate.display());
    let mut holder = run(&["--", "sh", "-c", &waits]).spawn().unwrap();
    wait_until("the lock", || masters.keys().len() == 3);
    let places = |server: &RedisServer| server.command::<usize>(&["ZCARD", "quorate:waiting:{l}"]);
    let waiters: Vec<Child> = (1..=4)
        .map(|i| {
            let job = format!("echo {i} >> {}; sleep 0.05", log.display());
            let waiter = run(&["--", "sh", "-c", &job]).stderr(Stdio::null()).spawn().unwrap();
            wait_until("its place", || masters.iter().all(|server| places(server) == i));
            waiter
        })
        .collect();
    std::fs::write(&gate, "").unwrap();
    while !read(&log).contains('4') {
        let (code, ..) =
            output(&mut run(&["--no-wait", "--", "sh", "-c", &format!("echo 0 >> {}", log.display())]));
        assert!(code == 75 || read(&log).contains('4'), "{code}");
    }
    for mut child in waiters {
        assert!(child.wait().unwrap().success());
    }
    assert!(holder.wait().unwrap().success());
    assert!(read(&log).starts_with("1\n2\n3\n4\n"), "{}", read(&log));
    wait_until_released(&masters);
}

#[test]
fn a_name_is_fair_for_all_or_for_nobody() {
    let masters = start(3);
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("owner");
    let job = format!("echo $QUORATE_OWNER > {}; sleep 60", file.display());
    let mut holder = quorate(&masters).args(["run", "l", "--fair", "--", "sh", "-c", &job]).spawn().unwrap();
    wait_until("the lock", || read(&file).ends_with('\n') && masters.keys().len() == 3);
    let (file, run) = (read(&file), |args: &[&str]| output(quorate(&masters).args(args)));
    let owner = file.trim();
    let (code, _, error) = run(&["run", "l", "-n", "--", "true"]);
    assert!(code != 0 && error.contains("held as another kind"), "{code} {error}");
    let (code, shown, _) = run(&["status", "l"]);
    assert!(code == 0 && shown.contains(owner), "{shown}");
    assert_eq!(run(&["release", "l", "--owner", owner]).0, 0);
    assert!(!holder.wait().unwrap().success(), "it noticed");
    wait_until_released(&masters);
}

/// Jobs that are shared run together; one that is not waits for them, and those that come later
/// wait for it.
#[test]
fn shared_jobs_run_together_and_an_exclusive_one_alone() {
    let masters = start(3);
    let folder = tempfile::TempDir::new().unwrap();
    let (log, gate) = (folder.path().join("log"), folder.path().join("gate"));
    let run = |args: &[&str]| {
        let mut command = quorate(&masters);
        command.args(["run", "l", "--ttl", "20s", "--timeout", "3s"]).args(args);
        command
    };
    let writes = |word: &str| format!("echo {word} >> {}", log.display());
    let waits = format!("{}; while [ ! -e {} ]; do sleep 0.01; done", writes("reader"), gate.display());
    let mut readers: Vec<Child> =
        (0..2).map(|_| run(&["--shared", "--", "sh", "-c", &waits]).spawn().unwrap()).collect();
    wait_until("both readers", || read(&log) == "reader\nreader\n");
    assert_eq!(output(&mut run(&["--exclusive", "-n", "--", "true"])).0, 75);
    let (code, _, error) = output(&mut run(&["-n", "--", "true"]));
    assert!(code != 0 && error.contains("held as another kind"), "{code} {error}");
    let places = |server: &RedisServer| server.command::<usize>(&["ZCARD", "quorate:waiting:{l}"]);
    let mut waiters = Vec::new();
    for (count, (option, word)) in [("--exclusive", "writer"), ("--shared", "late")].iter().enumerate() {
        let job = writes(word);
        let waiter = run(&[option, "--", "sh", "-c", &job]).stderr(Stdio::null()).spawn().unwrap();
        wait_until("its place", || masters.iter().all(|server| places(server) == count + 1));
        waiters.push(waiter);
    }
    let (code, shown, _) = output(quorate(&masters).args(["status", "l"]));
    assert!(code == 0 && shown.contains("\"l\" is read by") && shown.contains("and by 1 more"), "{shown}");
    std::fs::write(&gate, "").unwrap();
    for child in readers.iter_mut().chain(&mut waiters) {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(read(&log), "reader\nreader\nwriter\nlate\n");
    wait_until_released(&masters);
}

#[test]
fn a_job_has_one_kind_of_lock() {
    let masters = start(1);
    let kinds = [&["--shared"][..], &["--exclusive"], &["--fair"], &["--permits", "2"]];
    for (place, one) in kinds.iter().enumerate() {
        for other in &kinds[place + 1..] {
            let args = [&["run", "l"][..], one, other, &["--", "true"]].concat();
            let (code, _, error) = output(quorate(&masters).args(args));
            assert!(code == 64 && error.contains("cannot be used with"), "{code} {error}");
        }
    }
}
