//! The contract with a master: what can be locked and how, the operations, and the replies.
//! docs/PROTOCOL.md specifies it for clients in other languages. Nothing here sends or waits.
//!
//! A lock is a [`Subject`]: its [`Kind`], its name, and which permit of it. An [`Op`] is what a
//! master is asked to do with it: its words go to the script of the kind, and [`decode`] reads the
//! reply.

mod keys;
mod kind;
mod limits;
mod op;
mod reply;
mod scripts;
mod ticket;

pub(crate) use keys::{WakeChannelPrefix, join_names, key_pattern, name_of};
pub(crate) use kind::{Crossing, Kind, Permit};
pub(crate) use limits::{NEWEST, OLDEST, PROTOCOL, QUEUE_LIFE, UNMEASURED};
pub(crate) use op::{Arrival, Leaving, Op, PlaceWanted, Subject};
pub(crate) use reply::{Decoded, Entry, ListStep, Seen, decode, outcome, step};
pub use scripts::SCRIPTS;
pub(crate) use scripts::{DECREE, HOT, LIST};
pub(crate) use ticket::Ticket;
