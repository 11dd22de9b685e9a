//! The edge: one independent Redis server, behind a trait. Nothing outside this folder names the redis crate.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::trust::Handshake;
use crate::vote::{Refusal, Silence};

mod address;
mod call;
mod dial;
mod driver;
mod examine;
mod link;
mod listen;
mod pending;
mod redis;
mod resp;
mod script;
mod session;
mod transport;
mod value;

pub(crate) use address::Address;
pub use call::{Call, Hears, Overdue, Reply, Terms, WordIter, Words};
pub(crate) use dial::Dialler;
pub(crate) use examine::{Visit, examine};
pub use link::{Delivery, LinkState, Message, Reach};
pub use pending::Pending;
pub(crate) use redis::RedisMaster;
pub use redis::connect;
pub use script::{Layer, Part, Script};
pub(crate) use session::{Parts, Roster};
pub use value::Value;

/// One independent master.
///
/// The order of calls is the contract that clean-up rests on: **calls run on the master in the order in which they were
/// made, and once a call was sent on a new connection, no call from an earlier connection can run any more.** A clean-up
/// that is made after the call it undoes therefore always undoes it.
///
/// What the master refused before it ran anything, and is sent again, comes behind calls that were sent meanwhile. So it is
/// sent again only while it is [wanted](Hears::wants), which a call that is being undone is not.
pub trait Master: fmt::Debug + Send + Sync + 'static {
    /// What to call it in votes and logs: its URL without user and password.
    fn name(&self) -> &Arc<str>;

    /// Tells how its connections make themselves known: once, before the first call. Each new connection has to ask that
    /// before it carries anything, and puts the [`Passport`](crate::seam::Passport) that it gets at the head of every call;
    /// where the first reply is nil it asks again.
    fn introduce(&self, handshake: Handshake);

    /// Has one operation of a prepared script run, once, and tells `reply` how it went, within the time-out: see [`Terms`].
    /// It never blocks, and can be called on any thread. Nothing is ever sent again but what the master refused before it
    /// ran anything: a script that it did not know, or a call of many operations, one of which this user may not do.
    fn call(&self, call: Call, reply: Reply);

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
    /// What a server's error reply means.
    pub fn from_error_reply(reply: &str) -> Self {
        Self::Refused { reason: Refusal::of_reply(reply), detail: reply.into() }
    }

    /// That no connection can be used: refused where that is so until somebody mends it, and otherwise out of reach.
    pub(crate) fn without_connection(reason: Refusal, detail: &str) -> Self {
        match reason.is_permanent() {
            true => Self::Refused { reason, detail: detail.into() },
            false => Self::Unreachable(detail.into()),
        }
    }

    /// Why, in words.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Refused { detail, .. } => detail,
            Self::Unreachable(why) | Self::Unknown(Silence::ConnectionLost(why)) => why,
            Self::Unknown(Silence::TimedOut) => "no answer in time",
        }
    }
}

/// A connection that fails before anything was sent on it.
impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Unreachable(why.into())
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
            ("NOAUTH Authentication required.", Refusal::Password),
            ("WRONGPASS invalid username-password pair or user is disabled.", Refusal::Password),
            ("DISAGREES its clients have others", Refusal::OtherTerms),
            ("ERR unknown command 'EVAL', with args beginning with: ", Refusal::Unsupported),
            ("ERR Unknown Redis command called from script script: 0f", Refusal::Unsupported),
            (
                "ERR Error running script: @user_script: 1: Unknown Redis command called from Lua",
                Refusal::Unsupported,
            ),
            ("ERR The user executing the script can't run this command", Refusal::NoPermission),
            ("WRONGTYPE Operation against a key", Refusal::WrongType),
            ("KIND it is held as semaphore/3", Refusal::AnotherKind),
            ("FORGOT this master restarted", Refusal::Forgot),
            ("QUARANTINE 1200 ms left", Refusal::Quarantined),
            ("CLOCK the token is ahead", Refusal::Clock),
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
