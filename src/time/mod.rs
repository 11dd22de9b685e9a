//! Time: the clock that measures leases, how long a lease lasts, and what a client knows of the
//! masters' clocks.
//!
//! Only `clock.rs` reads a clock. The rest is arithmetic.

mod clock;
mod clocks;
pub(crate) mod lease;

pub use clock::{BootClock, Clock, Moment};
pub(crate) use clocks::{BAND, ClockError, Clocks};
