//! A lock by its name.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Guard, wait};
use crate::error::Error;
use crate::lock::{Fenced, Inspection, Unfenced};
use crate::owner::Owner;
use crate::token::Token;

/// A lock by its name, with the options of the acquires to come: [`Lock`](crate::Lock) without async. It holds nothing; a
/// [`Guard`] does.
///
/// Only one owner at a time has a guard. Every acquire has an owner of its own, so that two threads exclude each other, and
/// one that acquires twice waits for itself; unless an owner is named: with [`owned_by`](Lock::owned_by), or by
/// [`Owner::scope_blocking`].
///
/// Besides what is said there, each call that waits fails with [`Error::Invalid`] where it [may not
/// block](crate::blocking#where-it-may-not-be-called). Nothing was sent then.
#[derive(Clone, Debug)]
#[must_use = "a lock is not held before it is acquired"]
pub struct Lock<F = Fenced>(crate::Lock<F>);

impl Lock {
    /// [`Lock::label`](crate::Lock::label): what others are told of the holder.
    pub fn label(self, label: impl AsRef<str>) -> Self {
        Self(self.0.label(label))
    }
}

impl<F> Lock<F> {
    /// [`Lock::ttl`](crate::Lock::ttl): how long the lease lasts unless it is renewed.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self(self.0.ttl(ttl))
    }

    /// [`Lock::lease`](crate::Lock::lease): a lease of this TTL that is not renewed.
    pub fn lease(self, ttl: Duration) -> Self {
        Self(self.0.lease(ttl))
    }

    /// [`Lock::lock_delay`](crate::Lock::lock_delay): how long others wait after a lease that ended without a release.
    pub fn lock_delay(self, delay: Duration) -> Self {
        Self(self.0.lock_delay(delay))
    }

    /// [`Lock::renew_every`](crate::Lock::renew_every): how often the lease is renewed.
    pub fn renew_every(self, interval: Duration) -> Self {
        Self(self.0.renew_every(interval))
    }

    /// [`Lock::renew_at_most`](crate::Lock::renew_at_most): how many times the lease is renewed.
    pub fn renew_at_most(self, times: u32) -> Self {
        Self(self.0.renew_at_most(times))
    }

    /// [`Lock::hold_at_most`](crate::Lock::hold_at_most): for how long anybody holds the lock.
    pub fn hold_at_most(self, time: Duration) -> Self {
        Self(self.0.hold_at_most(time))
    }

    /// [`Lock::heartbeat`](crate::Lock::heartbeat): renews the lease while the work gives signs of life, by
    /// [`Guard::touch`].
    pub fn heartbeat(self, interval: Duration) -> Self {
        Self(self.0.heartbeat(interval))
    }

    /// [`Lock::wait`](crate::Lock::wait): how long [`acquire`](Lock::acquire) waits. Zero is one try.
    pub fn wait(self, wait: Duration) -> Self {
        Self(self.0.wait(wait))
    }

    /// [`Lock::poll`](crate::Lock::poll): asks every `interval`, `tries` times at most, instead of standing in the queue.
    pub fn poll(self, interval: Duration, tries: u32) -> Self {
        Self(self.0.poll(interval, tries))
    }

    /// [`Lock::cancelled_by`](crate::Lock::cancelled_by): ends an acquire that waits when another thread cancels `token`.
    pub fn cancelled_by(self, token: CancellationToken) -> Self {
        Self(self.0.cancelled_by(token))
    }

    /// [`Lock::owned_by`](crate::Lock::owned_by): who is to hold it. An owner that holds it already re-enters.
    pub fn owned_by(self, owner: &Owner) -> Self {
        Self(self.0.owned_by(owner))
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Tries once: one round to all masters. Returns as soon as a majority granted, or none can.
    ///
    /// # Errors
    ///
    /// Those of [`Lock::try_acquire`](crate::Lock::try_acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// let redlock = quorate::Redlock::builder().masters(masters).build_blocking()?;
    /// let guard = redlock.lock("invoice:42").try_acquire()?;
    /// let refused = redlock.lock("invoice:42").try_acquire();
    /// assert!(matches!(refused, Err(quorate::Error::Held { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn try_acquire(&self) -> Result<Guard<F>, Error> {
        wait(self.0.redlock(), self.0.try_acquire()).map(Guard::from)
    }

    /// Waits for the lock, for the [`wait`](Lock::wait) at most, and up to a per-master time-out longer for the last try. It is
    /// woken when the lock is released, as [`Lock::acquire`](crate::Lock::acquire) tells.
    ///
    /// # Errors
    ///
    /// Those of [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// # use std::time::Duration;
    /// let redlock = quorate::Redlock::builder().masters(masters).build_blocking()?;
    /// let guard = redlock.lock("invoice:42").ttl(Duration::from_secs(5)).acquire()?;
    /// assert!(guard.remaining() > Duration::from_secs(4));
    /// let error = redlock.lock("invoice:42").wait(Duration::from_millis(20)).acquire().unwrap_err();
    /// assert!(matches!(error, quorate::Error::WaitTimedOut { .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn acquire(&self) -> Result<Guard<F>, Error> {
        wait(self.0.redlock(), self.0.acquire()).map(Guard::from)
    }

    /// Takes up a lock that was [handed over](Guard::hand_over).
    ///
    /// # Errors
    ///
    /// Those of [`Lock::adopt`](crate::Lock::adopt).
    ///
    /// # Examples
    ///
    /// See [`Guard::hand_over`].
    pub fn adopt(&self, token: &Token) -> Result<Guard<F>, Error> {
        wait(self.0.redlock(), self.0.adopt(token)).map(Guard::from)
    }

    /// Gives back one hold of the named owner, whichever of its guards that belongs to.
    ///
    /// # Errors
    ///
    /// Those of [`Lock::release`](crate::Lock::release).
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// let redlock = quorate::Redlock::builder().masters(masters).build_blocking()?;
    /// let me = redlock.owner();
    /// let lock = redlock.lock("invoice:42").owned_by(&me);
    /// let guard = lock.acquire()?;
    /// lock.release()?;
    /// assert!(!guard.is_valid());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn release(&self) -> Result<(), Error> {
        wait(self.0.redlock(), self.0.release())
    }

    /// Takes the lock away from `owner`, whoever that is and however often it entered: for a lock that is stuck.
    ///
    /// # Errors
    ///
    /// Those of [`Lock::break_from`](crate::Lock::break_from).
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// let redlock = quorate::Redlock::builder().masters(masters).build_blocking()?;
    /// let stuck = redlock.lock("invoice:42").acquire()?;
    /// redlock.lock("invoice:42").break_from(&stuck.owner())?;
    /// let free = redlock.lock("invoice:42").try_acquire()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn break_from(&self, owner: &Owner) -> Result<(), Error> {
        wait(self.0.redlock(), self.0.break_from(owner))
    }

    /// Asks every master who holds the lock, and waits for each within its time-out.
    ///
    /// # Errors
    ///
    /// Those of [`Lock::inspect`](crate::Lock::inspect).
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// let redlock = quorate::Redlock::builder().masters(masters).build_blocking()?;
    /// assert!(redlock.lock("invoice:42").inspect()?.is_free());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn inspect(&self) -> Result<Inspection, Error> {
        wait(self.0.redlock(), self.0.inspect())
    }

    /// [`Lock::is_held_by`](crate::Lock::is_held_by): whether an owner has the lock.
    pub fn is_held_by(&self, owner: &Owner) -> Result<bool, Error> {
        wait(self.0.redlock(), self.0.is_held_by(owner))
    }

    /// The same lock, with the same options, for async code.
    pub fn into_async(self) -> crate::Lock<F> {
        self.0
    }
}

impl From<Lock> for Lock<Unfenced> {
    /// The same lock, beside others that have no fencing tokens.
    fn from(lock: Lock) -> Self {
        Self(lock.0.into())
    }
}

impl<F> From<crate::Lock<F>> for Lock<F> {
    /// The same lock, with the same options, whose calls block.
    fn from(lock: crate::Lock<F>) -> Self {
        Self(lock)
    }
}
