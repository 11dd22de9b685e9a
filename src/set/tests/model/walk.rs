//! Random walks through a scene, and the shortest way to a broken state.

use super::scenes::Scene;
use super::step::{ModelStep, may_forget, steps_of, take};
use super::world::{Back, Broken, Counts, Flaw, N, TICK, World, model_terms};

/// How long (us) a walk may last.
const LONGEST: u64 = 160 * TICK;

/// What some walks came to.
pub(super) struct Walked {
    pub(super) walks: usize,
    pub(super) came_to: Counts,
    pub(super) found: Option<Found>,
}

/// A broken state, and the shortest way to it.
pub(super) struct Found {
    pub(super) broken: Broken,
    pub(super) from: World,
    pub(super) steps: Vec<ModelStep>,
}

/// Walks at random, up to the first walk that breaks something.
pub(super) fn walk(scene: Scene, losses: u8, flaw: Option<Flaw>, seed: u64, most: usize) -> Walked {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut steps = Vec::new();
    let mut choice = Vec::new();
    let mut came_to = Counts::default();
    for walks in 1..=most {
        let mut world = scene.world(losses, &mut rng);
        world.flaw = flaw;
        let from = world.clone();
        steps.clear();
        let odds = Odds {
            ticks: [10, 20, 60][rng.usize(..3)],
            unheard: rng.usize(..3),
            hasty: [2, 16][rng.usize(..2)],
            killed: [30, 2_000][rng.usize(..2)],
            slow: rng.usize(..2 * world.actors.len()),
            ends: world.now + LONGEST,
        };
        for _ in 0..rng.usize(500..3_000) {
            let Some(step) = choose(&world, &mut choice, odds, &mut rng) else { continue };
            take(&mut world, step);
            steps.push(step);
            if world.broken.is_some() {
                break;
            }
        }
        came_to.add(&world.done);
        if let Some(broken) = world.broken {
            let steps = shrink(std::mem::take(&mut steps), |steps| replay(&from, steps) == Some(broken));
            return Walked { walks, came_to, found: Some(Found { broken, from, steps }) };
        }
    }
    Walked { walks: most, came_to, found: None }
}

/// How likely each kind of step is. `ticks` are thousandths of all steps, and `unheard` sixths of
/// all replies. One actor of `hasty` does not wait for all replies, and one of `killed` is killed.
/// The actor `slow` does little. The walk ends at the time `ends`.
#[derive(Clone, Copy)]
struct Odds {
    ticks: u16,
    unheard: usize,
    hasty: usize,
    killed: usize,
    slow: usize,
    ends: u64,
}

fn choose(
    world: &World,
    steps: &mut Vec<ModelStep>,
    odds: Odds,
    rng: &mut fastrand::Rng,
) -> Option<ModelStep> {
    match rng.u16(..1_000) {
        tick if tick < odds.ticks => {
            let quarantine = model_terms().quarantine().as_micros() as u64 / TICK + 1;
            let by = if rng.u8(..8) == 0 { (quarantine + 1) * TICK } else { TICK };
            (world.now + by <= odds.ends).then_some(ModelStep::Tick { by })
        }
        990.. => {
            let at = rng.usize(..N);
            let back = [Back::Empty, Back::Last, Back::Saved][rng.usize(..3)];
            may_forget(world, back).then_some(ModelStep::Forget { at, back })
        }
        980.. => (world.losses > 0).then(|| ModelStep::Save { at: rng.usize(..N) }),
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
                ModelStep::Ask { actor, index, heard: false } if rng.usize(..6) >= odds.unheard => {
                    Some(ModelStep::Ask { actor, index, heard: true })
                }
                ModelStep::Promise { actor, index, heard: false } if rng.usize(..6) >= odds.unheard => {
                    Some(ModelStep::Promise { actor, index, heard: true })
                }
                ModelStep::Stop { .. } if rng.usize(..odds.killed) > 0 => None,
                ModelStep::Release { .. } if rng.u8(..8) > 0 => None,
                // Most wait for all replies.
                ModelStep::GoOn { .. } if steps.len() > 2 && rng.usize(..odds.hasty) > 0 => None,
                _ => Some(step),
            }
        }
    }
}

/// Takes those of the steps that may be taken.
fn replay(from: &World, steps: &[ModelStep]) -> Option<Broken> {
    let mut world = from.clone();
    let mut may = Vec::new();
    for &step in steps {
        let is_possible = match step {
            ModelStep::Tick { .. } | ModelStep::Save { .. } => true,
            ModelStep::Forget { back, .. } => may_forget(&world, back),
            ModelStep::Hello { actor, .. }
            | ModelStep::Write { actor, .. }
            | ModelStep::Rejoin { actor }
            | ModelStep::Promise { actor, .. }
            | ModelStep::Ask { actor, .. }
            | ModelStep::GoOn { actor }
            | ModelStep::Release { actor }
            | ModelStep::Stop { actor } => {
                may.clear();
                steps_of(&world, actor, &mut may);
                may.contains(&step)
            }
        };
        if is_possible {
            take(&mut world, step);
        }
    }
    world.broken
}

/// Leaves out every step without which it breaks all the same.
fn shrink(mut steps: Vec<ModelStep>, breaks: impl Fn(&[ModelStep]) -> bool) -> Vec<ModelStep> {
    let mut size = steps.len() / 2;
    loop {
        let before = steps.len();
        let mut at = steps.len();
        while at > 0 {
            let from = at.saturating_sub(size.max(1));
            let left_out: Vec<ModelStep> = steps.drain(from..at).collect();
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
pub(super) fn describe(found: &Found) -> String {
    let mut world = found.from.clone();
    let mut lines = vec![format!("{:?}", found.broken)];
    for &step in &found.steps {
        take(&mut world, step);
        lines.push(format!("{:>3} {step:?}", world.now / TICK));
    }
    lines.join("\n")
}
