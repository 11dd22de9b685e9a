//! A distributed lock that is held when a majority of N independent Redis masters say so.
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
//! with the vote of the master that completes the majority, and never waits for a slow or dead one.
//! What it leaves on the masters when it fails, is cancelled or cannot be heard, is cleaned up
//! behind its back.
//!
//! While its guard lives, a lease is renewed in the background. When it can no longer be kept, the
//! guard [says so](Guard::lost) while the lease still stands. A caller that waits for a lock stands
//! in a queue and is woken by its release.
//!
//! - [`Redlock`] is the client, [`Lock`] a lock by its name, [`Guard`] a held one, [`Owner`] who
//!   holds it.
//! - [`Election`] is a lock for a leader among candidates; [`Leadership`] leads, [`Observer`]
//!   follows who does.
//! - [`blocking`] says how to do the same without async: `acquire_blocking` and so on.
//! - [`Error`] is split by what to do next, and carries every master's [`Vote`].
//! - [`fence`] is how that which a lock protects refuses a holder that comes too late.
//! - [`doctor`] says what is wrong with a set of masters, and how to mend it: [`Builder::examine`].
//! - [`Redlock::from_env`] reads what the command reads: see [`env`](mod@env).
//! - [`config`] has the limits and defaults, with their reasons; [`seam`] what a simulator
//!   replaces.
//!
//! # What it promises
//!
//! While a guard [is valid](Guard::is_valid) no other owner gets the same lock, though a master
//! restarts without its keys, has its clock stepped, or is flushed: it has no vote until whatever
//! it granted is over. Clocks must run at the same rate to within a hundredth, and every client
//! must list the same masters. Each grant has a [fencing token](Guard::fencing_token), for what the
//! lock protects to refuse a holder that comes too late. docs/SAFETY.md says what that rests on,
//! and what is not protected.
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
mod observer;
mod owner;
mod protocol;
mod random;
mod renewal;
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
pub use shutdown::{Shutdown, Untold};
pub use trust::{ColdStart, MasterStatus, Standing};
pub use vote::{Outcome, Permits, Refusal, Silence, Vote, Votes};

/// What a test replaces: time, and the masters. With the feature `simulation` also what a simulator
/// replaces and drives: randomness, what runs the engine's tasks, and the link to a master.
pub mod seam {
    pub use crate::clock::{BootClock, Clock};
    #[cfg(feature = "simulation")]
    pub use crate::executor::Spawn;
    pub use crate::master::{
        Call, CallKind, Contact, Failure, Layer, Master, ReplySink, Script, ScriptPart, Subscriber,
        SubscriptionEvent, Value, WordIter, Words,
    };
    #[cfg(feature = "simulation")]
    pub use crate::master::{Delivery, LinkState, Message, Pending, Reach, connect};
    pub use crate::protocol::SCRIPTS;
    #[cfg(feature = "simulation")]
    pub use crate::random::{Random, SystemRandom};
    pub use crate::source::Source;
    pub use crate::trust::{HELLO, Handshake, Hello, HelloOutcome, Insight, SessionHeader};
}
