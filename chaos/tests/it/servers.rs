//! Masters that are killed, with each persistence, and masters that stand still.

use quorate_chaos::Persistence;
use quorate_chaos::nemesis::{Servers, What};

use crate::{arena, first, has, ms, set, tells, until};

const KILL: What = What::Servers(Servers::Kill);

/// A write, and a second one soon before the master is killed: which of them are there when it is
/// back.
fn kept(persistence: Persistence) -> (bool, bool) {
    let mut arena = arena(persistence);
    let before = arena.masters[0].process().run_id();
    set(&arena.masters[0], "early");
    if persistence == Persistence::Dump {
        until("a dump", || tells(&arena.masters[0], "rdb_changes_since_last_save:0"));
        until("its end", || tells(&arena.masters[0], "rdb_bgsave_in_progress:0"));
    }
    set(&arena.masters[0], "late");
    if persistence == Persistence::EverySecond {
        // Redis puts the write off while the disk is busy with what came before.
        until("its write", || tells(&arena.masters[0], "aof_buffer_length:0"));
    }
    let wound = first(KILL).strike(&mut arena);
    assert!(std::net::TcpStream::connect(arena.masters[0].address()).is_err());
    set(&arena.masters[1], "elsewhere");
    wound.heal(&mut arena);
    assert_ne!(arena.masters[0].process().run_id(), before);
    (has(&arena.masters[0], "early"), has(&arena.masters[0], "late"))
}

#[test]
fn a_master_that_is_killed_has_what_it_persisted() {
    let kept = Persistence::ALL.map(kept);
    assert_eq!(kept, [(false, false), (true, false), (true, true), (true, true)], "{:?}", Persistence::ALL);
}

#[test]
fn a_master_that_is_killed_and_restarted_empty_has_nothing() {
    let mut arena = arena(Persistence::Always);
    set(&arena.masters[0], "k");
    first(What::Servers(Servers::KillEmpty)).strike(&mut arena).heal(&mut arena);
    assert!(!has(&arena.masters[0], "k"));
}

#[test]
fn a_frozen_master_does_not_answer_until_it_is_healed() {
    let mut arena = arena(Persistence::None);
    crate::reached(&arena, 0, 0);
    let wound = first(What::Servers(Servers::Freeze)).strike(&mut arena);
    assert!(!crate::reaches(&arena, 0, 0));
    crate::reached(&arena, 0, 1);
    std::thread::sleep(ms(10));
    wound.heal(&mut arena);
    until("an answer", || crate::reaches(&arena, 0, 0));
}
