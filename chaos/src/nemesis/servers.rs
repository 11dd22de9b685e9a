//! Masters that are killed, or stand still.

use std::fmt;

use super::wound::Wound;
use crate::arena::Arena;

/// What happens to a master's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// It is killed (SIGKILL, or `docker kill`), and started again with what it
    /// [persisted](crate::Persistence).
    Kill,
    /// It is killed, and started again with an empty disk.
    KillEmpty,
    /// It stands still (SIGSTOP, or `docker pause`): its connections stay, and nothing answers.
    Freeze,
    /// It is taken off its network (`docker network disconnect`), and put there again: clients'
    /// connections end, others are refused, and it does not notice.
    Disconnect,
}

impl Servers {
    pub(super) fn strike(self, arena: &mut Arena, masters: &[usize]) -> Wound {
        let on_each = masters.iter().map(|master| &arena.masters[*master]);
        match self {
            Self::Kill => {
                on_each.for_each(|server| server.kill());
                Wound::of_each(masters, |arena, master| arena.masters[master].restart())
            }
            Self::KillEmpty => {
                on_each.for_each(|server| server.kill());
                Wound::of_each(masters, |arena, master| arena.masters[master].process().restart_empty())
            }
            Self::Freeze => {
                on_each.for_each(|server| server.freeze());
                Wound::of_each(masters, |arena, master| arena.masters[master].thaw())
            }
            Self::Disconnect => {
                on_each.for_each(|server| server.container().disconnect());
                Wound::of_each(masters, |arena, master| arena.masters[master].container().connect())
            }
        }
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill",
            Self::KillEmpty => "kill, and restart empty",
            Self::Freeze => "freeze",
            Self::Disconnect => "disconnect",
        })
    }
}
