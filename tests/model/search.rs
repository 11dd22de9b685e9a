//! Every state there is, breadth first, by stateright: what is found is found in as few steps as there can be.

use std::hash::{Hash, Hasher};

use stateright::{Checker, Model, Property};

use crate::profiles::{Broken, Profile};
use crate::symmetry::Print;
use crate::world::{Step, World};

/// What a search has found.
pub(crate) struct Outcome<const N: usize, const K: usize> {
    pub(crate) states: usize,
    /// What broke, and the way to it.
    pub(crate) broken: Option<(Broken, Vec<(Step<N>, World<N, K>)>)>,
}

/// Looks at all states of `N` masters and `K` attempts, or at those up to the first in which something is broken: what is
/// wanted, or anything.
pub(crate) fn search<const N: usize, const K: usize>(
    profile: Profile,
    wanted: Option<Broken>,
) -> Outcome<N, K> {
    let checker = Protocol::<N, K> { profile, wanted }.checker().spawn_bfs().join();
    let broken = checker.discovery(WHOLE).map(|path| {
        let (worlds, steps): (Vec<_>, Vec<_>) = path.into_vec().into_iter().unzip();
        let worlds = worlds.into_iter().map(|state| state.world);
        let last = worlds.clone().next_back().and_then(|world| world.broken);
        (
            last.expect("the last state is a broken one"),
            steps.into_iter().flatten().zip(worlds.skip(1)).collect(),
        )
    });
    Outcome { states: checker.unique_state_count(), broken }
}

/// The only property: a world says itself what was broken by the last step.
const WHOLE: &str = "nothing is broken";

struct Protocol<const N: usize, const K: usize> {
    profile: Profile,
    wanted: Option<Broken>,
}

/// A world that stands for all that differ from it only in names.
#[derive(Clone, Debug)]
struct State<const N: usize, const K: usize> {
    world: World<N, K>,
    print: Print,
}

impl<const N: usize, const K: usize> PartialEq for State<N, K> {
    fn eq(&self, other: &Self) -> bool {
        self.print == other.print
    }
}

impl<const N: usize, const K: usize> Hash for State<N, K> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.print.hash(hasher);
    }
}

impl<const N: usize, const K: usize> Protocol<N, K> {
    fn state(&self, world: World<N, K>) -> State<N, K> {
        State { world, print: world.print(&self.profile) }
    }
}

impl<const N: usize, const K: usize> Model for Protocol<N, K> {
    type State = State<N, K>;
    type Action = Step<N>;

    fn init_states(&self) -> Vec<Self::State> {
        World::first(&self.profile).into_iter().map(|world| self.state(world)).collect()
    }

    fn actions(&self, state: &Self::State, steps: &mut Vec<Self::Action>) {
        state.world.steps(&self.profile, |step| steps.push(step));
    }

    fn next_state(&self, state: &Self::State, step: Self::Action) -> Option<Self::State> {
        state.world.after(step, &self.profile).map(|world| self.state(world))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(WHOLE, |protocol: &Self, state: &Self::State| {
            !state.world.broken.is_some_and(|broken| protocol.wanted.is_none_or(|wanted| wanted == broken))
        })]
    }
}
