//! Masters that lose their keys while they live.

use quorate_chaos::Persistence;
use quorate_chaos::nemesis::{Keys, What};

use crate::{arena, first, has, set};

#[test]
fn keys_are_lost_and_the_process_stays() {
    let mut arena = arena(Persistence::Always);
    for what in [Keys::FlushAll, Keys::WipeByReplication] {
        let before = arena.masters[0].process().run_id();
        for key in ["quorate:{l}", "quorate:master"] {
            set(&arena.masters[0], key);
            set(&arena.masters[1], key);
        }
        first(What::Keys(what)).strike(&mut arena).heal(&mut arena);
        assert!(!has(&arena.masters[0], "quorate:{l}") && has(&arena.masters[1], "quorate:{l}"), "{what}");
        assert!(!has(&arena.masters[0], "quorate:master"), "{what}");
        assert_eq!(arena.masters[0].process().run_id(), before);
    }
}
