//! All orders of the steps of a scene, without time and leases.

use stateright::{Checker, Model, Property};

use super::super::client::FakeConnection;
use super::scenes::Scene;
use super::step::{ModelStep, is_to_read, steps_of, take};
use super::world::{Back, Counts, Flaw, Role, Task, World};
use crate::wire::MasterIndex;

/// A scene where nobody takes the lock, is killed or waits. One client has masters rejoin that
/// lost their state, and the others propose.
pub(super) struct Orders {
    pub(super) scene: Scene,
    pub(super) flaw: Option<Flaw>,
    /// Which masters may forget.
    pub(super) forgetful: &'static [usize],
    /// The order of the ballots, as `World::disorder`.
    pub(super) disorder: u64,
    /// Whether a master may accept a value, and its reply is not heard.
    pub(super) unheard: bool,
    /// How often a client may run phase 1 for a master that lost its state.
    pub(super) rejoins: u64,
}

impl Model for Orders {
    type State = World;
    type Action = ModelStep;

    fn init_states(&self) -> Vec<World> {
        let world =
            |seed| World { flaw: self.flaw, ..self.scene.world(1, &mut fastrand::Rng::with_seed(seed)) };
        (0..).map(world).find(|world| world.disorder == self.disorder).into_iter().collect()
    }

    fn actions(&self, world: &World, steps: &mut Vec<ModelStep>) {
        (0..world.actors.len()).for_each(|actor| steps_of(world, actor, steps));
        let shakes_hands = |actor: usize, index: MasterIndex| {
            let who = &world.actors[actor];
            let is_forgetful = self.forgetful.contains(&who.client.list[index]);
            is_forgetful && matches!((&who.role, &who.task), (Role::Locker { .. }, _) | (_, Task::Prepare(_)))
        };
        steps.retain(|step| match *step {
            ModelStep::Hello { actor, index } | ModelStep::Write { actor, index } => {
                shakes_hands(actor, index)
            }
            ModelStep::Rejoin { .. } => world.ballots < 2 + self.rejoins, // two changes are proposed
            ModelStep::Promise { heard, .. } => heard,
            ModelStep::Ask { actor, heard, .. } => {
                heard || self.unheard && matches!(world.actors[actor].task, Task::Accept { .. })
            }
            ModelStep::GoOn { actor } => goes_on(world, actor),
            _ => false,
        });
        if world.losses > 0 {
            let back = if self.scene == Scene::Added { Back::Empty } else { Back::Last };
            steps.extend(self.forgetful.iter().map(|&at| ModelStep::Forget { at, back }));
        }
    }

    fn next_state(&self, world: &World, step: ModelStep) -> Option<World> {
        let mut next = world.clone();
        if let ModelStep::Ask { actor, index, .. } = step
            && is_to_read(world, actor, index)
        {
            // The handshake and the call are one step, and whoever proposes has nobody rejoin.
            take(&mut next, ModelStep::Hello { actor, index });
            let connection = &mut next.actors[actor].client.connections[index];
            if let FakeConnection::Writes(..) = connection {
                *connection = FakeConnection::Closed;
            }
        }
        take(&mut next, step);
        // Quarantines are over at any time.
        let records = next.fakes.iter_mut().filter_map(|fake| fake.record.as_mut());
        records.for_each(|record| record.quarantine = 0);
        next.done = Counts::default();
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("nothing is broken", |_, world: &World| world.broken.is_none())]
    }
}

/// Whether somebody goes on here: no client takes the lock, and nobody stops before it has a
/// quorum.
fn goes_on(world: &World, actor: usize) -> bool {
    let who = &world.actors[actor];
    match (&who.role, &who.task) {
        (Role::Changer { .. }, Task::Propose(of, _)) => of.newest.members.have_majority(of.promises.by.len()),
        (_, Task::Accept { of, accepted, .. }) => of.newest.members.have_majority(accepted.len()),
        (_, Task::Prepare(_)) => who.client.set.joining().is_some(),
        _ => false,
    }
}

/// Searches all orders. Returns the count of states, and a way to a broken one.
pub(super) fn search(orders: Orders) -> (usize, Option<Vec<ModelStep>>) {
    let checker = orders.checker().spawn_dfs().join();
    let way = checker.discovery("nothing is broken").map(|path| path.into_actions());
    (checker.unique_state_count(), way)
}
