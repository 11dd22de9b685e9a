//! What is wrong with a set of masters, and how to fix it: see
//! [`Builder::examine`](crate::Builder::examine).
//!
//! `src/master/examine.rs` asks the masters, and writes nothing there. From their answers, which
//! are plain data, this module decides: `alone.rs` looks at one master, `records.rs` at what their
//! records say, `together.rs` at all of them.

mod alone;
mod facts;
mod records;
mod report;
#[cfg(test)]
mod tests;
mod together;

pub(crate) use facts::{
    ClockLook, Denied, Facts, FoundRecord, Info, Server, Unasked, Visitor, joined, without_those_that_left,
};
pub use report::{Examined, Finding, Report, Severity};
pub(crate) use together::judge;
