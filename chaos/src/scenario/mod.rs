//! What may go wrong in a run, by name. A scenario, a seed and the run's size give a [`Plan`]:
//! always the same one.
//!
//! In all of them nothing may be found of Quorate's locks. What is promised has limits: wall clocks
//! of a majority of the masters never jump together.
//!
//! `draw.rs` draws what faults are, `cast.rs` which masters and clients they strike.

mod cast;
mod draw;

use std::ops::Range;
use std::time::Duration;

use quorate_testkit::Dice;

use crate::client_setup::ClientSetup;
use crate::master::Host;
use crate::nemesis::{Replicas, What};
use crate::persistence::Persistence;
use crate::plan::{Plan, Planned};
use cast::{Cast, Targets};

/// The longest pause between two faults.
const PAUSE: Duration = Duration::from_millis(1_500);

/// How long a fault lasts, at least and at most.
const LASTS: Range<Duration> = Duration::from_millis(100)..Duration::from_secs(4);

/// How much longer an address leads to another server: longer than that has no vote, where leases
/// last 2 s.
const AWAY: Duration = Duration::from_secs(8);

/// How often a fault is drawn that does not suit the masters' host, before there seems to be none
/// that does.
const DRAWS: usize = 1_000;

/// What may go wrong in a run.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What happens in it.
    pub about: &'static str,
    /// What masters keep when they are killed: the seed decides for one of these.
    keeps: &'static [Persistence],
    /// Draws a fault; none in the calm, nor where the set changes.
    draw: Option<fn(&Dice) -> What>,
    targets: Targets,
    host: Host,
    clients: ClientSetup,
}

const ALWAYS: &[Persistence] = &[Persistence::Always];

/// All of them.
pub const ALL: [Scenario; 16] = [
    CALM,
    scenario(
        "servers",
        "masters are killed and started again, with every kind of persistence, or stand still",
        draw::servers,
    )
    .with(&Persistence::ALL),
    scenario(
        "network",
        "between clients and masters: delays, holes, one-way ones too, resets, cuts, slow ends",
        draw::network,
    ),
    scenario("clients", "client processes are killed and started again, or stand still", draw::clients),
    scenario(
        "clocks",
        "wall clocks of masters, a minority at a time, and of clients jump; a host comes up with a wrong one",
        draw::clocks,
    )
    .with(&[Persistence::Dump, Persistence::Always]),
    scenario("amnesia", "masters forget: flushed, wiped, restarted empty", draw::amnesia)
        .with(&Persistence::ALL),
    scenario(
        "replicas",
        "replicas that lag take masters' places; masters' addresses lead to other servers, and back",
        draw::addresses,
    ),
    scenario("disks", "masters' disks are slow, and masters are killed", draw::disks)
        .with(&[Persistence::EverySecond, Persistence::Always]),
    scenario(
        "commands",
        "what an administrator does: clients killed or paused, scripts flushed or endless, no memory, read-only",
        draw::commands,
    ),
    COPIES,
    STRANGER,
    FAILOVER,
    MINORITY,
    MEMBERS,
    INSIDE,
    OUTSIDE,
];

/// Nothing at all.
pub const CALM: Scenario = Scenario { draw: None, ..scenario("calm", "nothing goes wrong", draw::servers) };

/// Clients that are copies of each other.
const COPIES: Scenario = Scenario {
    clients: ClientSetup::Copies,
    ..scenario(
        "copies",
        "client processes are copies of one, with the same random numbers; they and the network fail",
        draw::copies,
    )
};

/// A client with another list of masters.
const STRANGER: Scenario = Scenario {
    clients: ClientSetup::Stranger,
    ..scenario(
        "stranger",
        "one more client has another list of masters; masters forget and fail, and the network",
        draw::stranger,
    )
    .with(&Persistence::ALL)
};

/// Masters that fail, in every way that their host has.
pub const FAILOVER: Scenario = scenario(
    "failover",
    "masters are killed and started again, or stand still; containers are taken off their network as well",
    draw::failover,
);

/// A minority that fails all the time: nobody is to notice.
pub const MINORITY: Scenario = Scenario {
    targets: Targets::Minority,
    ..scenario(
        "minority",
        "a minority of the masters, always the same, fails and is healed all the time",
        draw::failing,
    )
};

/// A set that changes: nobody is to notice.
pub const MEMBERS: Scenario = Scenario {
    keeps: &[Persistence::EverySecond], // that of no master waits for the disk, which others write to
    draw: None,
    clients: ClientSetup::Patient,
    ..scenario(
        "members",
        "the set of masters changes while clients hold and wait: masters join, leave and are replaced, a dead one too",
        draw::servers,
    )
};

/// What Redlock is made for.
pub const INSIDE: Scenario = scenario(
    "inside",
    "everything that Redlock is made for: networks and processes that fail or stand still, masters that refuse, or are killed and keep their data",
    draw::inside,
);

/// Besides, what Redlock's argument excludes.
pub const OUTSIDE: Scenario = scenario(
    "outside",
    "what is inside, and what Redlock excludes: masters that forget, clocks that jump",
    draw::outside,
);

/// One whose masters keep everything, and whose faults strike anybody.
const fn scenario(name: &'static str, about: &'static str, draw: fn(&Dice) -> What) -> Scenario {
    Scenario {
        name,
        about,
        keeps: ALWAYS,
        draw: Some(draw),
        targets: Targets::Any,
        host: Host::Process,
        clients: ClientSetup::Usual,
    }
}

impl Scenario {
    const fn with(self, keeps: &'static [Persistence]) -> Self {
        Self { keeps, ..self }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|scenario| scenario.name == name)
    }

    /// The same for masters that run here: what does not [suit](What::suits) them is left out.
    /// `None` if that is all of it.
    pub fn on(self, host: Host) -> Option<Self> {
        let scenario = Self { host, ..self };
        if scenario.changes_members() && host == Host::Container {
            return None; // there are no other containers that could join
        }
        let is_possible = scenario.draw.is_none() || scenario.drawn(&Dice::new(0, "hosts", 0)).is_some();
        is_possible.then_some(scenario)
    }

    /// Whether the set of masters changes in it.
    pub fn changes_members(&self) -> bool {
        self.clients == ClientSetup::Patient
    }

    /// What is special about its clients.
    pub fn clients(&self) -> ClientSetup {
        self.clients
    }

    /// What the masters keep when they are killed.
    pub fn persistence(&self, seed: u64) -> Persistence {
        *Dice::new(seed, "persistence", 0).one_of(self.keeps)
    }

    /// The plan of a seed: faults that begin within `length`, on `masters` and `clients`. No
    /// master, and no client, has two at a time, besides those of the network.
    pub fn plan(&self, seed: u64, length: Duration, masters: usize, clients: usize) -> Plan {
        let dice = Dice::new(seed, "nemesis", 0);
        let mut faults = Vec::new();
        let mut cast = Cast::new(&dice, self.targets, masters, clients);
        let mut at = dice.time(Duration::ZERO, PAUSE);
        while at < length {
            let Some(what) = self.drawn(&dice) else { break };
            let lasts = dice.time(LASTS.start, LASTS.end);
            let until = match what {
                What::Replicas(Replicas::Detour { .. }) => at + AWAY + lasts,
                _ if what.is_over_at_once() => at,
                _ => at + lasts,
            };
            if let Some(fault) = cast.fault(what, at, until) {
                faults.push(Planned { number: faults.len(), at, until, fault });
            }
            at += dice.time(Duration::ZERO, PAUSE);
        }
        Plan { seed, faults }
    }

    /// A fault that suits the masters' host, if there is any.
    fn drawn(&self, dice: &Dice) -> Option<What> {
        let draws = std::iter::repeat_with(|| self.draw.map(|draw| draw(dice))).take(DRAWS);
        draws.flatten().find(|what| what.suits(self.host))
    }
}
