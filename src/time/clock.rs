//! The clock seam: the only place that reads time, but for the links' time-outs
//! (`link/driver.rs`).

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time on a clock, as the time since that clock's origin.
///
/// Only moments of the same clock can be compared: they mean nothing on another machine or after a
/// reboot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Moment(u64);

impl Moment {
    /// The moment `elapsed` after the clock's origin: to the nanosecond, up to 584 years.
    pub const fn from_origin(elapsed: Duration) -> Self {
        Self(nanos(elapsed))
    }

    /// How long after `earlier` this moment is; zero when it is not after it.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Saturates at 584 years.
const fn nanos(time: Duration) -> u64 {
    let nanos = time.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, time: Duration) -> Moment {
        Moment(self.0.saturating_add(nanos(time)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Moment;

    fn sub(self, time: Duration) -> Moment {
        Moment(self.0.saturating_sub(nanos(time)))
    }
}

/// The clock that measures leases. It never goes back, and it counts suspended time, as the TTLs on
/// the masters do.
///
/// Waits use tokio's timers. To run in virtual time, pause tokio's time and pass a clock that
/// follows it.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present moment.
    fn now(&self) -> Moment;

    /// The wall clock: the time since the Unix epoch. A handshake uses it until most masters have
    /// sent theirs.
    fn wall(&self) -> Duration;
}

/// The machine's own clock, time in suspend included.
///
/// That is `CLOCK_BOOTTIME` on Linux and Android, `CLOCK_MONOTONIC` on Apple systems, and the
/// performance counter behind `Instant` on Windows, which all count suspended time. Elsewhere it
/// may be missed: do not trust a guard there across a suspend.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl Clock for BootClock {
    #[cfg(unix)]
    fn now(&self) -> Moment {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
        let time = rustix::time::clock_gettime(CLOCK);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
        Moment::from_origin(Duration::new(seconds, nanos))
    }

    #[cfg(not(unix))]
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the seam, and QueryPerformanceCounter counts suspend"
    )]
    fn now(&self) -> Moment {
        use std::sync::OnceLock;
        use std::time::Instant;
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        Moment::from_origin(ORIGIN.get_or_init(Instant::now).elapsed())
    }

    #[allow(clippy::disallowed_methods, reason = "this is the seam")]
    fn wall(&self) -> Duration {
        use std::time::SystemTime;
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_never_underflow() {
        let early = Moment::from_origin(Duration::from_secs(1));
        let late = early + Duration::from_secs(2);
        assert_eq!(late.since(early), Duration::from_secs(2));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(early - Duration::from_secs(5), Moment::default());
        assert_eq!(late + Duration::MAX, late + Duration::MAX + Duration::from_secs(1));
    }

    #[test]
    fn the_boot_clock_does_not_go_back() {
        let first = BootClock.now();
        assert!(BootClock.now() >= first);
    }
}
