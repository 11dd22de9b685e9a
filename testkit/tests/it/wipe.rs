//! How real servers lose their keys, and how they keep them.

use quorate_testkit::RedisServer;

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

fn with_keys(options: &[&str]) -> RedisServer {
    let server = RedisServer::start_with(options);
    let _: () = server.command(&["MSET", "a", "1", "b", "2"]);
    server
}

#[test]
fn a_key_is_evicted_and_all_are_wiped() {
    let server = with_keys(&[]);
    assert!(server.evict("a"));
    assert!(!server.evict("a"));
    assert_eq!(server.keys(), ["b"]);
    server.wipe();
    assert!(server.keys().is_empty());
}

#[test]
fn a_durable_server_loses_its_keys_only_if_it_is_restarted_empty() {
    let mut server = with_keys(&DURABLE);
    let before = server.run_id();
    server.restart();
    assert_ne!(server.run_id(), before);
    assert_eq!(server.keys().len(), 2);
    server.restart_empty();
    assert!(server.keys().is_empty());
    let _: () = server.command(&["SET", "c", "3"]);
    server.restart();
    assert_eq!(server.keys(), ["c"]);
}

#[test]
fn a_wipe_by_replication_takes_the_keys_and_leaves_the_run_id() {
    for options in [&[][..], &DURABLE] {
        let mut server = with_keys(options);
        let before = server.run_id();
        server.wipe_by_replication();
        assert_eq!(server.run_id(), before);
        assert!(server.keys().is_empty());
        server.restart();
        assert!(server.keys().is_empty(), "they were on its disk");
        server.wipe_by_replication();
        let _: () = server.command(&["SET", "c", "3"]); // it is a master
    }
}
