//! Deterministic simulation of Quorate: the real engine and the real Lua scripts, on simulated
//! masters, clients, clocks and networks. One seed decides everything that happens.

mod actor;
mod calm;
mod changer;
mod changes;
mod client;
mod clocks;
mod cut_short;
mod disaster;
mod disruption;
mod entries;
mod faults;
mod founder;
mod hearing;
mod late;
mod left;
mod link;
mod listening;
mod lists;
mod locks;
mod lone;
mod look;
mod lost_sets;
mod member_change;
mod pipe;
mod plan;
mod process;
mod recorder;
mod resource;
mod run;
mod server;
mod shrink;
mod size;
mod stage;
mod strike;
mod trace;
mod true_time;
mod world;

pub use faults::{Kind, Profile};
pub use locks::Locks;
pub use lone::Lone;
pub use plan::Plan;
pub use run::{Run, run};
pub use shrink::{Shrunk, shrink};
pub use size::{CLIENTS, MASTERS, OPERATIONS};
pub use world::{PANIC, words_of};
