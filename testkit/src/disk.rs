//! A server's own disk, which a test makes slow while the server runs.

use std::time::Duration;

use crate::server::RedisServer;

/// For servers that have a [clock](RedisServer::start_with_clock) of their own.
impl RedisServer {
    /// Makes whatever waits for its disk wait so much longer, until it is said otherwise: none is
    /// as quick as it is. It outlives restarts. What the server has written is safe from its own
    /// end as soon as the system has it; but a server that waits for its disk writes nothing, and
    /// answers none the less if it persists every second.
    ///
    /// # Panics
    ///
    /// When the server has the machine's clock.
    pub fn slow_disk(&self, delay: Duration) {
        let micros = i64::try_from(delay.as_micros()).expect("no disk is that slow");
        self.shim().disk.change(|_| micros);
    }
}
