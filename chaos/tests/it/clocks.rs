//! Masters' clocks that jump.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::SystemTime;

use quorate_chaos::nemesis::{Clocks, What};
use quorate_chaos::{Arena, Client, Persistence};

use crate::{arena, connected, first, has, ms, reached, reaches, set, until};

/// Whether a master notices at once where its clock is: Valkey 9 does some milliseconds late.
fn is_exact(arena: &Arena) -> bool {
    let server: String = arena.masters[0].command(&["INFO", "server"]);
    !server.contains("valkey")
}

/// Checks that the first master is off by so many seconds, where it is not exact soon.
fn has_come_to(arena: &Arena, seconds: i64) {
    if !is_exact(arena) {
        until("another time", || off(arena, 0) == seconds);
    }
    assert_eq!(off(arena, 0), seconds);
}

/// How many seconds a master's clock is off.
fn off(arena: &Arena, master: usize) -> i64 {
    let (seconds, _): (i64, i64) = arena.masters[master].command(&["TIME"]);
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    ((seconds as f64 - now) / 30.0).round() as i64 * 30 // by half minutes, on a busy machine
}

#[test]
fn a_clock_is_stepped_and_put_right() {
    let mut arena = arena(Persistence::None);
    for millis in [60_000, -60_000] {
        let wound = first(What::Clocks(Clocks::Step { millis })).strike(&mut arena);
        has_come_to(&arena, millis / 1_000);
        assert_eq!(off(&arena, 1), 0);
        wound.heal(&mut arena);
        has_come_to(&arena, 0);
    }
}

/// A master and a client that comes up on one host.
#[test]
fn a_host_comes_up_with_a_clock_that_is_wrong_and_is_put_right() {
    let mut arena = arena(Persistence::Always);
    arena.clients.extend((0..2).map(|_| Client::start(|| Command::new("cat"))));
    set(&arena.masters[0], "k");
    let wound = first(What::Clocks(Clocks::Host { millis: -60_000 })).strike(&mut arena);
    assert_eq!((off(&arena, 0), off(&arena, 1)), (-60, 0));
    assert!(has(&arena.masters[0], "k"), "it started again with what it kept");
    reached(&arena, 0, 0);
    reached(&arena, 1, 1);
    assert!(!reaches(&arena, 0, 1));
    wound.heal(&mut arena);
    assert_eq!(off(&arena, 0), 0);
    reached(&arena, 0, 1);
    assert!(arena.clients[0].process().is_alive());
}

#[test]
fn a_clock_goes_to_and_fro_until_it_is_put_right() {
    let mut arena = arena(Persistence::None);
    let what = Clocks::Strobe { millis: 60_000, every: ms(5) };
    let wound = first(What::Clocks(what)).strike(&mut arena);
    let mut seen = BTreeSet::new();
    until("both times, again and again", || {
        seen.insert(off(&arena, 0));
        seen.len() == 2
    });
    assert_eq!(seen, BTreeSet::from([0, 60]));
    wound.heal(&mut arena);
    has_come_to(&arena, 0);
    assert!((0..20).all(|_| off(&arena, 0) == 0));
}

/// Ahead while a command with the word of a renewal runs, and right for all others.
#[test]
fn a_clock_is_wrong_in_renewals_until_it_is_put_right() {
    let mut arena = arena(Persistence::None);
    let mut client = connected(&arena, 1, 0);
    let mut off_in = |word: &str| -> i64 {
        let script = redis::Script::new("return redis.call('TIME')[1]");
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        let seconds: i64 = script.arg(word).invoke(&mut client).unwrap();
        ((seconds as f64 - now) / 30.0).round() as i64 * 30
    };
    assert_eq!(off_in("extend"), 0);
    let wound = first(What::Clocks(Clocks::Renewals { millis: 60_000 })).strike(&mut arena);
    // Where a master is not exact, others may have the time of a renewal, too.
    if is_exact(&arena) {
        for _ in 0..3 {
            assert_eq!((off_in("acquire"), off_in("extend"), off_in("release")), (0, 60, 0));
        }
    } else {
        until("the wrong time in renewals", || off_in("extend") == 60);
    }
    wound.heal(&mut arena);
    has_come_to(&arena, 0);
    assert_eq!(off_in("extend"), 0);
}
