//! Acquire: one attempt, or attempts until one is granted or the wait is over.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use super::attempt::Attempt;
use super::engine::Engine;
use super::first::FirstAttempt;
use super::grant::Grant;
use super::hold::Hold;
use super::request::{Acquire, Polling, Request, may_be_granted_later};
use super::wait::{Wait, has_moved, has_wrong_time};
use crate::config::{MIN_INTERVAL, check_label, check_permits, check_wait};
use crate::error::Error;
use crate::invalid::Invalid;
use crate::renewal::Renewal;
use crate::round::has_free_permit;
use crate::vote::Vote;
use crate::wire::{Kind, LockId};

impl Engine {
    /// Takes the lock, or re-enters it. A caller that goes away, before or after the decision,
    /// leaves nothing behind: the attempt, the place in the queue, and the grant on its way, undo
    /// themselves when they are dropped.
    ///
    /// Where it may, the caller makes the first attempt itself, which costs no task if the masters
    /// grant it with one token. What has to go on even if the caller is not polled runs as a task.
    pub(crate) async fn acquire(self: &Arc<Self>, request: Request) -> Result<Grant, Error> {
        let timeout = self.validated_timeout(&request)?;
        if self.is_closed() {
            return Err(Error::Closed);
        }
        let acquire = Arc::new(Acquire { request, timeout, began: self.clock().now() });
        let Acquire { request, began, .. } = &*acquire;
        self.until_ready(request, timeout).await?;
        if let Some(why) = self.dispatcher.trust().other_list() {
            return Err(Error::OtherSet { why });
        }
        let mut denied = None;
        if let Some(first) = self.attempt_at_once(&acquire) {
            let granted = match first.decided().await {
                Ok(attempt) if attempt.has_token() => attempt.grant(request.renewal.clone()),
                Ok(attempt) => self.run_until_taken(attempt.agree_and_grant(), &request.renewal).await,
                Err(error) => Err(error),
            };
            match granted.and_then(Grant::unless_lost) {
                Err(error) if !self.is_closed() && is_worth_waiting(&error, request) => denied = Some(error),
                decided => return decided,
            }
        }
        loop {
            if denied.as_ref().is_some_and(has_moved) {
                self.until_ready(request, timeout).await?; // it may have to connect to others
            }
            let waiting = Wait::begin(self.clone(), acquire.clone()).go_on(denied).boxed();
            match self.run_until_taken(waiting, &request.renewal).await?.unless_lost() {
                // The caller was not polled for as long as the lease lasted, and still has time to
                // wait.
                Err(loss) if self.clock().now().since(*began) < request.wait => denied = Some(loss),
                decided => return decided,
            }
        }
    }

    /// Runs `granting` as a task, whose lease is renewed once the caller has taken the grant. A
    /// caller that is not polled any more must not keep the lock from others for longer than a TTL.
    async fn run_until_taken(
        self: &Arc<Self>,
        granting: impl Future<Output = Result<Grant, Error>> + Send + 'static,
        renewal: &Option<Arc<Renewal>>,
    ) -> Result<Grant, Error> {
        let grant = self.run_while_wanted(granting).await?;
        grant.renew_by(renewal);
        Ok(grant)
    }

    /// Waits [until the time is known](Engine::until_the_time_is_known), unless the caller cancels
    /// that.
    async fn until_ready(self: &Arc<Self>, request: &Request, timeout: Duration) -> Result<(), Error> {
        let known = self.until_the_time_is_known(&request.name, request.kind, timeout);
        request.unless_cancelled(known).await
    }

    /// Connects to the masters before the first grant, and asks for the time where it is known
    /// vaguely: a grant proposes the time that most of them show as its token.
    pub(super) async fn until_the_time_is_known(
        self: &Arc<Self>,
        name: &Arc<str>,
        kind: Kind,
        timeout: Duration,
    ) -> Result<(), Error> {
        let Some(learning) = self.dispatcher.learn_the_time(name, kind, timeout) else { return Ok(()) };
        self.run_while_wanted(async move {
            learning.await;
            Ok(())
        })
        .await
    }

    /// An attempt that the caller may wait for without a task. A caller that is not polled any more
    /// must not hold up others: so its owner is unknown to others, it stands in no queue, and it
    /// overtakes no waiter of this client, unless it would not wait itself.
    fn attempt_at_once(self: &Arc<Self>, acquire: &Arc<Acquire>) -> Option<FirstAttempt> {
        let Request { owner, wait, cancelled, name, kind, .. } = &acquire.request;
        let may_attempt = wait.is_zero() || self.may_attempt_at_once(*kind, name);
        if owner.is_some() || cancelled.is_some() || !may_attempt {
            return None;
        }
        let hold = self.hold_for(&acquire.request, &[]);
        let hold_state = hold.state.clone().try_lock_owned().expect("nobody else has this new hold");
        Some(FirstAttempt::begin(
            Attempt::send(self, acquire, hold, hold_state, None),
            self.tasks.token(),
            self.dispatcher.caller_waker().clone(),
        ))
    }

    /// Checks what was asked for, and returns the per-master time-out.
    fn validated_timeout(&self, request: &Request) -> Result<Duration, Invalid> {
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

    /// The hold that an attempt is for: that of the named owner, or one of a fresh owner. Of a
    /// semaphore it is the hold of a permit that may be free by the last votes.
    pub(super) fn hold_for(&self, request: &Request, votes: &[Vote]) -> Arc<Hold> {
        let Request { name, kind, owner, permits, .. } = request;
        let lock = |owner| LockId { name: name.clone(), kind: *kind, permit: None, owner };
        match (*owner, *permits) {
            (Some(owner), _) => self.leases.holds.find_or_make(*kind, name, owner, || {
                if kind.is_held_by_name() { owner } else { self.fresh_owner() }
            }),
            (None, Some(of)) => {
                let picked = self.leases.permits.pick(name, of, votes, self.random.next_u64());
                Hold::of_picked(lock(self.fresh_owner()), picked)
            }
            (None, None) => Hold::new(lock(self.fresh_owner())),
        }
    }
}

/// Whether to go on after the first attempt: there is time to wait, or a reason to ask at once.
fn is_worth_waiting(error: &Error, request: &Request) -> bool {
    let may_ask_at_once =
        has_free_permit(error.votes(), request.permits) || has_wrong_time(error) || has_moved(error);
    may_be_granted_later(error) && (!request.wait.is_zero() || may_ask_at_once)
}
