//! Which kind of lock a run is about.

use std::fmt;

use quorate::{Lock, Redlock};

/// A kind of lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locks {
    /// `Redlock::lock`
    #[default]
    Reentrant,
    /// `Redlock::mutex`
    Mutex,
    /// `Redlock::plain_mutex`
    PlainMutex,
    /// `Redlock::redisson_lock`
    Redisson,
}

impl Locks {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Reentrant, Self::Mutex, Self::PlainMutex, Self::Redisson];

    /// What the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reentrant => "reentrant",
            Self::Mutex => "mutex",
            Self::PlainMutex => "plain-mutex",
            Self::Redisson => "redisson",
        }
    }

    /// A client's lock of this kind.
    pub(crate) fn of(self, redlock: &Redlock, name: &str) -> Lock {
        match self {
            Self::Reentrant => redlock.lock(name),
            Self::Mutex => redlock.mutex(name),
            Self::PlainMutex => redlock.plain_mutex(name),
            Self::Redisson => redlock.redisson_lock(name),
        }
    }
}

impl fmt::Display for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
