//! A clock that goes by tokio's time, which a test can pause.

use std::sync::Arc;
use std::time::Duration;

use quorate::Moment;
use quorate::seam::Clock;
use tokio::time::Instant;

use super::WallClock;

/// When it begins, as the time since 1970.
const BEGINNING: Duration = Duration::from_secs(1_800_000_000);

/// A clock for clients and masters that goes by tokio's time. In a test with
/// `#[tokio::test(start_paused = true)]` it stands still while a task can run, and otherwise jumps
/// to what the test waits for.
#[derive(Debug)]
pub struct PausedClock(Instant);

impl PausedClock {
    /// A clock that begins now.
    #[allow(clippy::disallowed_methods, reason = "tokio's time is what it shows")]
    pub fn start() -> Arc<Self> {
        Arc::new(Self(Instant::now()))
    }

    /// The same clock, for [`EmbeddedMasters::with_clock`](crate::EmbeddedMasters::with_clock).
    pub fn of_masters(self: &Arc<Self>) -> WallClock {
        let clock = self.clone();
        Arc::new(move || u64::try_from(clock.wall().as_micros()).expect("it is not the end of time"))
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Moment {
        Moment::from_origin(self.0.elapsed())
    }

    fn wall(&self) -> Duration {
        BEGINNING + self.0.elapsed()
    }
}
