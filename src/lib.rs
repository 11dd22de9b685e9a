//! [command]: crate::pages::command
//! [operations]: crate::pages::operations
//! [performance]: crate::pages::performance
//! [protocol]: crate::pages::protocol
//! [safety]: crate::pages::safety
#![doc = include_str!("../README.md")]
//!
//! # The API
//!
//! - [`Redlock`] is the client, [`Lock`] a lock by its name, [`Guard`] a held lock, [`Owner`] its
//!   holder. [`Redlock`] lists the kinds of locks.
//! - [`Election`] elects a leader among candidates. [`Leadership`] is the leader's guard. An
//!   [`Observer`] follows who leads.
//! - [`Error`] is split by what to do next, and carries every master's [`Vote`].
//! - [`blocking`] explains the methods without async, such as `acquire_blocking`.
//! - [`fence`] lets a resource refuse a holder that comes too late.
//! - [`doctor`] finds what is wrong with a set of masters, and how to fix it.
//! - [`env`](mod@env) has the command's environment variables, [`config`] the limits and defaults
//!   with their reasons.
//!
//! # Features
//!
//! - `tls`: `rediss://` URLs, by rustls.
//! - `redis`: masters by a `ConnectionInfo` of the redis crate.
//! - `unstable-testing`: what the test kit replaces. It changes no behaviour, and may change with
//!   any version.

#![cfg_attr(
    not(feature = "unstable-testing"),
    allow(unnameable_types, unreachable_pub, unused_imports, reason = "tests reach it with the feature")
)]

mod backoff;
pub mod blocking;
mod builder;
mod client;
mod clock;
pub mod compat;
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
#[cfg(doc)]
pub mod pages;
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
pub use guard::Guard;
pub use handover::Handover;
pub use held::{HeldPart, LockKind, Part};
pub use inspection::{Inspection, Listing};
pub use invalid::Invalid;
pub use lock::Lock;
pub use observer::{Leader, Observed, Observer};
pub use owner::Owner;
pub use set::{Init, SetChange, SetError};
pub use shutdown::{Shutdown, Unconfirmed};
pub use source::Source;
pub use tokio_util::sync::CancellationToken;
pub use trust::{MasterStatus, Standing};
pub use vote::{Outcome, Permits, Refusal, Silence, Vote, Votes};

/// What a test replaces: time, the masters, randomness, the executor of the engine's tasks, and the
/// link to a master, which a simulator drives. It may change with any version.
#[cfg(feature = "unstable-testing")]
pub mod seam {
    pub use crate::clock::{BootClock, Clock};
    pub use crate::executor::Spawn;
    pub use crate::master::{
        Call, CallKind, Delivery, Failure, Layer, LinkState, Master, Message, NOT_HANDLED, Pending, Reach,
        ReplySink, Script, ScriptPart, Subscriber, SubscriptionEvent, Value, WordIter, Words, connect,
    };
    pub use crate::protocol::SCRIPTS;
    pub use crate::random::{Random, SystemRandom};
    pub use crate::trust::{Contact, HELLO, Handshake, Hello, HelloOutcome, RECORD, SessionHeader};
}
