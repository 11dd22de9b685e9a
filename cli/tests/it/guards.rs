//! Masters that have no vote for now, as the command sees them, and settings that are wrong.

use std::time::Duration;

use quorate_testkit::Masters;
use serde_json::Value;

use crate::{begin, forget, output, quorate, start};

/// A short quarantine, of some six seconds.
const SHORT: [&str; 2] = ["--max-ttl", "2s"];

/// New masters that are a set on these terms, of which two of three have lost their keys.
fn forgetful(terms: &[&str]) -> Masters {
    let masters = Masters::start(3);
    begin(&masters, terms);
    forget(&masters, 2, terms);
    masters
}

#[test]
#[allow(clippy::disallowed_methods, reason = "this test measures by the wall clock")]
fn whoever_waits_for_masters_that_forgot_is_told_for_how_long() {
    let begun = std::time::Instant::now();
    let masters = forgetful(&SHORT);
    let run = |args: &[&str]| {
        output(
            quorate(&masters).args(["run", "l", "--ttl", "2s"]).args(SHORT).args(args).args(["--", "true"]),
        )
    };
    let (code, _, error) = run(&[]);
    assert_eq!((code, error.lines().count()), (0, 1), "{error}");
    assert!(begun.elapsed() > Duration::from_millis(5_900), "{:?}", begun.elapsed());
    for part in ["waiting ", "s: ", "2 of 3 masters restarted or lost their keys"] {
        assert!(error.contains(part), "no {part:?} in {error}");
    }
    let (code, _, error) = run(&["-n"]);
    assert_eq!((code, error.as_str()), (0, ""), "they vote from then on");
}

#[test]
fn a_wait_that_is_too_short_for_masters_that_forgot_is_called_that() {
    let masters = forgetful(&[]);
    for wait in [&["--wait", "200ms"][..], &["-n"]] {
        let (code, _, error) = output(quorate(&masters).args(["run", "l"]).args(wait).args(["--", "true"]));
        assert_eq!(code, 69, "{error}");
        for part in ["too short for that (--wait 3", "restarted or lost their keys", "in quarantine"] {
            assert!(error.contains(part), "no {part:?} in {error}");
        }
    }
}

#[test]
fn a_status_says_whose_vote_is_withheld() {
    let masters = forgetful(&[]);
    let (code, out, _) = output(quorate(&masters).args(["status", "l"]));
    assert_eq!(code, 0);
    assert!(out.contains("\"l\" is free\nNobody can get it for 3"), "{out}");
    assert_eq!(out.matches("quarantined for ").count(), 2, "{out}");
    let (_, out, _) = output(quorate(&masters).args(["status", "l", "--json"]));
    let status: Value = serde_json::from_str(&out).unwrap();
    let standings = [0, 1, 2].map(|place| &status["masters"][place]["standing"]);
    assert_eq!(standings, ["quarantined", "quarantined", "trusted"]);
    for left in [&status["quarantine_ms"], &status["masters"][1]["quarantine_ms"]] {
        assert!((10_000..35_000).contains(&left.as_u64().unwrap()), "{status}");
    }
}

#[test]
fn a_bench_waits_for_masters_that_forgot() {
    let masters = forgetful(&SHORT);
    let mut command = quorate(&masters);
    command.args(["bench", "--duration", "300ms", "--concurrency", "2", "--ttl", "2s"]).args(SHORT);
    let (code, out, error) = output(command.args(["--timeout", "1s"]));
    assert_eq!((code, error.lines().count()), (0, 1), "{error}");
    assert!(error.contains("waiting ") && out.contains("a quorum is 2"), "{error}{out}");
}

#[test]
fn a_wrong_setting_is_named_with_the_choices() {
    let masters = start(1);
    let status = |max_ttl| output(quorate(&masters).env("QUORATE_MAX_TTL", max_ttl).args(["status", "l"]));
    let (code, _, error) = status("soon");
    assert_eq!(code, 64, "{error}");
    assert!(["QUORATE_MAX_TTL", "soon", "30s"].iter().all(|part| error.contains(part)), "{error}");
    assert_eq!(status("").0, 0, "not set");
    let (code, _, error) = output(quorate(&masters).args(["status", "l", "--max-ttl", "2d"]));
    assert_eq!(code, 64, "{error}");
    assert!(error.contains('1'), "{error}");
}

#[test]
fn clients_that_disagree_are_told_so() {
    let masters = Masters::start(3);
    begin(&masters, &["--max-ttl", "1m"]);
    let run =
        |args: &[&str]| output(quorate(&masters).args(["run", "l", "-n"]).args(args).args(["--", "true"]));
    assert_eq!(run(&["--max-ttl", "1m"]).0, 0);
    let (code, _, error) = run(&["--max-ttl", "2m"]);
    assert_eq!(code, 81, "{error}");
    assert!(error.contains("60000 ms, and this one has"), "{error}");
    assert!(error.contains("all clients need the same max TTL"), "{error}");
    let (code, out, error) = output(quorate(&masters).args(["status", "l", "--max-ttl", "2m"]));
    assert!(code == 81 && out.contains("0 of 3 masters answered, 3 refused"), "{code} {out}{error}");
    let mut alike = quorate(&masters);
    alike.env("QUORATE_MAX_TTL", "1m");
    assert_eq!(output(alike.args(["run", "l", "-n", "--", "true"])).0, 0);
}
