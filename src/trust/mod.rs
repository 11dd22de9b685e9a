//! Whether a master may vote: one that may have forgotten what it granted, or whose clock jumped,
//! may not.
//!
//! Plain Redlock counts whatever a master says. Here each connection begins with a [`Handshake`],
//! which tells a master that lost its memory from one that has it, and every answer carries the
//! master's time, which [`clocks`] judges. Source: Kleppmann, "How to do distributed locking"
//! (2016), which names both failures.

mod clocks;
mod handshake;
mod knowledge;
mod observed;
mod standing;
mod terms;

pub use handshake::{HELLO, Handshake, Hello, HelloOutcome, Insight, SessionHeader};
pub(crate) use knowledge::Trust;
pub use standing::{MasterStatus, Standing};
pub use terms::ColdStart;
pub(crate) use terms::{BAND, Terms};
