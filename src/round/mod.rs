//! A round: one operation sent to all masters, or to some. This layer sends it, counts the votes,
//! and decides. It does not know what the client holds.
//!
//! - `dispatch.rs`: the [`Dispatcher`] sends operations. It also connects to the masters and learns
//!   the time.
//! - `tally.rs`: a [`Round`] counts the votes on one operation, and tells its caller when they
//!   decide.
//! - `quorum.rs`, pure: the [`Decision`], its token, and which of several contenders goes on.
//! - `verdict.rs`, pure: the error that the votes of a denied round amount to.
//! - `preference.rs`: whom a round asks first, if it asks a quorum first.
//! - `epoch.rs`: an [`Epoch`] says whether an operation that was not sent yet is still wanted.
//! - `caller_waker.rs` wakes the callers whose rounds are decided.
//! - `acceptors.rs` carries proposals of the next generation of the set.

mod acceptors;
mod caller_waker;
mod dispatch;
mod epoch;
mod preference;
mod quorum;
mod tally;
pub(crate) mod verdict;

pub(crate) use acceptors::AcceptorReply;
pub(crate) use caller_waker::CallerWaker;
pub(crate) use dispatch::{CONNECTING, Dispatcher, Forward};
pub(crate) use epoch::{Epoch, EpochCounter};
#[cfg(feature = "unstable-testing")]
pub use preference::QuorumFirstCounts;
pub(crate) use quorum::{Contest, Decision, Tokens, free_permits, has_free_permit, quorum};
pub(crate) use tally::{CleanUpDue, Deferred, Round, VoteCleanUp, is_outdated};
