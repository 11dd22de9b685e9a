//! The kinds of master that `masters_suite` is about, each with what the suite does behind its
//! back.

use std::sync::Arc;

use quorate::seam::{Master, Script, connect};
use quorate_simulator::Lone;
use quorate_testkit::{EmbeddedMaster, EmbeddedServer, RedisServer, Resp};
use tokio::runtime::Handle;

use crate::PATIENT;

/// A kind of master.
pub(crate) trait Kind {
    /// A master with nothing in it.
    fn start() -> Self;

    fn master(&self) -> Arc<dyn Master>;

    /// What answers.
    fn server(&self) -> &dyn Server;

    /// Takes it away from its clients.
    fn cut_off(&mut self);

    /// Gives it back.
    fn mend(&mut self);
}

/// A kind that can stand still.
pub(crate) trait Freezes: Kind {
    fn freeze(&self);

    fn thaw(&self);
}

/// What the suite does behind the master's back.
pub(crate) trait Server {
    fn keys(&self) -> Vec<String>;

    /// Puts a string at a key.
    fn set(&self, key: &str);

    /// How many heard it.
    fn publish(&self, channel: &str, message: &str) -> i64;
}

impl Server for RedisServer {
    fn keys(&self) -> Vec<String> {
        self.keys()
    }

    fn set(&self, key: &str) {
        self.command(&["SET", key, "text"])
    }

    fn publish(&self, channel: &str, message: &str) -> i64 {
        self.command(&["PUBLISH", channel, message])
    }
}

impl Server for EmbeddedServer {
    fn keys(&self) -> Vec<String> {
        self.keys()
    }

    fn set(&self, key: &str) {
        assert_eq!(self.command(&["SET", key, "text"]), Resp::Status("OK".to_owned()));
    }

    fn publish(&self, channel: &str, message: &str) -> i64 {
        match self.command(&["PUBLISH", channel, message]) {
            Resp::Int(heard) => heard,
            other => panic!("{other:?}"),
        }
    }
}

/// A redis-server.
pub(crate) struct Real(RedisServer, Arc<dyn Master>);

/// No script is loaded: the first call of each finds that it is not known.
static NO_SCRIPTS: &[&Script] = &[];

impl Kind for Real {
    fn start() -> Self {
        let server = RedisServer::start();
        let master = connect(&server.url(), NO_SCRIPTS, PATIENT, &Handle::current()).unwrap();
        Self(server, master)
    }

    fn master(&self) -> Arc<dyn Master> {
        self.1.clone()
    }

    fn server(&self) -> &dyn Server {
        &self.0
    }

    fn cut_off(&mut self) {
        self.0.kill();
    }

    fn mend(&mut self) {
        self.0.restart();
    }
}

impl Freezes for Real {
    fn freeze(&self) {
        self.0.freeze();
    }

    fn thaw(&self) {
        self.0.thaw();
    }
}

/// A server within the process.
pub(crate) struct Embedded(Arc<EmbeddedMaster>, Arc<dyn Master>);

impl Kind for Embedded {
    fn start() -> Self {
        let embedded = Arc::new(EmbeddedMaster::new(EmbeddedServer::new(0)));
        let master = embedded.master();
        Self(embedded, master)
    }

    fn master(&self) -> Arc<dyn Master> {
        self.1.clone()
    }

    fn server(&self) -> &dyn Server {
        self.0.server()
    }

    fn cut_off(&mut self) {
        self.0.set_reachable(false);
    }

    fn mend(&mut self) {
        self.0.set_reachable(true);
    }
}

/// The simulator's, behind its network.
pub(crate) struct Simulated(Lone);

impl Kind for Simulated {
    fn start() -> Self {
        Self(Lone::new(1))
    }

    fn master(&self) -> Arc<dyn Master> {
        self.0.master()
    }

    fn server(&self) -> &dyn Server {
        self.0.server()
    }

    fn cut_off(&mut self) {
        self.0.stop();
    }

    fn mend(&mut self) {
        self.0.start();
    }
}

impl Freezes for Simulated {
    fn freeze(&self) {
        self.0.freeze();
    }

    fn thaw(&self) {
        self.0.thaw();
    }
}
