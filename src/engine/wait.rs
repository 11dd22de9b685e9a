//! Waiting for a lock: attempts until one is granted, or the wait is over.
//!
//! 1. The waiters of one name in one client stand in line (`wake/local_queue.rs`). Only the first
//!    asks the masters; of readers, and for a semaphore, the first eight. An owner that has the
//!    lock already does not line up.
//! 2. If the client does not listen to its masters yet, the first attempt takes no place in their
//!    queues. After a refusal the client listens (`wake/hub.rs`), and the waiter attempts again as
//!    soon as the client hears a quorum: subscribe, then check, then wait. Until then it polls,
//!    every 1 to 2 ms at first, then less often.
//! 3. If the client listens already, and from then on, each attempt takes a place in the queues of
//!    the masters that refuse it (`take_place` in queue.lua), and takes over the place of the
//!    attempt before. Each has a ticket of its own, so that no wake-up is ambiguous.
//! 4. The waiter asks again when a quorum of the masters has woken it (`wake` in queue.lua;
//!    `link/listen.rs` reads that), or 5 ms after the first did; when the client lost so many
//!    subscriptions that a quorum could not wake it; or when the TTLs on a quorum have run out,
//!    and a quarter of that later for each waiter ahead (`pauses.rs`). Where no owner has a quorum,
//!    no release would wake it: the waiter polls.
//! 5. Contenders that split the vote follow one rule (`round/quorum.rs`), also those that do not
//!    wait: the one with most masters asks again, the others withdraw. Waiters keep their places.
//! 6. Of a semaphore the waiter draws a permit that this client does not have, and that a quorum
//!    may have free by the last votes (`permits.rs`).
//! 7. A waiter that goes away gives up its place on every master. If the lock is free at that
//!    moment, the master wakes the next in the queue.
//! 8. For a fair lock the first in the queue asks every second, the second every two seconds, and
//!    so on: so a first that was woken and does not ask is passed over.
//! 9. While a client of another library has the lock, the waiter polls (`pauses.rs`): the release
//!    of that client wakes nobody.
//!
//! A wake-up is a hint: the waiter asks, and is granted or refused like any other.

use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;

use super::attempt::{Attempt, WaiterTurn};
use super::engine::Engine;
use super::extend::MOVES;
use super::grant::Grant;
use super::pauses::{ForeignHolder, next_look};
use super::queue_place::QueuePlace;
use super::request::{Acquire, Request, may_be_granted_later};
use crate::backoff::{Backoff, jittered};
use crate::error::{Error, Holder};
use crate::round::verdict::quorum_holder;
use crate::round::{Decision, has_free_permit};
use crate::vote::{Outcome, Refusal, Vote, Votes};
use crate::wake::{ForeignWakes, LastHolder, LocalSlot, Subscription, WakeHandle};
use crate::wire::{Arrival, Ticket};

/// Delays between attempts where waiters cannot be woken: the first is some ten round trips on a
/// local network, the last keeps a hundred waiters from loading the masters and still takes over a
/// free lock within a tenth of a second.
const POLL: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// The most that an attempt after the TTL is put off, so that clients which wait for the same TTL
/// do not all ask at once.
const JITTER: Duration = Duration::from_millis(100);

/// How often in a row a waiter asks at once for another permit that may be free. Of two waiters
/// that ask for the same permit one withdraws; where permits are many, a few draws are enough.
const GUESSES: u32 = 4;

/// How many waiters of a client ask at the same time for permits of one semaphore, or to read.
/// With one at a time, permits that are released together are taken slowly; with all at a time, the
/// masters' queues are long.
const ABREAST: usize = 8;

/// One waiter.
pub(super) struct Wait {
    engine: Arc<Engine>,
    acquire: Arc<Acquire>,
    /// When it began, by the masters' time.
    since: Duration,
    attempts: u32,
    /// The last votes, of a semaphore.
    last: Votes,
    /// How often in a row the votes named a free permit.
    guesses: u32,
    /// Whether masters have just refused this client's time, for the first time, and sent theirs.
    new_time: bool,
    /// Whether they ever have.
    has_new_time: bool,
    /// How often in a row the set of masters had changed.
    moves: u32,
    backoff: Backoff,
    /// The last holder of another library, which would not wake this waiter.
    foreign_holder: ForeignHolder,
    /// The waiter's place in the line of this client.
    slot: Option<LocalSlot>,
    /// Its place in the masters' queues, between two attempts.
    place: Option<QueuePlace>,
    /// While this lives, the client listens to its masters.
    subscription: Option<Subscription>,
    wake_handle: Option<WakeHandle>,
    /// While this lives, the client listens for releases by other libraries.
    foreign_wakes: Option<ForeignWakes>,
}

impl Wait {
    pub(super) fn begin(engine: Arc<Engine>, acquire: Arc<Acquire>) -> Self {
        let since = engine.dispatcher.time().saturating_sub(engine.clock().now().since(acquire.began));
        let backoff = Backoff::new(POLL.0, POLL.1);
        Self {
            engine,
            acquire,
            since,
            attempts: 0,
            last: Votes::default(),
            guesses: 0,
            new_time: false,
            has_new_time: false,
            moves: 0,
            backoff,
            foreign_holder: ForeignHolder::new(),
            slot: None,
            place: None,
            subscription: None,
            wake_handle: None,
            foreign_wakes: None,
        }
    }

    fn request(&self) -> &Request {
        &self.acquire.request
    }

    /// Attempts until one is granted, or the wait is over. `denied` is the error of an attempt that
    /// was made before, if there was one.
    pub(super) async fn go_on(mut self, denied: Option<Error>) -> Result<Grant, Error> {
        self.attempts = u32::from(denied.is_some());
        let engine = self.engine.clone();
        let acquire = self.acquire.clone();
        tokio::select! {
            biased;
            () = engine.closing.cancelled() => Err(Error::Closed),
            outcome = acquire.request.unless_cancelled(self.until_granted(denied)) => outcome,
        }
    }

    async fn until_granted(&mut self, denied: Option<Error>) -> Result<Grant, Error> {
        if let Some(error) = &denied {
            self.learn(error);
        }
        if let Some(error) = denied.clone().filter(|_| self.is_over() && !self.asks_at_once()) {
            return Err(self.out_of_time(error));
        }
        self.line_up().await?;
        if let Some(error) = denied
            && (!self.queues() || !self.engine.hub.is_subscribed())
        {
            // No ticket has this number, so no master wakes it. The hub sets `must_ask` on it once
            // a quorum of subscriptions stands: then ask.
            self.wake_handle = Some(self.engine.hub.wake_handle(self.engine.fresh_owner().number()));
            self.pause(error).await;
        }
        loop {
            let error = match self.attempt().await {
                Ok(grant) => return Ok(grant),
                Err(error) => error,
            };
            self.learn(&error);
            if (self.is_over() && !self.asks_at_once()) || !may_be_granted_later(&error) {
                return Err(self.out_of_time(error));
            }
            // Its owner may have lost what it was let in for.
            if !self.line_up().await? {
                self.pause(error).await;
            }
        }
    }

    /// Notes whether the masters refused this client's time, and whether they named a free permit.
    fn learn(&mut self, error: &Error) {
        self.new_time = !self.has_new_time && has_wrong_time(error);
        self.has_new_time |= self.new_time;
        self.moves = if has_moved(error) { self.moves + 1 } else { 0 };
        if self.request().permits.is_none() {
            return;
        }
        self.last = error.votes().clone();
        self.guesses = if has_free_permit(&self.last, self.request().permits) { self.guesses + 1 } else { 0 };
    }

    /// Whether to ask again at once: with the right time, or the right masters, or for another
    /// permit that may be free.
    /// For permits only [`GUESSES`] times in a row, as other waiters ask, too.
    fn asks_at_once(&self) -> bool {
        self.new_time || (1..=MOVES).contains(&self.moves) || (1..=GUESSES).contains(&self.guesses)
    }

    /// Whether it stands in the masters' queues, and neither polls nor asks just once.
    fn queues(&self) -> bool {
        self.request().polling.is_none() && !self.request().wait.is_zero()
    }

    fn waited(&self) -> Duration {
        self.engine.clock().now().since(self.acquire.began)
    }

    fn left(&self) -> Duration {
        self.request().wait.saturating_sub(self.waited())
    }

    fn is_over(&self) -> bool {
        self.left().is_zero() || self.request().polling.is_some_and(|polling| self.attempts >= polling.tries)
    }

    /// How many waiters of this client ask at the same time: of some kinds several may be granted.
    fn abreast(&self) -> usize {
        let most = if self.request().kind.is_for_many() { ABREAST } else { 1 };
        self.request().permits.map_or(most, |permits| ABREAST.min(permits as usize))
    }

    /// Waits until this is the first waiter of this client for this lock, or until its own owner
    /// has the lock, and may enter it again. One that does not queue, or that is let in at once,
    /// waits for nobody. Returns whether it lined up.
    async fn line_up(&mut self) -> Result<bool, Error> {
        if self.slot.is_some() || !self.queues() || self.engine.is_re_entry(self.request()) {
            return Ok(false);
        }
        self.engine.refuse_to_wait_for_itself(self.request())?;
        let name = &self.request().name;
        let full = |limit| Error::QueueFull { name: name.clone(), limit };
        let mut slot =
            self.engine.local_queues.join(self.request().kind.word(), name, self.abreast()).map_err(full)?;
        let own = self.request().owner.map(|_| self.engine.hold_for(self.request(), &[]));
        let entered = own.as_ref().map(|hold| hold.until_it_stands(&**self.engine.clock()));
        tokio::select! {
            biased;
            () = slot.until_first() => {}
            // The waiters ahead may be waiting for this very owner.
            Some(()) = OptionFuture::from(entered) => return Ok(true),
            () = self.engine.until_counterpart_stands(self.request()) => return Ok(true),
            () = tokio::time::sleep(self.left()) => {
                if let Some(LastHolder { holder, votes }) = slot.last() {
                    return Err(self.timed_out(holder, votes));
                } // otherwise no waiter has asked yet: this one asks once
            }
        }
        self.slot = Some(slot);
        Ok(true)
    }

    async fn attempt(&mut self) -> Result<Grant, Error> {
        self.attempts += 1;
        self.engine.refuse_to_wait_for_itself(self.request())?;
        let engine = self.engine.clone();
        let hold = engine.hold_for(self.request(), &self.last);
        // A named owner may wait more than once, for several locks and several times for one.
        let waiter = self.request().owner.map_or(hold.lock.owner, |_| engine.fresh_owner());
        let ticket =
            self.may_be_woken().then(|| Ticket { owner: waiter, label: self.request().label.clone() });
        let arrival = Arrival { since: self.since, waited: self.waited() };
        let wake_handle = &*self.wake_handle.insert(engine.hub.wake_handle(waiter.number()));
        engine.dispatcher.ask_for_time(&hold.lock.name, hold.lock.kind).await;
        let hold_state = hold.state.clone().lock_owned().await;
        if hold_state.holds > 0 && !hold.lock.kind.is_reentrant() && hold.stands(engine.clock().now()) {
            return Err(Error::AlreadyHeld { name: hold.lock.name.clone(), owner: hold.lock.owner });
        }
        let turn = WaiterTurn { arrival, ticket, previous: self.place.take() };
        let mut attempt = Attempt::send(&engine, &self.acquire, hold, hold_state, Some(turn));
        let mut decision = attempt.round().decision().await;
        if decision != Decision::Granted && attempt.is_to_resolve() {
            decision = attempt.resolve_split_vote(Some(wake_handle)).await;
        }
        if decision == Decision::Granted {
            return if attempt.has_token() { attempt.grant(None) } else { attempt.agree_and_grant().await };
        }
        let error = attempt.denied();
        self.place = attempt.withdraw();
        Err(error)
    }

    /// Whether to take a place in the queues. Not if the masters cannot wake the waiter, or if it
    /// asks for the last time.
    fn may_be_woken(&self) -> bool {
        self.slot.is_some() && !self.left().is_zero() && self.engine.hub.is_subscribed()
    }

    /// Waits until it is time for the next attempt.
    async fn pause(&mut self, error: Error) {
        let name = &*self.request().name;
        tracing::trace!(name, attempts = self.attempts, %error, "not granted yet");
        if self.asks_at_once() {
            return;
        }
        self.note_for_line(&error);
        self.listen_for_foreign();
        let pause = self.until_next(error.votes()).min(self.left());
        match &self.wake_handle {
            Some(wake_handle) if self.slot.is_some() => {
                self.subscription.get_or_insert_with(|| self.engine.hub.subscribe());
                let woken_by_foreign = self.foreign_wakes.as_ref().map(ForeignWakes::until_woken);
                tokio::select! {
                    biased;
                    () = wake_handle.until_woken() => {}
                    Some(()) = OptionFuture::from(woken_by_foreign) => {}
                    () = self.engine.until_counterpart_stands(self.request()) => {}
                    () = tokio::time::sleep(pause) => {}
                }
            }
            _ => tokio::time::sleep(pause).await,
        }
    }

    /// Listens for releases by clients of another library, if it publishes those of this kind.
    fn listen_for_foreign(&mut self) {
        let Request { kind, name, .. } = self.request();
        let voters = self.engine.hub.voters();
        if self.slot.is_some()
            && self.foreign_wakes.as_ref().is_none_or(|wakes| !wakes.are_of(&voters))
            && let Some(channel) = kind.channel(name)
        {
            self.foreign_wakes = Some(self.engine.hub.listen_for_foreign(&channel.into()));
        }
    }

    /// How long until the next attempt if nobody wakes the waiter.
    fn until_next(&mut self, votes: &[Vote]) -> Duration {
        let random = self.engine.random.next_u64();
        if let Some(polling) = self.request().polling {
            return polling.interval;
        }
        let can_be_woken =
            self.place.is_some() && self.foreign_wakes.as_ref().is_none_or(ForeignWakes::hears);
        let look = next_look(votes, self.request().kind.looks_every())
            .filter(|_| can_be_woken && self.guesses == 0)
            .map(|look| look + jittered(JITTER, random).min(look / 10 + POLL.0));
        let foreign = self.until_foreign_look(votes, random);
        look.into_iter().chain(foreign).min().unwrap_or_else(|| self.backoff.delay(random))
    }

    /// How long until the next attempt where a client of another library has the lock, and that
    /// library publishes no releases.
    fn until_foreign_look(&mut self, votes: &[Vote], random: u64) -> Option<Duration> {
        let Request { kind, name, .. } = self.request();
        let is_unpublished = kind.is_shared() && kind.channel(name).is_none();
        let holder = quorum_holder(votes).filter(|_| is_unpublished);
        self.foreign_holder.pause_after(holder.as_ref().map(|holder| &*holder.owner), random)
    }

    /// Notes for the waiters behind it in line who has the lock.
    fn note_for_line(&self, error: &Error) {
        if let (Some(slot), Error::Held { holder, votes, .. }) = (&self.slot, error) {
            slot.note(LastHolder { holder: holder.clone(), votes: votes.clone() });
        }
    }

    fn out_of_time(&self, error: Error) -> Error {
        self.note_for_line(&error);
        match error {
            Error::Held { holder, votes, .. } if !self.request().wait.is_zero() => {
                self.timed_out(holder, votes)
            }
            other => other,
        }
    }

    fn timed_out(&self, holder: Box<Holder>, votes: Votes) -> Error {
        let name = self.request().name.clone();
        let waited = self.waited();
        let attempts = self.attempts;
        Error::WaitTimedOut { name, waited, attempts, holder, votes }
    }
}

/// Whether a master refused for this reason.
fn is_refused(error: &Error, wanted: Refusal) -> bool {
    let is_it = |vote: &Vote| matches!(vote.outcome, Outcome::Refused { reason, .. } if reason == wanted);
    error.votes().iter().any(is_it)
}

/// Whether masters were not asked because the set of masters has changed.
pub(super) fn has_moved(error: &Error) -> bool {
    is_refused(error, Refusal::Moved)
}

/// Whether masters granted nothing for the time that this client goes by, or for want of one, and
/// sent theirs: its machine may have been suspended.
pub(super) fn has_wrong_time(error: &Error) -> bool {
    is_refused(error, Refusal::Clock)
        || error.votes().iter().any(|vote| matches!(vote.outcome, Outcome::Answered(_)))
}
