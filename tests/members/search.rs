//! All orders of the steps of a scene, without time and leases.

use stateright::{Checker, Model, Property};

use super::master::{Back, N};
use super::scenes::Scene;
use super::step::{Step, steps_of, take};
use super::variants::Flaw;
use super::world::{Role, Task, World};

/// A scene where nobody takes the lock, is killed or waits.
pub(crate) struct Orders {
    pub(crate) scene: Scene,
    pub(crate) flaw: Option<Flaw>,
}

impl Orders {
    /// Which masters may forget.
    fn forgetful(&self) -> &[usize] {
        match (self.scene, self.flaw) {
            (Scene::Added, _) => &[3],
            (_, None) => &[0, 2],
            // Fewer states will do.
            _ => &[0],
        }
    }

    /// In which orders the ballots come: with a flaw the one that shows it will do.
    fn disorders(&self) -> &[u16] {
        match self.flaw {
            None => &[0, 1, 3],
            Some(Flaw::ForgetsAccepted) => &[1],
            Some(_) => &[3],
        }
    }
}

impl Model for Orders {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        // A rejoin has the highest of three ballots, the one between, or the lowest.
        let world =
            |seed| World { flaw: self.flaw, ..self.scene.world(1, &mut fastrand::Rng::with_seed(seed)) };
        let ordered = |disorder: &u16| (0..).map(world).find(|world| world.disorder == *disorder);
        self.disorders().iter().filter_map(ordered).collect()
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        (0..world.actors.len()).for_each(|actor| steps_of(world, actor, steps));
        steps.retain(|step| match *step {
            Step::Stop { .. } => false,
            Step::GoOn { actor } => goes_on(world, actor),
            Step::Rejoin { at, .. } => world.ballots < 3 && self.forgetful().contains(&at),
            Step::Ask { actor, heard, .. } => match world.actors[actor].task {
                Task::Carry { asked, .. } => heard && asked.is_empty(),
                Task::Accept { .. } | Task::Propose { .. } => true,
                _ => heard,
            },
            _ => true,
        });
        if world.losses > 0 {
            let back = if self.scene == Scene::Added { Back::Empty } else { Back::Last };
            steps.extend(self.forgetful().iter().map(|&at| Step::Forget { at, back }));
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        take(&mut next, step);
        // Quarantines are over at any time.
        let records = next.masters.iter_mut().filter_map(|master| master.record.as_mut());
        records.for_each(|record| record.quarantine = 0);
        next.actors.iter_mut().for_each(|actor| actor.shown = [None; N]);
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
        (_, Task::Propose { promised, .. }) => promised.by.has_majority_of(known.members.masters),
        (_, Task::Accept { accepted, .. }) => accepted.has_majority_of(known.members.masters),
        (Role::Client { .. }, Task::Rejoin { at, lost, promised, .. }) => {
            let members = known.members.masters;
            promised.by.has_majority_of(members) || promised.by.and(lost).with(at).contains(members)
        }
        _ => false,
    }
}

/// Searches all orders. The shortest way to what is broken, with how many states there are.
pub(crate) fn search(scene: Scene, flaw: Option<Flaw>) -> (usize, Option<Vec<Step>>) {
    let checker = Orders { scene, flaw }.checker().spawn_bfs().join();
    let way = checker.discovery("nothing is broken").map(|path| path.into_actions());
    (checker.unique_state_count(), way)
}
