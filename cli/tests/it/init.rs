//! `quorate init` and `quorate members`: how a set of masters begins.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use quorate_testkit::{Masters, RedisServer, skipped};
use serde_json::Value;

use crate::{SOON, begin, fingerprint, init, output, quorate, read, start, wait_until};

/// The shortest quarantine but for a moment, of some five seconds.
const SHORT: [&str; 2] = ["--max-ttl", "1s"];

fn plain(masters: &Masters, terms: &[&str]) -> (i32, String, String) {
    output(quorate(masters).arg("init").args(terms))
}

fn run(masters: &Masters, args: &[&str]) -> (i32, String, String) {
    output(quorate(masters).args(["run", "l", "-n"]).args(args).args(["--", "true"]))
}

fn records(masters: &Masters) -> Vec<Vec<String>> {
    masters.iter().map(|server| server.command(&["HGETALL", "quorate:master"])).collect()
}

fn size(server: &RedisServer) -> i64 {
    server.command(&["DBSIZE"])
}

#[test]
fn a_client_of_masters_that_are_no_set_is_told_at_once_how_one_begins() {
    let masters = Masters::start(3);
    let begun = Instant::now();
    for verb in [
        &["run", "l", "--", "true"][..],
        &["run", "l", "-n", "--", "true"],
        &["elect", "l", "--", "true"],
        &["elect", "l", "--wait", "0s", "--", "true"],
        &["elect", "l", "--observe"],
        &["status", "l"],
        &["status", "l", "--json"],
        &["list"],
        &["release", "l", "--owner", "0f8fad5b-d9cb-469f-a165-70867728950e:3"],
        &["bench", "--duration", "100ms"],
        &["members"],
        &["members", "add", "redis://127.0.0.1:1"],
        &["members", "recover", "--yes"],
    ] {
        let (code, out, error) = output(quorate(&masters).args(verb).args(["--timeout", "2s"]));
        assert_eq!(code, 81, "{verb:?}: {out}{error}");
        assert!(format!("{out}{error}").contains("quorate init"), "{verb:?}: {out}{error}");
        assert!(!error.contains("lock \"{*}"), "that is no name: {error}");
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(masters.iter().all(|server| size(server) == 0), "nothing was written");
    masters[2].kill(); // it may know a set
    for verb in [&["run", "l", "-n", "--", "true"][..], &["members"]] {
        let (code, out, error) = output(quorate(&masters).args(verb));
        assert_eq!(code, 69, "{verb:?}: {out}{error}");
        assert!(format!("{out}{error}").contains(&masters[2].url()), "{verb:?}: {out}{error}");
    }
}

/// It begins the set, and again when all masters were emptied, and ends well for a signal.
#[test]
fn a_watch_begins_a_set_again_that_lost_its_records() {
    let masters = Masters::start(3);
    let mut command = quorate(&masters);
    let mut watch = command.args(["init", "--watch"]).args(SHORT).stdout(Stdio::piped()).spawn().unwrap();
    let locks = || run(&masters, &[&["--ttl", "1s"][..], &SHORT].concat()).0 == 0;
    wait_until("the set to begin", locks);
    let before = records(&masters);
    masters.iter().for_each(RedisServer::wipe);
    wait_until("the set to begin again", locks);
    assert_ne!(records(&masters), before);
    let pid = rustix::process::Pid::from_child(&watch);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(watch.wait().unwrap().code(), Some(0));
}

#[test]
fn a_master_without_a_scheme_is_a_slip() {
    for change in [&["add", "db4:6379"][..], &["remove", "db4:6379"], &["replace", "redis://db3", "db4"]] {
        let (code, _, error) = output(quorate(&Masters::start(1)).arg("members").args(change));
        assert!(code == 64 && error.contains("it has no scheme; the form is redis://"), "{code} {error}");
    }
}

#[test]
fn new_masters_begin_at_once_by_the_word_of_a_person_who_names_them() {
    let masters = Masters::start(3);
    let terms = ["--max-ttl", "1m"];
    let (code, _, error) = init(&masters, "--never-used", &terms);
    assert_eq!(code, 81, "nobody is at a terminal: {error}");
    let its = fingerprint(&masters);
    let again = format!("quorate init --never-used={its} --max-ttl 1m\n");
    assert!(error.ends_with(&again) && error.contains(&masters[1].url()), "{error}");
    let by_option = ["--master", &masters.urls().join(",")];
    let (_, _, error) = init(&masters, "--never-used", &by_option);
    let given = masters.urls().join(" --master ");
    assert!(error.ends_with(&format!("{its} --master {given}\n")), "{error}");
    let (code, _, error) = init(&masters, "--never-used=00000000", &terms);
    assert!(code == 81 && error.contains(&its) && error.contains("00000000"), "{error}");
    assert!(masters.iter().all(|server| size(server) == 0), "nothing was written");

    let (code, out, error) = init(&masters, &format!("--never-used={its}"), &terms);
    assert_eq!((code, error.as_str()), (0, ""));
    assert!(out.starts_with("the set of 3 masters has begun") && out.lines().count() == 1, "{out}");
    assert_eq!(run(&masters, &terms).0, 0);
}

#[test]
fn a_complete_set_is_left_alone_and_nobody_says_again_that_it_was_never_used() {
    let masters = start(3);
    let before = records(&masters);
    let begun = Instant::now();
    let (code, out, error) = plain(&masters, &[]);
    assert_eq!((code, &*out, &*error), (0, "the set of 3 masters is complete\n", ""));
    for never_used in ["--never-used".to_owned(), format!("--never-used={}", fingerprint(&masters))] {
        let (code, _, error) = init(&masters, &never_used, &[]);
        assert!(code == 81 && error.contains("has a record"), "{code} {error}");
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(records(&masters), before);
}

#[test]
fn a_set_that_has_begun_does_not_wait_for_a_dead_master() {
    let masters = start(3);
    masters[1].kill();
    let begun = Instant::now();
    let (code, out, error) = plain(&masters, &[]);
    let wanted = format!("the set of 3 masters has begun; no answer from {}\n", masters[1].url());
    assert_eq!((code, &*out), (0, &*wanted), "{error}");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[test]
fn one_master_with_a_record_is_enough_to_refuse_that_none_was_used() {
    let masters = start(3);
    let its = fingerprint(&masters);
    for server in masters.iter().skip(1) {
        let _: String = server.command(&["FLUSHALL"]);
    }
    let (code, _, error) = init(&masters, &format!("--never-used={its}"), &[]);
    assert!(code == 81 && error.contains(&masters[0].url()), "{code} {error}");
    let state = |server: &RedisServer| server.command::<Option<String>>(&["HGET", "quorate:master", "state"]);
    assert!(masters.iter().skip(1).all(|server| state(server).as_deref() != Some("member")));
}

#[test]
fn masters_that_may_have_been_used_vote_after_a_quarantine() {
    let masters = Masters::start(3);
    let begun = Instant::now();
    let (code, out, error) = plain(&masters, &SHORT);
    let took = begun.elapsed();
    assert_eq!((code, &*out), (0, "the set of 3 masters is complete\n"), "{error}");
    assert!(took > Duration::from_secs(5) && took < SOON, "{took:?}");
    assert!((1..=2).contains(&error.lines().count()), "no flood: {error}");
    for part in ["waiting for 3 of 3 masters (redis://", "quarantine is over, in ", " s yet at most"] {
        assert!(error.contains(part), "no {part:?} in {error}");
    }
    let (code, _, error) = run(&masters, &["--max-ttl", "1s", "--ttl", "1s"]);
    assert_eq!((code, error.as_str()), (0, ""));
}

#[test]
fn a_master_that_is_not_reached_is_named() {
    let masters = Masters::start(3);
    masters[1].kill();
    let (code, _, error) = plain(&masters, &["--max-ttl", "10ms", "--wait", "2s"]);
    assert_eq!(code, 81, "{error}");
    let waits = format!("waiting for 3 of 3 masters ({}: it is not reached): ", masters[1].url());
    assert!(error.contains(&waits) && error.contains("the set of masters was not begun"), "{error}");
    assert!(error.contains(&format!("{}: Connection refused", masters[1].url())), "{error}");
    assert!([0, 2].iter().all(|&place| size(&masters[place]) == 0), "nothing was written");
}

#[test]
fn lists_that_differ_are_refused_and_both_are_shown() {
    let masters = start(3);
    let urls = masters.urls();
    let mut of_the_set = urls.clone();
    of_the_set.sort_unstable();
    let of_the_set = of_the_set.join(", ");
    let other = Masters::start(1);
    for list in [vec![&urls[0], &urls[1]], vec![&urls[0], &urls[1], &urls[2], &other.urls()[0]]] {
        let list: Vec<_> = list.into_iter().map(String::as_str).collect();
        for verb in [&["run", "l", "--", "true"][..], &["init"]] {
            let (code, _, error) =
                output(quorate(&masters).env("QUORATE_MASTERS", list.join(",")).args(verb));
            assert_eq!(code, 81, "{error}");
            for both in [&of_the_set, &list.join(", ")] {
                assert!(error.contains(both), "no {both} in {error}");
            }
        }
    }
    assert_eq!(size(&other[0]), 0, "nothing was written");
}

#[test]
fn the_members_are_shown_with_the_terms_of_their_set() {
    let mut masters = Masters::start_with(3, &["--appendonly", "yes"]);
    begin(&masters, &[]);
    let members = || output(quorate(&masters).args(["members", "--timeout", "1s"]));
    let (code, out, error) = members();
    assert_eq!((code, error.as_str()), (0, ""));
    let lines: Vec<_> = out.lines().collect();
    assert!(lines[0].contains("a max TTL of 30000 ms"), "{out}");
    for (line, url) in lines[1..].iter().zip(masters.urls()) {
        assert!(line.starts_with(&url) && line.contains("member ") && line.contains(" of 3"), "{out}");
    }
    assert_eq!(lines.len(), 4, "{out}");
    masters[1].restart();
    let mut left = None;
    wait_until("its quarantine", || {
        let (_, out, _) = output(quorate(&masters).args(["status", "l", "--json"]));
        let status: Value = serde_json::from_str(&out).unwrap();
        left = status["masters"][1]["quarantine_ms"].as_u64();
        left.is_some()
    });
    assert!(left.is_some_and(|left| left > 10_000), "{left:?}");
    let (code, out, _) = output(quorate(&masters).args(["members", "--max-ttl", "1m"]));
    assert!(code == 81 && out.contains("--max-ttl 30000ms"), "these are not its terms: {code} {out}");
    let others = RedisServer::start();
    let list = [masters[0].url(), masters[2].url(), others.url()].join(",");
    let (code, out, _) = output(quorate(&masters).env("QUORATE_MASTERS", list).arg("members"));
    assert!(code == 81, "this is not its list: {code} {out}");
    let first = out.lines().next().unwrap_or_default();
    assert!(masters.urls().iter().all(|url| first.contains(url)), "these are its masters: {out}");
    masters[1].kill();
    let (code, out, _) = output(quorate(&masters).args(["members", "--timeout", "3s"]));
    assert!(code == 0 && out.contains("it cannot be reached"), "{out}");
    masters[0].kill();
    assert_eq!(output(quorate(&masters).arg("members")).0, 69);
}

#[test]
fn masters_that_refuse_the_password_are_no_masters_that_are_away() {
    let masters = Masters::start(3);
    begin(&masters, &[]);
    for server in masters.iter() {
        let _: () = server.command(&["ACL", "SETUSER", "me", "on", ">right", "~*", "&*", "+@all"]);
    }
    for (password, expected, says) in
        [("right", 0, "3 masters"), ("wrong", 81, "refuses this user: WRONGPASS")]
    {
        let urls = masters.urls().join(",").replace("redis://", &format!("redis://me:{password}@"));
        let (code, out, error) = output(quorate(&masters).env("QUORATE_MASTERS", urls).arg("members"));
        assert!(code == expected && out.contains(says), "{password}: {code} {out}{error}");
    }
}

/// Waiting does not help, however long a verb may wait.
#[test]
fn permanent_refusals_end_every_verb_at_once() {
    let verbs = [
        &["init", "--wait", "10m"][..],
        &["run", "l", "--wait", "10m", "--", "true"],
        &["init", "--wait", "10m", "--never-used"],
        &["elect", "l", "--", "true"],
        &["elect", "l", "--observe"],
        &["bench", "--duration", "10m"],
        &["members", "--wait", "10m"],
        &["members", "add", "redis://127.0.0.1:1", "--wait", "10m"],
        &["members", "recover", "--yes", "--wait", "10m"],
    ];
    for (options, login, says, verbs) in [
        (
            &["--user", "me", "on", ">right", "~*", "&*", "+@all"][..],
            "redis://me:wrong@",
            "WRONGPASS",
            &verbs[..],
        ),
        (&["--rename-command", "HELLO", ""], "redis://", "HELLO", &verbs[..2]),
        (&["--rename-command", "INFO", ""], "redis://", "nknown Redis command", &verbs[..2]),
        (&["--rename-command", "EVAL", ""], "redis://", "EVAL", &verbs[..2]),
    ] {
        let masters = Masters::start_with(3, options);
        for verb in verbs {
            let mut command = quorate(&masters);
            let urls = masters.urls().join(",").replace("redis://", login);
            command.env("QUORATE_MASTERS", urls).args(*verb).args(["--timeout", "2s"]);
            let (code, out, error) = soon(&mut command);
            assert_eq!(code, 81, "{verb:?}: {out}{error}");
            // Redis says "Unknown Redis command called", and Valkey "Unknown command called".
            let said =
                format!("{out}{error}").replace("nknown command called", "nknown Redis command called");
            assert!(said.contains(says), "{verb:?}: {says}: {said}");
        }
    }
}

/// What a command comes to that ends by itself.
fn soon(command: &mut Command) -> (i32, String, String) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > SOON {
            child.kill().unwrap();
            panic!("{command:?} did not end: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn a_job_is_told_what_a_master_that_forgot_waits_for() {
    let mut masters = Masters::start(3);
    begin(&masters, &SHORT);
    masters[1].kill();
    masters[2].kill();
    masters[1].restart_empty();
    let (code, _, error) = run(&masters, &SHORT);
    let waits_for = format!("{} has to answer first", masters[2].url());
    assert!(code == 69 && error.contains(&waits_for), "{code} {error}");
}

#[test]
fn members_waits_until_every_master_has_a_vote() {
    let mut masters = Masters::start(3);
    begin(&masters, &SHORT);
    let members = |masters: &Masters, wait: &str, terms: &[&str]| {
        output(quorate(masters).args(["members", "--wait", wait]).args(terms))
    };
    let begun = Instant::now();
    assert_eq!(members(&masters, "1m", &SHORT).0, 0);
    assert!(begun.elapsed() < Duration::from_secs(5), "all have a vote: {:?}", begun.elapsed());
    masters[1].kill();
    let (code, out, error) = members(&masters, "2s", &SHORT);
    assert!(code == 78 && out.contains("it cannot be reached"), "{code} {out}{error}");
    assert!(error.contains(&format!("waiting for {}: it is not reached", masters[1].url())), "{error}");

    masters[1].restart_empty();
    let begun = Instant::now();
    let (code, out, error) = members(&masters, "1m", &SHORT);
    assert!(code == 0 && !out.contains("no vote"), "{code} {out}{error}");
    assert!(error.contains(&format!("waiting for {}: in quarantine for ", masters[1].url())), "{error}");
    assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());

    let begun = Instant::now();
    let (code, _, error) = members(&masters, "1m", &["--max-ttl", "1m"]);
    assert!(code == 81 && error.contains("max TTL of 1000 ms"), "{code} {error}");
    let (code, _, error) = members(&masters, "1m", &["--prefix", "nobody:"]);
    assert!(code == 81 && error.contains("quorate init"), "{code} {error}");
    assert!(begun.elapsed() < SOON, "it is told at once: {:?}", begun.elapsed());
}

/// The command at a terminal, where somebody types this.
fn at_a_terminal(masters: &Masters, typed: &str) -> (bool, String) {
    let command = format!("{} init --never-used", env!("CARGO_BIN_EXE_quorate"));
    let mut script = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .env("QUORATE_MASTERS", masters.urls().join(","))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    script.stdin.as_mut().unwrap().write_all(typed.as_bytes()).unwrap();
    let ended = script.wait_with_output().unwrap();
    (ended.status.success(), String::from_utf8(ended.stdout).unwrap())
}

#[test]
fn a_person_at_a_terminal_is_asked() {
    if Command::new("script").arg("--version").output().is_err() {
        return skipped("the question of init", "there is no script, of util-linux");
    }
    let masters = Masters::start(3);
    let (begun, shown) = at_a_terminal(&masters, "no\n");
    assert!(!begun && shown.contains("Has no client ever used these masters?"), "{shown}");
    assert!(masters.urls().iter().all(|url| shown.contains(url)), "{shown}");
    assert!(masters.iter().all(|server| size(server) == 0), "nothing was written");
    let (begun, shown) = at_a_terminal(&masters, "yes\n");
    assert!(begun && shown.contains("the set of 3 masters has begun"), "{shown}");
    assert_eq!(run(&masters, &[]).0, 0);
}

/// Files that run at each start of a machine or a service, in this folder.
fn run_at_each_start(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_there = |part: &str| path.iter().any(|folder| folder == part);
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "tests", "docs"].contains(&&*name) {
                run_at_each_start(&path, found);
            }
        } else if [".yml", ".yaml", ".service", ".timer", ".sh", "Dockerfile"]
            .iter()
            .any(|end| name.ends_with(end))
            || is_there("examples")
        {
            found.push(path);
        }
    }
}

/// The word that no client ever used the masters is a person's, for one time.
#[test]
fn nothing_that_runs_at_each_start_says_that_the_masters_were_never_used() {
    let mut found = Vec::new();
    run_at_each_start(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")), &mut found);
    for file in ["docker-compose.yml", "scripts/demo.sh", "examples/minimal.rs"] {
        assert!(found.iter().any(|path| path.ends_with(file)), "{file} is not looked at");
    }
    for path in found {
        let text = read(&path);
        assert!(!text.contains("never-used") && !text.contains("never_used"), "{}", path.display());
    }
}

/// Of three masters one is gone for good and another one came back without its keys.
#[test]
fn a_person_has_a_set_go_on_without_a_master_that_is_gone() {
    let mut masters = Masters::start(3);
    begin(&masters, &SHORT);
    let recover = |masters: &Masters, more: &[&str]| {
        output(quorate(masters).args(["members", "recover"]).args(more).args(SHORT))
    };
    let (code, out, error) = recover(&masters, &[]);
    assert!(code == 0 && out.contains("nothing to recover"), "{out}{error}");
    masters[0].kill();
    masters[1].restart_empty();
    let (code, _, _) = run(&masters, &["--max-ttl", "1s", "--ttl", "1s"]);
    assert_eq!(code, 69, "fewer than most know the set");
    let (code, out, error) = recover(&masters, &[]);
    assert_eq!(code, 81, "nobody is at a terminal: {error}");
    assert!(error.contains("1 of 3 masters does not answer") && error.contains("--yes"), "{error}");
    assert!(error.contains("two may hold a lock"), "{error}");
    assert!(out.contains(&masters[0].url()), "{out}");
    let begun = Instant::now();
    let (code, out, error) = recover(&masters, &["--yes"]);
    assert!(code == 0 && out.contains("the set goes on"), "{out}{error}");
    let (code, _, error) =
        output(quorate(&masters).args(["run", "l", "--max-ttl", "1s", "--ttl", "1s", "--", "true"]));
    assert_eq!(code, 0, "{error}");
    assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());
}
