//! Tests of each rule, and random walks of many clients and masters that keep the rules.

mod basics;
mod begin;
mod change;
mod client;
mod fake;
mod model;
mod proposer;
#[cfg(unix)]
mod real;
mod rejoin;
mod rules;
mod sets;
mod state;
mod values;
mod view;
mod walks;
