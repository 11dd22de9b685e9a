//! The kinds of locks: how a master keeps each, and what the engine has to know of it.

use std::time::Duration;

use super::keys::split_names;
use super::limits::TIME_TO_ASK;
use super::script::Script;
use super::scripts;
use crate::config::{MAX_NAMES, check_name};
use crate::invalid::Invalid;

/// A kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// One owner, which may enter again.
    Lock,
    /// One owner, which may not.
    Mutex,
    /// One owner: the one that has waited longest.
    Fair,
    /// Several names at once. The lock's own name is those names, joined.
    Several,
    /// One of the two halves of a read-write lock.
    Read,
    Write,
    /// As many owners as there are permits.
    Semaphore,
    /// Exactly the key of redsync, redis-py and others.
    PlainMutex,
    /// Exactly the key of Redisson's RLock.
    Redisson,
}

/// What happens to an owner that asks for one half of a read-write lock and has the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crossing {
    /// A writer that asks to read: it is granted, as if it entered again.
    Downgrade,
    /// A reader that asks to write: it would wait for itself.
    SelfDeadlock,
}

/// One permit of a semaphore, numbered from 0, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    pub(crate) number: u32,
    pub(crate) of: u32,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Lock,
        Self::Mutex,
        Self::Fair,
        Self::Several,
        Self::Read,
        Self::Write,
        Self::Semaphore,
        Self::PlainMutex,
        Self::Redisson,
    ];

    /// What logs and hand-overs call it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Mutex => "mutex",
            Self::Fair => "fair",
            Self::Several => "several",
            Self::Read => "read",
            Self::Write => "write",
            Self::Semaphore => "semaphore",
            Self::PlainMutex => "plain",
            Self::Redisson => "redisson",
        }
    }

    /// The kind of this word.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The script that masters run for it.
    pub(crate) fn script(self) -> &'static Script {
        match self {
            Self::Lock | Self::Mutex | Self::Several => &scripts::EXCLUSIVE,
            Self::Fair => &scripts::FAIR,
            Self::Read | Self::Write => &scripts::RW,
            Self::Semaphore => &scripts::SEMAPHORE,
            Self::PlainMutex => &scripts::PLAIN,
            Self::Redisson => &scripts::REDISSON,
        }
    }

    /// Whether a fresh owner may ask a quorum of the masters first. Of other kinds the votes of all
    /// tell who may be next, or the keys are another library's.
    pub(crate) fn asks_quorum_first(self) -> bool {
        matches!(self, Self::Lock | Self::Mutex)
    }

    /// Checks a name, before anything is sent.
    pub(crate) fn check_name(self, name: &str) -> Result<(), Invalid> {
        if self != Self::Several {
            return check_name(name);
        }
        let names = self.names(name);
        if names.is_empty() {
            return Err(Invalid::no_names(MAX_NAMES));
        }
        if names.len() > MAX_NAMES {
            return Err(Invalid::too_many_names(names.len(), MAX_NAMES));
        }
        names.iter().try_for_each(|name| check_name(name))?;
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Invalid::duplicate_name(&pair[0])),
            None => Ok(()),
        }
    }

    /// The names of a lock: one, but of a lock over several.
    pub(crate) fn names(self, name: &str) -> Vec<String> {
        if self == Self::Several { split_names(name) } else { vec![name.to_owned()] }
    }

    /// The kind to inspect a name as: the script of `Lock` shows entries of all kinds that are not
    /// another library's.
    pub(crate) fn to_look_at(self) -> Self {
        if self.is_shared() { self } else { Self::Lock }
    }

    /// Whether an owner may enter again.
    pub(crate) fn is_reentrant(self) -> bool {
        !matches!(self, Self::Mutex | Self::PlainMutex | Self::Semaphore)
    }

    /// Whether a named owner is the owner on the masters, too. Otherwise each of its holds has an
    /// owner of its own there: holds of single names and of several are counted apart, so on a name
    /// that both have they must not be the same owner's.
    pub(crate) fn is_held_by_name(self) -> bool {
        self != Self::Several
    }

    /// How often the first waiter asks though it is not woken, if that is not only when the TTL is
    /// over. The second asks half as often, and so on.
    pub(crate) fn looks_every(self) -> Option<Duration> {
        (self == Self::Fair).then_some(TIME_TO_ASK)
    }

    /// Whether its key is exactly another library's, so that the holder may be a client of that.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Self::PlainMutex | Self::Redisson)
    }

    /// The channel on which another library publishes releases.
    pub(crate) fn channel(self, name: &str) -> Option<String> {
        let braced = || if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") };
        (self == Self::Redisson).then(|| format!("redisson_lock__channel:{}", braced()))
    }

    /// Whether many owners may hold it at once without a number each: readers.
    pub(crate) fn is_for_many(self) -> bool {
        self == Self::Read
    }

    /// The other half of a read-write lock, and what happens to an owner that has that and asks for
    /// this one.
    pub(crate) fn counterpart(self) -> Option<(Self, Crossing)> {
        match self {
            Self::Read => Some((Self::Write, Crossing::Downgrade)),
            Self::Write => Some((Self::Read, Crossing::SelfDeadlock)),
            _ => None,
        }
    }

    /// Whether an acquire says since when it waits: masters grant it in an order, or call waiters
    /// that are no owners.
    pub(super) fn is_in_order(self) -> bool {
        matches!(self, Self::Fair | Self::Read | Self::Write | Self::Semaphore)
    }

    /// What the field `kind` of a name says when this kind has it.
    pub(crate) fn on_masters(self, permits: Option<u32>) -> String {
        match (self, permits) {
            (Self::Semaphore, Some(permits)) => format!("semaphore/{permits}"),
            (Self::Read | Self::Write, _) => "rw".to_owned(),
            _ => self.slot().to_owned(),
        }
    }

    /// The argument `slot`, where that is no permit: which kind an operation is about.
    pub(super) fn slot(self) -> &'static str {
        if self == Self::Several { Self::Lock.word() } else { self.word() }
    }
}
