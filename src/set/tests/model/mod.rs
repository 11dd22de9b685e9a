//! A model of clients and masters around [`Set`](super::super::state::Set): how a set begins,
//! changes, and goes on after masters lost their state. Random walks look for two clients that hold
//! the lock at once, two lists for one generation, and tokens that go back. For two proposals at
//! once, all orders of the steps are searched.
//!
//! The rules are those of the product: each client has a [`Client`](super::client::Client) with its
//! `Set`, and each master is a [`FakeMaster`](super::fake::FakeMaster), which answers as real ones
//! do. The lock and its rounds are the model's own (`lock.rs`).
//!
//! ```sh
//! cargo test --release --lib set::tests::model -- --ignored --nocapture
//! ```
//!
//! With `QUORATE_WALKS=4000` it walks more often, and searches more orders: some minutes.
//!
//! A message is a step, with or without its reply. One that is lost is a step that is not taken.
//! Clocks are right. Masters restart without a record or with the last one. One alone may restart
//! with an older one.
//!
//! The walks leave out three things that docs/SAFETY.md excludes. An `init` has an old list, and no
//! master of that list shows the newer one (`may_begin` in `step.rs`). An `init` with another list
//! prepares a member of a living set, and the clients of that set do not take it back within a
//! quarantine (`is_left_out`). An operator calls `members recover`.

mod change;
mod lock;
mod scenes;
mod search;
mod step;
mod walk;
mod world;

use scenes::Scene;
use search::{Orders, search};
use step::ModelStep;
use walk::{Walked, describe, walk};
use world::{Broken, Flaw};

const SEED: u64 = 7;

/// The value of `QUORATE_WALKS`: how many walks of each scene.
fn asked_for() -> Option<usize> {
    std::env::var("QUORATE_WALKS").ok().map(|walks| walks.parse().unwrap())
}

fn holds(scene: Scene, losses: u8, most: usize) {
    let Walked { walks, came_to, found } = walk(scene, losses, None, SEED, most);
    println!("{walks:>8} walks of {scene:?} with {losses} losses: {came_to:?}");
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
    (Scene::Proposals, 1),
    (Scene::Proposals, 3),
    (Scene::Chosen, 3),
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
#[ignore = "a minute where it is not optimised: scripts/test.sh runs it"]
fn two_never_hold_the_lock_however_the_set_changes() {
    let walks = asked_for().unwrap_or(100);
    SCENES.iter().for_each(|&(scene, losses)| holds(scene, losses, walks));
}

#[test]
#[ignore = "a minute where it is not optimised: scripts/test.sh runs it"]
fn broken_variants() {
    let variants = [
        ("votes count under any generation", Flaw::CountsAnyGeneration, Broken::TwoHold, Scene::InARow),
        ("two masters change at once", Flaw::TwoAtOnce, Broken::TwoHold, Scene::Change),
        ("a set's id is a digest of its list", Flaw::IdOfList, Broken::TwoHold, Scene::Dead),
    ];
    for (what, flaw, breaks, scene) in variants {
        let first =
            |seed| walk(scene, 2, Some(flaw), seed, 4_000).found.filter(|found| found.broken == breaks);
        let found = (SEED..SEED + 10).find_map(first); // the first walk may break something else
        let found = found.unwrap_or_else(|| panic!("{breaks:?} should be broken: {what}"));
        println!("{breaks:?} in {} steps: {what}", found.steps.len());
    }
}

/// Searches, and prints the count of states. Returns a way to a broken state.
fn way(orders: Orders) -> Option<Vec<ModelStep>> {
    let Orders { scene, flaw, disorder, .. } = orders;
    let (states, way) = search(orders);
    println!("{states:>8} states of {scene:?} in disorder {disorder}, {flaw:?}");
    way
}

const PROPOSALS: Orders =
    Orders { scene: Scene::Proposals, flaw: None, forgetful: &[0], disorder: 1, unheard: false, rejoins: 1 };
const ADDED: Orders = Orders { scene: Scene::Added, forgetful: &[3], disorder: 0, rejoins: 0, ..PROPOSALS };

#[test]
#[ignore = "minutes where it is not optimised: scripts/test-all.sh runs it"]
fn no_order_of_steps_chooses_twice() {
    assert!(
        way(Orders { flaw: Some(Flaw::AcceptsUnasked), disorder: 3, unheard: true, ..PROPOSALS }).is_some()
    );
    assert_eq!(way(PROPOSALS), None);
    if asked_for().is_none() {
        return;
    }
    assert!(way(Orders { flaw: Some(Flaw::SameIds), ..ADDED }).is_some());
    for disorder in [0, 1, 3] {
        assert_eq!(way(Orders { disorder, unheard: true, forgetful: &[0, 2], ..PROPOSALS }), None);
        assert_eq!(way(Orders { disorder, unheard: true, rejoins: 1, ..ADDED }), None);
    }
}
