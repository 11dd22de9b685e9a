//! What is wrong with a set of masters, and how to mend it: see
//! [`Builder::examine`](crate::Builder::examine).
//!
//! Masters are asked by `src/master/examine.rs`, which writes nothing there. What they answered are
//! plain facts, and what follows from them is decided here, without asking anybody: `alone.rs`
//! looks at one master, `together.rs` at all of them.

mod alone;
mod facts;
mod report;
#[cfg(test)]
mod tests;
mod together;

pub(crate) use facts::{ClockLook, Denied, Facts, Info, Kept, Marker, Server, Unasked, Visitor};
pub use report::{Examined, Finding, Report, Severity};
pub(crate) use together::judge;
