//! Waiting for a lock: attempts until one is granted, or the wait is over.
//!
//! 1. Waiters of one name in one process stand in line (`wake/local_queue.rs`). Only the first asks
//!    the masters; of readers, and for a semaphore, up to eight. An owner that has the lock already
//!    does not line up.
//! 2. The first attempt is a plain round. Refused, the client listens on every master
//!    (`wake/hub.rs`) and attempts again as soon as it hears a quorum: subscribe, then check, then
//!    wait.
//! 3. From then on each attempt takes a place in the queues of the masters that refuse it (`stand`
//!    in queue.lua), instead of the place of the attempt before. Each has a ticket of its own, so
//!    that no call is ambiguous.
//! 4. It asks again when a quorum of the masters has called it (`wake` in queue.lua; heard by
//!    `master/listen.rs`), or 5 ms after the first call; when calls may have been missed; or when
//!    the TTLs on a quorum have run out, and a quarter of that later for each that is ahead of it
//!    (`arbitration.rs`). Where nobody has a quorum, nobody would call: it polls.
//! 5. Contenders that split the vote see the same holders and follow one rule (`arbitration.rs`):
//!    the one with most masters asks again, the others withdraw and keep their places.
//! 6. Of a semaphore it draws a permit that this client has not, and that a quorum may have free by
//!    the last votes (`permits.rs`).
//! 7. A waiter that goes away gives up its place on every master. If the lock is free at that
//!    moment, the next in the queue is called.
//! 8. For a fair lock the first in the queue looks every second, the second every two, and so on: a
//!    first that was called and does not ask is passed over.
//! 9. While a client of another library has the lock, which calls nobody, it polls (`foreign.rs`).
//!
//! A call is a hint: the waiter asks, and is granted or refused like anybody.

use std::sync::Arc;
use std::time::Duration;

use super::arbitration::next_look;
use super::attempt::{Ask, Attempt, QueuePlace};
use super::foreign::ForeignHolder;
use super::grant::Grant;
use super::parts::Engine;
use super::permits::has_free;
use super::quorum::Decision;
use super::request::{Request, may_change};
use super::verdict::quorum_holder;
use crate::backoff::Backoff;
use crate::clock::Moment;
use crate::error::{Error, Holder};
use crate::owner::Owner;
use crate::protocol::{Arrival, Place};
use crate::vote::{Outcome, Refusal, Vote, Votes};
use crate::wake::{Denial, ForeignWakes, LocalSlot, Subscription, WakeHandle};

/// Delays between attempts where waiters cannot be woken: the first is some ten round trips on a
/// local network, the last keeps a hundred waiters from loading the masters and still takes over a
/// free lock within a tenth of a second.
const POLL: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// The most that a look is put off, so that clients which wait for the same TTL do not all look at
/// once.
const JITTER: Duration = Duration::from_millis(100);

/// How often in a row a waiter asks at once for another permit, which the masters said is free.
/// Of two that ask for the same one, one withdraws, and a few draws are enough where
/// permits are many.
const GUESSES: u32 = 4;

/// How many waiters of a process ask at once for permits of one semaphore, or to read: with one
/// after the other, many permits that are given back together are taken slowly, and with all of
/// them the masters' queues are long.
const ABREAST: usize = 8;

/// One waiter.
pub(super) struct Wait {
    engine: Arc<Engine>,
    request: Request,
    timeout: Duration,
    began: Moment,
    /// The same moment as masters know it.
    since: Duration,
    attempts: u32,
    /// What the masters said last, of a semaphore.
    last: Votes,
    /// How often in a row another permit was free.
    guesses: u32,
    /// Whether masters have just refused this client's time and sent theirs; and whether they ever
    /// have.
    new_time: bool,
    has_new_time: bool,
    backoff: Backoff,
    /// A holder that would not wake it.
    foreign_holder: ForeignHolder,
    /// In the process.
    slot: Option<LocalSlot>,
    /// On the masters, between two attempts.
    place: Option<QueuePlace>,
    /// While this lives, the client listens to its masters.
    subscription: Option<Subscription>,
    bell: Option<WakeHandle>,
    /// While this lives, the client listens for releases by other libraries.
    foreign_wakes: Option<ForeignWakes>,
}

impl Wait {
    /// Waits since then, each round with this time-out.
    pub(super) fn begin(engine: Arc<Engine>, request: Request, timeout: Duration, began: Moment) -> Self {
        let since = engine.dispatcher.time().saturating_sub(engine.clock().now().since(began));
        let backoff = Backoff::new(POLL.0, POLL.1);
        Self {
            engine,
            request,
            timeout,
            began,
            since,
            attempts: 0,
            last: Votes::default(),
            guesses: 0,
            new_time: false,
            has_new_time: false,
            backoff,
            foreign_holder: ForeignHolder::new(),
            slot: None,
            place: None,
            subscription: None,
            bell: None,
            foreign_wakes: None,
        }
    }

    /// Attempts until one is granted, or the wait is over. There may have been one at once, which
    /// was denied.
    pub(super) async fn go_on(mut self, denied: Option<Error>) -> Result<Grant, Error> {
        self.attempts = u32::from(denied.is_some());
        let engine = self.engine.clone();
        let request = self.request.clone();
        let cancelled = async {
            match &request.cancelled {
                Some(token) => token.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = engine.closing.cancelled() => Err(Error::Closed),
            () = cancelled => Err(Error::Cancelled { name: request.name.clone() }),
            outcome = self.until_granted(denied) => outcome,
        }
    }

    async fn until_granted(&mut self, denied: Option<Error>) -> Result<Grant, Error> {
        if let Some(error) = &denied {
            self.learn(error);
        }
        if let Some(error) = denied.clone().filter(|_| self.is_over() && !self.asks_at_once()) {
            return Err(self.out_of_time(error));
        }
        if self.queues() && !self.engine.is_re_entry(&self.request) {
            self.engine.refuse_to_wait_for_itself(&self.request)?;
            self.line_up().await?;
        }
        match denied {
            Some(error) if !self.queues() || !self.engine.waiters.wakes.hears() => {
                // No master calls this number: it rings when a quorum is heard, or the pause is
                // over.
                self.bell = Some(self.engine.waiters.wakes.wake_handle(self.engine.fresh_owner().number()));
                self.pause(error).await;
            }
            _ => {}
        }
        loop {
            let error = match self.attempt().await {
                Ok(grant) => return Ok(grant),
                Err(error) => error,
            };
            self.learn(&error);
            if (self.is_over() && !self.asks_at_once()) || !may_change(&error) {
                return Err(self.out_of_time(error));
            }
            self.pause(error).await;
        }
    }

    /// Notes what the masters said about the time and about permits, and whether another one may be
    /// free.
    fn learn(&mut self, error: &Error) {
        self.new_time = !self.has_new_time && has_wrong_time(error);
        self.has_new_time |= self.new_time;
        if self.request.permits.is_none() {
            return;
        }
        self.last = error.votes().clone();
        self.guesses = if has_free(&self.last, self.request.permits) { self.guesses + 1 } else { 0 };
    }

    /// Whether to ask again at once: with the right time, or for another permit, which may be free.
    /// The latter only so often in a row, for others ask, too.
    fn asks_at_once(&self) -> bool {
        self.new_time || (1..=GUESSES).contains(&self.guesses)
    }

    /// Whether it stands in the queues rather than polling, or asking once.
    fn queues(&self) -> bool {
        self.request.polling.is_none() && !self.request.wait.is_zero()
    }

    fn waited(&self) -> Duration {
        self.engine.clock().now().since(self.began)
    }

    fn left(&self) -> Duration {
        self.request.wait.saturating_sub(self.waited())
    }

    fn is_over(&self) -> bool {
        self.left().is_zero() || self.request.polling.is_some_and(|polling| self.attempts >= polling.tries)
    }

    /// How many of this process ask at once: for a semaphore more than one may be granted.
    fn abreast(&self) -> usize {
        let most = if self.request.kind.is_for_many() { ABREAST } else { 1 };
        self.request.permits.map_or(most, |permits| ABREAST.min(permits as usize))
    }

    /// Waits to be the first of this process that waits for this lock, or for the lock to be
    /// entered by its own owner.
    async fn line_up(&mut self) -> Result<(), Error> {
        let name = &self.request.name;
        let full = |limit| Error::QueueFull { name: name.clone(), limit };
        let mut slot =
            self.engine.waiters.lines.join(self.request.kind.word(), name, self.abreast()).map_err(full)?;
        let own = self.request.owner.map(|_| self.engine.hold_for(&self.request, &[]));
        let entered = async {
            match &own {
                Some(hold) => hold.until_it_stands(&**self.engine.clock()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = slot.is_first() => {}
            // Those ahead may be waiting for this very owner.
            () = entered => return Ok(()),
            () = self.engine.until_counterpart_stands(&self.request) => return Ok(()),
            () = tokio::time::sleep(self.left()) => {
                if let Some(Denial { holder, votes }) = slot.last() {
                    return Err(self.timed_out(holder, votes));
                } // otherwise nobody knows yet who has it: this one asks once
            }
        }
        self.slot = Some(slot);
        Ok(())
    }

    async fn attempt(&mut self) -> Result<Grant, Error> {
        self.attempts += 1;
        self.engine.refuse_to_wait_for_itself(&self.request)?;
        let engine = self.engine.clone();
        let hold = engine.hold_for(&self.request, &self.last);
        // A named owner may wait more than once, for several locks and several times for one.
        let ticket = self.request.owner.map_or(hold.owner, |_| engine.fresh_owner());
        let place = self.place_to_take(ticket);
        let arrival = Some(self.arrival());
        let bell = &*self.bell.insert(engine.waiters.wakes.wake_handle(ticket.number()));
        let state = hold.op_lock.clone().lock_owned().await;
        if state.holds > 0 && !hold.kind.is_reentrant() && hold.stands(engine.clock().now()) {
            return Err(Error::AlreadyHeld { name: hold.name.clone(), owner: hold.owner });
        }
        let ask = Ask {
            ttl: self.request.ttl,
            timeout: self.timeout,
            delay: self.request.delay,
            label: self.request.label.clone(),
            renewal: self.request.renewal.clone(),
            place,
            arrival,
        };
        let mut attempt = Attempt::send(&engine, hold, state, ask, self.place.take());
        let mut decision = attempt.decision().await;
        if decision != Decision::Granted && place.is_some() && !attempt.is_elsewhere() {
            decision = attempt.settle(bell).await;
        }
        if decision == Decision::Granted {
            return attempt.agree_and_grant().await;
        }
        let error = attempt.denied();
        self.place = attempt.withdraw();
        Err(error)
    }

    /// The place to take in the queues: none for a waiter that cannot be woken, or asks for the
    /// last time.
    fn place_to_take(&self, ticket: Owner) -> Option<Place> {
        let queues = self.slot.is_some() && !self.left().is_zero() && self.engine.waiters.wakes.hears();
        queues.then(|| Place { ticket, arrival: self.arrival() })
    }

    fn arrival(&self) -> Arrival {
        Arrival { since: self.since, waited: self.waited() }
    }

    /// Waits until it is time for the next attempt.
    async fn pause(&mut self, error: Error) {
        let name = &*self.request.name;
        tracing::trace!(name, attempts = self.attempts, %error, "not granted yet");
        if self.asks_at_once() {
            return;
        }
        self.note(&error);
        self.listen_for_foreign();
        let pause = self.until_next(error.votes()).min(self.left());
        match &self.bell {
            Some(bell) if self.slot.is_some() => {
                self.subscription.get_or_insert_with(|| self.engine.waiters.wakes.subscribe());
                let rung_by_foreign = async {
                    match &self.foreign_wakes {
                        Some(wakes) => wakes.woken().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    () = bell.woken() => {}
                    () = rung_by_foreign => {}
                    () = self.engine.until_counterpart_stands(&self.request) => {}
                    () = tokio::time::sleep(pause) => {}
                }
            }
            _ => tokio::time::sleep(pause).await,
        }
    }

    /// Listens where other libraries tell of releases, if they have locks of this kind, too.
    fn listen_for_foreign(&mut self) {
        let Request { kind, name, .. } = &self.request;
        if self.slot.is_some()
            && self.foreign_wakes.is_none()
            && let Some(channel) = kind.channel(name)
        {
            self.foreign_wakes = Some(self.engine.waiters.wakes.listen_for_foreign(&channel.into()));
        }
    }

    /// How long until the next attempt if nobody wakes it.
    fn until_next(&mut self, votes: &[Vote]) -> Duration {
        let random = self.engine.random.next_u64();
        if let Some(polling) = self.request.polling {
            return polling.interval;
        }
        let is_called = self.place.is_some() && self.foreign_wakes.as_ref().is_none_or(ForeignWakes::hears);
        let look = next_look(votes, self.request.kind.looks_every())
            .filter(|_| is_called && self.guesses == 0)
            .map(|look| look + Backoff::new(JITTER, JITTER).delay(random).min(look / 10 + POLL.0));
        let foreign = self.until_foreign_look(votes, random);
        look.into_iter().chain(foreign).min().unwrap_or_else(|| self.backoff.delay(random))
    }

    /// How long until the next attempt where the holder is a client of another library that tells
    /// nobody of its release.
    fn until_foreign_look(&mut self, votes: &[Vote], random: u64) -> Option<Duration> {
        let Request { kind, name, .. } = &self.request;
        let tells_nobody = kind.is_shared() && kind.channel(name).is_none();
        let holder = quorum_holder(votes).filter(|_| tells_nobody);
        self.foreign_holder.pause_after(holder.as_ref().map(|holder| &*holder.owner), random)
    }

    /// Tells those behind it in line who has the lock.
    fn note(&self, error: &Error) {
        if let (Some(slot), Error::Held { holder, votes, .. }) = (&self.slot, error) {
            slot.note(Denial { holder: holder.clone(), votes: votes.clone() });
        }
    }

    fn out_of_time(&self, error: Error) -> Error {
        self.note(&error);
        match error {
            Error::Held { holder, votes, .. } if !self.request.wait.is_zero() => {
                self.timed_out(holder, votes)
            }
            other => other,
        }
    }

    fn timed_out(&self, holder: Box<Holder>, votes: Votes) -> Error {
        let name = self.request.name.clone();
        let waited = self.waited();
        let attempts = self.attempts;
        Error::WaitTimedOut { name, waited, attempts, holder, votes }
    }
}

/// Whether masters refused the time that this client goes by, and sent theirs: the machine was
/// suspended, say.
pub(super) fn has_wrong_time(error: &Error) -> bool {
    let is_clock = |vote: &Vote| matches!(vote.outcome, Outcome::Refused { reason: Refusal::Clock, .. });
    error.votes().iter().any(is_clock)
}
