//! The doctor: finds faults of a set of masters, and says how to fix them. See
//! [`Builder::examine`](crate::Builder::examine).
//!
//! `examine.rs` asks the masters, and writes nothing. The answers are plain data. `alone.rs` judges
//! one master, `records.rs` the records, and `together.rs` all masters.

mod alone;
mod examine;
mod facts;
mod records;
mod report;
#[cfg(test)]
mod tests;
mod together;

pub(crate) use examine::{Visit, examine};
pub(crate) use facts::{Facts, Unasked, Visitor, joined, without_those_that_left};
pub use report::{Examined, Finding, Report, Severity};
pub(crate) use together::judge;
