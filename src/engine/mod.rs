//! The engine: rounds on all masters, quorum, leases, and the clean-up behind them. One
//! implementation serves every kind of lock; the messages to a master are those of `wire`.
//!
//! An acquire goes through these files, in this order:
//!
//! 1. `acquire.rs` checks the request (`request.rs`) in [`Engine::acquire`].
//! 2. `first.rs` waits for one attempt without a task, or `wait.rs` makes attempts until one is
//!    granted.
//! 3. `attempt.rs` owns what an attempt may leave on the masters; a waiter's place in their queues
//!    is in `queue_place.rs`.
//! 4. `dispatch.rs` sends the operation to all masters.
//! 5. `tally.rs` counts the votes; `caller_waker.rs` wakes the caller once they decide.
//! 6. `leases.rs` begins the lease of the owner's hold (`hold.rs`).
//! 7. `grant.rs` is one hold of that lease, for a guard to keep.
//!
//! Pure rules: `quorum.rs` decides a round, its token, and which of several contenders goes on;
//! `verdict.rs` makes an error of the votes; `pauses.rs` says how long a waiter sleeps.
//!
//! Of some kinds only: `permits.rs` picks a permit of a semaphore, and `counterpart.rs` knows the
//! other half of a read-write lock.
//!
//! The other operations: [`extend`](Engine::extend), which `watchdog.rs` does for every lease,
//! [`release`](Engine::release) and [`hand_over`](Engine::hand_over), a file each. `look.rs` asks
//! what the masters know of a name, and `acceptors.rs` carries proposals of the next generation of
//! their set. The operations on a set are in `admin/`.
//!
//! Below them: `clean_up.rs` sends what is left of a hold until each master acknowledges it, a
//! release as well as the undo of an attempt. `engine.rs` has the [`Engine`] with its parts and
//! runs its tasks.
//!
//! Votes are counted where they come in, which is the client's own thread but for those that are
//! known without a call. What has to go on by itself is a task there, so
//! that a caller that goes away leaves nothing half done.

mod acceptors;
mod acquire;
mod attempt;
mod caller_waker;
mod clean_up;
mod counterpart;
mod dispatch;
#[allow(clippy::module_inception, reason = "one looks for the engine here")]
mod engine;
mod epoch;
mod extend;
mod first;
mod grant;
mod hand_over;
mod hold;
mod leases;
mod look;
mod pauses;
mod permits;
mod queue_place;
mod quorum;
mod release;
mod request;
mod tally;
pub(crate) mod verdict;
mod wait;
mod watchdog;

pub(crate) use acceptors::AcceptorReply;
pub(crate) use dispatch::{CONNECTING, Forward};
pub(crate) use engine::Engine;
pub(crate) use grant::Grant;
pub(crate) use hand_over::Adoption;
pub(crate) use look::Look;
pub(crate) use quorum::quorum;
pub(crate) use request::{Polling, Request};
pub(crate) use tally::is_outdated;
