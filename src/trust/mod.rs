//! Whether a master may vote: one that may have forgotten what it granted, or whose clock jumped,
//! may not.
//!
//! Plain Redlock counts every vote. Here each connection begins with a [`Handshake`], which finds
//! out whether the master still has what it granted; and every answer that could grant something
//! carries the master's time, which [`clocks`] judges. [`Trust`] keeps what came of both. Source:
//! Kleppmann, "How to do distributed locking" (2016), which names both failures.

mod clocks;
mod decree;
mod handshake;
mod knowledge;
mod membership;
mod record;
mod standing;
mod terms;
mod voters;

pub(crate) use decree::{Accepted, Ballot, Proposal};
pub use handshake::{HELLO, Handshake, Hello, HelloOutcome, RECORD, SessionHeader};
pub(crate) use knowledge::{TimePrecision, Trust};
pub(crate) use membership::{Beginning, Change, Decree, HelloStep, Membership, Shown};
pub(crate) use record::{MasterRecord, MemberState, Members};
pub use standing::{Contact, MasterStatus, Standing};
pub(crate) use terms::{BAND, Terms};
pub(crate) use voters::Voters;
