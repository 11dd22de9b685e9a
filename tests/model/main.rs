//! A model of the protocol: everything that a master knows of a name is in one hash. Random walks
//! look for two leases at once, tokens that go back, and leases that come back or are lost without
//! need, for an exclusive lock, a read-write lock and a name of two kinds.
//!
//! `master.rs` has the rules (H1 to H8 of the design), `world.rs` the clients and what must never
//! happen, `profiles.rs` the conditions, `variants.rs` the rules that cannot be left out. A walk is
//! decided by its seed, so each run finds the same. What the model found wrong in the design, with
//! the traces, is in `docs/DECISIONS.md`.
//!
//! ```sh
//! cargo test --release --test model -- --nocapture
//! QUORATE_TRACES=1 cargo test --release --test model broken -- --nocapture --test-threads 1   # the ways to what breaks
//! cargo test --release --test model -- --ignored --nocapture --test-threads 1   # more of it: some minutes
//! ```
//!
//! There are three masters. It does not know semaphores, the queue, full masters, changes
//! of members, or that Redis deletes a name with entries after 30 days.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails may panic")]

mod master;
mod profiles;
mod variants;
mod walk;
mod widths;
mod world;

use profiles::{
    HANDED_ON, KINDS, KINDS_TIMED, LOCK, LOCK_CLOCKS, LOCK_LAGS, LOCK_OF_TWO, LOCK_TIMED, LOCK_WIDE, Profile,
    RW, RW_OF_THREE, RW_TIMED, RW_WIDE,
};
use variants::Variant;
use walk::{describe, walk};

const SEED: u64 = 11;

/// Walks for some seconds, or for minutes with `times` above 1.
fn holds(profiles: &[(&str, Profile)], times: usize) {
    let most = 150_000 * times;
    for (name, profile) in profiles {
        let walked = walk(profile, None, None, SEED, most);
        let apart =
            walked.closest.map_or(String::new(), |ticks| format!(", leases are {} ms apart", ticks * 250));
        println!("{most:>10} walks, holds: {name}{apart}");
        let broken = walked.found.map(|found| describe(profile, None, &found));
        assert!(broken.is_none(), "{name}, after {} walks: {}", walked.walks, broken.unwrap_or_default());
    }
}

/// Looks for what a variant breaks.
fn breaks(Variant { rule, what, flaw, breaks, profile }: &Variant) {
    let walked = walk(profile, *flaw, Some(*breaks), SEED, 200_000);
    let found = walked.found.unwrap_or_else(|| panic!("{breaks:?} should be broken: {rule}: {what}"));
    println!("{:>10} walks, {breaks:?} broken in {} steps: {rule}: {what}", walked.walks, found.1.len());
    if std::env::var_os("QUORATE_TRACES").is_some() {
        println!("{}", describe(profile, *flaw, &found));
    }
}

const ANY_INSTANT: [(&str, Profile); 6] = [
    ("a lock of three owners", LOCK),
    ("a lock of two owners", LOCK_OF_TWO),
    ("a lock that is handed on", HANDED_ON),
    ("a read-write lock", RW),
    ("a read-write lock of three owners", RW_OF_THREE),
    ("a name of two kinds", KINDS),
];

const TIMED: [(&str, Profile); 7] = [
    ("a lock, by time", LOCK_TIMED),
    ("a read-write lock, by time", RW_TIMED),
    ("a name of two kinds, by time", KINDS_TIMED),
    ("a lock, with a wrong clock", LOCK_CLOCKS),
    ("a lock, with an old T", LOCK_LAGS),
    ("a lock, with a T that is known to within 2.5 s", LOCK_WIDE),
    ("a read-write lock, with such a T", RW_WIDE),
];

#[test]
fn it_keeps_the_order_of_tokens_though_entries_end_at_any_instant() {
    holds(&ANY_INSTANT, 1);
}

#[test]
fn it_keeps_leases_apart_though_a_clock_is_wrong() {
    holds(&TIMED, 1);
}

#[test]
#[ignore = "minutes: more of what the others look at"]
fn more_of_it() {
    holds(&ANY_INSTANT, 30);
    holds(&TIMED, 30);
}

#[test]
fn broken_times() {
    variants::TIMES.iter().for_each(breaks);
}

#[test]
fn broken_grants_and_undos() {
    variants::GRANTS.iter().for_each(breaks);
}

#[test]
fn broken_ends() {
    variants::ENDS.iter().for_each(breaks);
}

#[test]
fn broken_heals() {
    variants::HEALS.iter().for_each(breaks);
}
