//! Waiting for a lock: in line within the process, in the queues on the masters, and always with a bound in time.

use std::sync::Arc;
use std::time::Duration;

use super::acquire::Request;
use super::arbitration::{QUEUE_LIFE, next_look};
use super::attempt::{Ask, Attempt, Standing};
use super::clean_up::Effort;
use super::grant::Grant;
use super::kind::{Keys, Kind, Operation, Place};
use super::quorum::Decision;
use super::{Coordinator, verdict};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::clock::Moment;
use crate::error::Error;
use crate::owner::Owner;
use crate::vote::Vote;
use crate::wake::{Bell, Denial, Presence, Spot};

/// Delays between attempts where waiters cannot be woken: the first is some ten round trips on a local network, the last
/// keeps a hundred waiters from loading the masters and still takes over a free lock within a tenth of a second.
const POLL: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// The most that a look is put off, so that clients which wait for the same TTL do not all look at once.
const JITTER: Duration = Duration::from_millis(100);

impl Coordinator {
    /// Attempts until one is granted, or the wait is over.
    pub(super) async fn acquire_in_time(
        self: &Arc<Self>,
        request: &Request,
        timeout: Duration,
    ) -> Result<Grant, Error> {
        let mut wait = Wait::begin(self, request);
        if request.polling.is_none() && !self.is_held_by(request) {
            wait.line_up().await?;
        }
        loop {
            match wait.attempt(timeout).await {
                Ok(grant) => return Ok(grant),
                Err(error) if wait.is_over() => return Err(wait.out_of_time(error)),
                Err(error) => wait.pause(error).await,
            }
        }
    }

    /// Whether it is a re-entry. An owner that has the lock does not line up behind those who wait for it.
    fn is_held_by(&self, request: &Request) -> bool {
        let hold = request.owner.and_then(|owner| self.holds.find(&request.name, owner));
        hold.is_some_and(|hold| hold.stands(self.clock.now()))
    }

    /// Gives up the place of a ticket on the masters where it stands, by their place.
    pub(super) fn leave(&self, kind: &'static dyn Kind, keys: &Keys, ticket: &Arc<str>, on: u16) {
        let (owner, ttl, round) = (ticket, Duration::ZERO, self.next_round());
        let operation = Operation { keys, owner, count: 0, ttl, round, place: None, before: None };
        let errand = kind.release(&operation);
        for master in (0..self.masters.len()).filter(|master| on & (1 << master) != 0) {
            let (effort, until) = (Some(Effort::UntilDone), self.clock.now() + QUEUE_LIFE);
            drop(self.tell(master, &errand, until, effort, CancellationToken::new()));
        }
    }
}

/// One waiter.
struct Wait<'a> {
    engine: &'a Arc<Coordinator>,
    request: &'a Request,
    began: Moment,
    /// The same moment by the wall clock.
    since: Duration,
    attempts: u32,
    backoff: Backoff,
    /// In the process.
    spot: Option<Spot>,
    /// On the masters, between two attempts.
    standing: Option<Standing>,
    /// While this lives, the client listens to its masters.
    presence: Option<Presence>,
    bell: Option<Bell>,
}

impl<'a> Wait<'a> {
    fn begin(engine: &'a Arc<Coordinator>, request: &'a Request) -> Self {
        let (began, since) = (engine.clock.now(), engine.clock.wall());
        let backoff = Backoff::new(POLL.0, POLL.1);
        let (spot, standing, presence, bell) = (None, None, None, None);
        Self { engine, request, began, since, attempts: 0, backoff, spot, standing, presence, bell }
    }

    fn waited(&self) -> Duration {
        self.engine.clock.now().since(self.began)
    }

    fn left(&self) -> Duration {
        self.request.wait.saturating_sub(self.waited())
    }

    fn is_over(&self) -> bool {
        self.left().is_zero() || self.request.polling.is_some_and(|polling| self.attempts >= polling.tries)
    }

    /// Waits to be the first of this process that waits for this lock, or for the lock to be entered by its own owner.
    async fn line_up(&mut self) -> Result<(), Error> {
        let name = &self.request.name;
        let full = |limit| Error::QueueFull { name: name.clone(), limit };
        let mut spot = self.engine.lines.join(name).map_err(full)?;
        let own = self.request.owner.map(|_| self.engine.hold_for(self.request));
        let entered = async {
            match &own {
                Some(hold) => hold.until_it_stands(&*self.engine.clock).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = spot.is_first() => {}
            // Those ahead may be waiting for this very owner.
            () = entered => return Ok(()),
            () = tokio::time::sleep(self.request.wait) => {
                if let Some(Denial { holder, votes }) = spot.last() {
                    return Err(self.timed_out(holder, votes));
                } // otherwise nobody knows yet who has it: this one asks once
            }
        }
        self.spot = Some(spot);
        Ok(())
    }

    async fn attempt(&mut self, timeout: Duration) -> Result<Grant, Error> {
        self.attempts += 1;
        let engine = self.engine;
        let hold = engine.hold_for(self.request);
        // A named owner may wait more than once, for several locks and several times for one.
        let ticket = self.request.owner.map_or(hold.owner, |_| engine.fresh_owner());
        let place = self.place(ticket);
        let settles = place.is_some();
        let bell = &*self.bell.insert(engine.wakes.bell(ticket.number()));
        let turn = hold.turn.lock().await;
        let ask = Ask { ttl: self.request.ttl, timeout, renewal: self.request.renewal, place };
        let mut attempt = Attempt::begin(engine, &hold, turn, ask, self.standing.take());
        let mut decision = attempt.decision().await;
        if decision != Decision::Granted && settles {
            decision = attempt.settle(bell).await;
        }
        if decision == Decision::Granted {
            return attempt.grant();
        }
        let votes = attempt.votes();
        self.standing = attempt.withdraw();
        Err(verdict::denied(&self.request.name, votes))
    }

    /// The place to take in the queues: none for whoever cannot be woken, or comes for the last time.
    fn place(&self, ticket: Owner) -> Option<Place> {
        let queues = self.spot.is_some() && !self.left().is_zero() && self.engine.wakes.hears();
        queues.then(|| Place { ticket: ticket.to_string().into(), since: self.since, waited: self.waited() })
    }

    /// Waits until it is time for the next attempt.
    async fn pause(&mut self, error: Error) {
        let name = &*self.request.name;
        tracing::trace!(name, attempts = self.attempts, %error, "not granted yet");
        self.note(&error);
        let pause = self.until_next(error.votes()).min(self.left());
        match &self.bell {
            Some(bell) if self.spot.is_some() => {
                self.presence.get_or_insert_with(|| self.engine.wakes.attend());
                let _ = tokio::time::timeout(pause, bell.rung()).await;
            }
            _ => tokio::time::sleep(pause).await,
        }
    }

    /// How long until the next attempt if nobody wakes it.
    fn until_next(&mut self, votes: &[Vote]) -> Duration {
        let random = self.engine.random.next_u64();
        if let Some(polling) = self.request.polling {
            return polling.interval;
        }
        match next_look(votes).filter(|_| self.standing.is_some()) {
            Some(look) => look + Backoff::new(JITTER, JITTER).delay(random).min(look / 10 + POLL.0),
            None => self.backoff.delay(random),
        }
    }

    /// Tells those behind it in line who has the lock.
    fn note(&self, error: &Error) {
        if let (Some(spot), Error::Held { holder, votes, .. }) = (&self.spot, error) {
            spot.note(Denial { holder: holder.clone(), votes: votes.clone() });
        }
    }

    fn out_of_time(&self, error: Error) -> Error {
        self.note(&error);
        match error {
            Error::Held { holder, votes, .. } => self.timed_out(holder, votes),
            other => other,
        }
    }

    fn timed_out(&self, holder: crate::error::Holder, votes: Arc<[Vote]>) -> Error {
        let (name, waited, attempts) = (self.request.name.clone(), self.waited(), self.attempts);
        Error::WaitTimedOut { name, waited, attempts, holder, votes }
    }
}
