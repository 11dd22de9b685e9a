//! What faults are: drawn from one family, or from several.

use quorate_testkit::{Dice, Toxic, Way};

use crate::nemesis::{Clients, Clocks, Commands, Disks, Keys, Limits, Network, Replicas, Servers, What};

pub(super) fn servers(dice: &Dice) -> What {
    What::Servers(*dice.one_of(&[Servers::Kill, Servers::Freeze]))
}

pub(super) fn failover(dice: &Dice) -> What {
    What::Servers(*dice.one_of(&[Servers::Kill, Servers::Freeze, Servers::Disconnect]))
}

pub(super) fn network(dice: &Dice) -> What {
    let way = *dice.one_of(&[Way::There, Way::Back, Way::Both]);
    let toxic = match dice.below(9) {
        0..=2 => Toxic::Blackhole,
        3 => Toxic::Latency { delay: dice.millis(1, 300), jitter: dice.millis(0, 300) },
        4 => Toxic::Bandwidth { bytes_per_second: 100 + dice.below(10_000) as u64 },
        5 => Toxic::SlowClose { delay: dice.millis(10, 2_000) },
        6 => Toxic::Cut { per_mille: 1 + dice.below(200) as u64 },
        7 => return What::Network(*dice.one_of(&[Network::Reset, Network::HalfOpen])),
        _ => Toxic::Reset,
    };
    What::Network(Network::Toxic(way, toxic))
}

pub(super) fn clients(dice: &Dice) -> What {
    What::Clients(*dice.one_of(&[Clients::Kill, Clients::Freeze]))
}

/// How far, in milliseconds, a clock is off that is set: so far that all leases seem to be over, or
/// so little that no master refuses a renewal for it (200), or no handshake the master (900).
const OFF: [i64; 8] = [-60_000, -2_000, -900, -200, 200, 900, 2_000, 60_000];

pub(super) fn clocks(dice: &Dice) -> What {
    match dice.below(4) {
        0 => What::Clocks(Clocks::Host { millis: *dice.one_of(&OFF) }),
        _ => jumps(dice),
    }
}

/// Clocks of processes that go on.
fn jumps(dice: &Dice) -> What {
    let millis = *dice.one_of(&OFF);
    match dice.below(4) {
        0 => What::Clients(Clients::Step { millis }),
        1 => What::Clocks(Clocks::Step { millis }),
        2 => What::Clocks(Clocks::Renewals { millis }),
        _ => What::Clocks(Clocks::Strobe { millis, every: dice.millis(1, 400) }),
    }
}

pub(super) fn amnesia(dice: &Dice) -> What {
    match dice.below(4) {
        0 => What::Servers(Servers::KillEmpty),
        1 => What::Servers(Servers::Kill),
        2 => What::Keys(Keys::FlushAll),
        _ => What::Keys(Keys::WipeByReplication),
    }
}

pub(super) fn replicas(dice: &Dice) -> What {
    What::Replicas(*dice.one_of(&[Replicas::Promotion, Replicas::Relapse]))
}

/// Besides, addresses that lead away. A client that comes anew when one leads back cannot know it,
/// so this is drawn where clients live.
pub(super) fn addresses(dice: &Dice) -> What {
    match dice.below(4) {
        0 | 1 => replicas(dice),
        _ => What::Replicas(Replicas::Detour { has_copy: dice.happens(500) }),
    }
}

pub(super) fn disks(dice: &Dice) -> What {
    match dice.below(3) {
        0 => What::Servers(Servers::Kill),
        _ => What::Disks(Disks::Slow { delay: dice.millis(10, 3_000) }),
    }
}

pub(super) fn commands(dice: &Dice) -> What {
    match dice.below(6) {
        0 => What::Commands(Commands::ScriptFlush),
        1 => What::Commands(Commands::ClientKill),
        2 => What::Commands(Commands::ClientPause),
        3 => What::Commands(Commands::BusyScript),
        4 => What::Limits(Limits::OutOfMemory),
        _ => What::Limits(Limits::ReadOnly),
    }
}

pub(super) fn copies(dice: &Dice) -> What {
    if dice.happens(500) { clients(dice) } else { network(dice) }
}

pub(super) fn stranger(dice: &Dice) -> What {
    match dice.below(3) {
        0 => amnesia(dice),
        1 => servers(dice),
        _ => network(dice),
    }
}

/// What keeps a master from answering.
pub(super) fn failing(dice: &Dice) -> What {
    match dice.below(3) {
        0 => What::Network(Network::partition(Way::Both)),
        _ => servers(dice),
    }
}

pub(super) fn inside(dice: &Dice) -> What {
    match dice.below(16) {
        0..=3 => servers(dice),
        4..=8 => network(dice),
        9..=12 => commands(dice),
        13 => What::Disks(Disks::Slow { delay: dice.millis(10, 3_000) }),
        _ => clients(dice),
    }
}

pub(super) fn outside(dice: &Dice) -> What {
    match dice.below(12) {
        0 => clocks(dice),
        1 => amnesia(dice),
        2 => replicas(dice),
        _ => inside(dice),
    }
}
