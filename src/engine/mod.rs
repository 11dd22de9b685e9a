//! The engine: rounds on all masters, quorum, leases, and the clean-up behind them. One
//! implementation for every kind of lock; what is asked of a master, and in which words, is
//! `protocol`.
//!
//! [`Engine`] is a dispatcher, leases and waiters. The dispatcher (`dispatch.rs`) asks all masters
//! the same, and `tally.rs` counts what they answer; whether that is decided is `quorum.rs`, what
//! the votes mean `verdict.rs`, and to a waiter `arbitration.rs`. What is held, until when, is
//! `leases.rs`, and `watchdog.rs` renews it. `waiters.rs` has who waits, and `undo.rs` takes back
//! what may have been left on a master: how hard it tries is `effort.rs`. `permits.rs` picks the
//! permit of a semaphore that is asked for, and `foreign.rs` says how often to ask while a client
//! of another library has the lock. A set of masters is `master_set.rs`.
//!
//! The operations, a file each, are [`acquire`](Engine::acquire), [`extend`](Engine::extend),
//! [`release`](Engine::release), [`hand_over`](Engine::hand_over), [`inspect`](Engine::inspect) and
//! [`list`](Engine::list). Their votes are counted on the client's own thread, and what has to go
//! on by itself is a task there, so that a caller that goes away leaves nothing half done.

mod acquire;
mod arbitration;
mod attempt;
mod counterpart;
mod dispatch;
mod effort;
mod extend;
mod first;
mod foreign;
mod grant;
mod hand_over;
mod hold;
mod inspect;
mod leases;
mod list;
mod master_set;
mod parts;
mod permits;
mod quorum;
mod release;
mod request;
mod tally;
mod tokens;
mod undo;
mod verdict;
mod wait;
mod waiters;
mod wake_batcher;
mod watchdog;

pub(crate) use grant::Grant;
pub(crate) use hand_over::Adoption;
pub(crate) use inspect::Sighting;
pub(crate) use list::Progress;
pub(crate) use parts::Engine;
pub(crate) use quorum::quorum;
pub(crate) use request::{Polling, Request};
