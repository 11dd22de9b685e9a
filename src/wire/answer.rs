//! A master's answer to a call: what the script replied, or how the call failed.

use std::sync::Arc;

use crate::vote::{Refusal, Silence};

/// A script's reply, in the four forms that Lua can give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing: Lua's `nil` or `false`.
    Nil,
    /// A number, without its fraction.
    Int(i64),
    /// A string.
    Text(Arc<str>),
    /// An array.
    List(Vec<Value>),
}

impl Value {
    /// The items, if this is an array.
    pub fn list(&self) -> Option<&[Value]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn text(&self) -> Option<&Arc<str>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if this is one, or a string that holds one.
    pub fn int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// How a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The master answered with an error.
    Refused {
        /// Why, in one word.
        reason: Refusal,
        /// The master's own words.
        detail: Arc<str>,
    },
    /// Nothing was sent: the master did not answer before.
    Unreachable(Arc<str>),
    /// The call was sent and has no answer: it may have run.
    Unknown(Silence),
}

impl Failure {
    /// What a server's error reply means.
    pub fn from_error_reply(reply: &str) -> Self {
        Self::refused(Refusal::of_reply(reply), reply)
    }

    /// The master answered while a connection to it was set up, and the connection cannot be used.
    pub fn refused(reason: Refusal, detail: impl Into<Arc<str>>) -> Self {
        Self::Refused { reason, detail: detail.into() }
    }

    /// Its caller did not want the call to be sent any more.
    pub fn not_sent() -> Self {
        let detail = "MOVED the set of masters has changed since this was asked, or it was given up".into();
        Self::Refused { reason: Refusal::Moved, detail }
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
            ("NOAUTH Authentication required.", Refusal::Password),
            ("WRONGPASS invalid username-password pair or user is disabled.", Refusal::Password),
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

    /// As the servers word them. Between the versions that are named nothing changes.
    #[test]
    fn what_is_denied_or_unknown_is_told_on_every_server() {
        const REDIS_7_0: &[(&str, Refusal)] = &[
            ("NOPERM this user has no permissions to run the 'hset' command", Refusal::NoPermission),
            (
                "NOPERM this user has no permissions to access one of the keys used as arguments",
                Refusal::NoPermission,
            ),
            (
                "ERR The user executing the script can't run this command or subcommand script: 08be, on \
                 @user_script:1.",
                Refusal::NoPermission,
            ),
            (
                "ERR The user executing the script can't access at least one of the keys mentioned in the \
                 command arguments",
                Refusal::NoPermission,
            ),
            (
                "ERR The user executing the script can't publish to the channel mentioned in the command",
                Refusal::NoPermission,
            ),
            (
                "ERR Unknown Redis command called from script script: 104a, on @user_script:1.",
                Refusal::Unsupported,
            ),
            ("ERR unknown command 'EVAL', with args beginning with: 'x' '0'", Refusal::Unsupported),
        ];
        const REDIS_8_2: &[(&str, Refusal)] = &[
            ("NOPERM User default has no permissions to run the 'hset' command", Refusal::NoPermission),
            ("NOPERM No permissions to access a key", Refusal::NoPermission),
            (
                "ERR ACL failure in script: User default has no permissions to run the 'hset' command script: \
                 08be, on @user_script:1.",
                Refusal::NoPermission,
            ),
            ("ERR ACL failure in script: No permissions to access a key", Refusal::NoPermission),
            ("ERR ACL failure in script: No permissions to access a channel", Refusal::NoPermission),
            (
                "ERR Unknown Redis command called from script script: 104a, on @user_script:1.",
                Refusal::Unsupported,
            ),
            ("ERR unknown command 'HELLO', with args beginning with: '3'", Refusal::Unsupported),
        ];
        const VALKEY_9_1: &[(&str, Refusal)] = &[
            ("NOPERM User default has no permissions to run the 'hset' command", Refusal::NoPermission),
            (
                "ERR ACL failure in script: User default has no permissions to run the 'hset' command script: on \
                 @user_script:1.",
                Refusal::NoPermission,
            ),
            ("ERR ACL failure in script: No permissions to access a key", Refusal::NoPermission),
            ("ERR Unknown command called from script script: on @user_script:1.", Refusal::Unsupported),
            ("ERR unknown command 'TIME', with args beginning with: ", Refusal::Unsupported),
        ];
        for (server, replies) in
            [("Redis 7.0", REDIS_7_0), ("Redis 8.2", REDIS_8_2), ("Valkey 9.1", VALKEY_9_1)]
        {
            for (reply, wanted) in replies {
                assert_eq!(Refusal::of_reply(reply), *wanted, "{server}: {reply}");
            }
        }
        for other in ["ERR user_script:1: The user executing the script can't", "ERR Unknown argument"] {
            assert_eq!(Refusal::of_reply(other), Refusal::Other, "{other}");
        }
    }
}
