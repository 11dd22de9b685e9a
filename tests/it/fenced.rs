//! The script that guards a value by a fence: what it says and writes, once and again. And the
//! example with SQL runs.

use std::time::Duration;

use quorate::fence::{self, Stale};
use quorate_testkit::RedisServer;
use redis::RedisError;

/// Fences of two grants in 2026, a microsecond apart.
const FIRST: u64 = 1_767_225_600_000_000;
const SECOND: u64 = FIRST + 1;

/// Runs the script as a user does.
fn try_set(server: &RedisServer, fence: &str, more: &[&[u8]]) -> Result<u64, RedisError> {
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    redis::cmd("EVAL").arg(fence::SET).arg(1).arg("k").arg(fence).arg(more).query(&mut connection)
}

fn set_for(server: &RedisServer, fence: u64, value: &[u8], ttl: Option<Duration>) -> Result<(), Stale> {
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let args = fence::set_args(fence, value, ttl);
    let seen = redis::cmd("EVAL").arg(fence::SET).arg(1).arg("k").arg(&args).query(&mut connection).unwrap();
    fence::check(fence, seen)
}

fn set(server: &RedisServer, fence: u64, value: &str) -> Result<(), Stale> {
    set_for(server, fence, value.as_bytes(), None)
}

/// All that is at the key.
fn stored(server: &RedisServer) -> Vec<String> {
    server.command(&["HGETALL", "k"])
}

fn pair(fence: u64, value: &str) -> Vec<String> {
    ["fence", &fence.to_string(), "value", value].map(str::to_owned).to_vec()
}

fn life(server: &RedisServer) -> i64 {
    server.command(&["PTTL", "k"])
}

#[test]
fn a_fence_that_rises_or_stays_writes_and_one_that_falls_does_not() {
    let server = RedisServer::start();
    for (fence, value) in [(FIRST, "a"), (FIRST, "b"), (SECOND, "c"), (SECOND, "d")] {
        assert_eq!(set(&server, fence, value), Ok(()));
        assert_eq!(stored(&server), pair(fence, value));
    }
    for _ in 0..3 {
        assert_eq!(set(&server, FIRST, "late"), Err(Stale { given: FIRST, seen: SECOND }));
        assert_eq!(stored(&server), pair(SECOND, "d"), "nothing is overwritten");
    }
    assert_eq!(
        set_for(&server, FIRST, b"late", Some(crate::ms(1))),
        Err(Stale { given: FIRST, seen: SECOND })
    );
    assert_eq!(life(&server), -1, "a stale write changes no TTL either");
}

#[test]
fn a_repeated_run_changes_nothing() {
    let server = RedisServer::start();
    for _ in 0..3 {
        assert_eq!(set_for(&server, FIRST, b"a", Some(crate::TTL)), Ok(()));
        assert_eq!(stored(&server), pair(FIRST, "a"));
        assert!((20_000..=30_000).contains(&life(&server)));
    }
}

/// Lua would have 2^53 + 1 equal to 2^53, and 10^15 as `1e+15`.
#[test]
fn fences_are_exact_to_the_last_one() {
    let server = RedisServer::start();
    for fence in [1, 9, 10, 1_000_000_000_000_000, fence::MAX - 1, fence::MAX] {
        assert_eq!(set(&server, fence, "v"), Ok(()));
        assert_eq!(set(&server, fence.max(2) - 1, "w").is_err(), fence > 1);
        let seen: String = server.command(&["HGET", "k", "fence"]);
        assert_eq!(seen, fence.to_string());
    }
}

/// Without that it is let in between a later holder's read and write, which does not know of it.
#[test]
fn a_write_that_is_late_is_refused_once_a_later_holder_was_about_to_read() {
    let server = RedisServer::start();
    set(&server, FIRST, "a").unwrap();
    assert_eq!(try_set(&server, &SECOND.to_string(), &[]).unwrap(), SECOND);
    assert_eq!(set(&server, FIRST, "late"), Err(Stale { given: FIRST, seen: SECOND }));
    assert_eq!(stored(&server), pair(SECOND, "a"));
}

#[test]
fn what_is_no_fence_or_no_ttl_is_an_error_that_writes_nothing() {
    let server = RedisServer::start();
    let odd = ["0", "-1", "+1", "01", "1.5", "1e15", "0x10", " 1", "1 ", "1\n", "x", "nan", "inf"];
    let high = ["9007199254740992", "9007199254740993", "9999999999999999", "18446744073709551615"];
    for _ in 0..2 {
        for fence in odd.iter().chain(&high).chain(&[""]) {
            let error = try_set(&server, fence, &[b"late"]).unwrap_err().to_string();
            assert!(error.contains("the fence must be"), "{fence:?}: {error}");
        }
        for ttl in odd.iter().chain(&high) {
            let error = try_set(&server, &SECOND.to_string(), &[b"late", ttl.as_bytes()]).unwrap_err();
            assert!(error.to_string().contains("the TTL must be"), "{ttl:?}: {error}");
        }
        if server.keys().is_empty() {
            set(&server, FIRST, "a").unwrap(); // and again, with something there
        }
        assert_eq!(stored(&server), pair(FIRST, "a"));
    }
}

#[test]
fn what_else_is_at_the_key_is_left_alone() {
    let fence = FIRST.to_string();
    let others: [&[&str]; 6] = [
        &["SET", "k", "plain"],
        &["RPUSH", "k", "a", "b"],
        &["HSET", "k", "name", "Ada"],
        &["HSET", "k", "owner:1", "1", "round", "7", "fence", &fence],
        &["HSET", "k", "fence", "1e15", "value", "v"],
        &["HSET", "k", "fence", "9007199254740992", "value", "v"],
    ];
    for other in others {
        let server = RedisServer::start();
        let _: redis::Value = server.command(other);
        let before: Vec<u8> = server.command(&["DUMP", "k"]);
        for _ in 0..2 {
            let error = try_set(&server, &SECOND.to_string(), &[b"v", b"1000"]).unwrap_err().to_string();
            assert!(error.contains("WRONGTYPE"), "{other:?}: {error}");
            assert_eq!((server.command::<Vec<u8>>(&["DUMP", "k"]), life(&server)), (before.clone(), -1));
        }
    }
}

#[test]
fn the_last_write_decides_how_long_value_and_fence_are_kept() {
    let server = RedisServer::start();
    set(&server, FIRST, "a").unwrap();
    assert_eq!(life(&server), -1, "without a TTL the fence is not forgotten");
    set_for(&server, FIRST, b"a", Some(Duration::from_secs(3600))).unwrap();
    assert!((3_500_000..=3_600_000).contains(&life(&server)));
    set_for(&server, FIRST, b"a", Some(crate::TTL)).unwrap();
    assert!(life(&server) <= 30_000);
    set(&server, FIRST, "a").unwrap();
    assert_eq!(life(&server), -1);
}

#[test]
fn a_value_can_be_deleted_without_its_fence() {
    let server = RedisServer::start();
    set(&server, SECOND, "a").unwrap();
    let _: i64 = server.command(&["HDEL", "k", "value"]);
    assert_eq!(set(&server, FIRST, "late"), Err(Stale { given: FIRST, seen: SECOND }));
    assert_eq!(set(&server, SECOND, "b"), Ok(()));
}

#[test]
fn a_value_may_be_any_bytes() {
    let server = RedisServer::start();
    for value in [&b""[..], b"\0\r\n\xff", &[7; 100_000]] {
        set_for(&server, FIRST, value, None).unwrap();
        assert_eq!(server.command::<Vec<u8>>(&["HGET", "k", "value"]), value);
    }
}

#[test]
fn the_example_with_sql_runs() {
    let output = crate::example("fenced_sql").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("is stale"), "{output:?}");
}
