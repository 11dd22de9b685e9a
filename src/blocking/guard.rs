//! A held lock.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{caller, check, wait};
use crate::clock::Moment;
use crate::error::Error;
use crate::lock::{Fenced, Unfenced};
use crate::owner::Owner;
use crate::token::Token;
use crate::vote::Vote;

/// One hold of a lock, until it is given back or lost: [`Guard`](crate::Guard) without async. Its lease is renewed meanwhile,
/// whatever its thread does.
///
/// Dropping it releases it in the background, on any thread and within a runtime too. To know how that went, call
/// [`release`](Guard::release).
///
/// Besides what is said there, each call that waits fails with [`Error::Invalid`] where it [may not
/// block](crate::blocking#where-it-may-not-be-called). Nothing was sent then.
#[derive(Debug)]
#[must_use = "the lock is released when its guard is dropped, which here is at once"]
pub struct Guard<F = Fenced>(crate::Guard<F>);

impl Guard {
    /// [`Guard::fence`](crate::Guard::fence): the fencing token of this grant, for what the lock protects to
    /// [check](crate::fence).
    pub fn fence(&self) -> u64 {
        self.0.fence()
    }
}

impl Guard<Unfenced> {
    /// [`Guard::fence_if_any`](crate::Guard::fence_if_any): the fencing token of this grant, if it has one.
    pub fn fence_if_any(&self) -> Option<u64> {
        self.0.fence_if_any()
    }
}

impl<F> Guard<F> {
    /// The lock's name.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// [`Guard::permit`](crate::Guard::permit): which permit of a semaphore it is.
    pub fn permit(&self) -> Option<u32> {
        self.0.permit()
    }

    /// Who holds it.
    pub fn owner(&self) -> Owner {
        self.0.owner()
    }

    /// [`Guard::votes`](crate::Guard::votes): what each master had said when the acquire was decided.
    pub fn votes(&self) -> Vec<Vote> {
        self.0.votes()
    }

    /// [`Guard::deadline`](crate::Guard::deadline): when the lease ends.
    pub fn deadline(&self) -> Moment {
        self.0.deadline()
    }

    /// What is left of the lease, read from the clock now; zero when it is over. Time in suspend counts.
    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    /// Whether the lease still stands, read from the clock now. Work looks at it before each step that must not be done without
    /// the lock.
    pub fn is_valid(&self) -> bool {
        self.0.is_valid()
    }

    /// [`Guard::lost_token`](crate::Guard::lost_token): a token that is cancelled when the lease is lost, a while before it
    /// ends, or over because the lock was given back. Other threads ask its `is_cancelled` whether to stop.
    pub fn lost_token(&self) -> CancellationToken {
        self.0.lost_token()
    }

    /// Sleeps for `time` under the lock. When the lease is lost, which is told a while before it ends (see
    /// [`Guard::lost`](crate::Guard::lost)), it ends at once: for work that waits for something, or does it at intervals. A
    /// time of zero asks whether it is lost, and `Duration::MAX` waits until it is.
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
    /// let redlock = quorate::Redlock::builder().masters(masters).build_blocking()?;
    /// let guard = redlock.lock("leader").lease(Duration::from_millis(500)).acquire()?;
    /// let loss = loop {
    ///     // one step of the work
    ///     if let Err(loss) = guard.sleep(Duration::from_millis(100)) {
    ///         break loss;
    ///     }
    /// };
    /// assert!(matches!(loss, quorate::Error::Lost { cause: quorate::Loss::Expired, .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn sleep(&self, time: Duration) -> Result<(), Error> {
        let redlock = self.0.redlock();
        check(redlock.has_own_thread())?;
        let end = redlock.now() + time;
        let told = caller::block_on_within(self.0.lost(), || end.since(redlock.now()));
        told.or_else(|| self.0.loss()).map_or(Ok(()), Err)
    }

    /// A sign of life of the work: see [`Lock::heartbeat`](crate::Lock::heartbeat). From any thread; it sends nothing.
    pub fn touch(&self) {
        self.0.touch();
    }

    /// [`Guard::renewal_error`](crate::Guard::renewal_error): why the last renewal failed, if it did.
    pub fn renewal_error(&self) -> Option<Error> {
        self.0.renewal_error()
    }

    /// Makes the lease last for `ttl` from now, or as long as it did if that is longer.
    ///
    /// # Errors
    ///
    /// Those of [`Guard::extend`](crate::Guard::extend).
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// # use std::time::Duration;
    /// let redlock = quorate::Redlock::builder().masters(masters).build_blocking()?;
    /// let guard = redlock.lock("invoice:42").ttl(Duration::from_secs(5)).acquire()?;
    /// guard.extend(Duration::from_secs(20))?;
    /// assert!(guard.remaining() > Duration::from_secs(15));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn extend(&self, ttl: Duration) -> Result<(), Error> {
        wait(self.0.redlock(), self.0.extend(ttl))
    }

    /// Lets another process have the lock: makes a [`Token`] of it, which [`Lock::adopt`](super::Lock::adopt) turns into a
    /// guard there. This guard is spent then. See [`Guard::hand_over`](crate::Guard::hand_over).
    ///
    /// # Errors
    ///
    /// Those of [`Guard::hand_over`](crate::Guard::hand_over).
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// let here = quorate::Redlock::builder().masters(masters.clone()).build_blocking()?;
    /// let guard = here.lock("invoice:42").acquire()?;
    /// let token = guard.hand_over()?.to_string(); // to another process, in any way
    ///
    /// let there = quorate::Redlock::builder().masters(masters).build_blocking()?;
    /// let token: quorate::Token = token.parse()?;
    /// let adopted = there.lock(token.name().clone()).adopt(&token)?;
    /// assert!(adopted.is_valid() && !guard.is_valid());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn hand_over(&self) -> Result<Token, Error> {
        wait(self.0.redlock(), self.0.hand_over())
    }

    /// Gives the hold back, and with the owner's last hold the lock. Returns when a majority has confirmed it.
    ///
    /// # Errors
    ///
    /// Those of [`Guard::release`](crate::Guard::release). Where it may not block, the guard was dropped, and is released in the
    /// background.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// let redlock = quorate::Redlock::builder().masters(masters).build_blocking()?;
    /// redlock.lock("invoice:42").acquire()?.release()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn release(self) -> Result<(), Error> {
        let redlock = self.0.redlock().clone();
        wait(&redlock, self.0.release())
    }

    /// The same hold, for async code.
    pub fn into_async(self) -> crate::Guard<F> {
        self.0
    }
}

impl From<Guard> for Guard<Unfenced> {
    /// The same hold, beside others that have no fencing token.
    fn from(guard: Guard) -> Self {
        Self(guard.0.into())
    }
}

impl<F> From<crate::Guard<F>> for Guard<F> {
    /// The same hold, whose calls block.
    fn from(guard: crate::Guard<F>) -> Self {
        Self(guard)
    }
}
