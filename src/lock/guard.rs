//! A held lock.

use std::fmt;
use std::time::Duration;

use crate::client::Redlock;
use crate::clock::Moment;
use crate::coordinator::Grant;
use crate::error::Error;
use crate::owner::Owner;
use crate::vote::Vote;

/// One hold of a lock, until its lease ends.
///
/// Dropping it releases it in the background: from any thread, with or without a runtime. To know how that went, call
/// [`release`](Guard::release). A guard that is leaked, or whose process dies, is released by its TTL.
///
/// The lease ends at its [`deadline`](Guard::deadline) unless it is [`extend`](Guard::extend)ed before. Until then no
/// majority of the masters gives the lock to anybody else; after it, that may happen at any moment, so what the lock
/// protects must have stopped by then.
#[must_use = "the lock is released when its guard is dropped, which here is at once"]
pub struct Guard {
    grant: Grant,
    /// Keeps the background thread while the guard lives, and until its release is out.
    _redlock: Redlock,
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
    pub(crate) fn new(grant: Grant, redlock: Redlock) -> Self {
        Self { grant, _redlock: redlock }
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        self.grant.name()
    }

    /// Who holds it.
    pub fn owner(&self) -> Owner {
        self.grant.owner()
    }

    /// What each master had said when the acquire was decided. Those that were not waited for are
    /// [pending](crate::Outcome::Pending).
    pub fn votes(&self) -> &[Vote] {
        self.grant.votes()
    }

    /// When the lease ends, on the clock of [`Redlock::now`]: the moment before the last granted round was sent, plus
    /// the TTL, less the drift (a hundredth of the TTL and 2 ms). The clock's origin, when the lease is over and the
    /// lock released or lost.
    pub fn deadline(&self) -> Moment {
        self.grant.deadline()
    }

    /// What is left of the lease, read from the clock now; zero when it is over. Time in suspend counts.
    pub fn remaining(&self) -> Duration {
        self.grant.remaining()
    }

    /// Whether the lease still stands, read from the clock now.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Makes the lease last for `ttl` from now, or as long as it did if that is longer. All guards of one owner on one
    /// lock share it.
    ///
    /// # Cancel safety
    ///
    /// Once polled it runs to its end in the background: the lease may be extended though nobody waited for it.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the lease is over, or a majority says that this owner does not hold the lock: the guard is
    /// no longer valid. [`Error::NoQuorum`] when too few masters extended it: the lease stands as it did, and another
    /// try may succeed. [`Error::Invalid`] for a TTL outside of its limits.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use std::time::Duration;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.lock("invoice:42").ttl(Duration::from_secs(5)).acquire().await?;
    /// guard.extend(Duration::from_secs(60)).await?;
    /// assert!(guard.remaining() > Duration::from_secs(55));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        self.grant.extend(ttl).await
    }

    /// Gives the hold back, and with the owner's last hold the lock. Returns when a majority has confirmed it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, before or after it was polled, leaves the release to the background.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when the lease had ended, or a majority says that it was not held: somebody else may have held
    /// the lock while this guard lived. [`Error::NotHeld`] when the owner's holds were given back already, with
    /// [`Lock::release`](crate::Lock::release). [`Error::NoQuorum`] when too few masters confirmed it in time: the
    /// release goes on in the background, and what it cannot reach dies with its TTL.
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
        let Self { grant, _redlock } = self;
        grant.release().await
    }
}
