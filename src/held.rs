//! What is held under a name, as inspections show it.

use std::fmt;

use crate::error::Holder;
use crate::fence::FencingToken;

/// The kind of lock that masters have under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "kind", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LockKind {
    /// A [`lock`](crate::Redlock::lock), for one name or [several](crate::Redlock::lock_all), or an
    /// election.
    Lock,
    /// A [`mutex`](crate::Redlock::mutex).
    Mutex,
    /// A [`fair_lock`](crate::Redlock::fair_lock).
    Fair,
    /// A [`read_lock`](crate::Redlock::read_lock) and [`write_lock`](crate::Redlock::write_lock).
    ReadWrite,
    /// A [`semaphore`](crate::Redlock::semaphore).
    Semaphore {
        /// The number of permits.
        permits: u32,
    },
    /// A [`plain_mutex`](crate::Redlock::plain_mutex).
    PlainMutex,
    /// A [`redisson_lock`](crate::Redlock::redisson_lock).
    Redisson,
}

impl LockKind {
    /// What masters call so.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "lock" => Self::Lock,
            "mutex" => Self::Mutex,
            "fair" => Self::Fair,
            "rw" => Self::ReadWrite,
            "plain" => Self::PlainMutex,
            "redisson" => Self::Redisson,
            _ => Self::Semaphore { permits: word.strip_prefix("semaphore/")?.parse().ok()? },
        })
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock => f.write_str("lock"),
            Self::Mutex => f.write_str("mutex"),
            Self::Fair => f.write_str("fair lock"),
            Self::ReadWrite => f.write_str("read-write lock"),
            Self::Semaphore { permits } => write!(f, "semaphore of {permits}"),
            Self::PlainMutex => f.write_str("plain mutex"),
            Self::Redisson => f.write_str("Redisson lock"),
        }
    }
}

/// Which part of a lock a holder has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "part", content = "permit", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Part {
    /// All of it; of a read-write lock, the write side.
    Whole,
    /// The read side.
    Read,
    /// The permit of this number.
    Permit(u32),
}

impl Part {
    /// What masters call so.
    pub(crate) fn of_field(field: &str) -> Self {
        match field.strip_prefix("p:").and_then(|number| number.parse().ok()) {
            Some(number) => Self::Permit(number),
            None if field.starts_with("r:") => Self::Read,
            None => Self::Whole,
        }
    }
}

/// A held part of a lock, according to a majority of the masters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HeldPart {
    /// Which part.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub part: Part,
    /// Who has it.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub holder: Holder,
    /// The holder's [`Guard::fencing_token`](crate::Guard::fencing_token); `None` in the layout of
    /// another library, which has no tokens.
    #[cfg_attr(feature = "serde", serde(rename = "fence"))]
    pub fencing_token: Option<FencingToken>,
}
