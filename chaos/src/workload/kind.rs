//! The locks of a workload.

use std::fmt;

use quorate::{Redlock, compat};
use serde::{Deserialize, Serialize};

use crate::history::{self, Share};

/// How many there are of each kind.
pub(super) const LOCKS: usize = 2;

/// How many permits semaphores have.
const PERMITS: u32 = 2;

/// A kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `Redlock::lock`
    Reentrant,
    /// `Redlock::lock_all`, of what the reentrant ones are
    All,
    /// `Redlock::mutex`
    Mutex,
    /// `Redlock::plain_mutex`
    PlainMutex,
    /// `Redlock::redisson_lock`
    Redisson,
    /// `Redlock::semaphore`
    Semaphore,
    /// `Redlock::fair_lock`
    Fair,
    /// `Redlock::read_lock`, or `Redlock::write_lock` every third time
    ReadWrite,
}

impl fmt::Display for Kind {
    /// As it is [typed](Kind::typed).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.typed())
    }
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Reentrant,
        Self::All,
        Self::Mutex,
        Self::PlainMutex,
        Self::Redisson,
        Self::Semaphore,
        Self::Fair,
        Self::ReadWrite,
    ];

    /// How a person types it.
    pub fn typed(self) -> &'static str {
        if self == Self::All { "all" } else { self.name() }
    }

    /// What it is.
    pub fn about(self) -> &'static str {
        match self {
            Self::Reentrant => "One holder, whose owner may enter again: Redlock::lock",
            Self::All => {
                "Several names at once, all or none: Redlock::lock_all, of the names of the reentrant ones"
            }
            Self::Mutex => "One holder, who cannot enter again: Redlock::mutex",
            Self::PlainMutex => {
                "One holder, by a string as redsync, node-redlock and others set it: Redlock::plain_mutex"
            }
            Self::Redisson => "One holder, by what Redisson's RLock has: Redlock::redisson_lock",
            Self::Semaphore => "Two holders at a time: Redlock::semaphore",
            Self::Fair => "One holder, in the order of arrival: Redlock::fair_lock",
            Self::ReadWrite => "Many readers, or one writer: Redlock::read_lock and Redlock::write_lock",
        }
    }

    /// Whether other libraries have these locks, too.
    pub(crate) fn is_of_others(self) -> bool {
        matches!(self, Self::PlainMutex | Self::Redisson)
    }

    /// Locks of one name here are one lock.
    fn name(self) -> &'static str {
        match self {
            Self::Reentrant | Self::All => "reentrant",
            Self::Mutex => "mutex",
            Self::PlainMutex => "plain-mutex",
            Self::Redisson => "redisson",
            Self::Semaphore => "semaphore",
            Self::Fair => "fair",
            Self::ReadWrite => "read-write",
        }
    }

    /// How many different locks of this kind there are.
    pub(super) fn count(self) -> usize {
        if self == Self::All { 1 } else { LOCKS }
    }

    /// One of the locks of this kind, to read if it has readers, and what the history calls it.
    pub(super) fn lock(
        self,
        redlock: &Redlock,
        number: usize,
        reads: bool,
    ) -> (compat::UnfencedLock, history::Lock) {
        let numbered = |number| format!("{}-{number}", self.name());
        let names = match self {
            Self::All => (0..LOCKS).map(numbered).collect(),
            _ => vec![numbered(number)],
        };
        let name = names[0].as_str();
        let share = match self {
            Self::Semaphore => Share::Permits(PERMITS),
            Self::ReadWrite if reads => Share::Shared,
            _ => Share::Exclusive,
        };
        let lock = match self {
            Self::Reentrant => redlock.lock(name).into(),
            Self::All => redlock.lock_all(&names).into(),
            Self::Mutex => redlock.mutex(name).into(),
            Self::PlainMutex => redlock.plain_mutex(name),
            Self::Redisson => redlock.redisson_lock(name),
            Self::Semaphore => redlock.semaphore(name, PERMITS).into(),
            Self::Fair => redlock.fair_lock(name).into(),
            Self::ReadWrite if reads => redlock.read_lock(name).into(),
            Self::ReadWrite => redlock.write_lock(name).into(),
        };
        (lock, history::Lock { kind: self.name().to_owned(), names, share })
    }
}
