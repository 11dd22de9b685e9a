//! The clocks of clients and masters, each a little wrong.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use quorate::Moment;
use quorate::seam::{Clock, Random};
use quorate_history::Time;
use quorate_testkit::Dice;

use crate::client::ClientNumber;
use crate::true_time::TrueTime;

/// When the runs begin, by every wall clock: a moment in 2026, in microseconds since 1970.
const EPOCH: i64 = 1_790_000_000_000_000;

/// How much too fast a clock runs, in millionths; too slowly if negative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate(pub(crate) i64);

impl Rate {
    /// What the clock shows after this time.
    fn shows(self, time: Time) -> i64 {
        let nanos = i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        i64::try_from(nanos * i128::from(1_000_000 + self.0) / 1_000_000).unwrap_or(i64::MAX)
    }

    /// When the clock shows this: the last moment at which it does not show more.
    fn shown_at(self, nanos: i64) -> Time {
        let time = i128::from(nanos) * 1_000_000 / i128::from(1_000_000 + self.0);
        Duration::from_nanos(u64::try_from(time).unwrap_or(0))
    }
}

/// A client's clocks: one that only goes forward, and the wall clock.
pub(crate) struct ClientClock {
    time: Arc<TrueTime>,
    rate: Rate,
    wall: WallClock,
    /// What the clock showed when the run began.
    origin: Duration,
}

impl ClientClock {
    pub(crate) fn new(time: Arc<TrueTime>, rate: Rate, off: i64) -> Arc<Self> {
        let wall = WallClock::new(time.clone(), rate, off);
        Arc::new(Self { time, rate, wall, origin: Duration::from_secs(1_000) })
    }

    /// The clock that somebody may set.
    pub(crate) fn wall_clock(&self) -> &WallClock {
        &self.wall
    }

    /// When it shows `moment`, in true time.
    pub(crate) fn time_of(&self, moment: Moment) -> Time {
        let shown = moment.since(Moment::from_origin(self.origin));
        self.rate.shown_at(i64::try_from(shown.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl Clock for ClientClock {
    fn now(&self) -> Moment {
        let shown = self.rate.shows(self.time.now());
        Moment::from_origin(self.origin + Duration::from_nanos(u64::try_from(shown).unwrap_or(0)))
    }

    fn wall(&self) -> Duration {
        Duration::from_micros(self.wall.micros())
    }
}

impl fmt::Debug for ClientClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientClock")
            .field("rate", &self.rate)
            .field("wall", &self.wall)
            .finish_non_exhaustive()
    }
}

/// A wall clock: a client's, or a master's, by which keys expire.
#[derive(Debug)]
pub(crate) struct WallClock {
    time: Arc<TrueTime>,
    rate: Rate,
    /// How far it is off, in microseconds.
    off: AtomicI64,
}

impl WallClock {
    pub(crate) fn new(time: Arc<TrueTime>, rate: Rate, off: i64) -> Self {
        Self { time, rate, off: AtomicI64::new(off) }
    }

    /// Microseconds since 1970, as far as it knows.
    pub(crate) fn micros(&self) -> u64 {
        let micros = EPOCH + self.off.load(Ordering::Relaxed) + self.rate.shows(self.time.now()) / 1_000;
        u64::try_from(micros).unwrap_or(0)
    }

    /// Somebody sets it.
    pub(crate) fn step(&self, micros: i64) {
        self.off.fetch_add(micros, Ordering::Relaxed);
    }
}

/// More than the fresh numbers that most clients draw.
const FRESH: u64 = 10_000;

/// Where the numbers of those begin that draw more: there are fewer clients.
const MORE: u64 = 1_000 * FRESH;

/// A client's randomness.
#[derive(Debug)]
pub(crate) struct Chance {
    dice: Dice,
    /// The first fresh number but one, and how many there were: those of owners are easier to read
    /// in this way.
    first: u64,
    drawn: AtomicU64,
}

impl Chance {
    pub(crate) fn new(dice: Dice) -> Self {
        Self { dice, first: 0, drawn: AtomicU64::new(0) }
    }

    /// The same for the client of this number: it draws no fresh number that another one draws, not
    /// even a copy of it. So the stamps of two records differ.
    pub(crate) fn of_client(self, number: ClientNumber) -> Self {
        Self { first: number as u64 * FRESH, ..self }
    }
}

impl Random for Chance {
    fn next_u64(&self) -> u64 {
        self.dice.number()
    }

    fn fresh_u64(&self) -> u64 {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed) + 1;
        self.first + drawn % FRESH + drawn / FRESH * MORE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_undone_to_the_nanosecond_or_so() {
        for rate in [-4_000, -1, 0, 1, 4_000].map(Rate) {
            for time in [0, 1, 999, 1_000_000_007, 3_600_000_000_000].map(Duration::from_nanos) {
                let back = rate.shown_at(rate.shows(time));
                assert!(back <= time && time - back <= Duration::from_nanos(1), "{rate:?} {time:?} {back:?}");
            }
        }
        assert_eq!(Rate(4_000).shows(Duration::from_secs(1)), 1_004_000_000);
    }
}
