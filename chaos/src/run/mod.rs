//! A run: masters, clients that work, the faults of a plan, and what their history shows.
//!
//! `stage.rs` sets it up and takes it through its parts, `client.rs` is what a client process does, `stop.rs` ends it early.

mod client;
mod stage;
mod stop;

pub use client::{Job, Role};
pub use stage::{Setting, Stage};
pub use stop::Stop;
