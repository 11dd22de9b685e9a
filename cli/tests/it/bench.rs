//! `quorate bench`.

use std::process::{Command, Stdio};

use quorate_testkit::Masters;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{output, quorate, read, start, wait_until, wait_until_released};

/// A measurement of so long that every step has some cycles.
fn bench(masters: &Masters, args: &[&str]) -> (i32, String, String) {
    output(quorate(masters).args(["bench", "--duration", "400ms", "--timeout", "2s"]).args(args))
}

/// Percentiles that rise.
fn assert_plausible(summary: &Value) {
    assert!(summary["count"].as_u64().unwrap() > 0, "{summary}");
    let times = ["p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms"].map(|key| summary[key].as_f64().unwrap());
    assert!(times[0] > 0.0 && times.is_sorted(), "{summary}");
    assert!(summary["mean_ms"].as_f64().unwrap() <= times[4], "{summary}");
}

#[test]
fn a_table_shows_what_a_lock_costs_and_nothing_is_left() {
    let masters = start(3);
    let (code, out, error) = bench(&masters, &["--concurrency", "1,8"]);
    assert_eq!((code, error.as_str()), (0, ""), "no progress bar where there is no terminal: {out}");
    for part in [
        "Round trips of 3 masters",
        "a quorum is 2",
        "acquire ",
        "release ",
        "times as long as",
        "PER SECOND",
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    for url in masters.urls() {
        assert!(out.contains(&url), "{out}");
    }
    assert!(!out.contains("Failures"), "{out}");
    assert_eq!(masters.empty(), Ok(()));
}

#[test]
fn json_has_every_percentile_in_milliseconds() {
    let masters = start(3);
    let (code, out, error) = bench(&masters, &["--concurrency", "1,8", "--ttl", "5s", "--json"]);
    assert_eq!(code, 0, "{error}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&report["ttl_ms"], &report["duration_ms"]), (&5000.into(), &400.into()));
    assert_eq!((&report["quorum"], &report["stopped"]), (&2.into(), &Value::Null));
    assert!(report["acquire_to_order_statistic"].as_f64().unwrap() > 0.0);
    assert_plausible(&report["single"]["acquire"]);
    assert_plausible(&report["single"]["release"]);
    let masters_seen = report["masters"].as_array().unwrap();
    for (master, url) in masters_seen.iter().zip(masters.urls()) {
        assert_eq!((&master["master"], &master["unanswered"]), (&url.into(), &0.into()));
        assert_plausible(&master["round_trip"]);
    }
    let of = report["order_statistics"].as_array().unwrap();
    assert_eq!(of.iter().map(|of| &of["masters"]).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(of.iter().map(|of| &of["quorum"]).collect::<Vec<_>>(), [1, 2, 2]);
    of.iter().flat_map(|of| [&of["fastest"], &of["any"]]).for_each(assert_plausible);
    assert_eq!(of[2]["fastest"], of[2]["any"], "there is one choice of all of them");
    let throughput = report["throughput"].as_array().unwrap();
    assert_eq!(throughput.iter().map(|level| &level["concurrency"]).collect::<Vec<_>>(), [1, 8]);
    for level in throughput {
        assert!(level["cycles_per_second"].as_f64().unwrap() > 0.0);
        assert_plausible(&level["acquire"]);
        assert_plausible(&level["release"]);
        assert_eq!(level["failed_acquires"], serde_json::json!({}));
    }
}

#[test]
fn the_page_needs_nothing_else_and_tells_no_password() {
    let masters = start(3);
    for server in masters.iter() {
        let _: String = server.command(&["ACL", "SETUSER", "me", "on", ">hunter2", "~*", "&*", "+@all"]);
    }
    let urls = masters.urls().join(",").replace("redis://", "redis://me:hunter2@");
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("report.html");
    let mut command = quorate(&masters);
    command.env("QUORATE_MASTERS", urls).args([
        "bench",
        "--duration",
        "300ms",
        "--concurrency",
        "4",
        "--html",
    ]);
    let (code, out, error) = output(command.arg(&file));
    assert_eq!(code, 0, "{error}");
    let page = read(&file);
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    for outside in ["http://", "https://", "<script", "<link", "<img", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.matches("<polyline").count() == 5 && page.contains("--concurrency"));
    assert!(!page.contains("hunter2") && !out.contains("hunter2"));
    for url in masters.urls() {
        assert!(page.contains(&url), "{url}");
    }
    assert_eq!(masters.empty(), Ok(()));
}

#[test]
fn a_dead_minority_is_named_and_counted() {
    let masters = start(3);
    masters[2].kill();
    let (code, out, error) = bench(&masters, &["--concurrency", "4", "--json"]);
    assert_eq!(code, 0, "{error}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let dead = &report["masters"][2];
    assert_eq!((&dead["answered"], &dead["round_trip"]["p50_ms"]), (&0.into(), &Value::Null));
    assert!(dead["unanswered"].as_u64().unwrap() > 0);
    assert!(dead["detail"].as_str().unwrap().contains("refused"), "{dead}");
    assert_plausible(&report["single"]["acquire"]);
    assert_plausible(&report["order_statistics"][2]["fastest"]);

    let (code, out, _) = bench(&masters, &["--concurrency", "4"]);
    assert_eq!(code, 0);
    let dead = &masters.urls()[2];
    assert!(out.contains(&format!("{dead} did not answer in ")) && out.contains("refused"), "{out}");
    for master in masters.iter().take(2) {
        assert_eq!(master.keys(), [""; 0]);
    }
}

/// A minute is asked for, and nobody would wait for it.
#[test]
fn without_a_quorum_it_fails_at_once_and_writes_no_report() {
    let masters = start(3);
    masters[0].kill();
    masters[1].kill();
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("report.html");
    let mut command = quorate(&masters);
    command.args(["bench", "--duration", "10m", "--html"]).arg(&file);
    let (code, out, error) = output(&mut command);
    assert_eq!((code, out.as_str()), (69, ""), "{error}");
    assert!(error.contains("no quorum") && error.contains("of the 2 masters needed"), "{error}");
    assert!(!file.exists());
    assert_eq!(masters[2].keys(), [""; 0]);
}

#[test]
fn a_quorum_that_is_lost_ends_it_with_what_was_measured() {
    let masters = start(3);
    let mut command = quorate(&masters);
    command.args(["bench", "--duration", "4s", "--concurrency", "4", "--json"]);
    let bench = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the first single locks", || has_run(&masters, 20));
    masters[0].kill();
    masters[1].kill();
    let ended = bench.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(69), "{ended:?}");
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_plausible(&report["single"]["acquire"]);
    assert!(report["single"]["failed_acquires"]["no quorum"].as_u64().unwrap() > 0, "{report}");
    assert!(report["stopped"].as_str().unwrap().contains("no quorum"), "{report}");
    assert_eq!(report["throughput"][0]["cycles_per_second"], 0.0);
    assert!(report["throughput"][0]["acquire"]["p50_ms"].is_null());
}

#[test]
fn ctrl_c_shows_what_was_measured_and_leaves_nothing() {
    let masters = start(3);
    let mut command = quorate(&masters);
    command.args(["bench", "--duration", "10m", "--concurrency", "16"]);
    let bench = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the first single locks", || has_run(&masters, 20));
    kill_process(Pid::from_child(&bench), Signal::INT).unwrap();
    let ended = bench.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    let (out, error) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(out.contains("Round trips of 3 masters") && !out.contains("PER SECOND"), "{out}");
    assert!(error.contains("SIGINT"), "{error}");
    wait_until_released(&masters);
}

/// Whether the first master was asked so often.
fn has_run(masters: &Masters, calls: u64) -> bool {
    let stats: String = masters[0].command(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    let count = line.and_then(|line| line.split(',').next()?.parse().ok());
    count.is_some_and(|count: u64| count >= calls)
}

#[test]
fn what_is_outside_of_its_limits_is_named_with_the_limit() {
    for (wrong, parts) in [
        (["--duration", "11m"], ["11m", "10m"]),
        (["--duration", "50ms"], ["50ms", "100ms"]),
        (["--concurrency", "0"], ["0", "4096"]),
        (["--concurrency", "1,4097"], ["4097", "4096"]),
        (["--concurrency", "many"], ["many", "--concurrency"]),
        (["--ttl", "5ms"], ["5ms", "10ms"]),
        (["--html", "/no/such/folder/report.html"], ["/no/such/folder/report.html", "no folder"]),
        (["--html", "/tmp"], ["/tmp", "it is a folder"]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        let (code, out, error) =
            output(command.args(["bench", "--master", "redis://127.0.0.1:1"]).args(wrong));
        assert_eq!((code, out.as_str()), (64, ""), "{wrong:?}: {error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{wrong:?}: {error}");
    }
}
