//! docs/OPERATIONS.md: its commands, as they stand there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quorate_testkit::{Masters, Proxy, RedisServer};
use tempfile::{NamedTempFile, TempDir};

use crate::{begin, output, quorate, start, wait_until, wait_until_released};

fn page() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/OPERATIONS.md")).unwrap()
}

/// The commands below a heading, with other values in the lines that set the variables named.
fn commands(heading: &str, values: &[(&str, &str)]) -> String {
    let page = page();
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).expect("the heading");
    let (_, block) = section.split_once("```sh\n").expect("commands");
    let (block, _) = block.split_once("```").unwrap();
    let mut lines: Vec<String> = block.lines().map(str::to_owned).collect();
    for (variable, value) in values {
        let line = lines.iter_mut().find(|line| line.starts_with(&format!("{variable}=")));
        *line.expect("the variable") = format!("{variable}=\"{value}\"");
    }
    lines.join("\n")
}

/// The max TTL of all sets here: a quarantine of some six seconds.
const MAX_TTL: &str = "2s";

/// Three masters of a set, and all have a vote.
fn start_set() -> Masters {
    let masters = Masters::start(3);
    begin(&masters, &["--max-ttl", MAX_TTL]);
    masters
}

/// Runs these commands up to the first one that fails.
fn try_run(commands: &str, masters: &[String]) -> (i32, String, String) {
    let folder = Path::new(env!("CARGO_BIN_EXE_quorate")).parent().unwrap();
    let mut shell = Command::new("bash");
    shell
        .args(["-euo", "pipefail", "-c", commands])
        .env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()))
        .env("QUORATE_MASTERS", masters.join(","))
        .env("QUORATE_MAX_TTL", MAX_TTL)
        .stdin(Stdio::null());
    output(&mut shell)
}

/// Runs these commands, and returns what they print.
fn run(commands: &str, masters: &[String]) -> String {
    let (code, out, error) = try_run(commands, masters);
    assert_eq!(code, 0, "{commands}\n{out}{error}");
    out
}

/// The command, with these masters.
fn client(masters: &[String], args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.env("QUORATE_MASTERS", masters.join(",")).env("QUORATE_MAX_TTL", MAX_TTL);
    command.args(args).stdin(Stdio::null());
    command
}

/// What a client comes to that asks for the lock `l` once.
fn ask(masters: &[String]) -> (i32, String, String) {
    output(&mut client(masters, &["run", "l", "--ttl", "1s", "--timeout", "900ms", "-n", "--", "true"]))
}

/// A job that has the lock `l` until it is told to end, or loses it.
struct Job {
    process: Child,
    /// It runs for as long as there is this file.
    file: NamedTempFile,
}

impl Job {
    fn start(mut command: Command, masters: &Masters) -> Self {
        let file = NamedTempFile::new().unwrap();
        let script = format!("while [ -e {} ]; do sleep 0.02; done", file.path().display());
        let process = command.args(["--", "sh", "-c", &script]).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the lock", || masters.iter().all(|server| entry(server).is_some()));
        Self { process, file }
    }

    fn of(masters: &Masters, urls: &[String]) -> Self {
        Self::start(client(urls, &["run", "l", "--ttl", MAX_TTL]), masters)
    }

    /// Ends it, which had the lock all the time.
    fn end(self) {
        drop(self.file);
        let ended = self.process.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
}

/// A file that a page's command makes, for the test to do something then.
struct Flag {
    folder: TempDir,
}

impl Flag {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("flag")
    }

    fn command(&self) -> String {
        format!("touch {}", self.file().display())
    }

    fn wait(&self) {
        wait_until("a command of the page", || self.file().exists());
    }
}

/// Runs these commands, of which `start` has the server start again.
fn run_with(commands: &str, urls: &[String], start: &Flag, server: &mut RedisServer) {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(commands, urls));
        start.wait();
        server.restart();
        running.join().unwrap()
    });
}

fn with_values(heading: &str, values: &[(&str, String)]) -> String {
    let values: Vec<_> = values.iter().map(|(variable, value)| (*variable, value.as_str())).collect();
    commands(heading, &values)
}

fn shut_down(server: &RedisServer) -> String {
    format!("redis-cli -p {} SHUTDOWN", server.port())
}

fn field(server: &RedisServer, field: &str) -> Option<String> {
    server.command(&["HGET", "quorate:master", field])
}

fn time(server: &RedisServer) -> u64 {
    let (seconds, micros): (u64, u64) = server.command(&["TIME"]);
    seconds * 1_000_000 + micros
}

/// Whether a master has had no vote since this time (us), for a quarantine of at least 1.01 max TTL
/// and 4 s, which is over.
fn had_a_quarantine(server: &RedisServer, since: u64) -> bool {
    let ends: u64 = field(server, "quarantine").expect("a record").parse().unwrap();
    ends >= since + 6_020_000 && ends <= time(server)
}

fn entry(server: &RedisServer) -> Option<String> {
    server.command(&["HGET", "quorate:{l}", "x"])
}

fn ports(masters: &Masters) -> String {
    let ports: Vec<_> = masters.iter().map(|server| server.port().to_string()).collect();
    ports.join(" ")
}

/// Each heading has one block of commands at most, and a test here names it.
#[test]
fn each_block_of_the_page_is_run() {
    let (page, tests) = (page(), include_str!("operations.rs"));
    let (before, sections) = page.split_once("\n## ").unwrap();
    assert!(!before.contains("```"));
    for section in sections.split("\n## ") {
        let heading = section.lines().next().unwrap();
        let blocks = section.matches("\n```").count() / 2 - section.matches("\n```text\n").count();
        let run = usize::from(tests.contains(&format!("\"{heading}\",")));
        assert_eq!(run, blocks, "blocks of {heading:?} that are run");
    }
}

#[test]
fn a_set_begins_and_begins_again_when_all_lost_their_keys() {
    let masters = Masters::start(3);
    let urls = masters.urls();
    assert_eq!(ask(&urls).0, 81);
    run(&commands("Begin a set", &[]), &urls);
    assert_eq!(ask(&urls).0, 0);
    masters.iter().for_each(|server| server.command(&["FLUSHALL"]));
    assert_eq!(ask(&urls).0, 81);
    run(&commands("After all masters lost their keys", &[("TERMS", "--max-ttl 2s")]), &urls);
    assert_eq!(ask(&urls).0, 0);
}

/// One of three masters lost its keys, and another one is gone for good.
#[test]
fn a_set_goes_on_without_a_master_that_is_gone_and_has_another_one_in_its_place() {
    let mut masters = start_set();
    let urls = masters.urls();
    masters[2].kill();
    masters[1].restart_empty();
    assert_eq!(ask(&urls).0, 69, "fewer than most know the set");
    let began = time(&masters[1]);
    let (code, _, error) = try_run(&commands("Go on without a master that is gone", &[]), &urls);
    assert!(code == 81 && error.contains("--yes"), "nobody is at a terminal: {code} {error}");
    run(&commands("Go on without a master that is gone", &[("YES", "--yes")]), &urls);
    wait_until("the lock", || ask(&urls).0 == 0);
    assert!(had_a_quarantine(&masters[1], began));

    let new = RedisServer::start();
    run(&commands("Replace a dead master", &[("OLD", &urls[2]), ("NEW", &new.url())]), &urls);
    masters[0].kill();
    assert_eq!(ask(&urls).0, 0, "the new one has a vote");
}

/// Waits until the job's lease is on these, as it is renewed.
fn wait_until_renewed_on(servers: &[&RedisServer]) {
    wait_until("a renewal on the new ones", || servers.iter().all(|server| entry(server).is_some()));
}

#[test]
fn a_dead_master_is_replaced_while_a_job_runs() {
    let masters = start_set();
    let urls = masters.urls();
    let new = RedisServer::start();
    let job = Job::of(&masters, &urls);
    masters[2].kill();
    let out = run(&commands("Replace a dead master", &[("OLD", &urls[2]), ("NEW", &new.url())]), &urls);
    assert!(out.contains(&format!("the set is {}, {}, {} now", urls[0], urls[1], new.url())), "{out}");
    wait_until_renewed_on(&[&new]);
    masters[0].kill();
    assert_eq!(ask(&urls).0, 75, "the new one has a vote, for a client with the old list, too");
    job.end();
}

#[test]
fn a_master_moves_to_another_url_while_a_job_runs() {
    let masters = start_set();
    let urls = masters.urls();
    let new = RedisServer::start();
    let job = Job::of(&masters, &urls);
    let page = commands("Move a master to another machine", &[("OLD", &urls[2]), ("NEW", &new.url())]);
    run(&page, &urls);
    assert_eq!(field(&masters[2], "state").as_deref(), Some("removed"));
    wait_until_renewed_on(&[&new]);
    masters[2].kill();
    masters[1].kill();
    assert_eq!(ask(&urls).0, 75, "the new one has a vote");
    job.end();
}

#[test]
fn a_set_grows_from_three_masters_to_five_while_a_job_runs() {
    let masters = start_set();
    let urls = masters.urls();
    let more = Masters::start(2);
    let job = Job::of(&masters, &urls);
    let out = run(&commands("Grow from three masters to five", &[("NEW", &more.urls().join(" "))]), &urls);
    assert!(out.contains("5 masters, protocol v2"), "{out}");
    wait_until_renewed_on(&[&more[0], &more[1]]);
    masters.iter().take(2).for_each(RedisServer::kill);
    assert_eq!(
        ask(&[urls[2].clone(), more.urls()[0].clone(), more.urls()[1].clone()]).0,
        81,
        "no list of it"
    );
    assert_eq!(ask(&urls).0, 75, "three of five are enough");
    // It was interrupted, say: what is done is left alone.
    let (code, _, error) = output(&mut client(&urls, &["members", "add", &more.urls()[0]]));
    assert_eq!(code, 0, "{error}");
    job.end();
}

/// The name that clients have leads to the old server, and then to the new one.
#[test]
fn a_master_moves_while_a_job_runs() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let masters = Masters::start(3);
    let new = RedisServer::start();
    let name = runtime.block_on(Proxy::start(masters[2].address()));
    let mut urls = masters.urls();
    urls[2] = name.url();
    run(&commands("Begin a set", &[]), &urls);
    let member = field(&masters[2], "member");
    let job = Job::of(&masters, &urls);

    let lead = Flag::new();
    let page = with_values(
        "Move a master and keep its URL",
        &[
            ("OLD", format!("-p {}", masters[2].port())),
            ("STOP", shut_down(&masters[2])),
            ("START", format!("redis-cli -p {} PING", new.port())), // it was started with the test
            ("LEAD", lead.command()),
        ],
    );
    let began = time(&new);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&page, &urls));
        lead.wait();
        assert!(masters[2].try_command::<String>(&["PING"]).is_err(), "the old one is gone before");
        assert_eq!(new.command::<i64>(&["DBSIZE"]), 0, "nobody was led to the new one before");
        name.lead_to(new.address());
        running.join().unwrap()
    });
    assert_eq!(field(&new, "member"), member);
    assert!(had_a_quarantine(&new, began));
    wait_until("a renewal on the new one", || entry(&new).is_some());
    assert_eq!(ask(&urls).0, 75, "the job has the lock");
    masters[0].kill();
    assert_eq!(ask(&urls).0, 75, "the new one has the old one's vote");
    job.end();
}

/// The job of a client that cannot be stopped holds a lock of which one old master knows nothing.
#[test]
fn a_set_of_more_masters_and_a_shorter_max_ttl_begins_when_the_old_leases_are_over() {
    let masters = Masters::start(3);
    let more = Masters::start(2);
    let old = masters.urls();
    let urls = [old.clone(), more.urls()].concat();
    begin(&masters, &["--max-ttl", "9s"]);
    masters[2].freeze();
    let mut lost = client(&old, &["run", "l", "--ttl", "9s", "--max-ttl", "9s", "--", "sleep", "9"]);
    let mut lost = lost.stderr(Stdio::null()).spawn().unwrap();
    wait_until("the lock", || masters.iter().take(2).all(|server| entry(server).is_some()));
    lost.kill().unwrap();
    lost.wait().unwrap();
    let began = Instant::now();
    masters[2].thaw();

    let values = [
        ("MASTERS", ports(&masters)),
        ("SLEEP", "9.09".to_owned()),
        ("NEW", urls.join(",")),
        ("TERMS", format!("--max-ttl {MAX_TTL}")),
    ];
    let page = with_values("Begin a new set", &values);
    run(&page, &old);
    assert!(began.elapsed() > Duration::from_secs(9), "{:?}", began.elapsed());
    assert_eq!(ask(&urls).0, 0, "the new set grants the lock");

    let (code, _, error) = ask(&old);
    let mut of_the_set = urls.clone();
    of_the_set.sort_unstable();
    assert!(code == 81 && error.contains(&of_the_set.join(", ")), "the old list: {code} {error}");
    let (code, _, error) =
        output(&mut client(&urls, &["run", "l", "-n", "--ttl", "1s", "--max-ttl", "9s", "--", "true"]));
    assert_eq!(code, 81, "{error}");
    assert!(error.contains("max TTL of 2000 ms") && error.contains("max TTL of 9000 ms"), "{error}");
}

/// It gives the masters their records back, and may lose its locks.
#[test]
fn a_client_that_still_runs_keeps_a_new_set_from_beginning() {
    let masters = start_set();
    let urls = masters.urls();
    let job = Job::of(&masters, &urls);
    let new = [("TERMS", "--max-ttl 1s"), ("MASTERS", &ports(&masters)), ("NEW", &urls.join(","))];
    let page = commands("Begin a new set", &new);
    let (code, _, error) = try_run(&page, &urls);
    assert!(code == 81 && error.contains("max TTL of 2000 ms"), "{code} {error}");
    let (code, _, error) =
        output(&mut client(&urls, &["run", "l", "-n", "--ttl", "1s", "--max-ttl", "1s", "--", "true"]));
    assert_eq!(code, 81, "{error}");
    drop(job);
}

#[test]
fn redis_is_upgraded_while_a_job_runs() {
    let mut masters = start_set();
    let urls = masters.urls();
    let job = Job::of(&masters, &urls);
    for place in 0..3 {
        let start = Flag::new();
        let upgrade = Flag::new();
        let server = &mut masters[place];
        let page = with_values(
            "Upgrade Redis",
            &[("STOP", shut_down(server)), ("UPGRADE", upgrade.command()), ("START", start.command())],
        );
        let began = time(server);
        run_with(&page, &urls, &start, server);
        assert!(upgrade.file().exists() && had_a_quarantine(server, began));
        assert_eq!(ask(&urls).0, 75, "the job has the lock");
    }
    wait_until("the entry on all", || masters.iter().all(|server| entry(server).is_some()));
    job.end();
}

#[test]
fn a_command_says_whether_it_speaks_the_protocol_of_the_set() {
    let masters = start_set();
    let urls = masters.urls();
    let job = Job::of(&masters, &urls);
    let page = commands("Upgrade Quorate", &[("NEW", env!("CARGO_BIN_EXE_quorate"))]);
    assert_eq!(run(&page, &urls).lines().count(), 4);
    job.end();

    // What a version with another protocol leaves, whose clients have stopped.
    for server in masters.iter() {
        let _: i64 = server.command(&["HSET", "quorate:master", "protocol", "v1"]);
    }
    let (code, _, error) = try_run(&page, &urls);
    assert_eq!(code, 81, "{error}");
    assert!(error.contains("have protocol v1") && error.contains("this one has protocol v2"), "{error}");
    assert_eq!(ask(&urls).0, 81);
    let values =
        [("MASTERS", ports(&masters)), ("NEW", urls.join(",")), ("TERMS", format!("--max-ttl {MAX_TTL}"))];
    run(&with_values("Begin a new set", &values), &urls);
    assert_eq!(ask(&urls).0, 0);
}

/// The backup is older than the lock that is held.
#[test]
fn a_backup_is_restored_while_a_job_runs() {
    let mut masters = start_set();
    let urls = masters.urls();
    let folder = TempDir::new().unwrap();
    let dump = masters[1].folder().join("dump.rdb");
    let backup = folder.path().join("dump.rdb");
    let _: String = masters[1].command(&["SAVE"]);
    fs::rename(&dump, &backup).unwrap();
    let incarnation = field(&masters[1], "incarnation");
    let job = Job::of(&masters, &urls);

    let start = Flag::new();
    let server = &mut masters[1];
    let values = [
        ("STOP", shut_down(server)),
        ("RESTORE", format!("cp {} {}", backup.display(), dump.display())),
        ("START", start.command()),
    ];
    let began = time(server);
    run_with(&with_values("Restore a backup", &values), &urls, &start, server);
    assert!(had_a_quarantine(server, began));
    assert_ne!(field(server, "incarnation"), incarnation, "it was restored, and forgot");
    assert!(server.log().contains("keys loaded: 2"), "{}", server.log());
    wait_until("a renewal on it", || entry(&masters[1]).is_some());
    assert_eq!(ask(&urls).0, 75, "the job has the lock");
    job.end();
}

/// Every connection is closed on the way, so that a job that did not read the new password could
/// not renew its lease.
#[test]
fn the_masters_password_is_changed_while_a_job_runs() {
    let masters = start(3);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "the first").unwrap();
    for server in masters.iter() {
        let _: () = server.command(&["ACL", "SETUSER", "quorate", "on", ">the first", "~*", "&*", "+@all"]);
    }
    let shown = file.display();
    let url =
        |server: &RedisServer| format!("redis://quorate@127.0.0.1:{}?password_file={shown}", server.port());
    let urls: Vec<String> = masters.iter().map(url).collect();
    let mut command = quorate(&masters);
    command.env("QUORATE_MASTERS", urls.join(",")).args(["run", "l", "--ttl", "3s", "--timeout", "2s"]);
    let job = Job::start(command, &masters);

    let values = [("MASTERS", ports(&masters)), ("FILE", file.display().to_string())];
    run(&with_values("Change the masters' password", &values), &masters.urls());
    let before: Vec<_> = masters.iter().map(entry).collect();
    for server in masters.iter() {
        let _: i64 = server.command(&["CLIENT", "KILL", "USER", "quorate"]);
        let refused = server.try_command::<()>(&["AUTH", "quorate", "the first"]);
        assert!(refused.is_err(), "the old password still counts");
    }
    wait_until("a renewal", || masters.iter().zip(&before).all(|(server, before)| entry(server) != *before));
    job.end();
    wait_until_released(&masters);
}
