//! The engine: what is asked in rounds (`round/`), leases, and the clean-up behind them. One
//! implementation serves every kind of lock; the messages to a master are those of `wire/`.
//!
//! An acquire goes through these files, in this order:
//!
//! 1. `acquire.rs` checks the request (`request.rs`) in [`Engine::acquire`].
//! 2. `first.rs` waits for one attempt without a task, or `wait.rs` makes attempts until one is
//!    granted.
//! 3. `attempt.rs` owns what an attempt may leave on the masters; a waiter's place in their queues
//!    is in `queue_place.rs`.
//! 4. `round/` sends the operation to all masters, counts the votes, and wakes the caller once they
//!    decide.
//! 5. `leases.rs` begins the lease of the owner's hold (`hold.rs`).
//! 6. `grant.rs` is one hold of that lease, for a guard to keep.
//!
//! `pauses.rs`, pure, says how long a waiter sleeps. Of some kinds only: `permits.rs` picks a
//! permit of a semaphore, and `counterpart.rs` knows the other half of a read-write lock.
//!
//! The other operations: [`extend`](Engine::extend), which `watchdog.rs` does for every lease,
//! [`release`](Engine::release) and [`hand_over`](Engine::hand_over), a file each. `look.rs` asks
//! what the masters know of a name. The operations on a set are in `admin/`.
//!
//! Below them: `clean_up.rs` sends what is left of a hold until each master acknowledges it, a
//! release as well as the undo of an attempt. `engine.rs` has the [`Engine`] with its parts and
//! runs its tasks.
//!
//! Votes are counted where they come in, which is the client's own thread but for those that are
//! known without a call. What has to go on by itself is a task there, so that a caller that goes
//! away leaves nothing half done.

mod acquire;
mod attempt;
mod clean_up;
mod counterpart;
#[allow(clippy::module_inception, reason = "one looks for the engine here")]
mod engine;
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
mod release;
mod request;
mod wait;
mod watchdog;

pub(crate) use engine::Engine;
pub(crate) use grant::Grant;
pub(crate) use hand_over::Adoption;
pub(crate) use look::Look;
pub(crate) use request::{Polling, Request};
