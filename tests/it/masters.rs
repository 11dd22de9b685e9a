//! Connections to masters: how they are reached, lost, and found again.

use std::net::TcpListener;
use std::time::Instant;

use quorate::{Error, MasterStatus, Outcome, Redlock, Refusal};
use quorate_testkit::{Masters, RedisServer, eventually};

use crate::{PATIENT, SOON, TTL, all_new, answering, builder, ms, patient};

fn only(url: impl Into<String>) -> Redlock {
    crate::begin().master(url.into()).ttl(TTL).timeout(PATIENT).build().unwrap()
}

async fn works(redlock: &Redlock) {
    redlock.lock("l").acquire().await.unwrap().release().await.unwrap();
}

fn clients(server: &RedisServer) -> usize {
    let list: String = server.command(&["CLIENT", "LIST"]);
    list.lines().filter(|line| line.contains("lib-name=quorate")).count()
}

#[tokio::test]
async fn nothing_is_connected_before_the_first_use_and_one_connection_serves_all() {
    let masters = Masters::start(1);
    let connected = || -> u32 {
        let info: String = masters[0].command(&["INFO", "clients"]);
        let line = info.lines().find_map(|line| line.strip_prefix("connected_clients:")).unwrap();
        line.trim().parse::<u32>().unwrap() - 1 // the one that asks
    };
    let redlock = all_new(&masters).build().unwrap();
    assert_eq!(connected(), 0);
    let locks: Vec<_> = (0..100).map(|i| redlock.lock(format!("l{i}"))).collect();
    let guards = futures::future::join_all(locks.iter().map(quorate::Lock::acquire)).await;
    assert!(guards.iter().all(Result::is_ok));
    assert_eq!(connected(), 1);
    drop((guards, locks, redlock));
    eventually(SOON, || if connected() == 0 { Ok(()) } else { Err("still connected") }).await;
}

#[tokio::test]
async fn a_unix_socket_is_a_master_too() {
    let server = RedisServer::start_with(&["--unixsocket", "{dir}/s.sock"]);
    let path = server.folder().join("s.sock");
    works(&only(format!("unix://{}", path.display()))).await;
    works(&only(format!("valkey+unix://{}?db=2", path.display()))).await;
}

#[tokio::test]
async fn user_password_and_database_are_used() {
    let server = RedisServer::start();
    let _: () =
        server.command(&["ACL", "SETUSER", "bob", "on", ">s:cr@t/", "~quorate:*", "&quorate:*", "+@all"]);
    let url = format!("valkey://bob:s%3Acr%40t%2F@127.0.0.1:{}/3", server.port());
    let redlock = only(url);
    let guard = redlock.lock("l").acquire().await.unwrap();
    assert!(server.keys().is_empty(), "it is in database 3");
    let keyspace: String = server.command(&["INFO", "keyspace"]);
    assert!(keyspace.contains("db3:keys=3"), "{keyspace}");
    guard.release().await.unwrap();

    let wrong = only(format!("redis://bob:wrong@127.0.0.1:{}", server.port()));
    let error = wrong.lock("l").try_acquire().await.unwrap_err();
    assert!(matches!(error, Error::Refused { reason: Refusal::Password, .. }), "{error}");
    assert!(error.votes().to_string().contains("WRONGPASS"), "{error:#}");
}

/// The rights that a user needs, as docs/OPERATIONS.md lists them.
#[tokio::test]
async fn the_documented_rights_are_enough() {
    let server = RedisServer::start();
    let redlock = only(crate::doctor::with_rights(&server));
    let guard = redlock.lock("l").acquire().await.unwrap();
    guard.extend(TTL).await.unwrap();
    assert!(redlock.lock("l").inspect().await.unwrap().holder().is_some());
    redlock.lock("l").force_release(&guard.owner()).await.unwrap();
    let log: Vec<redis::Value> = server.command(&["ACL", "LOG"]);
    assert!(log.is_empty(), "something was denied: {log:?}");
}

/// It accepts connections, and never says a word.
#[tokio::test]
async fn a_silent_endpoint_costs_its_time_out_once_and_nothing_from_then_on() {
    let timeout = PATIENT; // no stall of this machine is as long
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let redlock = crate::begin().master(url).timeout(timeout).build().unwrap();
    for i in 0..4 {
        let begun = Instant::now();
        let error = redlock.lock("l").try_acquire().await.unwrap_err();
        assert!(matches!(error.votes()[0].outcome, Outcome::Unreachable(_)), "{error}");
        assert_eq!(begun.elapsed() >= timeout, i == 0, "call {i} took {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn a_master_that_comes_back_takes_part_again() {
    let mut masters = Masters::start(3);
    let redlock = all_new(&masters).build().unwrap();
    works(&redlock).await;
    for i in 0..3 {
        masters[i].kill();
        works(&redlock).await;
        masters[i].restart();
        answering(&redlock, 3).await;
    }
}

#[tokio::test]
async fn a_master_tells_whether_it_is_reachable_since_when_and_how_fast() {
    let mut masters = Masters::start(3);
    let redlock = patient(&masters);
    let unknown = |status: &MasterStatus| {
        (status.reachable, status.unchanged_for, status.last_round_trip) == (None, None, None)
    };
    assert!(redlock.master_status().iter().all(unknown));
    works(&redlock).await;
    answering(&redlock, 3).await;
    let begun = Instant::now();
    for status in redlock.master_status() {
        let took = status.last_round_trip.unwrap();
        assert!(ms(0) < took && took < ms(1_000), "{took:?}");
        assert_eq!(status.reachable, Some(true));
    }

    masters[1].kill();
    let lost = || redlock.master_status()[1].clone();
    eventually(SOON, || if lost().reachable == Some(false) { Ok(()) } else { Err(lost()) }).await;
    let first = lost().unchanged_for.unwrap();
    assert!(first <= begun.elapsed(), "{first:?}");
    tokio::time::sleep(ms(50)).await; // it tries to connect meanwhile
    works(&redlock).await;
    assert!(lost().unchanged_for.unwrap() >= first + ms(50) && lost().reachable == Some(false));
    let lost_for = lost().unchanged_for.unwrap();
    assert!(redlock.master_status()[0].unchanged_for.unwrap() > lost_for);

    masters[1].restart();
    answering(&redlock, 3).await;
    let back = lost();
    assert_eq!(back.reachable, Some(true));
    assert!(back.unchanged_for.unwrap() < begun.elapsed() - ms(50), "{back:?}");
}

/// An idle connection that the server closes (its `timeout`, say) is opened again before anybody
/// needs it.
#[tokio::test]
async fn a_connection_closed_while_idle_costs_no_vote() {
    let masters = Masters::start(3);
    let redlock = patient(&masters);
    works(&redlock).await;
    tokio::time::sleep(ms(1_100)).await; // so that the connections count as sound
    for server in masters.iter() {
        let _: i64 = server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    }
    let guard = redlock.lock("l").wait(SOON).acquire().await.unwrap();
    let seen = redlock.lock("l").inspect().await.unwrap();
    assert_eq!(seen.answered(), 3, "{:?}", seen.votes());
    drop(guard);
}

#[tokio::test]
async fn connections_are_named_and_end_with_the_client() {
    let server = RedisServer::start();
    let redlock = only(server.url());
    works(&redlock).await;
    let list: String = server.command(&["CLIENT", "LIST"]);
    // CLIENT SETINFO came with Redis 7.2; before it, the connection has no name.
    let version: String = server.command(&["INFO", "server"]);
    if !version.contains("redis_version:7.0") {
        assert_eq!(clients(&server), 1, "{list}");
    }
    drop(redlock);
    eventually(SOON, || if clients(&server) == 0 { Ok(()) } else { Err("still there") }).await;
}

/// The time-out of one client does not depend on how many callers it has: they do not queue behind
/// each other.
#[tokio::test]
async fn many_callers_of_a_frozen_majority_all_hear_in_time() {
    let timeout = PATIENT;
    let masters = Masters::start(3);
    let redlock = builder(&masters).timeout(timeout).build().unwrap();
    works(&redlock).await;
    masters[0].freeze();
    masters[1].freeze();
    let begun = Instant::now();
    let locks: Vec<_> = (0..200).map(|i| redlock.lock(format!("l{i}"))).collect();
    let answers = futures::future::join_all(locks.iter().map(quorate::Lock::try_acquire)).await;
    assert!(answers.iter().all(Result::is_err));
    assert!(begun.elapsed() < timeout * 3, "they queued: {:?}", begun.elapsed());
    masters[0].thaw();
    masters[1].thaw();
    eventually(SOON, || masters.empty()).await;
}
