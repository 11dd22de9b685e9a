//! What happened to locks, in a simulation or on real servers, and what must hold of it.
//!
//! - A [`History`] is what clients did and got, and what was seen meanwhile, by one clock.
//! - [`checkers`] is what must hold for every history, a property a file.
//! - [`figures`] is how available locks were meanwhile.
//!
//! The simulator and chaos write histories, and choose among the checkers. Nothing here knows
//! Quorate.

mod acquires;
pub mod checkers;
pub mod figures;
mod grouped;
mod history;
#[cfg(test)]
mod made_up;

pub use history::*;
