//! A held lock.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::blocking;
use crate::engine::Grant;
use crate::error::Error;
use crate::fence::FencingToken;
use crate::handover::Handover;
use crate::inner::Inner;
use crate::owner::Owner;
use crate::time::Moment;
use crate::vote::Vote;

/// One hold of a lock, until it is released or lost.
///
/// Dropping it releases it in the background, from any thread, with or without a runtime; to see
/// the result, call [`release`](Guard::release). If the process dies, the lock is free after the
/// TTL. A leaked guard stays held until the process ends, unless renewal is capped.
///
/// While it lives, the client's own thread renews its lease, whatever the user's runtime does,
/// unless [`Lock::no_renewal`](crate::Lock::no_renewal) is given. If the lease cannot be renewed,
/// [`lost`](Guard::lost) returns before the [`deadline`](Guard::deadline). Until the deadline no
/// majority of the masters grants the lock to another owner; after it, one may at any moment, so
/// the work must have stopped by then. [`run`](Guard::run) does that for you.
#[must_use = "the lock is released when its guard is dropped, which here is at once: `let guard = ...`"]
pub struct Guard {
    grant: Grant,
    /// Keeps the background thread alive until the guard's release is sent.
    client: Arc<Inner>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("name", &self.name())
            .field("owner", &self.owner().to_string())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

impl Guard {
    pub(crate) fn new(grant: Grant, client: Arc<Inner>) -> Self {
        Self { grant, client }
    }

    /// The fencing token of this grant, with which the protected resource refuses a write that
    /// comes too late: see [`fence`](crate::fence). Nothing else protects against a process that
    /// stood still, or a message that was delayed, until another owner had the lock. For SQL there
    /// is [`as_i64`](FencingToken::as_i64).
    ///
    /// | the guard is of | its token is higher than that of | the resource |
    /// |---|---|---|
    /// | a lock, mutex, fair lock, or write lock | every earlier grant of the name | refuses a token that is lower than the stored one, and stores a higher one |
    /// | a read lock | every earlier writer; readers at the same time may have the same | compares it with the stored one, and does not store it |
    /// | a semaphore | every earlier grant of the same [`permit`](Guard::permit) | compares and stores one token for each permit |
    ///
    /// It is below 2^53, and the masters give it in the round that grants the lock. Re-entry keeps
    /// it.
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

    /// The same of a lock of any kind; those in the layouts of other libraries have none.
    pub(crate) fn fencing_token_if_any(&self) -> Option<FencingToken> {
        FencingToken::new(self.grant.fencing_token())
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        self.grant.name()
    }

    /// The number of a semaphore's permit, from 0 on: no two that are held at the same time have
    /// the same. `None` for any other lock.
    pub fn permit(&self) -> Option<u32> {
        self.grant.permit()
    }

    /// Who holds it.
    pub fn owner(&self) -> Owner {
        self.grant.owner()
    }

    /// What each master had answered when the acquire returned. Those that had not are
    /// [pending](crate::Outcome::Pending).
    pub fn votes(&self) -> Vec<Vote> {
        self.grant.votes()
    }

    /// When the lease ends, on the clock of [`Redlock::now`](crate::Redlock::now): the moment
    /// before the last granted round was sent, plus the TTL, minus the drift (a hundredth of the
    /// TTL and 2 ms) and what clocks may step unnoticed (500 ms, at most a tenth of the TTL). The
    /// clock's origin once the lock was released or taken away.
    pub fn deadline(&self) -> Moment {
        self.grant.deadline()
    }

    /// The time left of the lease, by the clock now; zero when it is over. Suspended time counts.
    pub fn remaining(&self) -> Duration {
        self.grant.remaining()
    }

    /// Whether the lease is still valid, by the clock now.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Waits until the lease is lost, and returns how. The future borrows nothing: a task may wait
    /// for it while the guard is elsewhere, and ends with the guard's release.
    ///
    /// - if it will not be renewed in time, before it ends, so that there is time to stop: a
    ///   twentieth of the TTL before, at most a second;
    /// - at once if so many masters say that another owner has the lock, or nobody, that the rest
    ///   are no quorum.
    ///
    /// A slow or dead master is no loss as long as a majority renews. A loss is final: the lease is
    /// not renewed any more, though it is valid until its deadline. Once the owner's last guard is
    /// released or dropped, the cause is [`Loss::Released`](crate::Loss::Released).
    ///
    /// [`lost_token`](Guard::lost_token) is for code that takes a token, or asks from time to time
    /// whether to stop: it does not say how the lease was lost.
    ///
    /// # Cancel safety
    ///
    /// Nothing changes, and it can be called again.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use std::time::Duration;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.lock("invoice:42").ttl(Duration::from_millis(200)).no_renewal().acquire().await?;
    /// let how = guard.lost().await;
    /// assert!(matches!(how, quorate::Error::Lost { cause: quorate::Loss::Expired, .. }));
    /// assert!(guard.is_valid()); // for a moment yet
    ///
    /// let guard = redlock.lock("invoice:43").acquire().await?;
    /// let watcher = tokio::spawn(guard.lost());
    /// guard.release().await?;
    /// let how = watcher.await?;
    /// assert!(matches!(how, quorate::Error::Lost { cause: quorate::Loss::Released, .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn lost(&self) -> impl Future<Output = Error> + Send + use<> {
        self.grant.lost()
    }

    /// A token for work in other tasks, cancelled when the lease is [lost](Guard::lost) or the lock
    /// was released. The client's own thread cancels it, so a process that stood still sees it a
    /// moment after it resumes; [`is_valid`](Guard::is_valid) is right at once.
    pub fn lost_token(&self) -> CancellationToken {
        self.grant.ended()
    }

    /// Runs `work` under the lock and returns its result. If the lease is lost first, `work` is
    /// dropped before the lease ends, provided that it yields.
    ///
    /// `work` may be any future. Of work that can fail, the result is a result within a result:
    /// `guard.run(work).await??` passes on both errors.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the guard stays as it is.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], as [`lost`](Guard::lost) returns it, when `work` was dropped; and with
    /// `work_ended` when it ended, but only after the lease had, so that its result is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.lock("invoice:42").acquire().await?;
    /// async fn parse(text: &str) -> Result<u32, std::num::ParseIntError> {
    ///     text.parse()
    /// }
    /// let sum = guard.run(parse("40")).await?? + guard.run(async { 2 }).await?;
    /// assert_eq!(sum, 42);
    /// guard.release().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn run<W: Future>(&self, work: W) -> Result<W::Output, Error> {
        let mut lost = pin!(self.lost());
        let mut work = pin!(work);
        // The clock is read before each step of the work.
        let work = poll_fn(|context| match self.grant.loss() {
            Some(loss) => Poll::Ready(Err(loss)),
            None => match lost.as_mut().poll(context) {
                Poll::Ready(loss) => Poll::Ready(Err(loss)),
                Poll::Pending => work.as_mut().poll(context).map(Ok),
            },
        });
        let output = work.await?;
        match self.grant.loss() {
            Some(loss) if !self.is_valid() => Err(loss.after_work()),
            _ => Ok(output),
        }
    }

    /// Sleeps for `time` under the lock, [without async](crate::blocking), and returns early when
    /// the lease is [lost](Guard::lost). Zero checks whether it is lost, and `Duration::MAX` waits
    /// until it is.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`], which says how.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// # use std::time::Duration;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.lock("invoice:42").ttl(Duration::from_millis(500)).no_renewal().acquire_blocking()?;
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
        let loss = blocking::wait_within(&self.client, time, self.lost())?;
        loss.or_else(|| self.grant.loss()).map_or(Ok(()), Err)
    }

    /// Says that the work is alive: see [`Lock::heartbeat`](crate::Lock::heartbeat). From any
    /// thread; sends nothing.
    pub fn touch(&self) {
        self.grant.touch();
    }

    /// Why the last renewal failed, with every master's vote; `None` when it succeeded, or there
    /// was none. The lease may still be valid, and the next renewal succeed.
    pub fn renewal_error(&self) -> Option<Error> {
        self.grant.trouble()
    }

    /// Makes the lease last for `ttl` from now, unless it lasts longer already. All guards of one
    /// owner on one lock share it.
    ///
    /// # Cancel safety
    ///
    /// Once polled it runs to its end in the background, so a dropped future may still extend the
    /// lease.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the lease is over or lost, or a majority says that this owner does not
    /// hold the lock: the guard is no longer valid. [`Error::NoQuorum`] or [`Error::Refused`] when
    /// too few masters extended it: the lease is as before, and another try may succeed.
    /// [`Error::Invalid`] for a TTL outside its limits.
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

    /// Hands the lock to another process: returns a [`Handover`], which
    /// [`Lock::adopt`](crate::Lock::adopt) turns into a guard there. Until then nobody has the lock
    /// and nobody else gets it, for the TTL of the last acquire or renewal; after that the
    /// hand-over is void. Returns when every master has answered or timed out, so that the adoption
    /// reaches none before the hand-over does.
    ///
    /// This guard is then lost, by [`Loss::HandedOver`](crate::Loss::HandedOver): stop its work
    /// before you call this.
    ///
    /// # Cancel safety
    ///
    /// Once polled it runs to its end in the background: if the future is dropped, the guard may be
    /// lost without a hand-over, and the lock is free after the TTL.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the lease is over, [`Error::NoQuorum`] or [`Error::Refused`] when too
    /// few masters took part, and [`Error::Invalid`] when the owner has other guards of this lock.
    /// The guard is then as before, and another try may succeed.
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

    /// Releases this hold, and with the owner's last hold the lock. Returns when a majority has
    /// confirmed it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, polled or not, releases in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the lease had ended at the time of the call, or was lost and too few
    /// masters confirmed the release, or so many masters say that this owner does not have the lock
    /// that the rest are no majority: another may have held it while this guard lived. The cause is
    /// the one that [`lost`](Guard::lost) told, except that it is
    /// [`Loss::Expired`](crate::Loss::Expired) if the same named owner has acquired the lock again.
    /// [`Error::NotHeld`] when [`Lock::release`](crate::Lock::release) released the owner's holds
    /// already. [`Error::ReleaseUnconfirmed`] when too few masters confirmed it in time: the work
    /// is done, and the release goes on in the background. Do not pass that on as the failure of
    /// the work, as `?` does: whoever tries again repeats it.
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
        let Self { grant, client: _kept } = self;
        grant.release().await
    }

    /// [`release`](Guard::release) [without async](crate::blocking).
    pub fn release_blocking(self) -> Result<(), Error> {
        let client = self.client.clone();
        blocking::wait(&client, self.release())
    }
}
