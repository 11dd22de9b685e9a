//! A held lock, and whether it has a fencing token: its type says so.

use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::blocking;
use crate::clock::Moment;
use crate::engine::Grant;
use crate::error::Error;
use crate::fence::FencingToken;
use crate::handover::Handover;
use crate::inner::Inner;
use crate::owner::Owner;
use crate::vote::Vote;

/// One hold of a lock, until it is given back or lost.
///
/// Dropping it releases it in the background: from any thread, with or without a runtime. To know
/// how that went, call [`release`](Guard::release). A guard whose process dies is released by its
/// TTL. One that is leaked is held until the process ends, unless renewal is capped.
///
/// While it lives, its lease is renewed in the background, on the client's own thread, whatever the
/// user's runtime does; unless the lease was fixed by [`Lock::lease`](crate::Lock::lease). When a
/// lease can no longer be kept, [`lost`](Guard::lost) says so before its
/// [`deadline`](Guard::deadline). Until the deadline no majority of the masters gives the lock to
/// anybody else; after it, that may happen at any moment, so what the lock protects must have
/// stopped by then. [`run`](Guard::run) sees to it.
#[must_use = "the lock is released when its guard is dropped, which here is at once"]
pub struct Guard<F = Fenced> {
    grant: Grant,
    /// Keeps the background thread while the guard lives, and until its release is out.
    client: Arc<Inner>,
    fencing: PhantomData<fn() -> F>,
}

/// The guards of such a lock have a [fencing token](Guard::fencing_token): all but those of
/// a [`plain_mutex`](crate::Redlock::plain_mutex) and a
/// [`redisson_lock`](crate::Redlock::redisson_lock). It is what [`Lock`](crate::Lock) and
/// [`Guard`] mean where they say nothing else.
#[derive(Clone, Copy, Debug)]
pub enum Fenced {}

/// The guards of such a lock may have no fencing token, for the layout of another library has no
/// place for one: their [`fencing_token_if_any`](Guard::fencing_token_if_any) is in place of
/// [`fencing_token`](Guard::fencing_token).
///
/// A lock of any kind can be made one of this type, for code that takes locks of all kinds.
///
/// # Examples
///
/// ```
/// # quorate_testkit::doc(|masters| async move {
/// use quorate::{Lock, Unfenced};
/// let redlock = quorate::Redlock::builder().masters(masters).build()?;
/// let locks: [Lock<Unfenced>; 2] = [redlock.lock("invoice:42").into(), redlock.plain_mutex("invoice:42")];
/// for lock in locks {
///     lock.acquire().await?.release().await?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) });
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Unfenced {}

impl<F> fmt::Debug for Guard<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("name", &self.name())
            .field("owner", &self.owner().to_string())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

impl Guard {
    /// The fencing token of this grant: higher than that of every grant of the lock before. It is
    /// for what the lock protects to look at, and refuse what comes with a lower one than it has
    /// seen: see [`fence`](crate::fence). In SQL it is [`as_i64`](FencingToken::as_i64). That is
    /// the only protection against a process that stood still, or a message that was under way,
    /// until the lock was somebody else's.
    ///
    /// It is below 2^53, and comes from the masters in the round that grants the lock. Where an
    /// owner enters again it is the token that it has.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let first = redlock.lock("invoice:42").acquire().await?;
    /// let token = first.fencing_token();
    /// first.release().await?;
    /// assert!(redlock.lock("invoice:42").acquire().await?.fencing_token() > token);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn fencing_token(&self) -> FencingToken {
        FencingToken::granted(self.grant.fencing_token())
    }
}

impl Guard<Unfenced> {
    /// The fencing token of this grant, if it has one: only where the lock was [made](Unfenced) one
    /// of this type.
    pub fn fencing_token_if_any(&self) -> Option<FencingToken> {
        FencingToken::new(self.grant.fencing_token())
    }
}

impl From<Guard> for Guard<Unfenced> {
    /// The same hold, beside others that have no fencing token.
    fn from(guard: Guard) -> Self {
        Self::new(guard.grant, guard.client)
    }
}

impl<F> Guard<F> {
    pub(super) fn new(grant: Grant, client: Arc<Inner>) -> Self {
        Self { grant, client, fencing: PhantomData }
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        self.grant.name()
    }

    /// Which permit of a semaphore it is, from 0 on: of those that are held at the same time, each
    /// is another. `None` for any other lock.
    pub fn permit(&self) -> Option<u32> {
        self.grant.permit()
    }

    /// Who holds it.
    pub fn owner(&self) -> Owner {
        self.grant.owner()
    }

    /// What each master had said when the acquire was decided. Those that were not waited for are
    /// [pending](crate::Outcome::Pending).
    pub fn votes(&self) -> Vec<Vote> {
        self.grant.votes()
    }

    /// When the lease ends, on the clock of [`Redlock::now`](crate::Redlock::now): the moment
    /// before the last granted round was sent, plus the TTL, less the drift (a hundredth of the TTL
    /// and 2 ms) and what clocks may step unseen (500 ms, or a tenth of the TTL where that is
    /// less). The clock's origin, when the lease is over and the lock released or lost.
    pub fn deadline(&self) -> Moment {
        self.grant.deadline()
    }

    /// What is left of the lease, read from the clock now; zero when it is over. Time in suspend
    /// counts.
    pub fn remaining(&self) -> Duration {
        self.grant.remaining()
    }

    /// Whether the lease still stands, read from the clock now.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Waits until the lease is lost, and says how. It is told
    ///
    /// - before the lease ends, where it will not be renewed in time: a twentieth of the TTL
    ///   before, and a second at most, so that there is time to stop;
    /// - at once when so many masters say that another owner has the lock, or nobody, that the rest
    ///   are no quorum.
    ///
    /// A slow or dead master is no loss as long as a majority renews. What is told is final: the
    /// lease is not renewed any more, though it stands until its deadline.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, and can be called again.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use std::time::Duration;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.lock("invoice:42").lease(Duration::from_millis(200)).acquire().await?;
    /// let how = guard.lost().await;
    /// assert!(matches!(how, quorate::Error::Lost { cause: quorate::Loss::Expired, .. }));
    /// assert!(guard.is_valid()); // for a moment yet
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn lost(&self) -> Error {
        loop {
            let token = self.grant.ended();
            if let Some(loss) = self.loss() {
                return loss;
            }
            token.cancelled().await;
        }
    }

    /// How it was lost, if it was: the clock is read now.
    fn loss(&self) -> Option<Error> {
        self.grant.loss()
    }

    /// A token that is cancelled when the lease is lost, as [`lost`](Guard::lost) tells it, or over
    /// because the lock was given back: for work in other tasks. It is cancelled by the client's
    /// own thread, so a process that stood still hears it a moment after it goes on;
    /// [`is_valid`](Guard::is_valid) tells at once.
    pub fn lost_token(&self) -> CancellationToken {
        self.grant.ended()
    }

    /// Runs `work` under the lock: until it is done, or the lease is lost. Then `work` is dropped,
    /// before the lease ends, provided that it yields. It returns what `work` returned.
    ///
    /// The error of `work` is one that can be made of an [`Error`], by `From`: the caller's own,
    /// `Box<dyn std::error::Error>`, `anyhow::Error`, or [`Error`] itself for work that cannot fail
    /// in another way.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`, and leaves the guard as it is.
    ///
    /// # Errors
    ///
    /// That of `work`. Or [`Error::Lost`], as [`lost`](Guard::lost) tells it: `work` was dropped,
    /// or succeeded only after the lease had ended.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.lock("invoice:42").acquire().await?;
    /// let sum = guard.run(async {
    ///     let part: u32 = "40".parse()?; // any error
    ///     Ok::<_, Box<dyn std::error::Error>>(part + 2)
    /// }).await?;
    /// assert_eq!(sum, 42);
    /// guard.run(async { Ok::<_, quorate::Error>(()) }).await?; // work that cannot fail
    /// guard.release().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn run<T, E: From<Error>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let output = self.until_lost(work).await??;
        if self.is_valid() { Ok(output) } else { Err(self.lost().await.into()) }
    }

    /// Runs `work` until it is done, or the lease is lost.
    async fn until_lost<W: Future>(&self, work: W) -> Result<W::Output, Error> {
        let mut lost = pin!(self.lost());
        let mut work = pin!(work);
        // The clock is read before each step of the work.
        poll_fn(|context| match self.loss() {
            Some(loss) => Poll::Ready(Err(loss)),
            None => match lost.as_mut().poll(context) {
                Poll::Ready(loss) => Poll::Ready(Err(loss)),
                Poll::Pending => work.as_mut().poll(context).map(Ok),
            },
        })
        .await
    }

    /// Sleeps for `time` under the lock, [without async](crate::blocking): for work that waits for
    /// something, or does it at intervals. It ends at once when the lease is lost, which is told a
    /// while before it ends: see [`lost`](Guard::lost). A time of zero asks whether it is lost, and
    /// `Duration::MAX` waits until it is.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], and how.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// # use std::time::Duration;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.lock("invoice:42").lease(Duration::from_millis(500)).acquire_blocking()?;
    /// let loss = loop {
    ///     // one step of the work
    ///     if let Err(loss) = guard.sleep_blocking(Duration::from_millis(100)) {
    ///         break loss;
    ///     }
    /// };
    /// assert!(matches!(loss, quorate::Error::Lost { cause: quorate::Loss::Expired, .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn sleep_blocking(&self, time: Duration) -> Result<(), Error> {
        let told = blocking::wait_within(&self.client, time, self.lost())?;
        told.or_else(|| self.loss()).map_or(Ok(()), Err)
    }

    /// A sign of life of the work: see [`Lock::heartbeat`](crate::Lock::heartbeat). From any
    /// thread; it sends nothing.
    pub fn touch(&self) {
        self.grant.touch();
    }

    /// Why the last renewal failed, with every master's part; `None` when it succeeded, or there
    /// was none. The lease may still stand, and the next renewal succeed.
    pub fn renewal_error(&self) -> Option<Error> {
        self.grant.trouble()
    }

    /// Makes the lease last for `ttl` from now, or as long as it did if that is longer. All guards
    /// of one owner on one lock share it.
    ///
    /// # Cancel safety
    ///
    /// Once polled it runs to its end in the background: the lease may be extended though nobody
    /// waited for it.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the lease is over or told to be lost, or a majority says that this
    /// owner does not hold the lock: the guard is no longer valid. [`Error::NoQuorum`], or
    /// [`Error::Refused`], when too few masters extended it: the lease stands as it did, and
    /// another try may succeed. [`Error::Invalid`] for a TTL outside of its limits.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use std::time::Duration;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.lock("invoice:42").ttl(Duration::from_secs(5)).acquire().await?;
    /// guard.extend(Duration::from_secs(20)).await?;
    /// assert!(guard.remaining() > Duration::from_secs(15));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        self.grant.extend(ttl).await
    }

    /// [`extend`](Guard::extend) [without async](crate::blocking).
    pub fn extend_blocking(&self, ttl: Duration) -> Result<(), Error> {
        blocking::wait(&self.client, self.extend(ttl))
    }

    /// Lets another process have the lock: makes a [`Handover`] of it, which
    /// [`Lock::adopt`](crate::Lock::adopt) turns into a guard there. From its making to its
    /// adoption nobody has the lock, and nobody else gets it, for the TTL of the last acquire or
    /// renewal; a hand-over that is not adopted by then is void. It waits for every master, each
    /// within its time-out, so that no master learns of the adoption first.
    ///
    /// This guard is spent then: it is lost, by [`Loss::HandedOver`](crate::Loss::HandedOver), and
    /// what ran under it must have stopped before.
    ///
    /// # Cancel safety
    ///
    /// Once polled it runs to its end in the background: the guard may be spent though nobody has
    /// the hand-over. The lock is free after the TTL then.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the lease is over, [`Error::NoQuorum`], or [`Error::Refused`], when too
    /// few masters took part, and [`Error::Invalid`] when the owner has more guards than this. The
    /// guard is as it was then, and another try may succeed.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let here = quorate::Redlock::builder().masters(masters.clone()).build()?;
    /// let guard = here.lock("invoice:42").acquire().await?;
    /// let text = guard.hand_over().await?.to_string(); // to another process, in any way
    ///
    /// let there = quorate::Redlock::builder().masters(masters).build()?;
    /// let handover: quorate::Handover = text.parse()?;
    /// let adopted = there.lock(handover.name().clone()).adopt(&handover).await?;
    /// assert!(adopted.is_valid() && !guard.is_valid());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn hand_over(&self) -> Result<Handover, Error> {
        self.grant.hand_over().await
    }

    /// [`hand_over`](Guard::hand_over) [without async](crate::blocking).
    pub fn hand_over_blocking(&self) -> Result<Handover, Error> {
        blocking::wait(&self.client, self.hand_over())
    }

    /// Gives the hold back, and with the owner's last hold the lock. Returns when a majority has
    /// confirmed it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, before or after it was polled, leaves the release to the background.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the lease had ended, or so many masters say that another owner has the
    /// lock that the rest are no majority: it may have been held by two while this guard lived.
    /// [`Error::NotHeld`] when the owner's holds were given back already, with
    /// [`Lock::release`](crate::Lock::release). [`Error::NoQuorum`], or [`Error::Refused`], when
    /// too few masters confirmed it in time: the release goes on in the background, and what it
    /// cannot reach dies with its TTL.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// redlock.lock("invoice:42").acquire().await?.release().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn release(self) -> Result<(), Error> {
        let Self { grant, client: _kept, .. } = self;
        grant.release().await
    }

    /// [`release`](Guard::release) [without async](crate::blocking).
    pub fn release_blocking(self) -> Result<(), Error> {
        let client = self.client.clone();
        blocking::wait(&client, self.release())
    }
}
