//! Time: the clock that measures leases, how long a lease lasts, what a client knows of the
//! masters' clocks, and a schedule of what is due when.
//!
//! Only `clock.rs` reads a clock.

mod clock;
mod clocks;
pub(crate) mod lease;
mod schedule;

pub use clock::{BootClock, Clock, Moment};
pub(crate) use clocks::{BAND, ClockError, Clocks};
pub(crate) use schedule::{Schedule, Scheduled};
