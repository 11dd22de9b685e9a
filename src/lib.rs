//! A distributed lock that is held when a majority of N independent Redis masters grant it.
//!
//! ```
//! # async fn pay(invoice: u32) -> Result<(), Box<dyn std::error::Error>> { Ok(()) }
//! # quorate_testkit::doc(|masters| async move {
//! use quorate::Redlock;
//!
//! let redlock = Redlock::builder().masters(masters).build()?; // redis://10.0.0.1, redis://10.0.0.2, ...
//! let guard = redlock.lock("invoice:42").acquire().await?;
//! guard.run(pay(42)).await?; // nobody else has invoice:42; the work is dropped before that could change
//! guard.release().await?; // or drop it: released in the background
//! # Ok::<(), Box<dyn std::error::Error>>(()) });
//! ```
//!
//! One acquire is one script, sent to all masters at once (a round, as in [Redlock]). It returns
//! with the vote that completes the majority, and waits for no slow or dead master that a majority
//! does not need. When it
//! fails, is cancelled or gets no answer, the client removes in the background what it left on the
//! masters.
//!
//! While its guard lives, a lease is renewed in the background. If it cannot be renewed, the guard
//! [reports the loss](Guard::lost) before the lease ends. A caller that waits for a lock is queued,
//! and the release wakes it.
//!
//! - [`Redlock`] is the client, [`Lock`] a lock by its name, [`Guard`] a held lock, [`Owner`] its
//!   holder.
//! - [`Election`] elects a leader among candidates; [`Leadership`] is the leader's guard, and an
//!   [`Observer`] follows who leads.
//! - [`blocking`] explains the methods without async: `acquire_blocking` and so on.
//! - [`Error`] is split by what to do next, and carries every master's [`Vote`].
//! - [`fence`] lets a protected resource refuse a holder that comes too late.
//! - [`doctor`] finds what is wrong with a set of masters, and how to fix it: [`Builder::examine`].
//! - [`Redlock::from_env`] reads the command's environment variables: see [`env`](mod@env).
//! - [`config`] has the limits and defaults, with their reasons; [`seam`] what tests replace.
//!
//! # What it promises
//!
//! While a guard [is valid](Guard::is_valid) no other owner gets the same lock, even if a master
//! restarts without its keys, is flushed, or its clock is stepped: such a master has no vote until
//! all that it granted is over. Clocks must run at the same rate to within a hundredth, and every
//! client must list the masters of the same set. Each grant has a [fencing
//! token](Guard::fencing_token), by which a resource refuses a holder that comes too late.
//! docs/SAFETY.md lists the assumptions, and what is not protected.
//!
//! # Features
//!
//! - `tls`: `rediss://` URLs, by rustls.
//!
//! [Redlock]: https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/

#![cfg_attr(
    not(feature = "simulation"),
    allow(unreachable_pub, reason = "what is for simulators can be reached with the feature")
)]

mod backoff;
pub mod blocking;
mod builder;
mod client;
mod clock;
pub mod config;
pub mod doctor;
mod election;
mod engine;
pub mod env;
mod error;
mod executor;
pub mod fence;
mod guard;
mod handover;
mod held;
mod inner;
mod inspection;
mod invalid;
mod lease;
mod lock;
mod master;
mod master_set;
mod observer;
mod owner;
mod protocol;
mod random;
mod renewal;
mod set;
mod shutdown;
mod source;
mod sync;
mod text;
mod trust;
mod vote;
mod wake;

pub use builder::Builder;
pub use client::Redlock;
pub use clock::Moment;
pub use election::{Election, Leadership};
pub use error::{Error, ErrorKind, Holder, Loss};
pub use guard::{Fenced, Guard, Unfenced};
pub use handover::Handover;
pub use held::{HeldPart, LockKind, Part};
pub use inspection::{Inspection, Listing};
pub use invalid::Invalid;
pub use lock::Lock;
pub use observer::{Leader, Observed, Observer};
pub use owner::Owner;
pub use set::{Init, SetChange};
pub use shutdown::{Shutdown, Unconfirmed};
pub use trust::{MasterStatus, Standing};
pub use vote::{Outcome, Permits, Refusal, Silence, Vote, Votes};

/// What a test replaces: time and the masters; with the feature `simulation` also randomness, the
/// executor of the engine's tasks, and the link to a master, which a simulator drives.
pub mod seam {
    pub use crate::clock::{BootClock, Clock};
    #[cfg(feature = "simulation")]
    pub use crate::executor::Spawn;
    pub use crate::master::{
        Call, CallKind, Failure, Layer, Master, NOT_HANDLED, ReplySink, Script, ScriptPart, Subscriber,
        SubscriptionEvent, Value, WordIter, Words,
    };
    #[cfg(feature = "simulation")]
    pub use crate::master::{Delivery, LinkState, Message, Pending, Reach, connect};
    pub use crate::protocol::SCRIPTS;
    #[cfg(feature = "simulation")]
    pub use crate::random::{Random, SystemRandom};
    pub use crate::source::Source;
    pub use crate::trust::{Contact, HELLO, Handshake, Hello, HelloOutcome, RECORD, SessionHeader};
}
