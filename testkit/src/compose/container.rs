//! One server in a container.

use std::net::SocketAddr;

use super::created::Created;
use super::docker::docker;
use crate::process::{BOUND, wait};
use crate::server;

/// A server in a container of a [`Project`](super::Project). It is reached at the port that the
/// container publishes.
#[derive(Clone, Debug)]
pub struct Container {
    id: String,
    service: String,
    address: SocketAddr,
    networks: Vec<String>,
}

impl Container {
    pub(super) fn new(created: &Created) -> Result<Self, String> {
        let service = created.service().to_owned();
        let address = created.address()?;
        Ok(Self { id: created.id.clone(), service, address, networks: created.networks() })
    }

    /// The name of its service in the compose file.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Where it is reached.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        docker(&["logs", &self.id]).unwrap_or_else(|why| why)
    }

    /// Sends it one command, on a connection of its own, and reads the answer.
    ///
    /// # Errors
    ///
    /// When it does not answer within 20 seconds, or answers with an error.
    pub fn try_command<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        server::ask(self.address, words)
    }

    /// Stops all that is in it (`docker pause`): connections stay open, and nothing answers.
    ///
    /// # Panics
    ///
    /// When the engine does not do it.
    pub fn freeze(&self) {
        let pause = ["pause", &self.id];
        // runc gives up where a thread does not stop at once, as on a busy machine.
        if wait(|| docker(&pause).ok()).is_none() {
            self.must(&pause);
        }
    }

    /// Lets it go on (`docker unpause`).
    ///
    /// # Panics
    ///
    /// When the engine does not do it.
    pub fn thaw(&self) {
        self.must(&["unpause", &self.id]);
    }

    /// Kills it (`docker kill`), frozen or not. Returns when it is gone.
    ///
    /// # Panics
    ///
    /// When it is not gone in time.
    pub fn kill(&self) {
        let killed = docker(&["kill", &self.id]); // it may be gone already, which is as well
        let gone = wait(|| {
            (self.must(&["inspect", "-f", "{{.State.Running}}", &self.id]) == "false\n").then_some(())
        });
        assert!(gone.is_some(), "{} is not gone: {killed:?}", self.service);
    }

    /// Starts it again (`docker start`), with what it persisted. It is killed first if it lives.
    /// Returns when it answers.
    ///
    /// # Panics
    ///
    /// When it does not answer in time.
    pub fn restart(&self) {
        self.kill();
        self.must(&["start", &self.id]);
        self.must_answer();
    }

    /// Takes it off its networks (`docker network disconnect`): nothing reaches it, and it does not
    /// notice. The engine ends connections to the port that it published, and refuses others.
    ///
    /// # Panics
    ///
    /// When the engine does not do it.
    pub fn disconnect(&self) {
        for network in &self.networks {
            self.must(&["network", "disconnect", "--force", network, &self.id]);
        }
    }

    /// Puts it on its networks again (`docker network connect`). Returns when it answers.
    ///
    /// # Panics
    ///
    /// When it does not answer in time.
    pub fn connect(&self) {
        for network in &self.networks {
            self.must(&["network", "connect", network, &self.id]);
        }
        self.must_answer();
    }

    fn must(&self, args: &[&str]) -> String {
        docker(args).unwrap_or_else(|why| panic!("docker {}, of {}: {why}", args.join(" "), self.service))
    }

    fn must_answer(&self) {
        self.answers().unwrap_or_else(|why| panic!("{why}"));
    }

    /// Returns when it answers.
    pub(super) fn answers(&self) -> Result<(), String> {
        wait(|| self.try_command::<()>(&["PING"]).ok())
            .ok_or_else(|| format!("{} did not answer within {BOUND:?}\n{}", self.service, self.log()))
    }
}
