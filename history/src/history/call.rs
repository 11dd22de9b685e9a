//! What clients ask for, and what they are told.

use serde::{Deserialize, Serialize};

use super::time::{Time, micros};

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Who made it.
    pub process: String,
    /// Its number in its process.
    pub number: u64,
    /// What it was.
    pub call: Call,
    /// When it was made.
    pub invoked: Time,
    /// When it returned, or was given up; `None` if neither had happened at the end.
    pub returned: Option<Time>,
    /// What it said.
    pub outcome: Outcome,
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
        #[serde(with = "micros")]
        ttl: Time,
        /// For how long its caller is ready to wait; 0 is to try once.
        #[serde(with = "micros")]
        wait: Time,
    },
    /// A lease is to be longer.
    Extend {
        /// The number of the call that acquired it.
        hold: u64,
        /// How long it is to last from now.
        #[serde(with = "micros")]
        ttl: Time,
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

/// What one owner has at a time: a lock, by one of its names, or one permit of the semaphore of
/// this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site<'a> {
    /// The name.
    pub name: &'a str,
    /// The permit's number.
    pub permit: Option<u32>,
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
        #[serde(with = "micros")]
        deadline: Time,
        /// Its fencing token, where the lock has one.
        fence: Option<u64>,
        /// Which of a semaphore's permits it is, where that is known: each has tokens of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permit: Option<u32>,
    },
    /// An extension: it was granted.
    Extended {
        /// When the lease ends.
        #[serde(with = "micros")]
        deadline: Time,
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
