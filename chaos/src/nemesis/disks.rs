//! Masters' disks that are slow.

use std::fmt;
use std::time::Duration;

use super::wound::Wound;
use crate::arena::Arena;

/// What happens to a master's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disks {
    /// Whatever waits for it waits so much longer. A master that [persists
    /// always](crate::Persistence::Always) is slow then; one that persists [every
    /// second](crate::Persistence::EverySecond) answers, and forgets if it is killed.
    Slow {
        /// How much longer.
        delay: Duration,
    },
}

impl Disks {
    pub(super) fn strike(self, arena: &mut Arena, masters: &[usize]) -> Wound {
        let Self::Slow { delay } = self;
        masters.iter().for_each(|master| arena.masters[*master].process().slow_disk(delay));
        Wound::of_each(masters, |arena, master| arena.masters[master].process().slow_disk(Duration::ZERO))
    }
}

impl fmt::Display for Disks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slow { delay } => write!(f, "disk {delay:?} slower"),
        }
    }
}
