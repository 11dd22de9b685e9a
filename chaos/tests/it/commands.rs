//! What an administrator does to masters.

use std::time::Instant;

use quorate_chaos::nemesis::{Commands, What};
use quorate_chaos::{Arena, Persistence};

use crate::{A_WHILE, arena, connected, first, has, reached, until};

fn strike(arena: &mut Arena, what: Commands) -> quorate_chaos::nemesis::Wound {
    first(What::Commands(what)).strike(arena)
}

#[test]
fn scripts_are_forgotten() {
    let mut arena = arena(Persistence::None);
    let script: String = arena.masters[0].command(&["SCRIPT", "LOAD", "return 1"]);
    let known = |arena: &Arena| arena.masters[0].command::<(bool,)>(&["SCRIPT", "EXISTS", &script]).0;
    assert!(known(&arena));
    strike(&mut arena, Commands::ScriptFlush).heal(&mut arena);
    assert!(!known(&arena));
}

#[test]
fn connections_are_closed_those_that_listen_too() {
    let mut arena = arena(Persistence::None);
    let mut normal = connected(&arena, 0, 0);
    let mut listening = connected(&arena, 0, 0);
    redis::cmd("SUBSCRIBE").arg("c").exec(&mut listening).unwrap();
    strike(&mut arena, Commands::ClientKill).heal(&mut arena);
    for connection in [&mut normal, &mut listening] {
        let error = redis::cmd("PING").exec(connection).unwrap_err();
        assert!(error.is_connection_dropped() && !error.is_timeout(), "{error}");
    }
    reached(&arena, 0, 0);
}

#[test]
fn clients_are_paused_until_it_is_healed() {
    let mut arena = arena(Persistence::None);
    let wound = strike(&mut arena, Commands::ClientPause);
    let mut connection = connected(&arena, 0, 0);
    connection.set_read_timeout(Some(A_WHILE)).unwrap();
    let begun = Instant::now();
    assert!(redis::cmd("SET").arg("k").arg("v").exec(&mut connection).unwrap_err().is_timeout());
    assert!(begun.elapsed() >= A_WHILE && !has(&arena.masters[0], "k"));
    wound.heal(&mut arena);
    let _: () = arena.masters[0].command(&["SET", "k", "v"]);
}

#[test]
fn a_master_is_busy_with_a_script_until_it_is_healed() {
    let mut arena = arena(Persistence::None);
    let threshold = |arena: &Arena| -> Vec<String> {
        arena.masters[0].command(&["CONFIG", "GET", "busy-reply-threshold"])
    };
    let before = threshold(&arena);
    for _ in 0..2 {
        let wound = strike(&mut arena, Commands::BusyScript);
        let error = arena.masters[0].try_command::<()>(&["SET", "k", "v"]).unwrap_err();
        assert_eq!(error.code(), Some("BUSY"), "{error}");
        wound.heal(&mut arena);
        until("its end", || arena.masters[0].try_command::<()>(&["SET", "k", "v"]).is_ok());
        assert_eq!(threshold(&arena), before);
    }
}
