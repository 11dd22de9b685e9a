//! A server's own wall clock, which a test sets while the server runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::server::RedisServer;
use crate::shim::Shim;

/// For servers started by [`RedisServer::start_with_clock`] or
/// [`Masters::start_with_clocks`](crate::Masters::start_with_clocks).
impl RedisServer {
    /// Steps its wall clock by `millis`: forward, or back if it is below 0. Steps add up.
    ///
    /// # Panics
    ///
    /// When it has the machine's clock.
    pub fn step_clock(&self, millis: i64) {
        self.clock().step(millis);
    }

    /// Sets its wall clock to the machine's plus `millis`: 0 undoes all steps.
    ///
    /// # Panics
    ///
    /// When it has the machine's clock.
    pub fn set_clock_offset(&self, millis: i64) {
        self.clock().set_offset(millis);
    }

    /// Its wall clock, to be set from elsewhere.
    ///
    /// # Panics
    ///
    /// When it has the machine's clock.
    pub fn clock(&self) -> ServerClock {
        ServerClock(self.shim())
    }

    /// Steps its wall clock by `millis`, and back after `during`, as a clock does that two sources
    /// set.
    ///
    /// # Cancel safety
    ///
    /// The clock is stepped at the first poll, and stepped back when the future is dropped.
    ///
    /// # Panics
    ///
    /// When it has the machine's clock.
    pub async fn strobe_clock(&self, millis: i64, during: Duration) {
        self.step_clock(millis);
        let _until_then = StepBack { server: self, millis };
        tokio::time::sleep(during).await;
    }
}

/// A server's own wall clock, or that of another process.
#[derive(Clone, Debug)]
pub struct ServerClock(Arc<Shim>);

impl ServerClock {
    /// A clock that is right, for a process that is to be started: [`give_to`](Self::give_to). It
    /// has to live for as long.
    ///
    /// # Panics
    ///
    /// When there is no C compiler.
    pub fn right() -> Self {
        Self::right_in(&std::env::temp_dir())
    }

    /// The same, with its files in a folder within this one.
    ///
    /// # Panics
    ///
    /// When there is no C compiler, or nothing can be written there.
    pub fn right_in(folder: &Path) -> Self {
        Self(Arc::new(Shim::new(folder).unwrap_or_else(|error| panic!("{error}"))))
    }

    /// Makes a process that is to be started, and those that it starts, go by this clock.
    pub fn give_to(&self, command: &mut std::process::Command) {
        self.0.give_to(command);
    }

    /// Steps it by `millis`: forward, or back if it is below 0. Steps add up.
    pub fn step(&self, millis: i64) {
        self.0.offset.change(|offset| offset.checked_add(micros(millis)).expect("no clock is that far off"));
    }

    /// Sets it to the machine's plus `millis`: 0 undoes all steps.
    pub fn set_offset(&self, millis: i64) {
        self.0.offset.change(|_| micros(millis));
    }
}

/// Steps a clock back when it is dropped.
struct StepBack<'a> {
    server: &'a RedisServer,
    millis: i64,
}

impl Drop for StepBack<'_> {
    fn drop(&mut self) {
        self.server.step_clock(-self.millis);
    }
}

fn micros(millis: i64) -> i64 {
    millis.checked_mul(1000).expect("no clock is that far off")
}
