//! The reentrant lock in the layout of Redisson's RLock, which Java services have: each excludes the other, waits for it and
//! wakes it.
//!
//! On a master it is a HASH, owner -> hold count, under the bare name; see `scripts/lua/shared/redisson.lua`.

use super::{Lock, Unfenced};
use crate::client::Redlock;
use crate::protocol::Kind;

impl Redlock {
    /// The lock of this name as Redisson's `RLock` has it: a HASH under the bare name, without the
    /// [prefix](crate::Builder::prefix), whose field is `uuid:number`, and a channel for releases. With one master, or a quorum
    /// of them that Java services lock in the same way, a Java service and a Rust service exclude each other, wait
    /// for each other and wake each other. An owner may enter again.
    ///
    /// There is nothing on the masters but that key, so its guards have no [fencing token](Unfenced), a key that a master lost is
    /// not made again, and one that its clock ended, or that somebody deleted, is free. All clients should have one
    /// [prefix](crate::Builder::prefix): docs/SAFETY.md, "What is not protected", says why. While one waits here, the client listens
    /// on the lock's own channel, on one more connection to each master.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.redisson_lock("invoice:42").acquire().await?; // HGETALL invoice:42 is {guard.owner(): 1}
    /// guard.release().await?; // and whoever waits in Java is told
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn redisson_lock(&self, name: impl AsRef<str>) -> Lock<Unfenced> {
        Lock::new(self.inner(), Kind::Redisson, name.as_ref())
    }
}
