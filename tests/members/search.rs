//! All orders of the steps of a scene, without time and leases.

use stateright::{Checker, Model, Property};

use super::scenes::Scene;
use super::step::{Step, steps_of, take};
use super::variants::Flaw;
use super::world::{Role, Task, World};

/// A scene where nobody takes the lock, is killed or waits.
pub(crate) struct Orders {
    pub(crate) scene: Scene,
    pub(crate) flaw: Option<Flaw>,
}

impl Model for Orders {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let mut world = self.scene.world(1, &mut fastrand::Rng::with_seed(1));
        world.flaw = self.flaw;
        vec![world]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        (0..world.actors.len()).for_each(|actor| steps_of(world, actor, steps));
        steps.retain(|step| match *step {
            Step::Stop { .. } => false,
            Step::GoOn { actor } => goes_on(world, actor),
            _ => true,
        });
        if world.losses > 0 {
            steps.extend((0..4).map(|at| Step::Forget { at }));
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        take(&mut next, step);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("nothing is broken", |_, world: &World| world.broken.is_none())]
    }
}

/// Whether somebody goes on here: no client takes the lock, and nobody stops before it has a
/// quorum.
fn goes_on(world: &World, actor: usize) -> bool {
    let actor = &world.actors[actor];
    let Some(known) = &actor.knows else { return false };
    match (actor.role, actor.task) {
        (_, Task::Propose { promised, .. }) => promised.by.has_majority_of(known.members.old),
        (_, Task::Accept { accepted, .. }) => accepted.has_majority_of(known.members.old),
        (Role::Client { .. }, Task::Readmit { .. }) => true,
        _ => false,
    }
}

/// Searches all orders. The shortest way to what is broken, with how many states there are.
pub(crate) fn search(scene: Scene, flaw: Option<Flaw>) -> (usize, Option<Vec<Step>>) {
    let checker = Orders { scene, flaw }.checker().spawn_bfs().join();
    let way = checker.discovery("nothing is broken").map(|path| path.into_actions());
    (checker.unique_state_count(), way)
}
