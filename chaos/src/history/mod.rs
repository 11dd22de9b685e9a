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
//! out later. `recorder.rs` writes lines, `read.rs` makes a [`History`] of them, which `model.rs`
//! defines; `since.rs` gives it a clock of its own.

mod line;
mod model;
mod read;
mod recorder;
mod since;

pub use line::{Call, Event, FaultRecord, Line, Lock, Micros, NoVote, Outcome, Run, Share};
pub use model::{Abstention, Change, History, Hold, Key, Made, Pause, StrangerAsked, Struck};
pub use read::{ReadError, read, read_file};
pub(crate) use recorder::micros;
pub use recorder::{Recorder, now};
