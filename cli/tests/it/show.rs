//! `quorate status`, `quorate release`, `quorate demo`, and the help.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use quorate_testkit::Masters;
use serde_json::Value;

use crate::{output, quorate, start, wait_until};

const OWNER: &str = "0f8fad5b-d9cb-469f-a165-70867728950e:3";
const ANOTHER: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7:1";

/// A lock of this owner on the first `count` masters.
fn hold(masters: &Masters, count: usize) {
    masters.iter().take(count).for_each(|server| crate::hold(server, OWNER, 2));
}

#[test]
fn a_status_says_who_holds_it_where_and_for_how_long() {
    let masters = start(5);
    let status = || output(quorate(&masters).args(["status", "l", "--timeout", "3s"]));
    let (code, out, _) = status();
    assert_eq!(code, 0);
    assert!(out.ends_with("\"l\" is free\n"), "{out}");

    hold(&masters, 2);
    let (_, out, _) = status();
    assert!(out.ends_with("\"l\" is free\n"), "a minority is nothing: {out}");
    for i in [3, 4] {
        crate::hold(&masters[i], ANOTHER, 1);
    }
    let (_, out, _) = status();
    assert!(out.contains("no owner has a majority of 3"), "{out}");
    for i in [3, 4] {
        let _: i64 = masters[i].command(&["DEL", "quorate:{l}"]);
    }

    hold(&masters, 4);
    let (code, out, _) = status();
    assert_eq!(code, 0);
    assert!(!out.contains(" \n"), "no line ends with a space: {out}");
    let said = out.split_once(&format!("is held by {OWNER} on 4 masters, for ")).unwrap().1;
    assert!(said.contains(" so far, expires in at most "), "{out}");
    for url in masters.urls() {
        assert!(out.contains(&url), "{out}");
    }

    (0..3).for_each(|i| masters[i].kill());
    let (code, out, _) = status();
    assert_eq!(code, 69);
    assert!(out.contains("only 2 of 5 masters answered"), "{out}");
    assert_eq!(out.matches("unknown").count(), 3, "the standing of those: {out}");
    assert_eq!(out.matches("unreachable").count(), 6, "state and reason of three: {out}");
}

#[test]
fn a_status_in_json_is_for_programs() {
    let masters = start(3);
    hold(&masters, 2);
    masters[2].kill();
    let show = || output(quorate(&masters).args(["status", "l", "--json", "--timeout", "3s"]));
    let (code, out, _) = show();
    assert_eq!(code, 0);
    let status: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&status["name"], &status["state"]), (&"l".into(), &"held".into()));
    assert_eq!((&status["quorum"], &status["answered"]), (&2.into(), &2.into()));
    assert_eq!(status["held"][0]["owner"], OWNER);
    assert!(status["held"][0]["remaining_ms"].as_u64().unwrap() > 40_000);
    assert_eq!(status["votes"][0]["outcome"], "held");
    assert_eq!(status["votes"][0]["holds"], 2);
    assert_eq!(status["masters"][0]["standing"], "trusted");
    assert_eq!(status["masters"][2]["standing"], "unknown");
    assert_eq!(status["quarantine_ms"], Value::Null);
    assert_eq!(status["votes"][2]["outcome"], "unreachable");
    assert!(status["votes"][2]["detail"].as_str().unwrap().contains("refused"));
    masters[1].kill();
    let (code, out, _) = show();
    let status: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &status["state"], &status["held"]), (69, &"unknown".into(), &serde_json::json!([])));
}

#[test]
fn a_list_shows_every_name_with_its_holder() {
    let masters = start(3);
    let list = |more: &[&str]| output(quorate(&masters).args(["list", "--timeout", "3s"]).args(more));
    assert!(list(&[]).1.ends_with("0 names are held or waited for\n"));
    hold(&masters, 2);
    let (code, out, error) = list(&[]);
    assert_eq!(code, 0, "{error}");
    assert!(!out.contains(" \n"), "no line ends with a space: {out}");
    let shown = out.lines().find(|line| line.contains(OWNER)).unwrap();
    assert!(shown.trim_start().starts_with("l  ") && shown.contains(" lock "), "{out}");
    let line: Value = serde_json::from_str(&list(&["--json"]).1).unwrap();
    assert_eq!((&line["name"], &line["held"][0]["owner"]), (&"l".into(), &OWNER.into()));
    (0..2).for_each(|i| masters[i].kill());
    let (code, _, error) = list(&[]);
    assert_eq!(code, 69, "{error}");
}

#[test]
fn a_release_takes_a_lock_only_from_the_owner_it_names() {
    let masters = start(3);
    hold(&masters, 3);
    let release =
        |owner: &str| output(quorate(&masters).args(["release", "l", "--timeout", "3s", "--owner", owner]));
    let other = OWNER.replace(":3", ":4");
    let (code, _, error) = release(&other);
    assert_eq!(code, 77);
    assert!(error.contains(OWNER), "{error}");
    let (code, _, error) = release("nonsense");
    assert_eq!(code, 64);
    assert!(error.contains("nonsense"), "{error}");
    assert_eq!(release(OWNER).0, 0);
    assert_eq!(masters.empty(), Ok(()));
    assert_eq!(release(OWNER).0, 77);
}

#[test]
fn the_demo_shows_what_it_promises() {
    let (code, out, error) =
        output(Command::new(env!("CARGO_BIN_EXE_quorate")).args(["demo", "--pause", "100ms"]));
    assert_eq!(code, 0, "{out}{error}");
    for part in [
        "5 of 5 masters have granted it",
        "Refused in",
        "Two masters are killed",
        "No lock, after",
        "Granted again",
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
}

/// Killed in the middle, with no chance to clean up: the servers go with it.
#[test]
fn nothing_of_the_demo_survives_it() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["demo", "--pause", "1m"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(demo.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ports = line.split("on ports ").nth(1).unwrap().trim().trim_end_matches('.').split(", ");
    let ports: Vec<u16> = ports.map(|port| port.parse().unwrap()).collect();
    let alive = |port: &u16| TcpStream::connect(("127.0.0.1", *port)).is_ok();
    assert!(ports.len() == 5 && ports.iter().all(alive));
    demo.kill().unwrap();
    demo.wait().unwrap();
    wait_until("the servers' end", || !ports.iter().any(alive));
}

#[test]
fn no_password_is_in_the_help_or_an_error() {
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        let (_, out, error) =
            output(command.env("QUORATE_MASTERS", "redis://:hunter2@127.0.0.1:1").args(args));
        out + &error
    };
    for args in [&["run", "--help"][..], &["run", "l"], &["run", "l", "-n", "--", "true"], &["status", "l"]] {
        let shown = run(args);
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn masters_can_be_given_one_by_one() {
    let masters = start(3);
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(["status", "l"]);
    for url in masters.urls() {
        command.args(["--master", &url]);
    }
    wait_until("a status", || output(&mut command).1.contains("is free"));
}

#[test]
fn what_is_empty_in_the_environment_is_not_set() {
    let masters = start(3);
    let mut status = quorate(&masters);
    let urls = format!(" {}, ", masters.urls().join(" , "));
    let (_, out, _) =
        output(status.env("QUORATE_PREFIX", "").env("QUORATE_MASTERS", urls).args(["status", "l"]));
    assert!(out.contains("is free"), "{out}");
    hold(&masters, 3);
    assert!(output(&mut status).1.contains("is held by"), "the default prefix");
    let (code, _, error) = output(quorate(&masters).env("QUORATE_MASTERS", "").args(["status", "l"]));
    assert_eq!(code, 64);
    assert!(error.contains("QUORATE_MASTERS"), "{error}");
}

#[test]
fn output_that_is_lost_is_an_error() {
    let masters = start(3);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = quorate(&masters).args(["status", "l"]).stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(70));
}

#[test]
fn output_that_nobody_reads_is_not_an_error() {
    let masters = start(3);
    let mut status = quorate(&masters).args(["status", "l"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(status.stdout.take());
    assert_eq!(status.wait().unwrap().code(), Some(0));
}
