//! A clock that tests put in.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate::Moment;
use quorate::seam::{BootClock, Clock};
use quorate_testkit::EmbeddedMasters;

/// How long before its end a lease that nobody renews is told to be lost, for the TTLs of these
/// tests: a twentieth of them, up to a second.
pub(crate) const NOTICE: Duration = Duration::from_secs(1);

/// What masters show as the time when the machine starts (us since 1970).
const EPOCH: u64 = 1_700_000_000_000_000;

/// The machine's clock, with jumps: what a process sees that stood still, or was suspended. It can
/// stand still as well: what has to happen before some moment then has all the time that a busy
/// machine takes.
#[derive(Debug, Default)]
pub(crate) struct Jumping(Mutex<Time>);

#[derive(Debug, Default)]
struct Time {
    ahead: Duration,
    stands_at: Option<Moment>,
}

impl Jumping {
    pub(crate) fn jump(&self, by: Duration) {
        let mut time = self.time();
        match &mut time.stands_at {
            Some(at) => *at = *at + by,
            None => time.ahead += by,
        }
    }

    /// Stands still at this moment, until it jumps or goes on.
    pub(crate) fn stand_at(&self, moment: Moment) {
        self.time().stands_at = Some(moment);
    }

    /// Runs again, from the moment at which it stands.
    pub(crate) fn go_on(&self) {
        let mut time = self.time();
        if let Some(at) = time.stands_at.take() {
            time.ahead = at.since(BootClock.now());
        }
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Masters in this process whose clocks are this one: whatever it does, nobody's clock is off. All
/// stand still.
pub(crate) fn masters_by(clock: &Arc<Jumping>, count: usize) -> EmbeddedMasters {
    clock.stand_at(BootClock.now());
    let its = clock.clone();
    let micros = move || its.now().since(Moment::default()).as_micros() as u64;
    EmbeddedMasters::with_clock(count, Arc::new(move || EPOCH + micros()))
}

impl Clock for Jumping {
    fn now(&self) -> Moment {
        let time = self.time();
        time.stands_at.unwrap_or_else(|| BootClock.now() + time.ahead)
    }

    fn wall(&self) -> Duration {
        BootClock.wall()
    }
}
