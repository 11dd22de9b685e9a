//! A model of the fencing tokens: every order in which a few attempts and three masters can do what they do, under lost,
//! late and repeated messages, holds that vanish at any instant, and masters that forget.
//!
//! The protocol has to hold in each profile (`profiles.rs`), and each broken variant of it has to be found broken
//! (`variants.rs`), for a model that finds nothing proves nothing. `master.rs` and `client.rs` are the rules, `world.rs` is
//! what may happen. These are the rules of today's layout, a key and a record a name; `one_hash/` walks through those of the
//! next one at random.
//!
//! ```sh
//! cargo test --release --test model -- --nocapture                            # with the numbers of states
//! QUORATE_TRACES=1 cargo test --release --test model broken -- --nocapture --test-threads 1   # the ways to what breaks
//! cargo test --release --test model -- --ignored --nocapture --test-threads 1 # more of it: some minutes, and 3 GB
//! ```
//!
//! It does not know what time it is more exactly than by ticks, and nothing of hand-overs and re-entry. That leases exclude
//! each other is not its business either: holds vanish at any instant here, and tokens have to be right all the same.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails may panic")]

mod client;
mod master;
mod one_hash;
mod profiles;
mod search;
mod symmetry;
mod trace;
mod variants;
mod world;

use profiles::{
    LOSS, LOSS_EXTENDED, LOSS_EXTENDED_LATE, LOSS_RELEASED, PLAIN, Profile, Proposals::Any, RELEASED,
    ROLLED_BACK_EXTENDED, TWICE,
};
use search::search;
use trace::trace;
use variants::Variant;

/// Looks at every state. There are `least` at least: with fewer, something cannot happen any more.
fn holds<const N: usize, const K: usize>(name: &str, profile: Profile, least: usize) {
    let found = search::<N, K>(profile, None);
    println!("{:>10} states, holds: {name}", found.states);
    let broken = found.broken.as_ref().map(|(broken, _)| broken);
    assert!(broken.is_none(), "{name}: {broken:?} is broken\n{}", trace(&found));
    assert!(found.states >= least, "{name}: only {} states", found.states);
}

/// Looks for what a variant breaks.
fn breaks<const N: usize>(Variant { what, profile, breaks }: &Variant) {
    let found = search::<N, 2>(*profile, Some(*breaks));
    let steps = found.broken.as_ref().map_or(0, |(_, steps)| steps.len());
    println!("{:>10} states, {breaks:?} broken in {steps} steps: {what}", found.states);
    if std::env::var_os("QUORATE_TRACES").is_some() {
        println!("{}", trace(&found));
    }
    assert!(steps > 0, "{breaks:?} should be broken: {what}");
}

#[test]
fn tokens_are_unique_and_rise() {
    holds::<3, 2>("two attempts", PLAIN, 60_000);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn tokens_do_not_mind_an_acquire_that_runs_twice() {
    holds::<3, 2>("two attempts, an acquire runs twice", TWICE, 600_000);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn tokens_do_not_mind_a_third_attempt() {
    holds::<3, 3>("three attempts", Profile { proposals: Any(&[0]), ..PLAIN }, 1_700_000);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn extends_heal_what_was_neither_overtaken_nor_released() {
    holds::<3, 2>("extends and releases", RELEASED, 350_000);
    let twice = Profile { counters: &[0, 1], duplicates: 1, ..RELEASED };
    holds::<3, 2>("extends and releases, an acquire runs twice", twice, 2_000_000);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn tokens_rise_though_a_master_forgets() {
    holds::<3, 2>("a master forgets all or a part", LOSS, 4_000_000);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn extends_do_not_overtake_though_a_master_forgets() {
    holds::<3, 2>("extends, and a master forgets all", LOSS_EXTENDED, 2_500_000);
    holds::<3, 2>("extends, and a master forgets a part", ROLLED_BACK_EXTENDED, 2_000_000);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn what_was_released_does_not_come_back_though_a_master_forgets() {
    holds::<3, 2>("extends and releases, and a master forgets all", LOSS_RELEASED, 2_800_000);
}

#[test]
fn broken_tokens() {
    variants::TOKENS.iter().for_each(breaks::<3>);
    breaks::<5>(&variants::OF_FIVE);
}

#[test]
fn broken_extends() {
    variants::EXTENDS.iter().for_each(breaks::<3>);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn broken_losses() {
    variants::LOSSES.iter().for_each(breaks::<3>);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn broken_extends_with_losses() {
    variants::EXTENDS_WITH_LOSSES.iter().for_each(breaks::<3>);
}

#[test]
#[ignore = "minutes: more of what the others look at"]
fn more_of_three_attempts() {
    holds::<3, 3>("three attempts, two proposals", PLAIN, 9_000_000);
    let small = Profile { counters: &[0, 1], proposals: Any(&[0]), ..PLAIN };
    holds::<3, 3>("three attempts, an acquire runs twice", Profile { duplicates: 1, ..small }, 12_000_000);
    holds::<3, 3>("three attempts, extends", Profile { extends: true, ..small }, 4_000_000);
}

#[test]
#[ignore = "minutes: more of what the others look at"]
fn more_of_extends_and_losses() {
    holds::<3, 2>("late acquires, extends, and a master forgets all", LOSS_EXTENDED_LATE, 4_000_000);
    let longer = Profile { last_tick: 3, ..ROLLED_BACK_EXTENDED };
    holds::<3, 2>("extends, and a master forgets a part, for longer", longer, 12_000_000);
    let released = Profile { counters: &[0, 1], ..LOSS_RELEASED };
    holds::<3, 2>("extends and releases, and a master forgets all", released, 5_000_000);
    let released = Profile { rolls_back: true, ..LOSS_RELEASED };
    holds::<3, 2>("extends and releases, and a master forgets a part", released, 18_000_000);
}
