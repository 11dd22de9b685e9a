//! Chaos for real: redis-servers and client processes, the faults to put them through, and what must hold all the same.
//!
//! - [`Arena`] is masters behind fault proxies, and client processes.
//! - [`nemesis`] is the faults: each is a value that [strikes](nemesis::Fault::strike) an arena and is healed again.
//! - [`scenario`] is what may go wrong in a run, and [`Plan`] which faults there are, and when: one seed decides.
//! - [`workload`] is what a client process does with locks of all kinds, and writes down.
//! - [`naive`] is locks that are known to be wrong: the same finds what is wrong with them.
//! - [`history`] is what clients were told, and when, as JSON lines that others can check as well.
//! - [`run`] is all of it together: a stage is set, a plan carried out, and the history read.
//! - [`checkers`] is what must hold for every history, a property a file.
//! - [`figures`] is how available locks were meanwhile.
//!
//! It takes what the test kit takes: `redis-server`, a C compiler, and Linux.

mod arena;
pub mod checkers;
pub mod figures;
pub mod history;
pub mod naive;
pub mod nemesis;
mod persistence;
mod plan;
pub mod run;
pub mod scenario;
pub mod workload;

pub use arena::{Arena, Client};
pub use persistence::Persistence;
pub use plan::{Event, Plan, Planned};
