//! The edge: one independent Redis server, behind a trait. Nothing outside this folder names the redis crate.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::vote::{Refusal, Silence};

mod address;
mod dial;
mod link;
mod listen;
mod redis;
mod script;
mod session;
mod value;

pub(crate) use address::Address;
pub(crate) use dial::Dialler;
pub(crate) use link::Parts;
pub(crate) use redis::{RedisMaster, Roster};
pub use script::Script;
pub use value::Value;

/// One independent master.
///
/// The order of calls is the contract that clean-up rests on: **calls run on the master in the order in which their
/// futures were first polled, and once a call was sent on a new connection, no call from an earlier connection can
/// run any more.** A clean-up that is polled after the call it undoes therefore always undoes it.
pub trait Master: fmt::Debug + Send + Sync + 'static {
    /// What to call it in votes and logs: its URL without user and password.
    fn name(&self) -> &Arc<str>;

    /// Runs a prepared script, once. Nothing is ever sent again, but for the full text of a script that the master
    /// did not know and therefore did not run.
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Value, Failure>>;

    /// Resolves when the master is connected and answering; at once if it is. It may never be.
    fn ready(&self) -> BoxFuture<'static, ()>;

    /// Listens on a channel for as long as it is polled, across reconnects, and tells `ear` what it hears. What is
    /// published while it does not listen is missed.
    fn listen(&self, channel: Arc<str>, ear: Ear) -> BoxFuture<'static, ()>;
}

/// Who listens. It is called where the messages arrive and must not block.
pub type Ear = Arc<dyn Fn(Heard) + Send + Sync>;

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// From here on nothing is missed.
    Listening,
    /// A message on the channel.
    Message(Arc<str>),
    /// The connection is gone: what is published from here on is missed.
    Deaf,
}

/// One script call. Clones share their keys and arguments.
#[derive(Clone, Debug)]
pub struct Call {
    /// The script to run.
    pub script: &'static Script,
    /// Its `KEYS`.
    pub keys: Arc<[Arc<str>]>,
    /// Its `ARGV`.
    pub args: Arc<[Arc<str>]>,
    /// How long it may take, and when it must not be sent any more.
    pub terms: Terms,
}

/// The two ways of calling a master.
#[derive(Clone, Debug)]
pub enum Terms {
    /// A vote: answered within the time-out or not counted, at once if the master is known to be out of reach, and
    /// not sent at all after it was withdrawn.
    Vote {
        /// How long to wait for the answer, and for a connection that is being made.
        timeout: Duration,
        /// Cancelled when the operation was given up: from then on nothing of it may reach the master.
        withdrawn: CancellationToken,
    },
    /// A clean-up: sent even to a silent master, so that it stands behind what it undoes, and waited for until it is
    /// answered or the connection is lost.
    CleanUp,
}

impl Terms {
    pub(crate) fn withdrawn(&self) -> bool {
        matches!(self, Self::Vote { withdrawn, .. } if withdrawn.is_cancelled())
    }
}

/// How a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The master answered and did nothing.
    Refused {
        /// Why, in one word.
        reason: Refusal,
        /// The master's own words.
        detail: Arc<str>,
    },
    /// Nothing was sent.
    Unreachable(Arc<str>),
    /// It was sent, and there was no answer: it may have run.
    Unknown(Silence),
}

impl Failure {
    /// What a server's error reply means. Its first word is its code, but for scripts, where Redis 7 puts its own
    /// words before an ACL's.
    pub(crate) fn from_error_reply(reply: &str) -> Self {
        let reason = match reply.split(' ').next().unwrap_or("") {
            "READONLY" => Refusal::ReadOnly,
            "LOADING" => Refusal::Loading,
            "BUSY" => Refusal::Busy,
            "OOM" => Refusal::OutOfMemory,
            "MISCONF" => Refusal::Misconfigured,
            "NOPERM" | "NOAUTH" | "WRONGPASS" => Refusal::NoPermission,
            "WRONGTYPE" => Refusal::WrongType,
            _ if reply.contains("The user executing the script") => Refusal::NoPermission,
            _ => Refusal::Other,
        };
        Self::Refused { reason, detail: reply.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reply_is_told_by_its_first_word() {
        for (reply, wanted) in [
            ("READONLY You can't write against a read only replica.", Refusal::ReadOnly),
            ("LOADING Redis is loading the dataset in memory", Refusal::Loading),
            ("BUSY Redis is busy running a script.", Refusal::Busy),
            ("OOM command not allowed when used memory > 'maxmemory'.", Refusal::OutOfMemory),
            ("MISCONF Redis is configured to save RDB snapshots", Refusal::Misconfigured),
            ("NOPERM this user has no permissions", Refusal::NoPermission),
            ("NOAUTH Authentication required.", Refusal::NoPermission),
            ("ERR The user executing the script can't run this command", Refusal::NoPermission),
            ("WRONGTYPE Operation against a key", Refusal::WrongType),
            ("NOREPLICAS Not enough good replicas to write.", Refusal::Other),
            ("ERR OOM", Refusal::Other),
            ("", Refusal::Other),
        ] {
            let Failure::Refused { reason, detail } = Failure::from_error_reply(reply) else {
                panic!("{reply}")
            };
            assert_eq!((reason, &*detail), (wanted, reply));
        }
    }
}
