//! A client's way to one master: the library's own link, driven by the agenda of the world, and a
//! network between it and the master that delays, holds up, loses, repeats and breaks.

mod driver;
mod network;
mod transmission;
pub(crate) mod way;
mod words;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use network::Network;
use quorate::config::DEFAULT_TIMEOUT;
use quorate::seam::{Handshake, LinkState, SessionHeader};
use quorate_history::Time;
use quorate_testkit::Dice;
use tokio::sync::Notify;

use crate::clocks::Chance;
use crate::hearing::Hearing;
use crate::process::Process;
use crate::server::Server;
use crate::world::World;

pub(crate) use network::Weather;

/// A client's way to one master.
pub(crate) struct Link {
    name: Arc<str>,
    pub(crate) world: Arc<World>,
    pub(crate) process: Arc<Process>,
    pub(crate) server: Arc<Server>,
    dice: Dice,
    state: Mutex<LinkContext>,
    handshake: OnceLock<Handshake>,
    /// Notified when the master answers.
    up: Notify,
    pub(crate) hearing: Hearing,
}

struct LinkContext {
    /// The library's own.
    link: LinkState,
    /// When it is looked at next: to open a connection, and for calls whose time is up.
    opens: Option<Time>,
    rings: Option<Time>,
    /// Whether it sends what there is after the current task's turn.
    sends_soon: bool,
    /// What the master knows the connection by.
    header: SessionHeader,
    network: Network,
}

impl Link {
    pub(crate) fn new(
        world: &Arc<World>,
        process: &Arc<Process>,
        server: &Arc<Server>,
        weather: Weather,
    ) -> Arc<Self> {
        let number = (process.number * 100 + server.number) as u64;
        let name: Arc<str> = server.name();
        let chance = Arc::new(Chance::new(world.dice("attempts to connect", number)));
        let state = LinkContext {
            link: LinkState::new(name.clone(), DEFAULT_TIMEOUT, chance),
            opens: None,
            rings: None,
            sends_soon: false,
            header: SessionHeader::default(),
            network: Network::new(weather),
        };
        Arc::new(Self {
            name,
            world: world.clone(),
            process: process.clone(),
            server: server.clone(),
            dice: world.dice("link", number),
            state: Mutex::new(state),
            handshake: OnceLock::new(),
            up: Notify::new(),
            hearing: Hearing::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, LinkContext> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long the next message takes.
    pub(crate) fn delay(&self) -> Duration {
        let (from, to) = self.state().network.weather.delay;
        self.dice.time(from, to)
    }

    pub(crate) fn change_weather(&self, change: impl FnOnce(&mut Weather)) {
        change(&mut self.state().network.weather);
    }

    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        self.world.note(|| format!("c{} m{}  {}", self.process.number, self.server.number, what()));
    }
}

/// When a message that is sent now arrives.
pub(crate) fn arrival(link: &Link) -> Time {
    link.world.now() + link.delay()
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.name).finish()
    }
}
