//! A model of how a set of masters begins, changes, and goes on after masters lost their state.
//! Random walks look for two clients that hold the lock at once, two decrees for one generation,
//! and tokens that go back. For two decrees at once, all orders of the steps are searched.
//!
//! Majorities of two lists that differ in one master share a master, so a lease of one generation
//! excludes leases of the next. A watch, a quarantine long, keeps apart those that are two changes
//! apart.
//!
//! `master.rs` has the record, `client.rs` who takes the lock and has masters rejoin, `change.rs`
//! who changes the set, `begin.rs` who begins one (`init`), `scenes.rs` the conditions, and
//! `variants.rs` the rules that cannot be left out.
//!
//! ```sh
//! cargo test --release --test members -- --nocapture
//! QUORATE_TRACES=1 cargo test --release --test members broken -- --nocapture --test-threads 1   # the ways to what breaks
//! cargo test --release --test members -- --ignored --nocapture   # more of it: some minutes
//! ```
//!
//! A message is a step, with or without its reply; one that is lost is a step that is not taken.
//! Clocks are right. Masters restart without a record or with the last one. One alone may restart
//! with an older one.
//!
//! The walks leave out what the product does not protect from (docs/SAFETY.md): `init` with an old
//! list of which no master shows that another one lives (`may_begin` in `begin.rs`), and a living
//! set whose clients do not take back within a quarantine what `init` with another list prepared
//! (`is_to_be_taken_back`). They leave out `members recover`, which goes by the word of a person.

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

fn holds(scene: Scene, losses: u8, flaw: Option<Flaw>, most: usize) {
    let Walked { walks, came_to, found } = walk(scene, losses, flaw, None, SEED, most);
    println!("{walks:>8} walks of {scene:?} with {losses} losses, {flaw:?}: {came_to:?}");
    let broken = found.map(|found| describe(&found));
    assert!(broken.is_none(), "after {walks} walks: {}", broken.unwrap_or_default());
    // They are not in vain.
    assert!(came_to.leases > most / 4, "{came_to:?}");
}

const SCENES: [(Scene, u8); 24] = [
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
    (Scene::Begin, 3),
    (Scene::Overlap, 0),
    (Scene::Overlap, 1),
    (Scene::OldList, 0),
    (Scene::OldList, 1),
    (Scene::OldRecord, 1),
    (Scene::OldRecord, 3),
    (Scene::Lost, 1),
    (Scene::Lost, 2),
    (Scene::Lost, 4),
    (Scene::Dead, 0),
];

#[test]
fn two_never_hold_the_lock_however_the_set_changes() {
    SCENES.iter().for_each(|&(scene, losses)| holds(scene, losses, None, 4_000));
}

#[test]
fn what_breaks_nothing() {
    HARMLESS.iter().for_each(|&(flaw, scene)| holds(scene, 2, Some(flaw), 1_000));
}

#[test]
#[ignore = "minutes: more of the same"]
fn more_of_it() {
    SCENES.iter().for_each(|&(scene, losses)| holds(scene, losses, None, 80_000));
    HARMLESS.iter().for_each(|&(flaw, scene)| holds(scene, 2, Some(flaw), 80_000));
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
