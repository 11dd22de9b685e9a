//! Random walks through the world, and the shortest way to what one broke.

use super::master::{AHEAD, BAND, Estimate, Master, STEP, Time, Verb, Who};
use super::profiles::Profile;
use super::variants::Flaw;
use super::world::{Broken, Lease, N, Phase, Step, World};

/// What some walks came to: how many there were, and the way to what broke.
pub(crate) struct Walked {
    pub(crate) walks: usize,
    pub(crate) found: Option<(Broken, Vec<Step>, [i32; N])>,
    /// The least time between two leases.
    pub(crate) closest: Option<Time>,
}

/// Walks at random, up to the first walk that breaks `wanted`, or anything where that is nothing.
pub(crate) fn walk(
    profile: &Profile,
    flaw: Option<Flaw>,
    wanted: Option<Broken>,
    seed: u64,
    most: usize,
) -> Walked {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut steps = Vec::new();
    let mut closest = None;
    for walks in 1..=most {
        let fences = [(); N].map(|()| rng.i32(0..3));
        let mut world = World::new(profile, fences, flaw);
        let mut chooser = Chooser::new(profile, &mut rng);
        steps.clear();
        for _ in 0..chooser.profile.steps {
            let Some(step) = chooser.choose(&world) else { continue };
            if world.take(&step) {
                steps.push(step);
            }
            if world.broken.is_some() {
                break;
            }
        }
        closest = closest.into_iter().chain(world.closest).min();
        if let Some(broken) = world.broken.filter(|&broken| wanted.is_none_or(|wanted| wanted == broken)) {
            let replay = |steps: &[Step]| replay(profile, fences, flaw, steps) == Some(broken);
            return Walked {
                walks,
                found: Some((broken, shrink(std::mem::take(&mut steps), replay), fences)),
                closest,
            };
        }
    }
    Walked { walks: most, found: None, closest }
}

fn replay(profile: &Profile, fences: [i32; N], flaw: Option<Flaw>, steps: &[Step]) -> Option<Broken> {
    let mut world = World::new(profile, fences, flaw);
    for step in steps {
        world.take(step);
    }
    world.broken
}

/// Leaves out every step without which it breaks all the same.
fn shrink(mut steps: Vec<Step>, breaks: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    let mut before = usize::MAX;
    while steps.len() < before {
        before = steps.len();
        for at in (0..steps.len()).rev() {
            let left_out = steps.remove(at);
            if !breaks(&steps) {
                steps.insert(at, left_out);
            }
        }
    }
    steps
}

struct Chooser<'a> {
    profile: Profile,
    rng: &'a mut fastrand::Rng,
    /// In percent of all steps: what masters run, and what goes wrong.
    calls: u8,
    faults: u8,
    /// In percent of all calls: which are lost, and whose replies are.
    lost: u8,
    unheard: u8,
}

impl<'a> Chooser<'a> {
    /// Each walk has its own odds, and does without some of what it may do: what needs many steps
    /// of one sort is found as soon as what needs a few of each.
    fn new(profile: &Profile, rng: &'a mut fastrand::Rng) -> Self {
        let mut profile = *profile;
        profile.steps = rng.usize(profile.steps / 2..profile.steps);
        for may in [&mut profile.breaks, &mut profile.reenters, &mut profile.repeats] {
            *may &= rng.bool();
        }
        let faults = [8, 16, 24][rng.usize(..3)];
        let (calls, lost) = ([45, 60][rng.usize(..2)], [0, 12][rng.usize(..2)]);
        let unheard = if rng.bool() { 0 } else { 15 };
        Self { profile, calls, faults, lost, unheard, rng }
    }

    fn choose(&mut self, world: &World) -> Option<Step> {
        let percent = self.rng.u8(..100);
        if percent < self.calls && !world.calls.is_empty() {
            let call = world.calls[self.rng.usize(..world.calls.len())];
            let again = self.profile.repeats && call.verb == Verb::Acquire && self.rng.u8(..8) == 0;
            if self.rng.u8(..100) < self.lost {
                return Some(Step::Lose { call });
            }
            return Some(Step::Run { call, heard: self.rng.u8(..100) >= self.unheard, again });
        }
        if percent >= 100 - self.faults { self.fault(world) } else { self.client(world) }
    }

    fn fault(&mut self, world: &World) -> Option<Step> {
        let at = self.rng.usize(..N);
        match self.rng.u8(..8) {
            0..3 if !self.profile.timed => {
                let entries = world.masters[at].entries.len();
                (entries > 0).then(|| Step::Lapse { at, entry: self.rng.usize(..entries) })
            }
            0..4 if self.profile.timed => {
                let by = match self.rng.usize(..12) {
                    0 => 1,
                    1 => 2,
                    2 => 7,
                    3 => 33,
                    4 => 41,
                    _ => self.near_an_end(world),
                };
                Some(Step::Tick { by })
            }
            4 if !self.profile.timed => Some(Step::Tick { by: 1 }),
            4 | 7 if self.profile.clocks > 0 => {
                let wrong: Vec<_> = (0..N).filter(|&at| world.masters[at].clock != 0).collect();
                let clocks = [-STEP / 2, -7, -7, -1, 1, 7, 7, STEP / 2];
                Some(match self.rng.choice(wrong) {
                    Some(at) if world.wrong_clocks() == self.profile.clocks || self.rng.bool() => {
                        Step::Clock { at, clock: 0 }
                    }
                    _ => Step::Clock { at, clock: clocks[self.rng.usize(..clocks.len())] },
                })
            }
            5 if self.profile.restarts > 0 && self.rng.bool() => {
                self.profile.restarts -= 1;
                let wrong = world.wrong_clocks() < self.profile.clocks;
                let clock = if wrong && self.rng.bool() { -STEP / 2 } else { world.masters[at].clock };
                Some(Step::Restart { at, clock, time: self.estimate() })
            }
            6 if self.profile.sweeps => Some(Step::Sweep { at }),
            _ => None,
        }
    }

    /// What a client may know: the true time is within the band of the interval.
    fn estimate(&mut self) -> Estimate {
        if self.profile.lags {
            return Estimate { lag: [-7, -2, 0, 0, BAND, AHEAD][self.rng.usize(..6)], width: 0 };
        }
        if !self.profile.is_wide() {
            return Estimate::default();
        }
        let widest = self.profile.widest;
        let width = if self.rng.bool() { widest } else { self.rng.i32(0..=widest) };
        let lags = [BAND, BAND, -width - BAND, -width - BAND, self.rng.i32(-width - BAND..=BAND)];
        Estimate { lag: lags[self.rng.usize(..5)], width }
    }

    /// How long it is to about the end of an entry, or of what its holder believes.
    fn near_an_end(&mut self, world: &World) -> Time {
        let master = &world.masters[self.rng.usize(..N)];
        let entry = self.rng.choice(&master.entries).map(|entry| entry.until);
        let end = entry.or(master.forget_at).map_or(0, |end| end - world.now);
        (end + self.rng.i32(-6..3)).max(1)
    }

    fn client(&mut self, world: &World) -> Option<Step> {
        let who: Who = self.profile.whos[self.rng.usize(..self.profile.whos.len())];
        let time = self.estimate();
        let Some(lease) = world.current(who) else {
            let had = world.leases.iter().filter(|lease| lease.who == who).count();
            // The owner of a lease that was handed on is nobody, and asks for nothing.
            let handed_on = |lease: &Lease| lease.who == who && lease.is_handed_on();
            if self.profile.hands_on && world.leases.iter().any(handed_on) {
                return None;
            }
            let handed_on =
                |&lease: &usize| world.leases[lease].is_handed_on() && world.leases[lease].who != who;
            let adopts = self.profile.hands_on && self.rng.bool();
            let from = (0..world.leases.len()).rev().find(|lease| adopts && handed_on(lease));
            return (had < self.profile.leases).then_some(Step::Begin { who, time, from });
        };
        let send = |verb| Some(Step::Send { lease, verb, time });
        let chance = self.rng.u8(..20);
        match world.leases[lease].phase {
            Phase::Asking if chance < 14 => Some(Step::Count { lease }),
            Phase::Asking if chance == 14 && self.profile.asks_again => send(Verb::Acquire),
            Phase::Asking | Phase::Confirming if chance > 16 => send(Verb::Undo),
            Phase::Holding if world.now >= world.leases[lease].valid_until => Some(Step::Stop { lease }),
            Phase::Holding => match chance {
                0..11 => send(Verb::Extend),
                11..15 => send(Verb::Release),
                15 => Some(Step::Stop { lease }),
                18 | 19 if self.profile.hands_on => Some(Step::Stop { lease }),
                16 | 17 if self.profile.breaks && !world.leases[lease].broken => send(Verb::Break),
                18 if self.profile.reenters => send(Verb::Reenter),
                19 if self.profile.reenters => send(Verb::Undo),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A line for each step, with what the masters know after it.
pub(crate) fn describe(
    profile: &Profile,
    flaw: Option<Flaw>,
    found: &(Broken, Vec<Step>, [i32; N]),
) -> String {
    let (broken, steps, fences) = found;
    let mut world = World::new(profile, *fences, flaw);
    let mut lines = vec![format!("{broken:?}")];
    for step in steps {
        world.take(step);
        let masters = world.masters.each_ref().map(know).join(" | ");
        lines.push(format!("{:>4} {:<46} {masters}", world.now, words(step, &world)));
    }
    lines.join("\n") + "\n"
}

fn name(who: Who) -> String {
    let owner = ['X', 'Y', 'Z', 'U', 'V'][usize::from(who.owner)];
    format!("{owner}{}{}", if who.reads { "r" } else { "w" }, if who.kind == 0 { "" } else { "'" })
}

fn words(step: &Step, world: &World) -> String {
    let of = |lease: usize| format!("{}#{lease}", name(world.leases[lease].who));
    match *step {
        Step::Begin { who, time, .. } => {
            format!("{}#{} asks, {}", name(who), world.leases.len() - 1, interval(time))
        }
        Step::Count { lease } => {
            let Some(number) = world.leases.get(lease) else { return String::new() };
            format!("{} counts: {:?} {}", of(lease), number.phase, number.token)
        }
        Step::Send { lease, verb, time } => format!("{} sends {verb:?}, {}", of(lease), interval(time)),
        Step::Stop { lease } => format!("{} stops", of(lease)),
        Step::Run { call, heard, .. } => {
            let unheard = if heard { "" } else { ", unheard" };
            format!(
                "{} at {}: {:?} {}{unheard}",
                of(call.lease),
                ["A", "B", "C"][call.at],
                call.verb,
                call.token
            )
        }
        _ => format!("{step:?}"),
    }
}

fn interval(Estimate { lag, width }: Estimate) -> String {
    if width == 0 { format!("lag {lag}") } else { format!("T in {lag}..={}", lag + width) }
}

fn know(master: &Master) -> String {
    let Master { fence, last, last_owner, last_read, clock, entries, silent_until, .. } = master;
    let entries = entries.iter().map(|entry| {
        let left = if entry.left { " left" } else { "" };
        format!("{} {} until {}{left}", name(entry.who), entry.token, entry.until)
    });
    let entries = entries.collect::<Vec<_>>().join(", ");
    let owner = last_owner.map_or(String::new(), |owner| format!("/{owner}"));
    let clock = if *clock == 0 { String::new() } else { format!(" clock {clock}") };
    let silent = if *silent_until == 0 { String::new() } else { format!(" silent {silent_until}") };
    format!("{fence} last {last}{owner} read {last_read}{clock}{silent} [{entries}]")
}
