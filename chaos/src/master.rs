//! One master, wherever it runs.

use std::net::SocketAddr;

use quorate_testkit::{Container, RedisServer, held_until, in_use};
use redis::{FromRedisValue, RedisResult};

/// Where masters run. It decides which faults they can have: see
/// [`What::suits`](crate::nemesis::What::suits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// As processes of this machine, whose clocks and disks are their own.
    Process,
    /// In the containers of a compose file.
    Container,
}

/// A master.
#[derive(Debug)]
pub enum Master {
    /// A process of this machine.
    Process(RedisServer),
    /// A container.
    Container(Container),
}

impl Master {
    /// Its address.
    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Process(server) => server.address(),
            Self::Container(container) => container.address(),
        }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Sends it one command, on a connection of its own, and reads the answer.
    ///
    /// # Panics
    ///
    /// When it does not answer, or answers with an error; with its log.
    pub fn command<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let answer = self.try_command(words);
        answer.unwrap_or_else(|error| panic!("{words:?}: {error}\n{}", self.log()))
    }

    /// The same, where it may refuse.
    ///
    /// # Errors
    ///
    /// When it does not answer within 20 seconds, or answers with an error.
    pub fn try_command<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        match self {
            Self::Process(server) => server.try_command(words),
            Self::Container(container) => container.try_command(words),
        }
    }

    /// All its keys that [are in use](quorate_testkit::in_use).
    ///
    /// # Panics
    ///
    /// As [`command`](Self::command).
    pub fn keys(&self) -> Vec<String> {
        in_use(self.all_keys(), self.time(), |key| self.fields(key))
    }

    /// All its keys.
    ///
    /// # Panics
    ///
    /// As [`command`](Self::command).
    pub fn all_keys(&self) -> Vec<String> {
        self.command(&["KEYS", "*"])
    }

    /// For how long (us) a key locks something: a name of Quorate's by its entries, which Redis
    /// outlives, and any other key until it expires. 0 where it locks nothing; `None` if it never
    /// expires.
    ///
    /// # Panics
    ///
    /// As [`command`](Self::command).
    pub fn locks_for(&self, key: &str) -> Option<u64> {
        let expires_in: i64 = self.command(&["PTTL", key]);
        if expires_in == -1 {
            return None;
        }
        let held_until = self.fields(key).as_deref().and_then(held_until);
        let by_redis = || u64::try_from(expires_in).unwrap_or(0) * 1_000;
        Some(held_until.map_or_else(by_redis, |until| until.saturating_sub(self.time())))
    }

    /// The fields and values of a key that is a hash.
    fn fields(&self, key: &str) -> Option<Vec<String>> {
        self.try_command(&["HGETALL", key]).ok()
    }

    /// The time that it shows (us since 1970).
    fn time(&self) -> u64 {
        let (seconds, micros): (u64, u64) = self.command(&["TIME"]);
        seconds * 1_000_000 + micros
    }

    /// Kills it, frozen or not. Returns when it is gone.
    ///
    /// # Panics
    ///
    /// When it is not gone in time.
    pub fn kill(&self) {
        match self {
            Self::Process(server) => server.kill(),
            Self::Container(container) => container.kill(),
        }
    }

    /// Starts it again, with what it persisted. It is killed first if it lives.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn restart(&mut self) {
        match self {
            Self::Process(server) => server.restart(),
            Self::Container(container) => container.restart(),
        }
    }

    /// Stops it in its tracks: connections stay open, and nothing answers. Returns when it stands.
    ///
    /// # Panics
    ///
    /// When it does not stand in time.
    pub fn freeze(&self) {
        match self {
            Self::Process(server) => server.freeze(),
            Self::Container(container) => container.freeze(),
        }
    }

    /// Lets it go on.
    ///
    /// # Panics
    ///
    /// When a container is not frozen.
    pub fn thaw(&self) {
        match self {
            Self::Process(server) => server.thaw(),
            Self::Container(container) => container.thaw(),
        }
    }

    /// The process, for what only a process can have.
    ///
    /// # Panics
    ///
    /// When it is a container.
    pub fn process(&mut self) -> &mut RedisServer {
        match self {
            Self::Process(server) => server,
            Self::Container(container) => panic!("{} is no process of this machine", container.service()),
        }
    }

    /// The container, for what only a container can have.
    ///
    /// # Panics
    ///
    /// When it is a process.
    pub fn container(&self) -> &Container {
        match self {
            Self::Process(server) => panic!("{} is in no container", server.url()),
            Self::Container(container) => container,
        }
    }

    fn log(&self) -> String {
        match self {
            Self::Process(server) => server.log(),
            Self::Container(container) => container.log(),
        }
    }
}
