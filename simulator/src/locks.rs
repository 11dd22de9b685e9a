//! Which kind of lock a run is about.

use std::fmt;

use quorate::{Redlock, compat};
use quorate_history::{Lock, Share};
use quorate_testkit::Dice;

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
    /// `Redlock::semaphore`
    Semaphore,
    /// `Redlock::lock_all`, beside `Redlock::lock` of the same names
    LockAll,
    /// `Redlock::fair_lock`
    Fair,
    /// `Redlock::read_lock` and `Redlock::write_lock`, of the same names
    ReadWrite,
}

/// How many permits a semaphore has, at most.
const MOST_PERMITS: usize = 4;

/// How many of a thousand runs about semaphores have all tasks at one of them.
const ONE_FOR_ALL: u64 = 500;

/// The names that locks over several are drawn from.
const NAMES: usize = 3;

/// How many of a thousand such locks have each of these names besides the one that was drawn
/// before.
const BESIDES: u64 = 400;

/// How many of a thousand locks that may be read are asked for to read.
const READERS: u64 = 650;

/// How many of a thousand owners that have one side of such a lock, and enter again, ask for the
/// other one.
const OTHER_SIDE: u64 = 500;

/// How many of a thousand that have no other are asked for as locks of one name.
const ALONE: u64 = 500;

impl Locks {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Reentrant,
        Self::Mutex,
        Self::PlainMutex,
        Self::Redisson,
        Self::Semaphore,
        Self::LockAll,
        Self::Fair,
        Self::ReadWrite,
    ];

    /// What the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reentrant => "reentrant",
            Self::Mutex => "mutex",
            Self::PlainMutex => "plain-mutex",
            Self::Redisson => "redisson",
            Self::Semaphore => "semaphore",
            Self::LockAll => "lock-all",
            Self::Fair => "fair",
            Self::ReadWrite => "read-write",
        }
    }

    /// Whether they are kept in the layout of another library.
    pub(crate) fn are_shared(self) -> bool {
        matches!(self, Self::PlainMutex | Self::Redisson)
    }

    /// How many permits each of the locks has, where they are semaphores.
    pub(crate) fn permits(self, seed: u64) -> Option<u32> {
        let drawn = || 1 + Dice::new(seed, "permits", 0).below(MOST_PERMITS);
        (self == Self::Semaphore).then(|| u32::try_from(drawn()).unwrap_or(u32::MAX))
    }

    /// What somebody asks for who was drawn the lock of this number.
    pub(crate) fn wish(self, seed: u64, lock: usize, dice: &Dice) -> Wish {
        let name = |lock| format!("l{lock}");
        let wish = |kind, names| Wish { kind, names, shared: false };
        match self {
            Self::Semaphore if Dice::new(seed, "one for all", 0).happens(ONE_FOR_ALL) => {
                wish(self, vec![name(0)])
            }
            Self::LockAll => {
                let names: Vec<_> =
                    (0..NAMES).filter(|other| *other == lock || dice.happens(BESIDES)).map(name).collect();
                let is_alone = names.len() == 1 && dice.happens(ALONE);
                wish(if is_alone { Self::Reentrant } else { self }, names)
            }
            Self::ReadWrite => Wish { shared: dice.happens(READERS), ..wish(self, vec![name(lock)]) },
            _ => wish(self, vec![name(lock)]),
        }
    }

    /// The parts of a lock that somebody may have by themselves, and the lock that they are parts
    /// of.
    pub(crate) fn parts(self, permits: Option<u32>, dice: &Dice) -> (Vec<Wish>, Wish) {
        let wish = |kind, names: &[&str]| {
            let names = names.iter().map(ToString::to_string).collect();
            Wish { kind, names, shared: false }
        };
        let one = wish(self, &["l0"]);
        match self {
            Self::Semaphore => (vec![one.clone(); permits.unwrap_or(1) as usize], one),
            Self::LockAll => {
                let alone = if dice.happens(ALONE) { Self::Reentrant } else { self };
                (vec![wish(alone, &["l0"]), wish(alone, &["l1"])], wish(self, &["l0", "l1"]))
            }
            Self::ReadWrite => (vec![Wish { shared: true, ..one.clone() }; 2], one),
            _ => (Vec::new(), one),
        }
    }
}

impl fmt::Display for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What somebody asks for.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    kind: Locks,
    /// The names that it is about.
    pub(crate) names: Vec<String>,
    /// Whether others may have the same at the same time: it is asked for to read.
    pub(crate) shared: bool,
}

impl Wish {
    /// A client's lock for it.
    pub(crate) fn lock(&self, redlock: &Redlock, permits: Option<u32>) -> compat::UnfencedLock {
        let name = &*self.names[0];
        let lock = match self.kind {
            Locks::Reentrant => redlock.lock(name),
            Locks::Mutex => redlock.mutex(name),
            Locks::PlainMutex => return redlock.plain_mutex(name),
            Locks::Redisson => return redlock.redisson_lock(name),
            Locks::Semaphore => redlock.semaphore(name, permits.unwrap_or(1)),
            Locks::LockAll => redlock.lock_all(&self.names),
            Locks::Fair => redlock.fair_lock(name),
            Locks::ReadWrite if self.shared => redlock.read_lock(name),
            Locks::ReadWrite => redlock.write_lock(name),
        };
        lock.into()
    }

    /// What the history calls it: in one run all locks of a name are one.
    pub(crate) fn named(&self, permits: Option<u32>) -> Lock {
        let share = match permits {
            Some(permits) => Share::Permits(permits),
            None if self.shared => Share::Shared,
            None => Share::Exclusive,
        };
        Lock { kind: "lock".to_owned(), names: self.names.clone(), share }
    }

    /// What its owner asks for that enters again: the same, or the other side of it.
    pub(crate) fn again(&self, dice: &Dice) -> Self {
        let turns = self.kind == Locks::ReadWrite && dice.happens(OTHER_SIDE);
        Self { shared: self.shared != turns, ..self.clone() }
    }

    /// Whether an owner that was named may have it.
    pub(crate) fn has_owners(&self) -> bool {
        self.kind != Locks::Semaphore
    }
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names.join("+"))?;
        f.write_str(if self.shared { " (to read)" } else { "" })
    }
}
