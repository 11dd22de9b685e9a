//! Random walks through a scene, and the shortest way to what one broke.

use super::master::Back;
use super::scenes::Scene;
use super::step::{Step, may_forget, may_tick, steps_of, take};
use super::variants::Flaw;
use super::world::{Broken, Counts, Q, World};

/// What some walks came to.
pub(crate) struct Walked {
    pub(crate) walks: usize,
    pub(crate) came_to: Counts,
    pub(crate) found: Option<Found>,
}

/// The shortest way to what one walk broke.
pub(crate) struct Found {
    pub(crate) broken: Broken,
    pub(crate) from: World,
    pub(crate) steps: Vec<Step>,
}

/// Walks at random, up to the first walk that breaks `wanted`, or anything where that is nothing.
pub(crate) fn walk(
    scene: Scene,
    losses: u8,
    flaw: Option<Flaw>,
    wanted: Option<Broken>,
    seed: u64,
    most: usize,
) -> Walked {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut steps, mut choice, mut came_to) = (Vec::new(), Vec::new(), Counts::default());
    for walks in 1..=most {
        let mut world = scene.world(losses, &mut rng);
        world.flaw = flaw;
        let from = world.clone();
        steps.clear();
        let (ticks, unheard) = ([10, 20, 60][rng.usize(..3)], rng.usize(..3));
        let odds = Odds {
            ticks,
            unheard,
            hasty: [2, 16][rng.usize(..2)],
            killed: [30, 2_000][rng.usize(..2)],
            slow: rng.usize(..2 * world.actors.len()),
        };
        for _ in 0..rng.usize(1_000..6_000) {
            let Some(step) = choose(&world, &mut choice, odds, &mut rng) else { continue };
            take(&mut world, step);
            steps.push(step);
            if world.broken.is_some() {
                break;
            }
        }
        came_to.add(&world.done);
        if let Some(broken) = world.broken.filter(|&broken| wanted.is_none_or(|wanted| wanted == broken)) {
            let steps = shrink(std::mem::take(&mut steps), |steps| replay(&from, steps) == Some(broken));
            return Walked { walks, came_to, found: Some(Found { broken, from, steps }) };
        }
    }
    Walked { walks: most, came_to, found: None }
}

/// In thousandths of all steps, in sixths of all replies, one of so many who do not wait for all
/// replies, and who are killed; and who does little, if anybody.
#[derive(Clone, Copy)]
struct Odds {
    ticks: u16,
    unheard: usize,
    hasty: usize,
    killed: usize,
    slow: usize,
}

fn choose(world: &World, steps: &mut Vec<Step>, odds: Odds, rng: &mut fastrand::Rng) -> Option<Step> {
    match rng.u16(..1_000) {
        tick if tick < odds.ticks => {
            let by = if rng.u8(..8) == 0 { Q + 1 } else { 1 };
            may_tick(world, by).then_some(Step::Tick { by })
        }
        990.. => {
            let (at, back) = (rng.usize(..6), [Back::Empty, Back::Last, Back::Saved][rng.usize(..3)]);
            may_forget(world, back).then_some(Step::Forget { at, back })
        }
        980.. => (world.losses > 0).then(|| Step::Save { at: rng.usize(..6) }),
        _ => {
            steps.clear();
            let actor = rng.usize(..world.actors.len());
            if actor == odds.slow && rng.u8(..8) > 0 {
                return None;
            }
            steps_of(world, actor, steps);
            let step = *steps.get(rng.usize(..steps.len().max(1)))?;
            match step {
                // Most replies are heard, few are killed, and leases are kept for a while.
                Step::Ask { actor, at, heard: false } if rng.usize(..6) >= odds.unheard => {
                    Some(Step::Ask { actor, at, heard: true })
                }
                Step::Stop { .. } if rng.usize(..odds.killed) > 0 => None,
                Step::Release { .. } if rng.u8(..8) > 0 => None,
                // Most wait for all replies.
                Step::GoOn { .. } if steps.len() > 2 && rng.usize(..odds.hasty) > 0 => None,
                _ => Some(step),
            }
        }
    }
}

/// Takes those of the steps that may be taken.
fn replay(from: &World, steps: &[Step]) -> Option<Broken> {
    let (mut world, mut may) = (from.clone(), Vec::new());
    for &step in steps {
        let is_possible = match step {
            Step::Tick { by } => may_tick(&world, by),
            Step::Forget { back, .. } => may_forget(&world, back),
            Step::Save { .. } => true,
            Step::Ask { actor, .. } | Step::GoOn { actor } | Step::Stop { actor } => {
                possible(&world, actor, step, &mut may)
            }
            Step::Release { client } | Step::Rejoin { client, .. } => {
                possible(&world, client, step, &mut may)
            }
        };
        if is_possible {
            take(&mut world, step);
        }
    }
    world.broken
}

fn possible(world: &World, actor: usize, step: Step, may: &mut Vec<Step>) -> bool {
    may.clear();
    steps_of(world, actor, may);
    may.contains(&step)
}

/// Leaves out every step without which it breaks all the same.
fn shrink(mut steps: Vec<Step>, breaks: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    let mut size = steps.len() / 2;
    loop {
        let before = steps.len();
        let mut at = steps.len();
        while at > 0 {
            let from = at.saturating_sub(size.max(1));
            let left_out: Vec<Step> = steps.drain(from..at).collect();
            if !breaks(&steps) {
                steps.splice(from..from, left_out);
            }
            at = from;
        }
        if size > 1 {
            size /= 2;
        } else if steps.len() == before {
            return steps;
        }
    }
}

/// A line for each step.
pub(crate) fn describe(found: &Found) -> String {
    let mut world = found.from.clone();
    let mut lines = vec![format!("{:?}", found.broken)];
    for &step in &found.steps {
        take(&mut world, step);
        let of = match step {
            Step::Ask { actor, .. } | Step::GoOn { actor } => format!("{:?}", world.actors[actor].task),
            _ => String::new(),
        };
        lines.push(format!("{:>3} {step:?}  {of}", world.now));
    }
    lines.join("\n")
}
