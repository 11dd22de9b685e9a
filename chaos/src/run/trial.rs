//! A scenario, from the start of the masters to the verdict.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::client::Role;
use super::members::{self, Members};
use super::stage::{Setting, Stage};
use super::stop::Stop;
use super::verdict::Verdict;
use crate::arena::Arena;
use crate::history::{History, Run, now};
use crate::master::Host;
use crate::plan::{Plan, PlanEvent};
use crate::scenario::Scenario;
use crate::workload::patient::Leases;
use crate::workload::{Subject, patience};

/// How many guards are handed out before the first fault.
const WARM: usize = 10;

/// How many leases clients hold all the time while the set changes.
const LEASES: usize = 100;

/// How long clients work after the last fault.
const CALM: Duration = Duration::from_secs(1);

/// Everything that a run depends on.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What may go wrong.
    pub scenario: Scenario,
    /// What decides the plan, and what clients do.
    pub seed: u64,
    /// For how long faults begin, or clients work before the set changes.
    pub length: Duration,
    /// How many masters there are at first.
    pub masters: usize,
    /// How many client processes.
    pub clients: usize,
    /// What is locked by.
    pub subject: Subject,
    /// How long leases last.
    pub ttl: Duration,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase<'a> {
    /// Masters and clients are started.
    Starts,
    /// The clients work, and faults begin.
    Storm,
    /// What happens in the storm.
    Event(PlanEvent<'a>),
    /// The set of masters is changed in this way.
    Change(&'a str),
    /// All changes are made, and the clients work for as long as the longest one took.
    NoChange,
    /// Everything is healed, and the clients come to an end.
    Calm,
    /// The history is checked.
    Checks,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct TrialOutcome {
    /// What was done, and when, from its beginning on.
    pub history: History,
    /// What it shows.
    pub verdict: Verdict,
}

impl Trial {
    /// Which faults there are, and when.
    pub fn plan(&self) -> Plan {
        self.scenario.plan(self.seed, self.length, self.masters, self.clients)
    }

    /// How many masters there are in the course of it.
    pub fn all_masters(&self) -> usize {
        if self.scenario.changes_members() { self.masters + members::MORE } else { self.masters }
    }

    /// About how long the clients work until all is healed, or all changes are made and compared
    /// with a time without one.
    pub fn lasts(&self) -> Duration {
        let changes = if self.scenario.changes_members() { members::takes(self.ttl) } else { Duration::ZERO };
        self.length + changes
    }

    /// What a history says of it, on such masters.
    pub fn about(&self, host: Host) -> Run {
        Run {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: self.scenario.name.to_owned(),
            seed: self.seed,
            duration: self.length,
            subject: self.subject.name().to_owned(),
            kinds: self.subject.kinds(),
            masters: self.masters,
            compose: host == Host::Container,
            clients: self.clients,
            ttl: self.ttl,
            leases: if self.scenario.changes_members() { LEASES } else { 0 },
        }
    }

    /// Masters and the ways to them, as the scenario wants them.
    ///
    /// # Panics
    ///
    /// As [`Arena::start`].
    pub fn arena(&self) -> Arena {
        Arena::start(self.masters, self.clients, self.scenario.persistence(self.seed), self.seed)
    }

    /// Carries it out in an arena of its masters and clients. How a client is started, and where
    /// the history is written, is as in a [`Setting`]. Nothing comes of it if it is stopped.
    ///
    /// # Panics
    ///
    /// When something does not start, a master that has to answer does not, or a client does not
    /// end.
    pub fn run(
        &self,
        arena: Arena,
        client: fn() -> Command,
        history: Option<PathBuf>,
        stop: &Stop,
        mut tell: impl FnMut(Phase<'_>),
    ) -> Option<TrialOutcome> {
        tell(Phase::Starts);
        let subject = self.subject.clone();
        let ttl = self.ttl;
        let seed = self.seed;
        let run = Some(self.about(arena.host()));
        let new_masters = false;
        let changes = self.scenario.changes_members();
        let leases = Leases { all: LEASES, each: LEASES.div_ceil(self.clients) };
        let role = if changes { Role::HoldsAndWaits(leases) } else { Role::Works };
        let clients = self.scenario.clients();
        let setting = Setting { subject, ttl, new_masters, clients, seed, role, client, run, history };
        let mut stage = Stage::set(arena, setting);
        stage.until_holds(if changes { LEASES + WARM } else { WARM });
        tell(Phase::Storm);
        let begun = now();
        if !stage.run(&self.plan(), stop, |event| tell(Phase::Event(event))) {
            return None;
        }
        let worked = now().saturating_sub(begun);
        if !stage.work(self.length.saturating_sub(worked), stop) {
            return None;
        }
        if changes {
            let mut members = Members::new(&mut stage, self.masters, seed);
            let longest = members.change(stop, |what| tell(Phase::Change(what)))?;
            tell(Phase::NoChange);
            if !stage.work(longest, stop) {
                return None;
            }
        }
        tell(Phase::Calm);
        stage.calm();
        if !stage.work(CALM, stop) {
            return None;
        }
        let history = History { bound: patience(self.ttl), ..stage.quiet().from_its_beginning() };
        tell(Phase::Checks);
        let verdict = Verdict::of(&history);
        Some(TrialOutcome { history, verdict })
    }
}
