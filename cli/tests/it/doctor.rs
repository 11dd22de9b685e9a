//! `quorate doctor`.

use std::process::Command;

use quorate_testkit::{Masters, RedisServer};
use serde_json::Value;

use crate::{begin, output, quorate, start};

const KEEPING: &[&str] = &["--appendonly", "yes"];

/// Masters that are a set, and keep what they write.
fn keeping() -> Masters {
    let masters = Masters::start_with(3, KEEPING);
    begin(&masters, &[]);
    masters
}

fn doctor(masters: &Masters, args: &[&str]) -> (i32, String, String) {
    output(quorate(masters).args(["doctor", "--timeout", "1s"]).args(args))
}

#[test]
fn where_all_is_well_it_says_so_and_ends_with_0() {
    let masters = keeping();
    let (code, out, error) = doctor(&masters, &[]);
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    assert!(out.lines().all(|line| line.starts_with("ok    ")), "{out}");
    for url in masters.urls() {
        assert!(out.contains(&format!("ok    {url}  role: master")), "{out}");
    }
    assert_eq!(out.matches(" of 3: it remembers what it granted").count(), 3, "{out}");
    assert!(out.contains("  set: "), "{out}");
    assert!(out.ends_with("quorum: 3 of 3 masters can vote, and a quorum is 2\n"), "{out}");
    let keys = masters.iter().map(|server| server.command::<i64>(&["DBSIZE"]));
    assert_eq!(keys.collect::<Vec<_>>(), [2; 3], "the record, and what it promised");
}

#[test]
fn the_exit_code_tells_warnings_and_a_lost_quorum_apart() {
    let masters = start(3);
    let (code, out, _) = doctor(&masters, &[]);
    assert_eq!(code, 78, "they forget all when they restart: {out}");
    assert!(
        out.contains("warn  ") && out.contains("no append-only file") && !out.contains("fail  "),
        "{out}"
    );
    masters[0].kill();
    let (code, out, _) = doctor(&masters, &[]);
    assert_eq!(code, 78, "{out}");
    assert!(out.contains("fail  ") && out.contains("2 of 3 masters can vote"), "{out}");
    masters[1].freeze();
    let (code, out, _) = doctor(&masters, &[]);
    assert_eq!(code, 69, "{out}");
    let last = out.lines().last().unwrap();
    assert!(last.starts_with("fail  all masters") && last.contains("1 of 3 masters can vote"), "{out}");
    let (code, _, error) = doctor(&masters, &["--max-ttl", "2d"]);
    assert_eq!(code, 64, "{error}");
}

/// What refuses a client is found, however the server does that.
#[test]
fn commands_that_were_renamed_cost_the_vote() {
    for command in ["HELLO", "INFO", "EVAL", "EVALSHA", "HSET", "TIME"] {
        let server = RedisServer::start_with(&["--rename-command", command, ""]);
        let mut doctor = Command::new(env!("CARGO_BIN_EXE_quorate"));
        let (code, out, _) = output(doctor.args(["doctor", "--timeout", "1s", "--master", &server.url()]));
        assert_eq!(code, 69, "{command}: {out}");
        let name = if command == "HELLO" { "HELLO".to_owned() } else { command.to_lowercase() };
        let is_named = |line: &str| line.starts_with("fail  ") && line.contains(&name);
        assert!(out.lines().any(is_named), "{command}: {out}");
        assert!(out.contains("0 of 1 masters can vote"), "{command}: {out}");
    }
}

#[test]
fn masters_that_are_no_set_are_no_quorum_until_somebody_begins_it() {
    let masters = Masters::start_with(3, KEEPING);
    let (code, out, _) = doctor(&masters, &[]);
    assert_eq!(code, 69, "{out}");
    for part in [
        "record: it has no record of a set of masters",
        "set: no master",
        "quorate init",
        "no lock can be had",
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    assert!(masters.iter().all(|server| server.command::<i64>(&["DBSIZE"]) == 0), "nothing is written");
    begin(&masters, &[]);
    let (code, out, _) = doctor(&masters, &[]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("if it restarts, it has no vote for 34.3 s"), "{out}");
}

#[test]
fn what_a_client_is_refused_for_is_said_with_the_option_that_helps() {
    let masters = keeping();
    let (code, out, _) = doctor(&masters, &["--max-ttl", "1m"]);
    assert_eq!(code, 69, "{out}");
    assert!(out.contains("-> use --max-ttl 30000ms"), "{out}");
    let urls = masters.urls();
    let (code, out, _) = output(quorate(&masters).env("QUORATE_MASTERS", urls[..2].join(",")).arg("doctor"));
    assert_eq!(code, 69, "{out}");
    let mut set = urls.clone();
    set.sort_unstable();
    let both = format!("its set is {}, and this client's {}", set.join(", "), urls[..2].join(", "));
    assert!(out.contains(&both), "no {both:?} in {out}");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "this test measures by the wall clock")]
fn a_frozen_master_costs_some_time_outs() {
    let masters = start(3);
    masters[2].freeze();
    let begun = std::time::Instant::now();
    let (code, out, _) = output(quorate(&masters).args(["doctor", "--timeout", "200ms"]));
    assert_eq!(code, 78, "{out}");
    assert!(out.contains("it did not answer within 800ms"), "{out}");
    assert!(begun.elapsed() < crate::SOON, "{:?}", begun.elapsed());
}

#[test]
fn json_is_for_programs() {
    let masters = keeping();
    masters[1].kill();
    let (code, out, error) = doctor(&masters, &["--json"]);
    assert_eq!(code, 78, "{error}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&report["severity"], &report["quorum"], &report["can_vote"]),
        (&"fail".into(), &2.into(), &2.into())
    );
    let seen = report["masters"].as_array().unwrap();
    for (master, url) in seen.iter().zip(masters.urls()) {
        assert_eq!(master["master"], url);
        assert!(!master["findings"].as_array().unwrap().is_empty());
    }
    assert_eq!((&seen[0]["votes_in_ms"], &seen[1]["votes_in_ms"]), (&0.into(), &Value::Null));
    assert!(seen[0]["round_trip_ms"].as_f64().unwrap() > 0.0 && seen[1]["round_trip_ms"].is_null());
    assert!(seen[0]["clock_ahead_ms"].as_i64().unwrap().abs() < 250);
    let reach = &seen[1]["findings"][0];
    assert_eq!((&reach["severity"], &reach["about"]), (&"fail".into(), &"reach".into()));
    assert!(reach["what"].as_str().unwrap().contains("refused") && reach["fix"].is_string());
    assert_eq!(seen[0]["findings"][0]["fix"], Value::Null);
    let last = report["together"].as_array().unwrap().last().unwrap();
    assert_eq!(last["about"], "quorum");
}

#[test]
fn no_password_is_shown_whatever_is_wrong() {
    let masters = Masters::start(3);
    for server in masters.iter() {
        let _: () =
            server.command(&["ACL", "SETUSER", "me", "on", ">hunter2", "~quorate:*", "&*", "+@all", "-hset"]);
    }
    for login in ["me:hunter2", "me:hunter2x", "hunter2", ":hunter2"] {
        let urls = masters.urls().join(",").replace("redis://", &format!("redis://{login}@"));
        for json in [&[][..], &["--json"]] {
            let mut command = quorate(&masters);
            let (_, out, error) = output(command.env("QUORATE_MASTERS", &urls).arg("doctor").args(json));
            assert!(out.contains("quorum"), "{error}");
            assert!(!out.contains("hunter2") && !error.contains("hunter2"), "{out}{error}");
        }
    }
    let _: () = masters[0].command(&["CONFIG", "SET", "requirepass", "hunter2"]);
    let (_, out, _) = doctor(&masters, &[]);
    assert!(out.contains("NOAUTH") && out.contains("a user and a password that it knows"), "{out}");
}
