//! Deterministic simulation of Quorate: the real engine and the real Lua scripts, on simulated masters, clients, clocks and
//! networks. One seed decides everything that happens.

mod actor;
mod calm;
pub mod checkers;
mod clocks;
mod entries;
mod faults;
mod hearing;
pub mod history;
mod link;
mod locks;
mod lone;
mod pipe;
mod plan;
mod process;
mod recorder;
mod resource;
mod run;
mod server;
mod shrink;
mod stage;
mod trace;
mod world;

pub use faults::Kind;
pub use locks::Locks;
pub use lone::Lone;
pub use plan::{CLIENTS, MASTERS, OPERATIONS, Plan, Profile};
pub use run::{Run, run};
pub use shrink::{Shrunk, shrink};
pub use world::{PANIC, words_of};
