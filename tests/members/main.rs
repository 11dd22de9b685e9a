//! A model of how a set of masters begins and changes, one master at a time: the membership record,
//! decrees, and masters that forget. Random walks look for two who hold the lock at once, two
//! decrees for one generation and tokens that go back; all orders of the steps of two decrees are
//! searched.
//!
//! Majorities of two lists that differ in one master share a master, so a lease of one generation
//! excludes leases of the next. A watch, a quarantine long, keeps apart those that are two changes
//! apart.
//!
//! `master.rs` has the record, `client.rs` who takes the lock, `change.rs` who changes the set,
//! `begin.rs` who begins one, `scenes.rs` the conditions, `variants.rs` the rules that cannot be
//! left out.
//!
//! ```sh
//! cargo test --release --test members -- --nocapture
//! QUORATE_TRACES=1 cargo test --release --test members broken -- --nocapture --test-threads 1   # the ways to what breaks
//! cargo test --release --test members -- --ignored --nocapture   # more of it: some minutes
//! ```
//!
//! A message is a step, with or without its reply; one that is lost is a step that is not taken.
//! Clocks are right. Masters restart without a record, with the last one, or with an older one.
//!
//! It is always safe that a minority forgets. Where most of a generation forget at once, or all of
//! a list were emptied, nothing on the masters tells what was decided. In those scenes somebody who
//! knows a newer generation is connected, and writes it on a master before that one's quarantine
//! ends (`may_tick` in `step.rs`). `Flaw::NobodyConnected` shows what happens otherwise.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails may panic")]

mod begin;
mod change;
mod client;
mod master;
mod scenes;
mod search;
mod step;
mod variants;
mod walk;
mod world;

use scenes::Scene;
use search::search;
use variants::{Flaw, HARMLESS, SEARCHED, VARIANTS, Variant};
use walk::{Walked, describe, walk};

const SEED: u64 = 7;

fn holds(scene: Scene, losses: u8, flaw: Option<Flaw>, times: usize) {
    let most = 4_000 * times;
    let Walked { walks, came_to, found } = walk(scene, losses, flaw, None, SEED, most);
    println!("{walks:>8} walks of {scene:?} with {losses} losses, {flaw:?}: {came_to:?}");
    let broken = found.map(|found| describe(&found));
    assert!(broken.is_none(), "after {walks} walks: {}", broken.unwrap_or_default());
    // They are not in vain.
    assert!(came_to.leases > most / 4, "{came_to:?}");
}

const SCENES: [(Scene, u8); 17] = [
    (Scene::InARow, 0),
    (Scene::InARow, 1),
    (Scene::InARow, 3),
    (Scene::Change, 0),
    (Scene::Change, 1),
    (Scene::Change, 3),
    (Scene::Decree, 1),
    (Scene::Decree, 3),
    (Scene::Decided, 3),
    (Scene::Tokens, 0),
    (Scene::Tokens, 1),
    (Scene::Begin, 0),
    (Scene::Begin, 1),
    (Scene::Overlap, 0),
    (Scene::Overlap, 1),
    (Scene::OldList, 1),
    (Scene::OldRecord, 1),
];

#[test]
fn two_never_hold_the_lock_however_the_set_changes() {
    SCENES.iter().for_each(|&(scene, losses)| holds(scene, losses, None, 1));
}

#[test]
fn what_breaks_nothing() {
    HARMLESS.iter().for_each(|&(flaw, scene)| holds(scene, 2, Some(flaw), 1));
}

#[test]
#[ignore = "minutes: more of the same"]
fn more_of_it() {
    SCENES.iter().for_each(|&(scene, losses)| holds(scene, losses, None, 100));
    HARMLESS.iter().for_each(|&(flaw, scene)| holds(scene, 2, Some(flaw), 100));
}

#[test]
fn broken_variants() {
    for &Variant { what, flaw, breaks, scene } in VARIANTS {
        let walked = walk(scene, 2, Some(flaw), Some(breaks), SEED, 100_000);
        let found = walked.found.unwrap_or_else(|| panic!("{breaks:?} should be broken: {what}"));
        println!("{:>8} walks, {breaks:?} in {} steps: {what}", walked.walks, found.steps.len());
        if std::env::var_os("QUORATE_TRACES").is_some() {
            println!("{}", describe(&found));
        }
    }
}

#[test]
fn no_order_of_steps_decides_twice() {
    for scene in [Scene::Decree, Scene::Added] {
        let (states, way) = search(scene, None);
        println!("{states:>8} states of {scene:?}");
        assert_eq!(way, None);
    }
    for &Variant { what, flaw, breaks, scene } in SEARCHED {
        let (states, way) = search(scene, Some(flaw));
        let way = way.unwrap_or_else(|| panic!("{breaks:?} should be broken: {what}"));
        println!("{states:>8} states, {breaks:?} in {} steps: {what}", way.len());
    }
}
