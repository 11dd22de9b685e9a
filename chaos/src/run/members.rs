//! The changes of a set of masters that are made while clients hold and wait.

use std::time::Duration;

use quorate::SetChange;
use quorate_testkit::Dice;

use super::stage::Stage;
use super::stop::Stop;
use crate::history::now;
use crate::nemesis::{Fault, Servers, What};

/// How long clients work between two changes, and after a master was killed.
const PAUSE: Duration = Duration::from_secs(1);

/// The changes, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlannedChange {
    Add,
    Remove,
    ReplaceDead,
    Replace,
    AddTwo,
}

const STEPS: [PlannedChange; 5] = [
    PlannedChange::Add,
    PlannedChange::Remove,
    PlannedChange::ReplaceDead,
    PlannedChange::Replace,
    PlannedChange::AddTwo,
];

/// How many more masters there are in the end, the set and those that it had before.
pub(super) const MORE: usize = 5;

/// How many masters join or leave, one after the other.
const GENERATIONS: u32 = 8;

/// How many of these there are in the longest change, one after the other.
const LONGEST: u32 = 2;

/// About how long all changes take, and the time after them that is as long as the longest: each
/// change waits for a quarantine.
pub(super) fn takes(ttl: Duration) -> Duration {
    let quarantine = ttl + ttl / 100 + Duration::from_secs(4);
    (GENERATIONS + LONGEST) * quarantine + STEPS.len() as u32 * PAUSE
}

/// A set of masters, by their places, as it changes.
pub(super) struct Members<'a> {
    stage: &'a mut Stage,
    dice: Dice,
    set: Vec<usize>,
    /// How long the longest change took so far.
    longest: Duration,
}

impl<'a> Members<'a> {
    /// The first masters of a stage. The seed decides which of them leave.
    pub(super) fn new(stage: &'a mut Stage, masters: usize, seed: u64) -> Self {
        let dice = Dice::new(seed, "members", 0);
        Self { stage, dice, set: (0..masters).collect(), longest: Duration::ZERO }
    }

    /// Makes the changes, and tells which. How long the longest took; `None` if it did not come to
    /// their end.
    pub(super) fn change(&mut self, stop: &Stop, mut tell: impl FnMut(&str)) -> Option<Duration> {
        for step in STEPS {
            if !self.take(step, stop, &mut tell) || !self.stage.work(PAUSE, stop) {
                return None;
            }
        }
        Some(self.longest)
    }

    fn take(&mut self, step: PlannedChange, stop: &Stop, tell: &mut impl FnMut(&str)) -> bool {
        match step {
            PlannedChange::Add => {
                let new = self.start();
                self.make(&format!("m{new} joins"), tell, |members| vec![members.add(new)]);
                self.set.push(new);
            }
            PlannedChange::Remove => {
                let old = self.drawn();
                self.make(&format!("m{old} leaves"), tell, |members| {
                    vec![SetChange::remove(members.url(old))]
                });
                self.set.retain(|master| *master != old);
            }
            PlannedChange::ReplaceDead => {
                let dead = self.drawn();
                let kill =
                    Fault { what: What::Servers(Servers::Kill), masters: vec![dead], clients: Vec::new() };
                let wound = self.stage.strike(&kill);
                if !self.stage.work(PAUSE, stop) {
                    return false;
                }
                self.replace(dead, "is dead", tell);
                // It comes back, and believes that it is one of them.
                self.stage.heal(&kill, wound);
            }
            PlannedChange::Replace => {
                let old = self.drawn();
                self.replace(old, "lives", tell);
            }
            PlannedChange::AddTwo => {
                let [one, other] = [self.start(), self.start()];
                let what = format!("m{one} and m{other} join");
                self.make(&what, tell, |members| vec![members.add(one), members.add(other)]);
                self.set.extend([one, other]);
            }
        }
        true
    }

    fn replace(&mut self, old: usize, how: &str, tell: &mut impl FnMut(&str)) {
        let new = self.start();
        self.make(&format!("m{new} replaces m{old}, which {how}"), tell, |members| {
            vec![SetChange::replace(members.url(old), members.url(new))]
        });
        self.set.retain(|master| *master != old);
        self.set.push(new);
    }

    fn make(
        &mut self,
        what: &str,
        tell: &mut impl FnMut(&str),
        changes: impl FnOnce(&Self) -> Vec<SetChange>,
    ) {
        tell(what);
        let begun = now();
        self.stage.change(what, &self.set, changes(self));
        self.longest = self.longest.max(now().saturating_sub(begun));
    }

    fn start(&mut self) -> usize {
        self.stage.arena.add_master()
    }

    /// One of the set.
    fn drawn(&self) -> usize {
        *self.dice.one_of(&self.set)
    }

    fn url(&self, master: usize) -> String {
        self.stage.arena.masters[master].url()
    }

    fn add(&self, new: usize) -> SetChange {
        SetChange::add(self.url(new))
    }
}
