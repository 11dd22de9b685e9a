//! What is wrong with a set of masters, and how to fix it: see
//! [`Builder::examine`](crate::Builder::examine).
//!
//! `src/master/examine.rs` asks the masters, and writes nothing there. From their answers, which
//! are plain data, this module decides: `alone.rs` looks at one master, `together.rs` at all of
//! them.

mod alone;
mod facts;
mod report;
#[cfg(test)]
mod tests;
mod together;

pub(crate) use facts::{ClockLook, Denied, Facts, Info, Kept, Marker, Server, Unasked, Visitor};
pub use report::{Examined, Finding, Report, Severity};
pub(crate) use together::judge;
