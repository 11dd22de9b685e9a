//! What an acquire asks for.

use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::owner::Owner;
use crate::renewal::Renewal;
use crate::time::Moment;
use crate::wire::Kind;

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
    /// What others see of the holder; may be empty.
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

impl Request {
    /// Runs `operation` to its end, unless the caller cancels it.
    pub(super) async fn unless_cancelled<T>(
        &self,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let cancelled = OptionFuture::from(self.cancelled.as_ref().map(CancellationToken::cancelled));
        tokio::select! {
            biased;
            Some(()) = cancelled => Err(Error::Cancelled { name: self.name.clone() }),
            outcome = operation => outcome,
        }
    }
}

/// Attempts at intervals, at most this many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Polling {
    pub(crate) interval: Duration,
    pub(crate) tries: u32,
}

/// An acquire under way.
#[derive(Debug)]
pub(super) struct Acquire {
    pub(super) request: Request,
    /// The per-master time-out.
    pub(super) timeout: Duration,
    pub(super) began: Moment,
}

/// Whether another attempt may end without this error.
pub(super) fn may_be_granted_later(error: &Error) -> bool {
    !matches!(
        error,
        Error::Refused { .. }
            | Error::AnotherKind { .. }
            | Error::OtherPermits { .. }
            | Error::AlreadyHeld { .. }
            | Error::Upgrade { .. }
            | Error::Invalid(_)
    )
}
