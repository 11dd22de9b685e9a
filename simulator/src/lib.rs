//! Deterministic simulation of Quorate.

pub mod checkers;
pub mod history;
