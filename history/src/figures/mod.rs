//! Figures of a history: what came of calls, how long acquires took, and how long nobody got a lock
//! though enough masters were well. All of it is pure.
//!
//! `counts.rs` counts calls, `latency.rs` says how long they took, `over_time.rs` says the same of
//! each part of a run and `changes.rs` of each change of the set, `health.rs` is when enough
//! masters were well, `waited.rs` whether those got a lock that were ready to wait.

mod changes;
mod counts;
mod health;
mod latency;
mod over_time;
mod waited;

pub use changes::{Stretch, changes, held_throughout};
pub use counts::{Answers, Counts, by_kind};
pub use health::{healthy, longest_without_grant};
pub use latency::{latencies, percentile};
pub use over_time::{Slot, over_time};
pub use waited::{Waited, waited};
