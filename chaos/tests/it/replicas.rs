//! Other servers that take masters' places.

use quorate_chaos::Persistence;
use quorate_chaos::nemesis::{Replicas, What};

use crate::{arena, connected, first, has, reached, set};

#[test]
fn a_replica_that_lags_takes_over_without_what_came_last() {
    for persistence in [Persistence::None, Persistence::Always] {
        let mut arena = arena(persistence);
        let before = (arena.masters[0].process().run_id(), arena.masters[0].address());
        set(&arena.masters[0], "early");
        let wound = first(What::Replicas(Replicas::Promotion)).strike(&mut arena);
        set(&arena.masters[0], "late");
        let mut old = connected(&arena, 0, 0);
        assert!(redis::cmd("EXISTS").arg("late").query::<bool>(&mut old).unwrap());
        wound.heal(&mut arena);
        assert!(redis::cmd("PING").exec(&mut old).is_err(), "clients' connections break");
        let mut new = connected(&arena, 0, 0);
        let mut exists = |key: &str| redis::cmd("EXISTS").arg(key).query::<bool>(&mut new).unwrap();
        assert!(exists("early") && !exists("late"));
        assert_ne!((arena.masters[0].process().run_id(), arena.masters[0].address()), before);
        set(&arena.masters[0], "k");
        arena.masters[0].restart();
        reached(&arena, 1, 0);
        assert_eq!(has(&arena.masters[0], "k"), persistence == Persistence::Always, "it persists as it did");
    }
}

#[test]
fn an_address_that_leads_to_another_server_leads_back_to_the_same_master() {
    for has_copy in [false, true] {
        let mut arena = arena(Persistence::Always);
        let run_id = arena.masters[0].process().run_id();
        set(&arena.masters[0], "early");
        let wound = first(What::Replicas(Replicas::Detour { has_copy })).strike(&mut arena);
        let mut away = connected(&arena, 1, 0);
        assert_eq!(redis::cmd("EXISTS").arg("early").query::<bool>(&mut away).unwrap(), has_copy);
        redis::cmd("SET").arg("away").arg("v").exec(&mut away).unwrap();
        wound.heal(&mut arena);
        assert!(redis::cmd("PING").exec(&mut away).is_err(), "clients' connections break");
        let mut back = connected(&arena, 1, 0);
        let mut exists = |key: &str| redis::cmd("EXISTS").arg(key).query::<bool>(&mut back).unwrap();
        assert!(exists("early") && !exists("away"));
        assert_eq!(arena.masters[0].process().run_id(), run_id, "it went on");
    }
}
