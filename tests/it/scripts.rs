//! The Lua scripts by themselves: what each says and writes, once and again.

use std::path::Path;

use quorate_testkit::RedisServer;
use redis::Value;

const A: &str = "00000000-0000-0000-0000-00000000000a:1";
const B: &str = "00000000-0000-0000-0000-00000000000b:1";

/// Runs a script as the library does: the shared part in front.
fn run(server: &RedisServer, script: &str, keys: &[&str], args: &[&str]) -> Vec<Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/lua/reentrant");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let source = read("lock.lua") + &read(&format!("{script}.lua"));
    let count = keys.len().to_string();
    let words: Vec<&str> = ["EVAL", &source, &count]
        .into_iter()
        .chain(keys.iter().copied())
        .chain(args.iter().copied())
        .collect();
    let replies: Vec<Vec<Value>> = server.command(&words);
    let text = |value: Value| match value {
        Value::Int(number) => number.to_string(),
        other => redis::from_redis_value(other).unwrap(),
    };
    replies.into_iter().map(|reply| reply.into_iter().map(text).collect()).collect()
}

fn one(server: &RedisServer, script: &str, args: &[&str]) -> Vec<String> {
    run(server, script, &["k"], args).remove(0)
}

fn acquire(server: &RedisServer, owner: &str, count: &str, ttl: &str, round: &str) -> Vec<String> {
    one(server, "acquire", &[owner, count, ttl, round])
}

fn release(server: &RedisServer, owner: &str, count: &str, round: &str) -> Vec<String> {
    one(server, "release", &[owner, count, round, "channel", "0"])
}

fn ttl(server: &RedisServer) -> i64 {
    server.command(&["PTTL", "k"])
}

fn count(server: &RedisServer, owner: &str) -> Option<String> {
    server.command(&["HGET", "k", owner])
}

#[test]
fn an_acquire_takes_a_free_lock_and_says_who_holds_a_taken_one() {
    let server = RedisServer::start();
    assert_eq!(acquire(&server, A, "1", "5000", "1"), ["granted"]);
    assert!((4000..=5000).contains(&ttl(&server)));
    let held = acquire(&server, B, "1", "9000", "1");
    assert_eq!(held[..3], ["held", A, "1"]);
    assert!((4000..=5000).contains(&held[3].parse::<i64>().unwrap()));
    assert_eq!(count(&server, B), None, "a refusal writes nothing");
}

#[test]
fn an_acquire_that_runs_again_changes_nothing() {
    let server = RedisServer::start();
    for _ in 0..3 {
        assert_eq!(acquire(&server, A, "2", "5000", "7"), ["granted"]);
        assert_eq!(count(&server, A).as_deref(), Some("2"), "counts are absolute");
    }
}

#[test]
fn what_comes_after_a_later_round_is_stale_and_writes_nothing() {
    let server = RedisServer::start();
    acquire(&server, A, "2", "5000", "8");
    assert_eq!(acquire(&server, A, "1", "60000", "7"), ["stale", "8"]);
    assert_eq!(release(&server, A, "0", "7"), ["stale", "8"]);
    assert_eq!(one(&server, "extend", &[A, "1", "60000", "7"]), ["stale", "8"]);
    assert_eq!(count(&server, A).as_deref(), Some("2"));
    assert!(ttl(&server) <= 5000);
    assert_eq!(release(&server, A, "0", "9"), ["granted"]);
}

#[test]
fn a_ttl_is_never_shortened() {
    let server = RedisServer::start();
    acquire(&server, A, "1", "60000", "1");
    assert_eq!(one(&server, "extend", &[A, "1", "1000", "2"]), ["granted"]);
    assert_eq!(acquire(&server, A, "2", "1000", "3"), ["granted"]);
    assert!(ttl(&server) > 50_000);
    assert_eq!(one(&server, "extend", &[A, "2", "90000", "4"]), ["granted"]);
    assert!(ttl(&server) > 80_000);
}

#[test]
fn an_extend_makes_no_lock_and_touches_no_other_owners() {
    let server = RedisServer::start();
    assert_eq!(one(&server, "extend", &[A, "1", "5000", "1"]), ["absent"]);
    assert!(server.keys().is_empty());
    acquire(&server, B, "1", "5000", "1");
    assert_eq!(one(&server, "extend", &[A, "1", "90000", "2"])[..2], ["held", B]);
    assert!(ttl(&server) <= 5000);
}

#[test]
fn a_release_leaves_the_holds_that_remain_and_deletes_with_the_last() {
    let server = RedisServer::start();
    assert_eq!(release(&server, A, "0", "1"), ["absent"]);
    acquire(&server, A, "2", "5000", "1");
    assert_eq!(release(&server, B, "0", "2")[..2], ["held", A]);
    assert_eq!(release(&server, A, "1", "2"), ["granted"]);
    assert_eq!(count(&server, A).as_deref(), Some("1"));
    assert_eq!(release(&server, A, "0", "3"), ["granted"]);
    assert_eq!(release(&server, A, "0", "3"), ["absent"], "a repeated release finds it gone");
    assert!(server.keys().is_empty());
}

#[test]
fn only_a_full_release_is_published() {
    let server = RedisServer::start();
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let mut subscriber = connection.as_pubsub();
    subscriber.subscribe("channel").unwrap();
    subscriber.set_read_timeout(Some(crate::SOON)).unwrap();
    acquire(&server, A, "2", "5000", "1");
    release(&server, A, "1", "2");
    release(&server, B, "0", "2");
    release(&server, A, "0", "3");
    let _: i64 = server.command(&["PUBLISH", "channel", "end"]);
    let mut next = || subscriber.get_message().unwrap().get_payload::<String>().unwrap();
    assert_eq!((next(), next()), ("0".to_owned(), "end".to_owned()));
}

#[test]
fn one_call_carries_many_operations_and_each_has_its_own_reply() {
    let server = RedisServer::start();
    let _: () = server.command(&["SET", "string", "x"]);
    run(&server, "acquire", &["theirs"], &[B, "1", "5000", "1"]);
    let args: Vec<&str> = [A, "1", "5000", "1"].repeat(4);
    let replies = run(&server, "acquire", &["one", "string", "theirs", "two"], &args);
    let words: Vec<&str> = replies.iter().map(|reply| reply[0].as_str()).collect();
    assert_eq!(words, ["granted", "refused", "held", "granted"]);
    assert!(replies[1][1].starts_with("WRONGTYPE"), "{:?}", replies[1]);

    let args: Vec<&str> = [A, "0", "2", "channel", "0"].repeat(4);
    let replies = run(&server, "release", &["one", "string", "theirs", "two"], &args);
    let words: Vec<&str> = replies.iter().map(|reply| reply[0].as_str()).collect();
    assert_eq!(words, ["granted", "refused", "held", "granted"]);

    let replies = run(&server, "inspect", &["one", "string", "theirs"], &[]);
    let words: Vec<&str> = replies.iter().map(|reply| reply[0].as_str()).collect();
    assert_eq!(words, ["absent", "refused", "held"]);
    assert_eq!(server.command::<String>(&["GET", "string"]), "x");
}

#[test]
fn a_hash_that_is_not_a_lock_is_left_alone() {
    let server = RedisServer::start();
    let _: i64 = server.command(&["HSET", "k", "name", "Ada"]);
    assert!(acquire(&server, A, "1", "5000", "1")[1].starts_with("WRONGTYPE"));
    let fields: Vec<String> = (0..200).map(|i| i.to_string()).collect();
    let big: Vec<&str> = ["HSET", "k"].into_iter().chain(fields.iter().map(String::as_str)).collect();
    let _: i64 = server.command(&big);
    assert_eq!(acquire(&server, A, "1", "5000", "1")[0], "refused");
    assert_eq!(ttl(&server), -1);
}

#[test]
fn a_lock_without_expiry_is_reported_as_such() {
    let server = RedisServer::start();
    let _: i64 = server.command(&["HSET", "k", B, "1"]);
    assert_eq!(acquire(&server, A, "1", "5000", "1"), ["held", B, "1", "-1"]);
}

/// Lua does not roll back: where the TTL cannot be set, the hold must not stay.
#[test]
fn a_grant_that_cannot_expire_is_taken_back() {
    let server = RedisServer::start();
    let _: () = server.command(&["ACL", "SETUSER", "default", "-pexpire"]);
    let reply = acquire(&server, A, "1", "5000", "1");
    assert_eq!(reply[0], "refused", "{reply:?}");
    assert!(server.keys().is_empty());
}

/// A path that only reads would succeed on a replica, which votes for nobody.
#[test]
fn a_replica_gives_no_vote_even_to_the_holder() {
    let (server, replica) = (RedisServer::start(), RedisServer::start());
    acquire(&server, A, "1", "60000", "1");
    let port = server.port().to_string();
    let _: () = replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    let begun = std::time::Instant::now();
    while replica.keys().is_empty() {
        assert!(begun.elapsed() < crate::SOON, "the lock is not replicated");
    }
    for reply in [
        acquire(&replica, A, "1", "60000", "2"),
        one(&replica, "extend", &[A, "1", "1000", "2"]),
        release(&replica, A, "1", "2"),
        release(&replica, A, "0", "2"),
    ] {
        assert!(reply[0] == "refused" && reply[1].starts_with("READONLY"), "{reply:?}");
    }
}
