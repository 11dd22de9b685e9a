//! What clients did and what they got, and when. Several processes of one host write it to one
//! file, a JSON object a line, in microseconds of the clock that all of them share: the time since
//! the host was started, suspend included.
//!
//! ```json
//! {"at":71000250,"process":"client-0","event":"invoke","number":7,"call":{"do":"acquire","lock":{"kind":"mutex","names":["l"],"share":"exclusive"},"ttl":2000000,"wait":500000}}
//! {"at":71000900,"process":"client-0","event":"return","number":7,"outcome":{"is":"granted","owner":"9f0c:1","deadline":72978000,"fence":1763812345678901}}
//! ```
//!
//! Every call has a line before it is made, and one when it has returned. One that has no second
//! line is a call whose outcome nobody knows, as that of a process that was killed, and so is one
//! that has returned and says that it does not know: it may have been carried out, or be carried
//! out later. `recorder.rs` writes lines, and `read.rs` makes a [`History`] of them.

mod line;
mod read;
mod recorder;

pub use line::{Event, Line};
pub use quorate_history::{
    Abstention, Call, Change, FaultRecord, History, Hold, Key, Lock, Made, NoVote, Outcome, Pause, Run,
    Share, StrangerAsked, Struck, Time, Violation,
};
pub use read::{ReadError, read, read_file};
pub use recorder::{Recorder, now};
