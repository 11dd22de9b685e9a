//! What happens between some clients and some masters, and not between others.

use std::time::Instant;

use quorate_chaos::Persistence;
use quorate_chaos::nemesis::{Network, What};
use quorate_testkit::{Toxic, Way};
use redis::Connection;

use crate::{A_WHILE, arena, connected, first, has, ms, reached, reaches, tells, until};

fn answers(connection: &mut Connection) -> bool {
    redis::cmd("PING").exec(connection).is_ok()
}

#[test]
fn a_partition_is_between_those_that_it_strikes() {
    let mut arena = arena(Persistence::None);
    for way in [Way::There, Way::Back, Way::Both] {
        let wound = first(What::Network(Network::partition(way))).strike(&mut arena);
        assert!(!reaches(&arena, 0, 0), "{way:?}");
        for (client, master) in [(0, 1), (1, 0), (1, 1)] {
            reached(&arena, client, master);
        }
        wound.heal(&mut arena);
        reached(&arena, 0, 0);
    }
}

#[test]
fn over_a_partition_one_way_commands_run_and_nobody_hears_of_it() {
    let mut arena = arena(Persistence::None);
    let mut connection = connected(&arena, 0, 0);
    connection.set_read_timeout(Some(A_WHILE)).unwrap();
    let wound = first(What::Network(Network::partition(Way::Back))).strike(&mut arena);
    assert!(redis::cmd("SET").arg("k").arg("v").exec(&mut connection).unwrap_err().is_timeout());
    until("the write", || has(&arena.masters[0], "k"));
    wound.heal(&mut arena);
}

#[test]
fn a_way_is_slow_until_it_is_healed() {
    let mut arena = arena(Persistence::None);
    let mut connection = connected(&arena, 0, 0);
    let slow = Toxic::Latency { delay: ms(80), jitter: ms(0) };
    let wound = first(What::Network(Network::Toxic(Way::Both, slow))).strike(&mut arena);
    let mut trip = || {
        let begun = Instant::now();
        assert!(answers(&mut connection));
        begun.elapsed()
    };
    assert!(trip() >= ms(160));
    wound.heal(&mut arena);
    assert!((0..10).any(|_| trip() < ms(80)));
}

#[test]
fn connections_are_reset_once() {
    let mut arena = arena(Persistence::None);
    let (mut struck, mut other) = (connected(&arena, 0, 0), connected(&arena, 1, 0));
    first(What::Network(Network::Reset)).strike(&mut arena).heal(&mut arena);
    assert!(!answers(&mut struck) && answers(&mut other));
    reached(&arena, 0, 0);
}

#[test]
fn a_master_keeps_connections_that_nobody_has_until_it_is_healed() {
    let mut arena = arena(Persistence::None);
    let mut connection = connected(&arena, 0, 0);
    let wound = first(What::Network(Network::HalfOpen)).strike(&mut arena);
    connection.set_read_timeout(Some(A_WHILE)).unwrap();
    assert!(!answers(&mut connection));
    reached(&arena, 0, 1);
    drop(connection);
    std::thread::sleep(A_WHILE);
    assert!(tells(&arena.masters[0], "connected_clients:2"), "it, and this question");
    wound.heal(&mut arena);
    until("it to notice", || tells(&arena.masters[0], "connected_clients:1"));
}
