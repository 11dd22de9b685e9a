//! Masters' disks that are slow.

use std::time::Instant;

use quorate_chaos::nemesis::{Disks, What};
use quorate_chaos::{Master, Persistence};

use crate::{arena, first, ms, set};

#[test]
fn writes_wait_for_a_slow_disk_until_it_is_healed() {
    let mut arena = arena(Persistence::Always);
    let wound = first(What::Disks(Disks::Slow { delay: ms(200) })).strike(&mut arena);
    let write = |server: &Master| {
        let begun = Instant::now();
        set(server, "k");
        begun.elapsed()
    };
    assert!(write(&arena.masters[0]) >= ms(200));
    assert!((0..10).any(|_| write(&arena.masters[1]) < ms(200)));
    wound.heal(&mut arena);
    assert!((0..10).any(|_| write(&arena.masters[0]) < ms(200)));
}
