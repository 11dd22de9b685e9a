//! Acquire: one attempt, or attempts until one is granted and the wait is over.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Coordinator;
use super::attempt::{Ask, Attempt};
use super::first::First;
use super::grant::Grant;
use super::hold::Hold;
use super::permits::has_free;
use super::wait::{Wait, has_wrong_time};
use crate::config::{MIN_INTERVAL, check_label, check_permits, check_wait};
use crate::error::Error;
use crate::invalid::Invalid;
use crate::owner::Owner;
use crate::protocol::Kind;
use crate::renewal::Renewal;
use crate::vote::Vote;

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
    ///
    /// The first attempt of an owner that nobody else knows is the caller's own, and costs no task: where it is granted,
    /// there is nothing else to do. What has to go on by itself, whether or not the caller is run, goes on as a task.
    pub(crate) async fn acquire(self: &Arc<Self>, request: Request) -> Result<Grant, Error> {
        let timeout = self.check(&request)?;
        if self.is_closed() || self.outbox.is_closed() {
            return Err(Error::Closed);
        }
        let began = self.clock.now();
        self.until_the_time_is_known(timeout).await?;
        let mut denied = None;
        if let Some(first) = self.attempt_at_once(&request, timeout) {
            let granted = match first.decision().await {
                Ok(attempt) if attempt.has_token() => attempt.grant().and_then(unless_lost),
                Ok(attempt) => self.run_while_wanted(attempt.agree_and_grant()).await.and_then(unless_lost),
                Err(error) => Err(error),
            };
            match granted {
                Err(error) if !self.is_closed() && is_worth_waiting(&error, &request) => denied = Some(error),
                decided => return decided,
            }
        }
        loop {
            let waiting = Wait::begin(self.clone(), request.clone(), timeout, began).go_on(denied);
            match unless_lost(self.run_while_wanted(waiting).await?) {
                // Its caller was not run for as long as the lease, and may have waited for less than it would.
                Err(loss) if self.clock.now().since(began) < request.wait => denied = Some(loss),
                decided => return decided,
            }
        }
    }

    /// Connects to the masters, where nobody has tried to: what is proposed as a token is the time that most of them show.
    pub(super) async fn until_the_time_is_known(self: &Arc<Self>, timeout: Duration) -> Result<(), Error> {
        if self.introduced.load(Ordering::Relaxed) || self.trust.knows_the_time() {
            return Ok(());
        }
        let (trust, ready) = (self.trust.clone(), self.masters.iter().map(|master| master.ready()));
        let (connecting, engine) = (join_all(ready), self.clone());
        self.run_while_wanted(async move {
            let known = async {
                tokio::select! {
                    biased;
                    () = trust.until_it_knows_the_time() => {}
                    _ = connecting => {}
                }
            };
            let _ = tokio::time::timeout(timeout, known).await; // the round will tell who did not answer
            engine.introduced.store(true, Ordering::Relaxed);
            Ok(())
        })
        .await
    }

    /// An attempt that the caller may wait for by itself. Whoever is not run any more keeps nobody waiting with it: its owner
    /// is known to nobody, it stands in no line and no queue, and no line is passed by.
    fn attempt_at_once(self: &Arc<Self>, request: &Request, timeout: Duration) -> Option<First> {
        let Request { owner, wait, cancelled, name, kind, .. } = request;
        let is_alone = wait.is_zero() || (!self.wakes.hears() && !self.lines.has(kind.word(), name));
        if owner.is_some() || cancelled.is_some() || !is_alone {
            return None;
        }
        let hold = self.hold_for(request, &[]);
        let turn = hold.turn.clone().try_lock_owned().ok()?;
        let ask = Ask {
            ttl: request.ttl,
            timeout,
            delay: request.delay,
            label: request.label.clone(),
            renewal: request.renewal.clone(),
            place: None,
            arrival: None,
        };
        Some(First::begin(
            Attempt::begin(self, hold, turn, ask, None),
            self.tasks.token(),
            self.relay.clone(),
        ))
    }

    /// Runs `operation` as a task for as long as somebody waits for it.
    pub(super) async fn run_while_wanted<T, F>(self: &Arc<Self>, operation: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let (mut reply, answer) = oneshot::channel();
        self.spawn(async move {
            let outcome = tokio::select! {
                biased;
                () = reply.closed() => return,
                outcome = operation => outcome,
            };
            let _ = reply.send(outcome);
        });
        answer.await.unwrap_or(Err(Error::Closed))
    }

    /// Checks what was asked for, and tells the per-master time-out.
    fn check(&self, request: &Request) -> Result<Duration, Invalid> {
        request.kind.check_name(&request.name)?;
        check_permits(request.permits)?;
        check_wait(request.wait)?;
        check_label(&request.label)?;
        if let Some(owner) = request.owner.filter(|owner| owner.client() != self.client()) {
            return Err(Invalid::foreign_owner(owner));
        }
        let timeout = self.settings.timeout_for(request.ttl)?;
        self.settings.check_delay(request.delay, request.ttl)?;
        if let Some(renewal) = &request.renewal {
            renewal.check()?;
        }
        if let Some(Polling { interval, tries }) = request.polling
            && (interval < MIN_INTERVAL || tries == 0)
        {
            return Err(Invalid::polling(interval, MIN_INTERVAL, tries));
        }
        Ok(timeout)
    }

    /// The hold that an attempt is for: a named owner's own, or one of an owner that was never there before. Of a semaphore
    /// it is that of a permit which may be free by the last votes.
    pub(super) fn hold_for(&self, request: &Request, votes: &[Vote]) -> Arc<Hold> {
        let Request { name, kind, owner, permits, .. } = request;
        match (*owner, *permits) {
            (Some(owner), _) => {
                self.holds.find_or_make(*kind, name, owner, || match kind.is_held_by_name() {
                    true => owner,
                    false => self.fresh_owner(),
                })
            }
            (None, Some(of)) => {
                let picked = self.permits.pick(name, of, votes, self.random.next_u64());
                Hold::of_picked(name.clone(), self.fresh_owner(), *kind, picked)
            }
            (None, None) => Hold::new(name.clone(), self.fresh_owner(), *kind, None),
        }
    }
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

/// Whether to go on after the first attempt: there is time, or something is to be asked at once.
fn is_worth_waiting(error: &Error, request: &Request) -> bool {
    let may_ask_at_once = has_free(error.votes(), request.permits) || has_wrong_time(error);
    may_change(error) && (!request.wait.is_zero() || may_ask_at_once)
}

/// The last await is behind us, and it may have taken any time.
pub(super) fn unless_lost(grant: Grant) -> Result<Grant, Error> {
    match grant.loss() {
        Some(loss) => Err(loss),
        None => Ok(grant),
    }
}
