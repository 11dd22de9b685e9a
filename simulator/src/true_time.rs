//! True time, which is tokio's: it stands still while anything runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use quorate_history::Time;
use tokio::time::Instant;

/// The time of one run, from its beginning.
#[derive(Debug)]
pub(crate) struct TrueTime {
    began: Instant,
    /// What time it is, in nanoseconds: to ask tokio each time costs a simulation some of its
    /// speed.
    now: AtomicU64,
}

impl TrueTime {
    /// In a runtime whose time is paused.
    pub(crate) fn beginning_now() -> Arc<Self> {
        Arc::new(Self { began: present(), now: AtomicU64::new(0) })
    }

    /// What time it was at the last look.
    pub(crate) fn now(&self) -> Time {
        Duration::from_nanos(self.now.load(Relaxed))
    }

    /// Looks what time it is.
    pub(crate) fn look(&self) -> Time {
        let now = present() - self.began;
        self.now.store(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        now
    }

    /// What time it was then, as an instant of tokio's.
    pub(crate) fn instant(&self) -> Instant {
        self.instant_of(self.now())
    }

    /// A time as an instant of tokio's.
    pub(crate) fn instant_of(&self, time: Time) -> Instant {
        self.began + time
    }

    /// The true time of an instant.
    pub(crate) fn time_of(&self, instant: Instant) -> Time {
        instant.saturating_duration_since(self.began)
    }
}

#[allow(clippy::disallowed_methods, reason = "tokio's time is paused: this is virtual time")]
fn present() -> Instant {
    Instant::now()
}
