//! The kinds of locks, as they are typed.

use clap::ValueEnum;
use quorate_chaos::workload::Kind;

/// Which locks are put through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kinds {
    /// One holder, whose owner may enter again: Redlock::lock
    Reentrant,
    /// Several names at once, all or none: Redlock::lock_all, of the names of the reentrant ones
    All,
    /// One holder, who cannot enter again: Redlock::mutex
    Mutex,
    /// One holder, by a string as redsync, node-redlock and others set it: Redlock::plain_mutex
    PlainMutex,
    /// One holder, by what Redisson's RLock has: Redlock::redisson_lock
    Redisson,
    /// Two holders at a time: Redlock::semaphore
    Semaphore,
    /// One holder, in the order of arrival: Redlock::fair_lock
    Fair,
    /// Many readers, or one writer: Redlock::read_lock and Redlock::write_lock
    ReadWrite,
}

impl From<Kinds> for Kind {
    fn from(kind: Kinds) -> Self {
        match kind {
            Kinds::Reentrant => Self::Reentrant,
            Kinds::All => Self::All,
            Kinds::Mutex => Self::Mutex,
            Kinds::PlainMutex => Self::PlainMutex,
            Kinds::Redisson => Self::Redisson,
            Kinds::Semaphore => Self::Semaphore,
            Kinds::Fair => Self::Fair,
            Kinds::ReadWrite => Self::ReadWrite,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_typed() {
        let kinds: Vec<Kind> = Kinds::value_variants().iter().map(|kind| (*kind).into()).collect();
        assert_eq!(kinds, Kind::ALL);
    }
}
