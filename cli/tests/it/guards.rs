//! Masters that cannot vote yet, as the command sees them, and the options about which to trust.

use std::time::Duration;

use quorate_testkit::Masters;
use serde_json::Value;

use crate::{careful, output, quorate};

/// A short quarantine, of some six seconds.
const SHORT: [&str; 4] = ["--max-ttl", "2s", "--ttl", "2s"];

#[test]
#[allow(clippy::disallowed_methods, reason = "this test measures by the wall clock")]
fn whoever_waits_for_new_masters_is_told_for_how_long_and_what_spares_it() {
    let masters = Masters::start(3);
    let begun = std::time::Instant::now();
    let (code, _, error) = output(careful(&masters).arg("run").args(SHORT).args(["l", "--", "true"]));
    assert_eq!((code, error.lines().count()), (0, 1), "{error}");
    assert!(begun.elapsed() > Duration::from_millis(5_900), "{:?}", begun.elapsed());
    for part in ["waiting ", "s: ", "of 3 masters are new or lost their keys", "--cold-start none"] {
        assert!(error.contains(part), "no {part:?} in {error}");
    }
    // From then on they are known.
    let (code, _, error) = output(careful(&masters).arg("run").args(SHORT).args(["l", "-n", "--", "true"]));
    assert_eq!((code, error.as_str()), (0, ""));
}

#[test]
fn a_wait_that_is_too_short_for_new_masters_is_called_that() {
    let masters = Masters::start(3);
    // A quarantine of 34.8 s.
    let run = ["run", "l", "--max-ttl", "30500ms"];
    for (wait, what) in
        [(&["--wait", "200ms"][..], "are new or lost"), (&["-n"], "are new, restarted or lost")]
    {
        let (code, _, error) = output(careful(&masters).args(run).args(wait).args(["--", "true"]));
        assert_eq!(code, 69, "{error}");
        for part in ["too short for that (--wait 39s)", what, "in quarantine"] {
            assert!(error.contains(part), "no {part:?} in {error}");
        }
    }
    let (code, _, error) = output(quorate(&masters).args(run).args(["-n", "--", "true"]));
    assert_eq!(code, 69, "it is there for every client: {error}");
}

#[test]
fn a_status_says_whose_vote_is_withheld() {
    let masters = Masters::start(3);
    let (code, out, _) = output(careful(&masters).args(["status", "l"]));
    assert_eq!(code, 0);
    assert!(
        out.contains("\"l\" is free\nNobody can get it for 3") && out.contains("--cold-start none"),
        "{out}"
    );
    assert_eq!(out.matches("quarantined for ").count(), 3, "{out}");
    let (_, out, _) = output(careful(&masters).args(["status", "l", "--json"]));
    let status: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(status["masters"][1]["standing"], "quarantined");
    for left in [&status["quarantine_ms"], &status["masters"][1]["quarantine_ms"]] {
        assert!((10_000..35_000).contains(&left.as_u64().unwrap()), "{status}");
    }
}

#[test]
fn a_bench_waits_for_new_masters() {
    let masters = Masters::start(3);
    let mut command = careful(&masters);
    command.args(["bench", "--duration", "300ms", "--concurrency", "2"]).args(SHORT);
    let (code, out, error) = output(command.args(["--timeout", "1s"]));
    assert_eq!((code, error.lines().count()), (0, 1), "{error}");
    assert!(error.contains("waiting ") && out.contains("a quorum is 2"), "{error}{out}");
}

#[test]
fn a_wrong_setting_is_named_with_the_choices() {
    let masters = Masters::start(1);
    for (variable, wrong, choices) in [
        ("QUORATE_COLD_START", "trust", "quarantine, uptime, fsync or none"),
        ("QUORATE_MAX_TTL", "soon", "30s"),
        ("QUORATE_STRICT", "yes", "1, for strict, nor 0"),
    ] {
        let (code, _, error) = output(quorate(&masters).env(variable, wrong).args(["status", "l"]));
        assert_eq!(code, 64, "{error}");
        assert!([variable, wrong, choices].iter().all(|part| error.contains(part)), "{error}");
        assert_eq!(output(quorate(&masters).env(variable, "").args(["status", "l"])).0, 0, "not set");
    }
    for (option, wrong, choices) in
        [("--cold-start", "trust", "quarantine, uptime, fsync or none"), ("--max-ttl", "2d", "1")]
    {
        let (code, _, error) = output(quorate(&masters).args(["status", "l", option, wrong]));
        assert_eq!(code, 64, "{error}");
        assert!(error.contains(choices), "{error}");
    }
}

#[test]
fn clients_that_disagree_are_told_so() {
    let masters = Masters::start(3);
    let run =
        |args: &[&str]| output(quorate(&masters).args(["run", "l", "-n"]).args(args).args(["--", "true"]));
    assert_eq!(run(&["--max-ttl", "1m", "--strict"]).0, 0);
    let (code, _, error) = run(&["--max-ttl", "1m"]);
    assert_eq!(code, 81, "{error}");
    assert!(error.contains("60000 ms, strict, and this one has"), "{error}");
    assert!(error.contains("all clients need the same masters, max TTL and strictness"), "{error}");
    let mut strict = quorate(&masters);
    strict.env("QUORATE_STRICT", "1").env("QUORATE_MAX_TTL", "1m");
    assert_eq!(output(strict.args(["run", "l", "-n", "--", "true"])).0, 0);
}
