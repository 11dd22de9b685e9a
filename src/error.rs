//! What can go wrong, split by what a caller would do next.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::invalid::Invalid;
use crate::owner::Owner;
use crate::vote::{Listed, Named, Vote};

/// Why an operation did not do what it was asked to. Each kind calls for something else from the caller, and each that
/// comes of a round carries every master's [`Vote`].
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another owner has the lock, or enough masters to deny it. Come back later.
    #[error("lock {name:?} is {holder} [{}]", Listed(votes))]
    Held {
        /// The lock's name.
        name: Arc<str>,
        /// Who has it.
        holder: Box<Holder>,
        /// Every master's part in the round.
        votes: Arc<[Vote]>,
    },

    /// Too few masters can vote at all: they are out of reach, silent or refusing. Look at the masters.
    #[error("no quorum for lock {name:?}: {granted} of the {needed} masters needed agreed{} [{}]",
        if *late { ", and only when the lease was over already" } else { "" }, Listed(votes))]
    NoQuorum {
        /// The lock's name.
        name: Arc<str>,
        /// How many masters did what was asked before the round was decided.
        granted: usize,
        /// How many would have had to.
        needed: usize,
        /// A quorum granted, but too late for any of the lease to be left: the TTL is too short for these masters.
        late: bool,
        /// Every master's part in the round.
        votes: Arc<[Vote]>,
    },

    /// The wait budget ran out while others had the lock.
    #[error(
        "waited {waited:.1?} for lock {name:?} {}; it is {holder} [{}]",
        match attempts { 0 => "behind others in line".to_owned(), n => format!("in {n} attempts") },
        Listed(votes)
    )]
    WaitTimedOut {
        /// The lock's name.
        name: Arc<str>,
        /// How long the acquire waited.
        waited: Duration,
        /// How many rounds it tried; none where others of this client were ahead of it in line to the end.
        attempts: u32,
        /// Who had it in the last of them.
        holder: Box<Holder>,
        /// Every master's part in the last round.
        votes: Arc<[Vote]>,
    },

    /// The owner reads, and asked to write: it would wait for itself, and two such readers for each other. Release the read lock
    /// first, and look again at what was read, or take the write lock from the start. Nothing was sent.
    #[error("{owner} has read lock {name:?}, which cannot become a write lock: release it first")]
    Upgrade {
        /// The lock's name.
        name: Arc<str>,
        /// The owner that reads.
        owner: Owner,
    },

    /// So many acquires of this client wait for the lock already. Shed load, or raise
    /// [`max_waiters`](crate::Builder::max_waiters).
    #[error("lock {name:?} has {limit} waiters in this client already, and takes no more")]
    QueueFull {
        /// The lock's name.
        name: Arc<str>,
        /// How many may wait.
        limit: usize,
    },

    /// The acquire was cancelled by the token that it was given.
    #[error("the acquire of lock {name:?} was cancelled")]
    Cancelled {
        /// The lock's name.
        name: Arc<str>,
    },

    /// The lease ended, or a majority of the masters say that this owner does not hold the lock. Somebody else may
    /// have held it meanwhile: stop what the lock protects.
    #[error("lock {name:?} was lost: {cause}{}{}{}", if votes.is_empty() { "" } else { " [" }, Listed(votes),
        if votes.is_empty() { "" } else { "]" })]
    Lost {
        /// The lock's name.
        name: Arc<str>,
        /// How it was lost.
        cause: Loss,
        /// Every master's part in the round that found it lost, or in the last renewal that failed; empty where there
        /// was none.
        votes: Arc<[Vote]>,
    },

    /// The name is in use by another kind of lock, or by something that is no lock. Nothing was overwritten. It is not waited
    /// for: one of the two should have another name.
    #[error("{name:?} is held as another kind of lock, or is none [{}]", Listed(votes))]
    AnotherKind {
        /// The lock's name.
        name: Arc<str>,
        /// Every master's part in the round.
        votes: Arc<[Vote]>,
    },

    /// The semaphore has another number of permits than the one asked for, and somebody has one of them. Nothing was
    /// overwritten. It is not waited for: all clients have to ask with the same number, which may change while nobody
    /// has a permit.
    #[error("semaphore {name:?} has {permits} permits, and not {asked} [{}]", Listed(votes))]
    OtherPermits {
        /// The semaphore's name.
        name: Arc<str>,
        /// How many permits this client says that there are.
        asked: u32,
        /// How many there are.
        permits: u32,
        /// Every master's part in the round.
        votes: Arc<[Vote]>,
    },

    /// An acquire by an owner that holds this lock already, and cannot enter it again. It is a bug in the caller.
    #[error("lock {name:?} is held by {owner} already, and cannot be entered again")]
    AlreadyHeld {
        /// The lock's name.
        name: Arc<str>,
        /// Who holds it.
        owner: Owner,
    },

    /// A release of a lock that this owner does not hold, or by more holds than it has. It is a bug in the caller.
    #[error("lock {name:?} is not held by {owner}{}{}{}", if votes.is_empty() { "" } else { " [" }, Listed(votes),
        if votes.is_empty() { "" } else { "]" })]
    NotHeld {
        /// The lock's name.
        name: Arc<str>,
        /// Who does not hold it.
        owner: Owner,
        /// Every master's part in the round; empty when this process knew without asking.
        votes: Arc<[Vote]>,
    },

    /// The input, or the place from which the call came, was refused before anything was sent.
    #[error(transparent)]
    Invalid(#[from] Invalid),

    /// The client was shut down.
    #[error("the client was shut down")]
    Closed,

    /// The client's shutdown came to its deadline before every release had reached the masters. What is left goes on
    /// in the background while the process lives, and dies with its TTL otherwise.
    #[error("{under_way} operations were still under way when the shutdown's {deadline:?} were over")]
    Unflushed {
        /// How many were left.
        under_way: usize,
        /// The time that was given.
        deadline: Duration,
    },

    /// The background thread could not be started.
    #[error("the background thread could not be started")]
    Start(#[source] Arc<io::Error>),
}

impl Error {
    /// Every master's part in the round that failed; empty where there was none.
    pub fn votes(&self) -> &[Vote] {
        match self {
            Self::Held { votes, .. }
            | Self::NoQuorum { votes, .. }
            | Self::WaitTimedOut { votes, .. }
            | Self::Lost { votes, .. }
            | Self::AnotherKind { votes, .. }
            | Self::OtherPermits { votes, .. }
            | Self::NotHeld { votes, .. } => votes,
            Self::QueueFull { .. }
            | Self::AlreadyHeld { .. }
            | Self::Upgrade { .. }
            | Self::Cancelled { .. }
            | Self::Invalid(_)
            | Self::Closed
            | Self::Unflushed { .. }
            | Self::Start(_) => &[],
        }
    }

    /// Who has the lock, where that is why the operation failed.
    pub fn holder(&self) -> Option<&Holder> {
        match self {
            Self::Held { holder, .. } | Self::WaitTimedOut { holder, .. } => Some(holder),
            _ => None,
        }
    }
}

/// How a lock was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The lease is over, or is about to be: it was not to be renewed, or no renewal reached a quorum in time, or the
    /// process stood still.
    Expired,
    /// So many masters say that another owner has it, or nobody, that the rest are no quorum.
    NotOurs,
    /// It was held for as long, or renewed as often, as it was to be.
    Capped,
    /// The work gave no sign of life in time, so it was not renewed any more.
    Silent,
    /// It was handed over to another process.
    HandedOver,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its lease is over",
            Self::NotOurs => "the masters say that it is not this owner's",
            Self::Capped => "it was held for as long as it was to be, and its lease is over",
            Self::Silent => "its work gave no sign of life, and its lease is over",
            Self::HandedOver => "it was handed over",
        })
    }
}

/// Who has a lock, as the votes of a round tell: the owner that most masters name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The owner as it stands on the masters.
    pub owner: Arc<str>,
    /// What its client calls it: see [`Builder::label`](crate::Builder::label).
    pub label: Option<Arc<str>>,
    /// For how long it has had the lock, by the masters' clocks: the longest that any of them told. `None` where none did.
    pub held_for: Option<Duration>,
    /// How many masters named it before the round was decided.
    pub masters: usize,
    /// The longest that any of them keeps others away, or `None` when one does so for ever.
    pub remaining: Option<Duration>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "held by {}", Named(&self.owner, self.label.as_deref()))?;
        if let Some(time) = self.held_for {
            write!(f, " for {time:.1?}")?;
        }
        match self.remaining {
            Some(left) => write!(f, ", and for at most {left:.1?} more")?,
            None => f.write_str(", with no expiry")?,
        }
        write!(f, " ({} masters say so)", self.masters)
    }
}
