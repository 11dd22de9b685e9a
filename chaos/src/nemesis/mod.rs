//! The faults, a family a file. Each is a value: it strikes some masters, or some clients, or the
//! network between them, and is healed afterwards.
//!
//! | family | faults |
//! |---|---|
//! | [`Servers`] | a master is killed and started again, with what it persisted or with nothing; stands still; is off its network |
//! | [`Network`] | every [`Toxic`](quorate_testkit::Toxic), partitions one way or both; connections that break, at one end only too |
//! | [`Clocks`] | a master's wall clock is stepped, goes to and fro, or is wrong in renewals; a master and a client start with one that is wrong |
//! | [`Keys`] | a master loses its keys while it lives |
//! | [`Commands`] | an administrator's or another client's command: scripts forgotten, clients killed or paused, a script that does not end |
//! | [`Limits`] | a master refuses writes: it is out of memory, or a replica |
//! | [`Replicas`] | a replica that lags takes a master's place; a master goes back to a copy that lags; its address leads to another server, and back |
//! | [`Disks`] | a master's disk is slow |
//! | [`Clients`] | a client is killed, and started again; stands still; its wall clock is stepped |
//!
//! A master has one of these at a time, besides those of the network: a fault that needs the
//! master's answer panics if another one keeps it from answering. A [`Plan`](crate::Plan) sees to
//! that.

mod clients;
mod clocks;
mod commands;
mod disks;
mod hosts;
mod keys;
mod limits;
mod network;
mod replicas;
mod servers;
mod wound;

pub use clients::Clients;
pub use clocks::Clocks;
pub use commands::Commands;
pub use disks::Disks;
pub use keys::Keys;
pub use limits::Limits;
pub use network::Network;
pub use replicas::Replicas;
pub use servers::Servers;
pub use wound::Wound;

use std::fmt;

use crate::arena::Arena;

/// One fault, and what it strikes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What it is.
    pub what: What,
    /// The masters that have it.
    pub masters: Vec<usize>,
    /// The clients that have it. Of one of the network, those whose ways to these masters have it,
    /// and of one of a host the client that is on it.
    pub clients: Vec<usize>,
}

/// What a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// See [`Servers`].
    Servers(Servers),
    /// See [`Network`].
    Network(Network),
    /// See [`Clocks`].
    Clocks(Clocks),
    /// See [`Keys`].
    Keys(Keys),
    /// See [`Commands`].
    Commands(Commands),
    /// See [`Limits`].
    Limits(Limits),
    /// See [`Replicas`].
    Replicas(Replicas),
    /// See [`Disks`].
    Disks(Disks),
    /// See [`Clients`].
    Clients(Clients),
}

impl Fault {
    /// Strikes. What it returns is there until it is healed, or for good if it is dropped.
    ///
    /// # Panics
    ///
    /// When a master that has to answer does not.
    pub fn strike(&self, arena: &mut Arena) -> Wound {
        match self.what {
            What::Servers(what) => what.strike(arena, &self.masters),
            What::Network(what) => what.strike(arena, &self.masters, &self.clients),
            What::Clocks(what) => what.strike(arena, &self.masters, &self.clients),
            What::Keys(what) => what.strike(arena, &self.masters),
            What::Commands(what) => what.strike(arena, &self.masters),
            What::Limits(what) => what.strike(arena, &self.masters),
            What::Replicas(what) => what.strike(arena, &self.masters),
            What::Disks(what) => what.strike(arena, &self.masters),
            What::Clients(what) => what.strike(arena, &self.clients),
        }
    }
}

impl What {
    /// The name of its family.
    pub fn family(self) -> &'static str {
        match self {
            Self::Servers(_) => "servers",
            Self::Network(_) => "network",
            Self::Clocks(_) => "clocks",
            Self::Keys(_) => "keys",
            Self::Commands(_) => "commands",
            Self::Limits(_) => "limits",
            Self::Replicas(_) => "replicas",
            Self::Disks(_) => "disks",
            Self::Clients(_) => "clients",
        }
    }

    /// Whether it is over as soon as it has struck: there is nothing to heal.
    pub fn is_over_at_once(self) -> bool {
        matches!(
            self,
            Self::Keys(_)
                | Self::Commands(Commands::ScriptFlush | Commands::ClientKill)
                | Self::Network(Network::Reset)
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.what)?;
        self.masters.iter().try_for_each(|master| write!(f, " m{master}"))?;
        self.clients.iter().try_for_each(|client| write!(f, " c{client}"))
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Servers(what) => what.fmt(f),
            Self::Network(what) => what.fmt(f),
            Self::Clocks(what) => what.fmt(f),
            Self::Keys(what) => what.fmt(f),
            Self::Commands(what) => what.fmt(f),
            Self::Limits(what) => what.fmt(f),
            Self::Replicas(what) => what.fmt(f),
            Self::Disks(what) => what.fmt(f),
            Self::Clients(what) => what.fmt(f),
        }
    }
}
