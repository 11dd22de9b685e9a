//! The mutex: one owner at a time, which cannot enter again.
//!
//! On a master it is kept as the reentrant lock is, as a kind of its own; that it is not entered again is seen to here. The one that
//! is shared with other libraries is a STRING, the owner, as SET NX PX leaves it; see `scripts/lua/shared/plain.lua`.

use super::{Lock, Unfenced};
use crate::client::Redlock;
use crate::protocol::Kind;

impl Redlock {
    /// The mutex of this name: one owner has it at a time, and cannot enter it again. An owner that tries gets
    /// [`Error::AlreadyHeld`](crate::Error::AlreadyHeld), where a [`lock`](Redlock::lock) would let it in: for what must not
    /// be done twice at once even by one owner. Names are as for [`lock`](Redlock::lock).
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use quorate::Error;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let me = redlock.owner();
    /// let mutex = redlock.mutex("invoice:42").owned_by(&me);
    /// let guard = mutex.acquire().await?;
    /// assert!(mutex.is_held_by(&me).await?);
    /// assert!(matches!(mutex.acquire().await, Err(Error::AlreadyHeld { .. })));
    /// guard.release().await?;
    /// assert!(matches!(mutex.release().await, Err(Error::NotHeld { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn mutex(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(self.inner(), Kind::Mutex, name.as_ref())
    }

    /// The same in the layout that other libraries have: a STRING under the bare name, without the
    /// [prefix](crate::Builder::prefix), as SET NX PX leaves it. Clients of redsync, node-redlock, redis-py, rslock and others
    /// that use the same masters, in the same number, are kept out by it and keep it out, and neither side releases
    /// what the other holds.
    ///
    /// There is nothing on the masters but that key, so its guards have no [fencing token](Unfenced), a key that a master lost is
    /// not made again, and one that its clock ended, or that somebody deleted, is free. All clients should have one
    /// [prefix](crate::Builder::prefix): docs/SAFETY.md, "What is not protected", says why.
    ///
    /// Other libraries do not tell of their releases. A waiter that finds such a holder polls: after 20 ms at
    /// first; the pause doubles up to 500 ms while the same holder stays, and starts again at 20 ms
    /// when the holder has changed or was gone. While a client of Quorate's holds the lock, a waiter
    /// stands in the queue and is woken. [`poll`](Lock::poll) sets an interval of your own.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.plain_mutex("invoice:42").acquire().await?; // GET invoice:42 is guard.owner()
    /// guard.release().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn plain_mutex(&self, name: impl AsRef<str>) -> Lock<Unfenced> {
        Lock::new(self.inner(), Kind::PlainMutex, name.as_ref())
    }
}
