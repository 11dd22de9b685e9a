//! The changes of a set of masters that are made while clients hold and wait.

use std::time::Duration;

use quorate::SetChange;
use quorate::seam::SPOKEN;
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
    MaxTtl,
    Protocol(&'static str),
}

const STEPS: [PlannedChange; 6] = [
    PlannedChange::Add,
    PlannedChange::Remove,
    PlannedChange::ReplaceDead,
    PlannedChange::Replace,
    PlannedChange::AddTwo,
    PlannedChange::MaxTtl,
];

/// How many more masters there are in the end, the set and those that it had before.
pub(super) const MORE: usize = 5;

/// How many masters join or leave, one after the other, and how often the max TTL changes.
const GENERATIONS: u32 = 9;

/// How many of these there are in the longest change, one after the other.
const LONGEST: u32 = 2;

/// How many times as long the max TTL is in the end.
const LONGER: u32 = 2;

/// About how long all changes take, and the time after them that is as long as the longest: each
/// change waits for a quarantine.
pub(super) fn takes(ttl: Duration) -> Duration {
    let quarantine = |max_ttl: Duration| max_ttl + max_ttl / 100 + Duration::from_secs(4);
    let protocols = protocols(SPOKEN).len() as u32;
    let steps = STEPS.len() as u32 + protocols;
    (GENERATIONS + LONGEST) * quarantine(ttl) + protocols * quarantine(ttl * LONGER) + steps * PAUSE
}

/// The set begins with the newest version of the protocol that this build speaks. It changes to
/// each other one, and back.
fn protocols(spoken: &[&'static str]) -> Vec<PlannedChange> {
    let [others @ .., newest] = spoken else { return Vec::new() };
    let there_and_back = |other: &&'static str| [*other, *newest].map(PlannedChange::Protocol);
    others.iter().flat_map(there_and_back).collect()
}

/// A set of masters, by their places, as it changes.
pub(super) struct Members<'a> {
    stage: &'a mut Stage,
    dice: Dice,
    set: Vec<usize>,
    ttl: Duration,
    /// How long the longest change took so far.
    longest: Duration,
}

impl<'a> Members<'a> {
    /// The first masters of a stage. The seed decides which of them leave.
    pub(super) fn new(stage: &'a mut Stage, masters: usize, ttl: Duration, seed: u64) -> Self {
        let dice = Dice::new(seed, "members", 0);
        Self { stage, dice, set: (0..masters).collect(), ttl, longest: Duration::ZERO }
    }

    /// Makes the changes, and tells which. How long the longest took; `None` if it did not come to
    /// their end.
    pub(super) fn change(&mut self, stop: &Stop, mut tell: impl FnMut(&str)) -> Option<Duration> {
        for step in STEPS.into_iter().chain(protocols(SPOKEN)) {
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
            PlannedChange::MaxTtl => {
                let max_ttl = self.ttl * LONGER;
                self.make(&format!("max TTL {max_ttl:?}"), tell, |_| vec![SetChange::max_ttl(max_ttl)]);
            }
            PlannedChange::Protocol(version) => {
                let what = format!("protocol {version}");
                self.make(&what, tell, |_| vec![SetChange::protocol(version)]);
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
        self.longest = self.longest.max(Duration::from_micros(now().saturating_sub(begun)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_other_protocol_is_left_again_and_the_newest_one_comes_last() {
        let versions = |spoken: &[&'static str]| {
            let version = |step| if let PlannedChange::Protocol(version) = step { version } else { "none" };
            protocols(spoken).into_iter().map(version).collect::<Vec<_>>()
        };
        assert_eq!(versions(&["v2"]), [""; 0]);
        assert_eq!(versions(&["v2", "v3", "v4"]), ["v2", "v4", "v3", "v4"]);
    }
}
