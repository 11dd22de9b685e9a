//! A history: what clients did and what they got (`call.rs`, `model.rs`), and what was seen of the
//! masters and done to them (`observed.rs`). `words.rs` tells it to people, `since.rs` gives it a
//! clock of its own.

mod call;
mod model;
mod observed;
mod since;
mod time;
mod words;

pub use call::{Call, Lock, Made, Outcome, Share, Site};
pub use model::{History, Hold, Pause, Stuck, Violation};
pub use observed::{
    Abstention, Change, Decree, FaultRecord, FoundEntry, Key, Name, NoVote, OutOfReach, Place, Run,
    StrangerAsked, Struck,
};
pub use time::{Time, micros};
