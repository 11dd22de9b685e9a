//! One line.

use serde::{Deserialize, Serialize};

/// Microseconds since the host was started.
pub type Micros = u64;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When.
    pub at: Micros,
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
        deadline: Micros,
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
        /// How much longer it lives; `None` for one that never expires.
        ttl: Option<Micros>,
    },
}

/// What a history is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The version of Quorate.
    pub version: String,
    /// What may go wrong.
    pub scenario: String,
    /// What decided which faults there are.
    pub seed: u64,
    /// For how long faults begin.
    pub duration: Micros,
    /// What is locked by: `quorate`, `textbook`, ...
    pub subject: String,
    /// The kinds of locks, where the subject has several.
    pub kinds: Vec<String>,
    /// How many masters there are.
    pub masters: usize,
    /// Whether they are containers of a compose file.
    pub compose: bool,
    /// How many client processes there are.
    pub clients: usize,
    /// How long leases last.
    pub ttl: Micros,
    /// How many leases clients hold all the time, at least: none but where the set changes.
    #[serde(default)]
    pub leases: usize,
}

/// A master that had no vote in an acquire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoVote {
    /// Which one.
    pub master: usize,
    /// Why not: `quarantine`, `forgot`, `clock`, `unreachable`, `no answer`, ...
    pub why: String,
}

/// A fault, and what it strikes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// Its number in the plan, if it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// Of which family it is: `servers`, `network`, ...
    pub family: String,
    /// In words.
    pub what: String,
    /// The masters that have it.
    pub masters: Vec<usize>,
    /// The clients that have it; together with masters, those whose ways to them have it.
    pub clients: Vec<usize>,
}

/// What is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Call {
    /// A lock is asked for.
    Acquire {
        /// Which one.
        lock: Lock,
        /// For how long it is to be held without being renewed.
        ttl: Micros,
        /// For how long its caller is ready to wait; 0 is to try once.
        wait: Micros,
    },
    /// A lease is to be longer.
    Extend {
        /// The number of the call that acquired it.
        hold: u64,
        /// How long it is to last from now.
        ttl: Micros,
    },
    /// A guard is given back, or dropped.
    Release {
        /// The number of the call that acquired it.
        hold: u64,
    },
    /// Something is written to a store that checks fencing tokens.
    Write {
        /// What a lock protects there.
        resource: String,
        /// The writer's token.
        fence: u64,
    },
}

/// A lock, of any kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lock {
    /// What kind it is: locks of one kind and name are one.
    pub kind: String,
    /// Its name, or all of them where it has several at once.
    pub names: Vec<String>,
    /// Who may hold it at the same time.
    pub share: Share,
}

/// Who may hold a lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Nobody else.
    Exclusive,
    /// Others that say so, and nobody who says exclusive: the readers of a lock, whose writer is
    /// exclusive.
    Shared,
    /// This many at most.
    Permits(u32),
}

/// What a call said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Outcome {
    /// An acquire: here is a guard.
    Granted {
        /// Whose the lock is now.
        owner: String,
        /// When its lease ends; 0 where it was over and lost before this was written.
        deadline: Micros,
        /// Its fencing token, where the lock has one.
        fence: Option<u64>,
        /// Which of a semaphore's permits it is, where that is known: each has tokens of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permit: Option<u32>,
    },
    /// An extension: it was granted.
    Extended {
        /// When the lease ends.
        deadline: Micros,
    },
    /// A release: a quorum has confirmed it.
    Released,
    /// A write: the store took it.
    Accepted,
    /// A write: the store has seen a newer token.
    Rejected,
    /// It was not done, and will not be.
    Failed {
        /// Why not.
        why: String,
    },
    /// Its caller gave it up.
    Cancelled,
    /// Nobody knows, or not yet.
    Unknown {
        /// Why not, where that is known.
        why: String,
    },
}
