//! How a call to a master can fail.

use std::sync::Arc;

use crate::vote::{Refusal, Silence};

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
    pub fn from_error_reply(reply: &str) -> Self {
        let reason = match reply.split(' ').next().unwrap_or("") {
            "READONLY" => Refusal::ReadOnly,
            "LOADING" => Refusal::Loading,
            "BUSY" => Refusal::Busy,
            "OOM" => Refusal::OutOfMemory,
            "MISCONF" => Refusal::Misconfigured,
            "NOPERM" | "NOAUTH" | "WRONGPASS" => Refusal::NoPermission,
            "WRONGTYPE" => Refusal::WrongType,
            "KIND" => Refusal::AnotherKind,
            "FORGOT" => Refusal::Forgot,
            "QUARANTINE" => Refusal::Quarantined,
            "CLOCK" => Refusal::Clock,
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
