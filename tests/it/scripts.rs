//! The Lua scripts by themselves: what each says and writes, once and again.

use std::path::Path;

use quorate_testkit::RedisServer;
use redis::Value;

const A: &str = "00000000-0000-0000-0000-00000000000a:1";
const B: &str = "00000000-0000-0000-0000-00000000000b:1";

/// The verbs' files, in the order in which the library puts them together.
const FILES: [&str; 9] =
    ["lock", "acquire", "queue", "extend", "release", "withdraw", "transfer", "inspect", "run"];

/// Runs a script as the library does.
fn call(server: &RedisServer, keys: &[&str], args: &[&str]) -> Vec<Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/lua/reentrant");
    let read = |name: &&str| std::fs::read_to_string(folder.join(format!("{name}.lua"))).unwrap();
    let source: String = FILES.iter().map(read).collect();
    let count = keys.len().to_string();
    let words: Vec<&str> = ["EVAL", &source, &count]
        .into_iter()
        .chain(keys.iter().copied())
        .chain(args.iter().copied())
        .collect();
    let replies: Vec<Value> = server.command(&words);
    let text = |value: Value| match value {
        Value::Int(number) => number.to_string(),
        other => redis::from_redis_value(other).unwrap(),
    };
    let reply = |value: Value| match value {
        Value::Int(1) => vec!["granted".to_owned()],
        Value::Int(0) => vec!["absent".to_owned()],
        Value::Array(words) => words.into_iter().map(text).collect(),
        other => panic!("{other:?}"),
    };
    replies.into_iter().map(reply).collect()
}

/// Runs one operation.
fn run(server: &RedisServer, verb: &str, keys: &[&str], args: &[&str]) -> Vec<String> {
    call(server, keys, &[&[verb], args].concat()).remove(0)
}

fn extend(server: &RedisServer, args: &[&str]) -> Vec<String> {
    run(server, "extend", &["k"], args)
}

fn acquire(server: &RedisServer, owner: &str, count: &str, ttl: &str, round: &str) -> Vec<String> {
    run(server, "acquire", &["k"], &[owner, count, ttl, round])
}

fn release(server: &RedisServer, owner: &str, count: &str, round: &str) -> Vec<String> {
    run(server, "release", &["k", "q"], &[owner, count, round, "wake:"])
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
    assert_eq!(extend(&server, &[A, "1", "60000", "7"]), ["stale", "8"]);
    assert_eq!(count(&server, A).as_deref(), Some("2"));
    assert!(ttl(&server) <= 5000);
    assert_eq!(release(&server, A, "0", "9"), ["granted"]);
}

#[test]
fn a_ttl_is_never_shortened() {
    let server = RedisServer::start();
    acquire(&server, A, "1", "60000", "1");
    assert_eq!(extend(&server, &[A, "1", "1000", "2"]), ["granted"]);
    assert_eq!(acquire(&server, A, "2", "1000", "3"), ["granted"]);
    assert!(ttl(&server) > 50_000);
    assert_eq!(extend(&server, &[A, "2", "90000", "4"]), ["granted"]);
    assert!(ttl(&server) > 80_000);
}

#[test]
fn an_extend_makes_no_lock_and_touches_no_other_owners() {
    let server = RedisServer::start();
    assert_eq!(extend(&server, &[A, "1", "5000", "1"]), ["absent"]);
    assert!(server.keys().is_empty());
    acquire(&server, B, "1", "5000", "1");
    assert_eq!(extend(&server, &[A, "1", "90000", "2"])[..2], ["held", B]);
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

/// Takes a place in the queue, having waited for so many microseconds.
fn stand(server: &RedisServer, owner: &str, before: &str, waited: &str) -> Vec<String> {
    let time: Vec<u64> = server.command(&["TIME"]);
    let since = time[0] * 1_000_000 + time[1] - waited.parse::<u64>().unwrap();
    let args = [owner, "1", "5000", "1", before, owner, &since.to_string(), waited];
    run(server, "queue", &["k", "q"], &args)
}

fn queue(server: &RedisServer) -> Vec<String> {
    server.command(&["ZRANGE", "q", "0", "-1"])
}

const C: &str = "00000000-0000-0000-0000-00000000000c:77";

#[test]
fn only_a_full_release_wakes_and_only_the_first_whose_client_listens() {
    let server = RedisServer::start();
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_connection().unwrap();
    let mut subscriber = connection.as_pubsub();
    subscriber.subscribe("wake:00000000-0000-0000-0000-00000000000c").unwrap();
    subscriber.set_read_timeout(Some(crate::SOON)).unwrap();
    let dead = "00000000-0000-0000-0000-00000000000d:5";
    acquire(&server, A, "2", "5000", "1");
    stand(&server, C, "", "200000");
    assert_eq!(stand(&server, dead, "", "300000")[4], "0", "it has waited for longer");
    assert_eq!(stand(&server, B, "", "100000")[4], "2");
    assert_eq!(queue(&server), [dead, C, B]);
    release(&server, A, "1", "2");
    assert_eq!(queue(&server).len(), 3);
    release(&server, A, "0", "3");
    assert_eq!(queue(&server), [B], "the dead one was skipped, and the next one woken");
    let woken = subscriber.get_message().unwrap();
    assert_eq!(woken.get_payload::<String>().unwrap(), "77");
}

#[test]
fn a_place_is_taken_over_and_given_up() {
    let server = RedisServer::start();
    acquire(&server, A, "1", "5000", "1");
    stand(&server, B, "", "200000");
    stand(&server, C, B, "200000");
    assert_eq!(queue(&server), [C], "the next attempt of one waiter takes over its place");
    let life: i64 = server.command(&["PTTL", "q"]);
    assert!((100_000..=120_000).contains(&life), "a queue expires: {life}");
    release(&server, A, "0", "2"); // C's client is not there
    stand(&server, C, "", "200000");
    assert_eq!(server.keys(), ["k"], "a grant leaves no place");
    stand(&server, B, "", "200000");
    assert_eq!(release(&server, B, "0", "2")[0], "held");
    assert!(queue(&server).is_empty(), "whoever leaves");
    stand(&server, B, "", "200000");
    acquire(&server, A, "1", "5000", "3");
    run(&server, "queue", &["k", "q"], &[A, "1", "5000", "3", B, "", "", ""]);
    assert!(queue(&server).is_empty(), "the last attempt takes no place");
}

#[test]
fn a_withdrawal_takes_a_place_and_wakes_nobody() {
    let server = RedisServer::start();
    acquire(&server, A, "1", "5000", "1");
    stand(&server, B, "", "200000");
    assert_eq!(run(&server, "withdraw", &["k", "q"], &[A, "0", "2", A, "0", "1000"]), ["granted"]);
    assert_eq!(queue(&server), [B, A]);
}

/// Each master has the same order, whatever its own clock says; and a clock that is wrong buys no place ahead.
#[test]
fn the_order_is_by_the_waiters_own_time_within_a_band() {
    let server = RedisServer::start();
    acquire(&server, A, "1", "5000", "1");
    let time: Vec<u64> = server.command(&["TIME"]);
    let now = time[0] * 1_000_000 + time[1];
    for (owner, since) in [(B, now - 3_600_000_000), (C, now - 300_000)] {
        let args = [owner, "1", "5000", "1", "", owner, &since.to_string(), "0"];
        run(&server, "queue", &["k", "q"], &args);
    }
    assert_eq!(queue(&server), [C, B]);
    let score: String = server.command(&["ZSCORE", "q", C]);
    assert_eq!(score.parse::<f64>().unwrap() as u64, now - 300_000, "as it said");
}

#[test]
fn a_full_queue_gives_no_place() {
    let server = RedisServer::start();
    acquire(&server, A, "1", "5000", "1");
    let members: Vec<String> = (0..1024).flat_map(|i| [i.to_string(), format!("{i}:1")]).collect();
    let full: Vec<&str> = ["ZADD", "q"].into_iter().chain(members.iter().map(String::as_str)).collect();
    let _: i64 = server.command(&full);
    assert_eq!(stand(&server, B, "", "0")[4], "-1");
    assert_eq!(queue(&server).len(), 1024);
}

#[test]
fn one_call_carries_many_operations_and_each_has_its_own_reply() {
    let server = RedisServer::start();
    let _: () = server.command(&["SET", "string", "x"]);
    run(&server, "acquire", &["theirs"], &[B, "1", "5000", "1"]);
    let acquire = ["acquire", A, "1", "5000", "1"];
    let release = ["release", A, "0", "2", "wake:"];
    let queue = ["queue", A, "1", "5000", "1", "", "", "", ""];
    let keys = ["one", "string", "theirs", "two", "q", "one", "q", "theirs", "absent", "one"];
    let args = [
        &acquire[..],
        &acquire,
        &acquire,
        &queue,
        &release,
        &["inspect"],
        &["extend", A, "1", "5000", "3"],
        &["inspect"],
    ];
    let replies = call(&server, &keys, &args.concat());
    let words: Vec<&str> = replies.iter().map(|reply| reply[0].as_str()).collect();
    let wanted = ["granted", "refused", "held", "granted", "granted", "held", "absent", "absent"];
    assert_eq!(words, wanted);
    assert!(replies[1][1].starts_with("WRONGTYPE"), "{:?}", replies[1]);
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
        extend(&replica, &[A, "1", "1000", "2"]),
        release(&replica, A, "1", "2"),
        release(&replica, A, "0", "2"),
    ] {
        assert!(reply[0] == "refused" && reply[1].starts_with("READONLY"), "{reply:?}");
    }
}

#[test]
fn a_transfer_renames_the_owner_once_and_never_shortens() {
    let server = RedisServer::start();
    let transfer = |to: &str, ttl: &str, round: &str, from: &str| {
        run(&server, "transfer", &["k"], &[to, "1", ttl, round, from])
    };
    assert_eq!(transfer(B, "5000", "1", A), ["absent"]);
    assert!(server.keys().is_empty(), "it makes no lock");
    acquire(&server, A, "1", "60000", "9");
    assert_eq!(transfer(B, "5000", "1", C)[..2], ["held", A]);
    for _ in 0..2 {
        assert_eq!(transfer(B, "5000", "1", A), ["granted"], "also when it runs again");
        assert_eq!((count(&server, A), count(&server, B).as_deref()), (None, Some("1")));
        assert!(ttl(&server) > 50_000);
    }
    assert_eq!(transfer(C, "5000", "1", A)[..2], ["held", B], "who had it before cannot give it away");
    assert_eq!(release(&server, A, "0", "10")[..2], ["held", B]);
    assert_eq!(transfer(B, "90000", "2", A), ["granted"]);
    assert!(ttl(&server) > 80_000);
    assert_eq!(transfer(B, "90000", "1", A), ["stale", "2"]);
}
