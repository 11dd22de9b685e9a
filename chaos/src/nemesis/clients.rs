//! Client processes that are killed, or stand still, or whose wall clocks jump.

use std::fmt;

use super::wound::Wound;
use crate::arena::Arena;

/// What happens to a client's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// It is killed (SIGKILL), and started again.
    Kill,
    /// It stands still (SIGSTOP), and goes on (SIGCONT).
    Freeze,
    /// Its wall clock is stepped forward or back.
    Step {
        /// How far.
        millis: i64,
    },
}

impl Clients {
    pub(super) fn strike(self, arena: &mut Arena, clients: &[usize]) -> Wound {
        let struck = clients.to_vec();
        match self {
            Self::Step { millis } => {
                clients.iter().for_each(|client| arena.clients[*client].clock().step(millis));
                Wound::new(|arena| {
                    struck.into_iter().for_each(|client| arena.clients[client].clock().set_offset(0));
                })
            }
            Self::Kill => {
                clients.iter().for_each(|client| arena.clients[*client].kill());
                Wound::new(|arena| struck.into_iter().for_each(|client| arena.clients[client].restart()))
            }
            Self::Freeze => {
                for client in clients {
                    assert!(
                        arena.clients[*client].process().freeze(),
                        "client {client} does not stand still"
                    );
                }
                Wound::new(|arena| {
                    struck.into_iter().for_each(|client| arena.clients[client].process().thaw());
                })
            }
        }
    }
}

impl fmt::Display for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill => f.write_str("kill"),
            Self::Freeze => f.write_str("freeze"),
            Self::Step { millis } => write!(f, "clock stepped by {millis} ms"),
        }
    }
}
