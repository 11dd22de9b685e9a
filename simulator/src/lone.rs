//! One simulated master with one client's way to it, outside of any run: so that it can be held to
//! the same tests as masters of other kinds.

use std::sync::Arc;
use std::time::Duration;

use quorate::seam::Master;
use quorate_testkit::{EmbeddedServer, Restart};
use tokio::task::JoinHandle;

use crate::clocks::{Rate, WallClock};
use crate::faults::Profile;
use crate::link::way::Way;
use crate::link::{Link, Weather};
use crate::plan::Plan;
use crate::process::Process;
use crate::server::Server;
use crate::trace::Trace;
use crate::world::World;

/// A master by itself. Its world goes on with tokio's time, paused or not, on the runtime in which
/// it was made.
#[derive(Debug)]
pub struct Lone {
    server: Arc<Server>,
    link: Arc<Link>,
    going_on: JoinHandle<()>,
}

impl Lone {
    /// A master with nothing in it, and a network that takes a millisecond or two.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn new(seed: u64) -> Self {
        let world = World::new(seed, Trace::new(false));
        let clock = WallClock::new(world.time.clone(), Rate(0), 0);
        let server = Server::new(world.clone(), 0, clock, &Plan::new(seed, Profile::Inside));
        let delay = (Duration::from_millis(1), Duration::from_millis(2));
        let weather = Weather { delay, repeated: 0, overtaken: 0 };
        let link = Link::new(&world, &Process::new(0, &world), &server, weather);
        let going_on = tokio::spawn(async move { world.go_on().await });
        Self { server, link, going_on }
    }

    /// The master as a client sees it.
    pub fn master(&self) -> Arc<dyn Master> {
        Arc::new(Way(self.link.clone()))
    }

    /// What answers.
    pub fn server(&self) -> &EmbeddedServer {
        &self.server.redis
    }

    /// It stands still.
    pub fn freeze(&self) {
        self.server.pause();
    }

    /// It goes on.
    pub fn thaw(&self) {
        self.server.resume();
    }

    /// It is killed.
    pub fn stop(&self) {
        self.server.stop();
        self.link.break_off();
    }

    /// It is started again, with its data.
    pub fn start(&self) {
        self.server.start(Restart::Whole);
    }
}

impl Drop for Lone {
    fn drop(&mut self) {
        self.going_on.abort();
    }
}
