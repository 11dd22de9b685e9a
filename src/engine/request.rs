//! What an acquire asks for.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::owner::Owner;
use crate::protocol::Kind;
use crate::renewal::Renewal;

/// What to acquire.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    /// How many permits there are, of a semaphore.
    pub(crate) permits: Option<u32>,
    pub(crate) ttl: Duration,
    /// For how long the lock is kept from others should its lease end without a release.
    pub(crate) delay: Duration,
    /// What others are told of the holder; may be empty.
    pub(crate) label: Arc<str>,
    pub(crate) wait: Duration,
    pub(crate) renewal: Option<Arc<Renewal>>,
    /// A named owner may re-enter; otherwise each attempt has an owner of its own.
    pub(crate) owner: Option<Owner>,
    /// Polls instead of standing in the queue.
    pub(crate) polling: Option<Polling>,
    /// Ends the waiting.
    pub(crate) cancelled: Option<CancellationToken>,
}

/// Asking at intervals, so often at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Polling {
    pub(crate) interval: Duration,
    pub(crate) tries: u32,
}

/// Whether it is worth while to wait, and ask again.
pub(super) fn may_change(error: &Error) -> bool {
    !matches!(
        error,
        Error::Refused { .. }
            | Error::AnotherKind { .. }
            | Error::OtherPermits { .. }
            | Error::AlreadyHeld { .. }
            | Error::Upgrade { .. }
    )
}
