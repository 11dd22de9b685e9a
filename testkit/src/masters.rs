//! Several servers at once.

use std::ops::{Index, IndexMut};

use crate::server::RedisServer;

/// Independent servers, to be the masters of one client.
#[derive(Debug)]
pub struct Masters {
    servers: Vec<RedisServer>,
}

impl Masters {
    /// Starts `count` servers, at the same time.
    ///
    /// # Panics
    ///
    /// When one does not start, with its log.
    pub fn start(count: usize) -> Self {
        Self::start_with(count, &[])
    }

    /// The same, with options of redis-server's command line for each.
    ///
    /// # Panics
    ///
    /// When one does not start, with its log.
    pub fn start_with(count: usize, options: &'static [&'static str]) -> Self {
        Self::start_each(count, move || RedisServer::start_with(options))
    }

    /// The same, each with a wall clock of its own: see [`RedisServer::start_with_clock`].
    ///
    /// # Panics
    ///
    /// When one does not start, with its log, or when there is no C compiler.
    pub fn start_with_clocks(count: usize, options: &'static [&'static str]) -> Self {
        Self::start_each(count, move || RedisServer::start_with_clock(options))
    }

    fn start_each(count: usize, start: impl FnOnce() -> RedisServer + Copy + Send + 'static) -> Self {
        let starting: Vec<_> = (0..count).map(|_| std::thread::spawn(start)).collect();
        let servers = starting.into_iter().map(|server| match server.join() {
            Ok(server) => server,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        Self { servers: servers.collect() }
    }

    /// Their URLs.
    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(RedisServer::url).collect()
    }

    /// The servers.
    pub fn iter(&self) -> std::slice::Iter<'_, RedisServer> {
        self.servers.iter()
    }

    /// Every key on every server that answers, with the server's place, except for what stays:
    /// records of masters, and names that nobody holds.
    ///
    /// # Panics
    ///
    /// When a server does not answer.
    pub fn keys(&self) -> Vec<(usize, String)> {
        let keys = self.iter().enumerate();
        keys.flat_map(|(i, server)| server.keys().into_iter().map(move |key| (i, key))).collect()
    }

    /// `Ok` when there is no key on any server, and otherwise the keys.
    ///
    /// # Errors
    ///
    /// The keys that are there.
    ///
    /// # Panics
    ///
    /// When a server does not answer.
    pub fn empty(&self) -> Result<(), Vec<(usize, String)>> {
        let keys = self.keys();
        if keys.is_empty() { Ok(()) } else { Err(keys) }
    }
}

impl IntoIterator for Masters {
    type Item = RedisServer;
    type IntoIter = std::vec::IntoIter<RedisServer>;

    fn into_iter(self) -> Self::IntoIter {
        self.servers.into_iter()
    }
}

impl Index<usize> for Masters {
    type Output = RedisServer;

    fn index(&self, place: usize) -> &RedisServer {
        &self.servers[place]
    }
}

impl IndexMut<usize> for Masters {
    fn index_mut(&mut self, place: usize) -> &mut RedisServer {
        &mut self.servers[place]
    }
}
