//! One line.

use quorate_history::{Call, FaultRecord, NoVote, Outcome, Run, Time, micros};
use serde::{Deserialize, Serialize};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When.
    #[serde(with = "micros")]
    pub at: Time,
    /// Which process says so: a name that no other one has, nor the same one after it was started
    /// again.
    pub process: String,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A run begins: the first line of its history.
    Run(Run),
    /// A call is about to be made.
    Invoke {
        /// Its number in its process.
        number: u64,
        /// What it is.
        call: Call,
    },
    /// A call has returned.
    Return {
        /// Which one.
        number: u64,
        /// What it said.
        outcome: Outcome,
        /// The masters that had no vote in the last round of an acquire.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        no_vote: Vec<NoVote>,
    },
    /// A lease has another deadline: it was renewed.
    Deadline {
        /// The number of the call that acquired it.
        hold: u64,
        /// The new one.
        #[serde(with = "micros")]
        deadline: Time,
    },
    /// A holder learned that its lease is lost, or over.
    Lost {
        /// The number of the call that acquired it.
        hold: u64,
    },
    /// A process stands still.
    Paused {
        /// Which one.
        #[serde(rename = "whom")]
        process: String,
    },
    /// A process goes on.
    Resumed {
        /// Which one.
        #[serde(rename = "whom")]
        process: String,
    },
    /// A process was killed.
    Killed {
        /// Which one.
        #[serde(rename = "whom")]
        process: String,
    },
    /// A fault strikes.
    Strikes {
        /// Which one.
        fault: FaultRecord,
    },
    /// One of the masters of a fault is healed, and others are not yet.
    Recovers {
        /// Which fault.
        fault: FaultRecord,
        /// Which master.
        master: usize,
    },
    /// A fault has been healed.
    Healed {
        /// Which one.
        fault: FaultRecord,
    },
    /// The set of masters is about to be changed.
    Changes {
        /// How, in words.
        what: String,
    },
    /// The change has been made.
    Changed,
    /// A client with another list of masters has asked for a lock.
    Stranger {
        /// Why it did not get it; `None` if it did.
        why: Option<String>,
    },
    /// Everything is healed.
    Calm,
    /// Nobody holds, waits for, or asks for anything any more.
    Quiet,
    /// A key was seen on a master.
    Key {
        /// Which master.
        master: usize,
        /// Its name.
        key: String,
        /// How much longer it lives, in microseconds; `None` for one that never expires.
        ttl: Option<u64>,
    },
}
