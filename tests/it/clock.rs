//! A clock that tests put in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorate::Moment;
use quorate::seam::{BootClock, Clock};

use crate::ms;

/// The machine's clock, with jumps: what a process sees that stood still, or was suspended.
#[derive(Debug, Default)]
pub(crate) struct Jumping(AtomicU64);

impl Jumping {
    pub(crate) fn jump(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for Jumping {
    fn now(&self) -> Moment {
        BootClock.now() + ms(self.0.load(Ordering::SeqCst))
    }

    fn wall(&self) -> Duration {
        BootClock.wall()
    }
}
