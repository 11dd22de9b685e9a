//! A run: masters, clients that work, the faults of a plan, and what their history shows.
//!
//! `trial.rs` is a run of a [scenario](crate::scenario), `stage.rs` its masters and clients, for
//! runs of other kinds as well; `client.rs` is what a client process does, `verdict.rs` what all
//! checkers say, `members.rs` the changes of a set, `stop.rs` ends it early.

mod client;
mod members;
mod stage;
mod stop;
mod trial;
mod verdict;

pub use client::{Job, Role};
pub use stage::{Setting, Stage, client_of};
pub use stop::Stop;
pub use trial::{Phase, Trial, TrialOutcome};
pub use verdict::Verdict;
