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
//! - `serde`: `Serialize` for [`Inspection`], [`MasterStatus`], [`Observed`], the doctor's
//!   [`Report`](doctor::Report), and their parts. The JSON is what [the command][command] prints.
//! - `unstable-testing`: what the test kit replaces. It changes no behaviour, and may change with
//!   any version.

#![cfg_attr(
    not(feature = "unstable-testing"),
    allow(unnameable_types, unreachable_pub, unused_imports, reason = "tests reach it with the feature")
)]

mod admin;
mod backoff;
pub mod blocking;
mod builder;
mod client;
pub mod compat;
pub mod config;
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
#[cfg(feature = "serde")]
mod json;
mod link;
mod lock;
mod observer;
mod owner;
#[cfg(doc)]
pub mod pages;
mod random;
mod renewal;
mod round;
mod set;
mod shutdown;
mod source;
mod sync;
mod text;
mod time;
mod vote;
mod wake;
mod wire;

pub use admin::{Init, SetChange, SetError, doctor};
pub use builder::Builder;
pub use client::Redlock;
pub use election::{Election, Leadership};
pub use error::{Error, ErrorKind, Holder, Loss};
pub use guard::Guard;
pub use handover::Handover;
pub use held::{HeldPart, LockKind, Part};
pub use inspection::{Inspection, Listing, LockState};
pub use invalid::Invalid;
pub use lock::Lock;
pub use observer::{Leader, Observed, Observer};
pub use owner::Owner;
pub use set::{MasterStatus, Standing};
pub use shutdown::{Shutdown, Unconfirmed};
pub use source::Source;
pub use time::Moment;
pub use tokio_util::sync::CancellationToken;
pub use vote::{Outcome, Permits, Refusal, Silence, Vote, Votes};

/// What a test replaces: time, the masters, randomness, the executor of the engine's tasks, and the
/// link to a master, which a simulator drives. It may change with any version.
#[cfg(feature = "unstable-testing")]
pub mod seam {
    pub use crate::executor::Spawn;
    pub use crate::link::{
        Delivery, LinkState, Master, Message, Pending, Reach, Subscriber, SubscriptionEvent, connect,
    };
    pub use crate::random::{Random, SystemRandom};
    pub use crate::round::QuorumFirstCounts;
    pub use crate::set::{Contact, HELLO, Handshake, Hello, HelloOutcome, RECORD, SessionHeader};
    pub use crate::time::{BootClock, Clock};
    pub use crate::wire::{
        Call, CallKind, Failure, Layer, MasterIndex, NOT_HANDLED, ReplySink, SCRIPTS, Script, ScriptPart,
        Value, WordIter, Words,
    };
}
