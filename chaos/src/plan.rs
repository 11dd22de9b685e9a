//! Which faults there are, and when: what a [scenario](crate::scenario) and a seed decide before a
//! run begins. A plan is a list, so that parts of it can be left out.

use std::fmt;
use std::time::Duration;

use crate::arena::Arena;
use crate::nemesis::{Fault, Wound};
use crate::run::Stop;

/// The faults of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What decided everything.
    pub seed: u64,
    /// The faults, in the order in which they begin.
    pub faults: Vec<Planned>,
}

/// A fault, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its number in the plan, by which it is left out.
    pub number: usize,
    /// When it strikes, from the beginning of the run.
    pub at: Duration,
    /// When it is healed; at the same time if it is over at once.
    pub until: Duration,
    /// What it is.
    pub fault: Fault,
}

/// What a run does, as it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanEvent<'a> {
    /// A fault is about to strike.
    Strikes(&'a Planned),
    /// One of its masters is healed, and others may not be yet.
    Recovers(&'a Planned, usize),
    /// It has been healed.
    Healed(&'a Planned),
}

impl Plan {
    /// The same with none but these faults.
    #[must_use]
    pub fn with_faults(mut self, faults: &[usize]) -> Self {
        self.faults.retain(|fault| faults.contains(&fault.number));
        self
    }

    /// When the last fault is healed.
    pub fn healed(&self) -> Duration {
        self.faults.iter().map(|fault| fault.until).max().unwrap_or_default()
    }

    /// Carries it out. Returns when everything is healed; later than planned, where masters take
    /// their time. Whether it came to its end: if it is stopped, what has struck stays.
    ///
    /// # Panics
    ///
    /// When a master that has to answer does not, or does not start, or a client ended by itself.
    #[allow(clippy::disallowed_methods, reason = "faults come by the machine's time")]
    pub fn run(&self, arena: &mut Arena, stop: &Stop, mut tell: impl FnMut(PlanEvent<'_>)) -> bool {
        let begun = std::time::Instant::now();
        let mut wounds: Vec<(&Planned, Wound)> = Vec::new();
        for (at, planned, strikes) in self.agenda() {
            if !stop.wait(at.saturating_sub(begun.elapsed())) {
                return false;
            }
            arena.check_clients();
            if strikes {
                tell(PlanEvent::Strikes(planned));
                wounds.push((planned, planned.fault.strike(arena)));
            } else if let Some(place) = wounds.iter().position(|(of, _)| of.number == planned.number) {
                let wound = wounds.swap_remove(place).1;
                wound.heal_each(arena, |master| tell(PlanEvent::Recovers(planned, master)));
                tell(PlanEvent::Healed(planned));
            }
        }
        true
    }

    /// What happens, in the order of time: faults that strike, and faults that are healed.
    fn agenda(&self) -> Vec<(Duration, &Planned, bool)> {
        let strikes = self.faults.iter().map(|planned| (planned.at, planned, true));
        let heals = self.faults.iter().map(|planned| (planned.until, planned, false));
        let mut agenda: Vec<_> = strikes.chain(heals).collect();
        // At the same moment heal first, then strike again; a fault that is over at once is healed
        // after it struck.
        agenda.sort_by_key(|(at, planned, strikes)| (*at, *strikes || planned.at == planned.until));
        agenda
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, at, until, fault } = self;
        write!(f, "fault {number}, {:.3}", at.as_secs_f64())?;
        if until > at {
            write!(f, " to {:.3}", until.as_secs_f64())?;
        }
        write!(f, " s: {fault}")
    }
}
