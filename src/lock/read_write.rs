//! The read-write lock: many readers at a time, or one writer. It is two kinds under one name, which one script keeps.

use super::Lock;
use crate::client::Redlock;
use crate::protocol::Kind;

impl Redlock {
    /// The right to read what a [`write_lock`](Redlock::write_lock) of the same name guards: any number of owners have it at a time,
    /// and no writer has the other then.
    ///
    /// Each reader has a lease, a renewal and a fencing token of its own, and is lost and released by itself: one that died
    /// keeps writers away for as long as its own TTL, however long others go on reading. Where a writer waits, whoever comes to read
    /// waits behind it, so that writers get their turn; readers that hold the lock may enter again. When the last reader leaves, the
    /// writer is called, and has a second to come; until then readers that [try](Lock::try_acquire) are refused with
    /// [`Error::Held`](crate::Error::Held), which names the waiting acquire and a count of 0. Another writer may come in between.
    ///
    /// A token is above that of every writer before, and below that of every writer after; readers that come at the same time may
    /// have the same one. A resource refuses what comes with one that is below the last *writer's*, and stores no reader's, for
    /// readers come and go in any order.
    ///
    /// The owner of the write lock, [named](Lock::owned_by) or of a [scope](crate::Owner::scope), gets the read lock at once, and
    /// keeps it when it releases the other: so it lets other readers in, and no writer comes in between. The other way round is
    /// [`Error::Upgrade`](crate::Error::Upgrade). The two locks are different ones to every other owner, and have TTLs of their own.
    ///
    /// Kinds share names, as [`lock`](Redlock::lock) says. [`Lock::inspect`] tells one of the readers,
    /// and [`Lock::is_held_by`] whether an owner is one.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use quorate::Error;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let one = redlock.read_lock("prices").acquire().await?;
    /// let two = redlock.read_lock("prices").acquire().await?;
    /// assert!(matches!(redlock.write_lock("prices").try_acquire().await, Err(Error::Held { .. })));
    /// one.release().await?;
    /// two.release().await?;
    ///
    /// let me = redlock.owner();
    /// let writing = redlock.write_lock("prices").owned_by(&me).acquire().await?;
    /// let reading = redlock.read_lock("prices").owned_by(&me).acquire().await?;
    /// writing.release().await?; // others may read now
    /// let third = redlock.read_lock("prices").try_acquire().await?;
    ///
    /// let error = redlock.write_lock("prices").owned_by(&me).acquire().await.unwrap_err();
    /// assert!(matches!(error, Error::Upgrade { .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn read_lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(self.inner(), Kind::Read, name.as_ref())
    }

    /// The right to change what a [`read_lock`](Redlock::read_lock) of the same name guards: one owner has it at a time, and nobody
    /// else reads meanwhile. It may enter again, and take the read lock, too.
    ///
    /// It is granted when no reader's lease is left on a majority of the masters. Readers that come while it is waited for wait
    /// behind it; see [`read_lock`](Redlock::read_lock), which has an example.
    pub fn write_lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(self.inner(), Kind::Write, name.as_ref())
    }
}
