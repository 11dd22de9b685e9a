//! Masters that refuse writes.

use quorate_chaos::Persistence;
use quorate_chaos::nemesis::{Limits, What};

use crate::{arena, first, has, set};

#[test]
fn writes_are_refused_until_it_is_healed_and_keys_stay() {
    let mut arena = arena(Persistence::None);
    set(&arena.masters[0], "before");
    for (what, code) in [(Limits::OutOfMemory, "OOM"), (Limits::ReadOnly, "READONLY")] {
        let wound = first(What::Limits(what)).strike(&mut arena);
        let error = arena.masters[0].try_command::<()>(&["SET", "k", "v"]).unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
        set(&arena.masters[1], "k");
        wound.heal(&mut arena);
        set(&arena.masters[0], "k");
        assert!(has(&arena.masters[0], "before"), "{what}");
    }
}
