//! The ways in which a server loses its keys.

use std::path::Path;

use crate::process::wait;
use crate::server::RedisServer;

impl RedisServer {
    /// Deletes all keys (`FLUSHALL`).
    ///
    /// # Panics
    ///
    /// As [`command`](Self::command).
    pub fn wipe(&self) {
        self.command(&["FLUSHALL"])
    }

    /// Loses one key, as a server does that is short of memory. Whether it was there.
    ///
    /// # Panics
    ///
    /// As [`command`](Self::command).
    pub fn evict(&self, key: &str) -> bool {
        self.command(&["DEL", key])
    }

    /// Loses all keys by becoming a replica of an empty server, and a master again: the process and
    /// its run id stay. Returns when that is done, and on its disk, too, if it persists.
    ///
    /// # Panics
    ///
    /// When the empty server does not start, or this one does not get there in time.
    pub fn wipe_by_replication(&self) {
        self.copy(&Self::start());
    }

    /// Gets the keys of another server in place of its own by becoming its replica, and a master
    /// again. Returns as [`wipe_by_replication`](Self::wipe_by_replication) does.
    ///
    /// # Panics
    ///
    /// When the other one does not answer, or this one does not get there in time.
    pub fn copy(&self, other: &Self) {
        // Replication without a disk waits five seconds for other replicas, unless it is configured
        // not to.
        let _: () = other.command(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"]);
        let _: () = self.command(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
        self.wait_for_info("master_link_status:up");
        let _: () = self.command(&["REPLICAOF", "NO", "ONE"]);
        // What it persists is written anew in the background, and until then its disk has the keys
        // from before.
        self.wait_for_info("aof_rewrite_scheduled:0");
        self.wait_for_info("aof_rewrite_in_progress:0");
    }

    /// Starts it again, as [`restart`](Self::restart) does, without its data in any case: its
    /// folder is emptied.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn restart_empty(&mut self) {
        self.kill();
        empty(self.folder()).unwrap_or_else(|error| panic!("{}: {error}", self.folder().display()));
        self.restart();
    }

    /// What names the process; another one after every restart.
    ///
    /// # Panics
    ///
    /// As [`command`](Self::command).
    pub fn run_id(&self) -> String {
        let info = self.info();
        let id = info.lines().find_map(|line| line.strip_prefix("run_id:"));
        id.expect("a server tells its run id").to_owned()
    }

    fn info(&self) -> String {
        self.command(&["INFO"])
    }

    fn wait_for_info(&self, line: &str) {
        let found = wait(|| self.info().lines().any(|found| found == line).then_some(()));
        assert!(found.is_some(), "waited in vain for {line}\n{}\n{}", self.info(), self.log());
    }
}

fn empty(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
    }
    Ok(())
}
