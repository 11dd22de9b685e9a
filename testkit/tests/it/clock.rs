//! Wall clocks that a test sets, of real servers.

use std::time::{Duration, SystemTime};

use quorate_testkit::{Masters, RedisServer, eventually};

const SOON: Duration = Duration::from_secs(20);
const MINUTE: i64 = 60_000;

/// Microseconds since 1970, by the server's clock.
fn time(server: &RedisServer) -> i64 {
    let (seconds, micros): (i64, i64) = server.command(&["TIME"]);
    seconds * 1_000_000 + micros
}

/// And by the machine's.
fn machine_time() -> i64 {
    i64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap()
}

/// The server's clock is the machine's plus `millis`.
#[track_caller]
fn assert_off_by(server: &RedisServer, millis: i64) {
    let before = machine_time();
    let shown = time(server) - millis * 1000;
    let after = machine_time();
    assert!((before..=after).contains(&shown), "off by {millis} ms? {before} {shown} {after}");
}

fn set(server: &RedisServer, key: &str, millis: &str) {
    server.command(&["SET", key, "v", "PX", millis])
}

fn exists(server: &RedisServer, key: &str) -> bool {
    server.command(&["EXISTS", key])
}

#[test]
fn time_tells_the_steps_and_restarts_keep_them() {
    let mut server = RedisServer::start_with_clock(&[]);
    assert_off_by(&server, 0);
    server.step_clock(MINUTE);
    assert_off_by(&server, MINUTE);
    server.step_clock(-MINUTE - 1);
    assert_off_by(&server, -1);
    server.set_clock_offset(-999);
    assert_off_by(&server, -999);
    server.restart();
    assert_off_by(&server, -999);
    server.restart_empty();
    assert_off_by(&server, -999);
    server.set_clock_offset(0);
    assert_off_by(&server, 0);
}

#[test]
fn each_server_has_its_own_clock() {
    let masters = Masters::start_with_clocks(3, &[]);
    masters[1].step_clock(MINUTE);
    assert_off_by(&masters[0], 0);
    assert_off_by(&masters[1], MINUTE);
    assert_off_by(&masters[2], 0);
}

#[test]
fn a_key_expires_at_once_when_the_clock_is_stepped_forward() {
    let server = RedisServer::start_with_clock(&[]);
    set(&server, "k", "10000");
    assert!(exists(&server, "k"));
    server.step_clock(MINUTE);
    assert!(!exists(&server, "k"));
}

#[tokio::test]
async fn a_key_outlives_its_time_when_the_clock_is_stepped_back() {
    let server = RedisServer::start_with_clock(&[]);
    set(&server, "k", "500");
    server.step_clock(-MINUTE);
    let begun = time(&server);
    eventually(SOON, || if time(&server) > begun + 1_000_000 { Ok(()) } else { Err("not a second yet") })
        .await;
    assert!(exists(&server, "k"));
    server.step_clock(MINUTE);
    assert!(!exists(&server, "k"));
}

#[tokio::test]
async fn a_strobe_expires_a_key_and_the_clock_is_right_again() {
    let server = RedisServer::start_with_clock(&[]);
    set(&server, "k", "10000");
    let strobe = server.strobe_clock(MINUTE, Duration::from_millis(400));
    let gone = eventually(SOON, || if exists(&server, "k") { Err("it is there") } else { Ok(()) });
    tokio::join!(strobe, gone);
    assert_off_by(&server, 0);
    set(&server, "k", "10000");
    assert!(exists(&server, "k"));
}

#[tokio::test]
async fn a_strobe_that_is_dropped_is_over() {
    let server = RedisServer::start_with_clock(&[]);
    let strobe = server.strobe_clock(-MINUTE, SOON);
    let stepped = eventually(SOON, || if time(&server) < machine_time() { Ok(()) } else { Err("not yet") });
    tokio::select! {
        biased;
        () = strobe => panic!("it is over too early"),
        () = stepped => {}
    }
    assert_off_by(&server, 0);
}

/// Its timers go by the other one: keys that nobody asks for expire by a timer.
#[tokio::test]
async fn only_the_wall_clock_is_stepped() {
    let server = RedisServer::start_with_clock(&[]);
    server.step_clock(-MINUTE);
    set(&server, "k", "100");
    let expired = || {
        let stats: String = server.command(&["INFO", "stats"]);
        if stats.contains("expired_keys:1\r") { Ok(()) } else { Err("not yet") }
    };
    eventually(SOON, expired).await;
}

#[test]
#[should_panic = "start_with_clock"]
fn the_machines_clock_is_not_stepped() {
    RedisServer::start().step_clock(MINUTE);
}
