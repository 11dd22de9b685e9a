//! Every fault does what it says on real servers, and is healed; histories are read as they were
//! written; nothing is found of Quorate's locks, and of locks that are wrong what is wrong with
//! them.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(clippy::disallowed_methods, reason = "these tests bound their waits by the wall clock")]

mod availability;
mod clients;
mod clocks;
mod commands;
mod compose;
mod controls;
mod disks;
mod history;
mod keys;
mod lock_set;
mod members;
mod network;
mod plan;
mod refusals;
mod replicas;
mod scenarios;
mod servers;
mod stage;
mod votes;
mod workload;

use std::time::Duration;

use quorate_chaos::nemesis::{Fault, What};
use quorate_chaos::{Arena, Master, Persistence};
use quorate_testkit::eventually_blocking;

const SOON: Duration = Duration::from_secs(20);

/// What does not come within this does not come by itself.
const A_WHILE: Duration = Duration::from_millis(200);

const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// Two masters, and the ways of two clients.
fn arena(persistence: Persistence) -> Arena {
    Arena::start(2, 2, persistence, 1)
}

/// A fault of the first master, and of the first client.
fn first(what: What) -> Fault {
    Fault { what, masters: vec![0], clients: vec![0] }
}

fn set(server: &Master, key: &str) {
    server.command(&["SET", key, "v"])
}

fn has(server: &Master, key: &str) -> bool {
    server.command(&["EXISTS", key])
}

/// What a server says of itself.
fn tells(server: &Master, line: &str) -> bool {
    let info: String = server.command(&["INFO"]);
    info.lines().any(|found| found == line)
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    eventually_blocking(SOON, || if condition() { Ok(()) } else { Err(what.to_owned()) });
}

/// A connection of a client's, as it reaches a master.
fn connect(arena: &Arena, client: usize, master: usize) -> redis::RedisResult<redis::Connection> {
    let connection =
        redis::Client::open(&*arena.urls(client)[master])?.get_connection_with_timeout(A_WHILE)?;
    connection.set_read_timeout(Some(A_WHILE))?;
    Ok(connection)
}

/// The same, on a machine that may take longer for it now and then; it waits for answers as long as
/// any test does.
fn connected(arena: &Arena, client: usize, master: usize) -> redis::Connection {
    let connect = || connect(arena, client, master).map_err(|error| error.to_string());
    let connection = eventually_blocking(SOON, connect);
    connection.set_read_timeout(Some(SOON)).unwrap();
    connection
}

/// Waits until a client reaches a master.
fn reached(arena: &Arena, client: usize, master: usize) {
    until("an answer", || reaches(arena, client, master));
}

/// Whether a client reaches a master, on a connection of its own, within a while.
fn reaches(arena: &Arena, client: usize, master: usize) -> bool {
    connect(arena, client, master).and_then(|mut connection| redis::cmd("PING").exec(&mut connection)).is_ok()
}
