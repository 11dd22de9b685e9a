//! The contract with a master: what can be locked and how, the operations, and the replies.
//! docs/PROTOCOL.md specifies it for clients in other languages. Nothing here sends, waits, or
//! reads a clock.
//!
//! A [`LockId`] says which lock it is, and whose: its name, its [`Kind`], which permit of it, the
//! owner. An [`Op`] is what a master is asked to do with it: its words go to the script of the
//! kind, and [`decode`] reads the reply.
//!
//! A [`Call`] carries those words to a master, in [RESP](resp), and its answer is a [`Value`] or a
//! [`Failure`]. A [`MasterIndex`] names one master of the client, a [`MasterSet`] some of them.

mod answer;
mod call;
mod info;
mod keys;
mod kind;
mod limits;
mod master_index;
mod master_set;
mod op;
mod reply;
pub(crate) mod resp;
mod script;
mod scripts;
mod ticket;
mod trusted_time;

pub use answer::{Failure, Value};
pub use call::{Call, CallKind, NOT_HANDLED, ReplySink, WordIter, Words};
pub(crate) use info::Info;
pub(crate) use keys::{WakeChannelPrefix, join_names, key_pattern, name_of};
pub(crate) use kind::{Crossing, Kind, Permit};
pub(crate) use limits::{NEWEST, OLDEST, PROTOCOL, QUEUE_LIFE, UNMEASURED};
pub(crate) use master_index::ByMaster;
pub use master_index::MasterIndex;
pub(crate) use master_set::MasterSet;
pub(crate) use op::{Arrival, Leaving, LockId, Op, PlaceWanted};
pub(crate) use reply::{Decoded, Entry, ListStep, Seen, decode, outcome, step};
pub use script::{Layer, Script, ScriptPart};
pub use scripts::SCRIPTS;
pub(crate) use scripts::{DECREE, HOT, LIST};
pub(crate) use ticket::Ticket;
pub(crate) use trusted_time::TrustedTime;
