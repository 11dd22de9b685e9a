//! The fair lock: one owner at a time, in the order in which they came.
//!
//! On a master it is kept as the reentrant lock is, as a kind of its own, and the queue decides who may have it; see
//! `scripts/lua/kinds/fair.lua`.

use super::Lock;
use crate::client::Redlock;
use crate::protocol::Kind;

impl Redlock {
    /// The fair lock of this name: a [`lock`](Redlock::lock) that is granted in the order in which its waiters came, whichever
    /// process they are in. It waits, renews itself, tells its loss and is released as that, an owner may enter it more than once, and
    /// uncontended it costs the same.
    ///
    /// # The order
    ///
    /// It is that of the moments at which the waiters called [`acquire`](Lock::acquire), by the masters' time. While somebody waits,
    /// a lock that is free is refused to all who came later, and to [`try_acquire`](Lock::try_acquire), which does not wait: it
    /// gets [`Error::Held`](crate::Error::Held), and the holder named there is the waiter whose turn it is. An owner that
    /// has the lock enters it again past those who wait.
    ///
    /// A waiter that is gone, because its process died or its connections did, is passed over at once. One that is there and
    /// does not answer, because its process stands still, has a second from when it is called, and the next one looks after two at the
    /// latest: so it is passed over within some three seconds, and has its turn when it is back. A hand-off is the release, which calls
    /// the next one, and that one's own round.
    ///
    /// Not promised is the order of two that came within some round trips of each other, and none buys a place by more than half a second. A partition may
    /// disturb it: a majority that does not know of a waiter does not wait for it. Whoever cannot be called, since it may not
    /// subscribe or [polls](Lock::poll), is served when it asks and nobody is before it. A queue has 1,024 processes at most, each
    /// with a line of its own; those beyond ask from time to time, and are served in their order only once they have a
    /// place. None of this is about exclusion, which is that of [`lock`](Redlock::lock), whatever becomes of the queue.
    ///
    /// Waiting costs the masters more than with other locks: the first in the queue looks every second, the second every two seconds,
    /// and so on. Names are as for [`lock`](Redlock::lock), and are shared with it: while one is held as another kind it gets
    /// [`Error::AnotherKind`](crate::Error::AnotherKind).
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use quorate::Error;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let lock = redlock.fair_lock("invoice:42");
    /// let held = lock.acquire().await?;
    /// assert!(matches!(redlock.lock("invoice:42").try_acquire().await, Err(Error::AnotherKind { .. })));
    /// let second = tokio::spawn({
    ///     let lock = lock.clone();
    ///     async move { lock.acquire().await }
    /// });
    /// held.release().await?;
    /// second.await??.release().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn fair_lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(self.inner(), Kind::Fair, name.as_ref())
    }
}
