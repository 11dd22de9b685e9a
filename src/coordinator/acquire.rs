//! Acquire: one attempt, or attempts until one is granted and the wait is over.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Coordinator;
use super::attempt::{Ask, Attempt};
use super::grant::Grant;
use super::hold::Hold;
use super::kind::Kind;
use super::quorum::Decision;
use super::verdict;
use crate::config::{MIN_INTERVAL, check_name, check_wait};
use crate::error::{Error, Invalid};
use crate::owner::Owner;
use crate::renewal::Renewal;

/// What to acquire.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) name: Arc<str>,
    pub(crate) kind: &'static dyn Kind,
    pub(crate) ttl: Duration,
    pub(crate) wait: Duration,
    pub(crate) renewal: Option<Renewal>,
    /// Whoever names an owner may re-enter; otherwise each attempt has an owner of its own.
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

impl Coordinator {
    /// Takes the lock, or re-enters it. A caller that goes away, before or after the decision, leaves nothing behind:
    /// the attempt, the place in the queue, and the grant on its way, undo themselves when they are dropped.
    pub(crate) async fn acquire(self: &Arc<Self>, request: Request) -> Result<Grant, Error> {
        let timeout = self.check(&request)?;
        if self.is_closed() {
            return Err(Error::Closed);
        }
        let (mut reply, answer) = oneshot::channel();
        let engine = self.clone();
        self.spawn(async move {
            let cancelled = async {
                match &request.cancelled {
                    Some(token) => token.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            let outcome = tokio::select! {
                biased;
                () = reply.closed() => return,
                () = engine.closing.cancelled() => Err(Error::Closed),
                () = cancelled => Err(Error::Cancelled { name: request.name.clone() }),
                outcome = engine.acquire_within(&request, timeout) => outcome,
            };
            let _ = reply.send(outcome);
        });
        let grant = answer.await.unwrap_or(Err(Error::Closed))?;
        // The last await is behind us, and it may have taken any time.
        match grant.loss() {
            Some(loss) => Err(loss),
            None => Ok(grant),
        }
    }

    /// Checks what was asked for, and tells the per-master time-out.
    fn check(&self, request: &Request) -> Result<Duration, Invalid> {
        check_name(&request.name)?;
        check_wait(request.wait)?;
        if let Some(owner) = request.owner.filter(|owner| owner.client() != self.client()) {
            return Err(Invalid::ForeignOwner { owner });
        }
        let timeout = self.settings.timeout_for(request.ttl)?;
        if let Some(renewal) = &request.renewal {
            renewal.check()?;
        }
        if let Some(Polling { interval, tries }) = request.polling
            && (interval < MIN_INTERVAL || tries == 0)
        {
            return Err(Invalid::Polling { interval, min: MIN_INTERVAL, tries });
        }
        Ok(timeout)
    }

    async fn acquire_within(self: &Arc<Self>, request: &Request, timeout: Duration) -> Result<Grant, Error> {
        if request.wait.is_zero() {
            self.acquire_once(request, timeout).await
        } else {
            self.acquire_in_time(request, timeout).await
        }
    }

    /// One round.
    pub(super) async fn acquire_once(
        self: &Arc<Self>,
        request: &Request,
        timeout: Duration,
    ) -> Result<Grant, Error> {
        let hold = self.hold_for(request);
        let turn = hold.turn.lock().await;
        let ask = Ask { ttl: request.ttl, timeout, renewal: request.renewal, place: None };
        let mut attempt = Attempt::begin(self, &hold, turn, ask, None);
        match attempt.decision().await {
            Decision::Granted => attempt.grant(),
            _ => Err(verdict::denied(&hold.name, attempt.votes())),
        }
    }

    /// The hold that an attempt is for: a named owner's own, or one of an owner that was never there before.
    pub(super) fn hold_for(&self, request: &Request) -> Arc<Hold> {
        let new = |owner| Hold::new(request.name.clone(), self.keys(&request.name), owner, request.kind);
        match request.owner {
            Some(owner) => self.holds.find_or(&request.name, owner, || new(owner)),
            None => new(self.fresh_owner()),
        }
    }
}
