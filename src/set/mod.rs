//! Which masters may vote: one that may have forgotten what it granted, or whose clock jumped, may
//! not.
//!
//! Plain Redlock counts every vote. Here each connection begins with a [`Handshake`], which finds
//! out whether the master still has what it granted; and every answer that could grant something
//! carries the master's time, which [`Clocks`](crate::time::Clocks) judges. [`Trust`] keeps what
//! came of both. Source: Kleppmann, "How to do distributed locking" (2016), which names both
//! failures.

mod begin;
mod change;
mod handle;
mod handshake;
mod knowledge;
mod peer;
mod proposer;
mod record;
mod rejoin;
mod rules;
mod standing;
mod state;
mod terms;
#[cfg(test)]
mod tests;
mod view;
mod voters;
mod write;

pub(crate) use change::{Choice, LeaseBarrier, Promises};
pub(crate) use handle::Event;
pub use handshake::{HELLO, Handshake, Hello, HelloOutcome, RECORD, SessionHeader};
pub(crate) use knowledge::{TimePrecision, Trust, VAGUE};
pub(crate) use peer::Reading;
pub(crate) use proposer::{Accepted, Ballot, Proposal};
pub(crate) use record::{MasterRecord, MemberState, Members};
pub(crate) use rules::Verdict;
pub use standing::{Contact, MasterStatus, Standing};
pub(crate) use state::{Beginning, Set};
pub(crate) use terms::Terms;
pub(crate) use voters::Voters;
pub(crate) use write::{AcceptorWrite, FreshIds, RecordWrite, id};
