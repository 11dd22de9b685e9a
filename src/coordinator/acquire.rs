//! Acquire: rounds until one is granted or the wait budget is spent.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{MutexGuard, oneshot};
use tokio_util::sync::CancellationToken;

use super::clean_up::Effort;
use super::grant::Grant;
use super::hold::{Count, Hold};
use super::kind::Kind;
use super::quorum::Decision;
use super::round::Round;
use super::{Coordinator, verdict};
use crate::backoff::Backoff;
use crate::config::{check_name, check_wait};
use crate::error::{Error, Invalid};
use crate::lease;
use crate::master::Terms;
use crate::owner::Owner;

/// Delays between attempts: the first is some ten round trips on a local network, the last keeps a hundred waiters
/// from loading the masters and still takes over a free lock within a tenth of a second.
const POLL: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// What to acquire.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) name: Arc<str>,
    pub(crate) kind: &'static dyn Kind,
    pub(crate) ttl: Duration,
    pub(crate) wait: Duration,
    /// Whoever names an owner may re-enter; otherwise each attempt has an owner of its own.
    pub(crate) owner: Option<Owner>,
}

impl Coordinator {
    /// Takes the lock, or re-enters it. A caller that goes away, before or after the decision, leaves nothing behind:
    /// the attempt, and the grant on its way, release when they are dropped.
    pub(crate) async fn acquire(self: &Arc<Self>, request: Request) -> Result<Grant, Error> {
        let timeout = self.check(&request)?;
        if self.is_closed() {
            return Err(Error::Closed);
        }
        let (mut reply, answer) = oneshot::channel();
        let engine = self.clone();
        self.spawn(async move {
            let outcome = tokio::select! {
                biased;
                () = reply.closed() => return,
                () = engine.closing.cancelled() => Err(Error::Closed),
                outcome = engine.acquire_within(&request, timeout) => outcome,
            };
            let _ = reply.send(outcome);
        });
        let grant = answer.await.unwrap_or(Err(Error::Closed))?;
        // The last await is behind us, and it may have taken any time.
        if grant.remaining().is_zero() {
            return Err(Error::Lost { name: grant.name().clone(), votes: Arc::new([]) });
        }
        Ok(grant)
    }

    /// Checks what was asked for, and tells the per-master time-out.
    fn check(&self, request: &Request) -> Result<Duration, Invalid> {
        check_name(&request.name)?;
        check_wait(request.wait)?;
        if let Some(owner) = request.owner.filter(|owner| owner.client() != self.client()) {
            return Err(Invalid::ForeignOwner { owner });
        }
        self.settings.timeout_for(request.ttl)
    }

    async fn acquire_within(self: &Arc<Self>, request: &Request, timeout: Duration) -> Result<Grant, Error> {
        let began = self.clock.now();
        let mut backoff = Backoff::new(POLL.0, POLL.1);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let error = match self.attempt(request, timeout).await {
                Ok(grant) => return Ok(grant),
                Err(error) => error,
            };
            let waited = self.clock.now().since(began);
            if waited >= request.wait {
                return Err(if request.wait.is_zero() {
                    error
                } else {
                    out_of_time(error, waited, attempts)
                });
            }
            tracing::trace!(name = &*request.name, attempts, %error, "not granted yet");
            let delay = backoff.delay(self.random.next_u64()).min(request.wait - waited);
            tokio::time::sleep(delay).await;
        }
    }

    async fn attempt(self: &Arc<Self>, request: &Request, timeout: Duration) -> Result<Grant, Error> {
        let new = |owner| {
            let keys = (self.settings.key(&request.name), self.settings.channel(&request.name));
            Hold::new(request.name.clone(), keys, owner, request.kind)
        };
        let hold = match request.owner {
            Some(owner) => self.holds.find_or(&request.name, owner, || new(owner)),
            None => new(self.fresh_owner()),
        };
        let turn = hold.turn.lock().await;
        let mut attempt = Attempt::begin(self, &hold, turn, request.ttl, timeout);
        let decision = attempt.round.as_mut().expect("it is taken at the end").decision().await;
        attempt.conclude(decision)
    }
}

/// Where the lease is over, its guards have lost their holds, and what follows is a new lease.
fn give_up_if_lapsed(engine: &Coordinator, hold: &Hold, count: &mut Count) {
    if count.holds > 0 && engine.clock.now() >= hold.lease().deadline {
        count.give_up();
        hold.supersede();
    }
}

fn out_of_time(error: Error, waited: Duration, attempts: u32) -> Error {
    match error {
        Error::Held { name, holder, votes } => Error::WaitTimedOut { name, waited, attempts, holder, votes },
        other => other,
    }
}

/// One round of an acquire, from before anything is sent until a grant exists. Dropped before that, at any moment, it
/// undoes on the masters whatever it did or may yet have done.
struct Attempt<'a> {
    engine: &'a Arc<Coordinator>,
    hold: &'a Arc<Hold>,
    count: MutexGuard<'a, Count>,
    ttl: Duration,
    timeout: Duration,
    withdrawn: CancellationToken,
    /// `None` when its votes have been dealt with.
    round: Option<Round>,
}

impl<'a> Attempt<'a> {
    fn begin(
        engine: &'a Arc<Coordinator>,
        hold: &'a Arc<Hold>,
        mut count: MutexGuard<'a, Count>,
        ttl: Duration,
        timeout: Duration,
    ) -> Self {
        give_up_if_lapsed(engine, hold, &mut count);
        let withdrawn = count.standing.child_token();
        let operation = hold.operation(count.holds + 1, ttl, engine.next_round());
        let terms = Terms::Vote { timeout, withdrawn: withdrawn.clone() };
        let round = Some(engine.ask(&hold.kind.acquire(&operation), terms));
        Self { engine, hold, count, ttl, timeout, withdrawn, round }
    }

    fn conclude(mut self, decision: Decision) -> Result<Grant, Error> {
        let round = self.round.as_ref().expect("it is taken at the end");
        let votes = round.votes();
        if decision != Decision::Granted {
            return Err(verdict::denied(&self.hold.name, votes));
        }
        let deadline = lease::deadline(round.sent, self.ttl);
        if self.engine.clock.now() >= deadline {
            return Err(verdict::no_quorum(&self.hold.name, votes, true));
        }
        // The lease that was to be re-entered may have lapsed meanwhile, and another owner come and gone.
        give_up_if_lapsed(self.engine, self.hold, &mut self.count);
        let round = self.round.take().expect("it was there");
        self.note_keys(&round);
        let generation = match self.count.holds {
            0 => {
                self.count.begin();
                self.hold.begin(deadline)
            }
            _ => {
                self.count.holds += 1;
                self.hold.prolong(deadline)
            }
        };
        self.engine.let_finish(round);
        Ok(Grant::new(self.engine.clone(), self.hold.clone(), generation, votes))
    }

    /// Remembers which masters may have the key now, and until when.
    fn note_keys(&mut self, round: &Round) {
        for (place, outcome) in round.outcomes().enumerate() {
            if Effort::to_undo(outcome) == Some(Effort::UntilDone) {
                self.count.touch(place);
            }
        }
        self.count.keys_end = self.count.keys_end.max(lease::keys_end(round.sent, self.ttl, self.timeout));
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let Some(round) = self.round.take() else { return };
        self.withdrawn.cancel();
        self.note_keys(&round);
        let efforts: Vec<_> = round.outcomes().map(Effort::to_undo).collect();
        self.engine.mirror(self.hold, &mut self.count, |place| efforts[place]);
        // Stragglers are listened to, so that a silent master is noticed; what they grant is undone already.
        self.engine.let_finish(round);
    }
}
