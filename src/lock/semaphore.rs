//! The semaphore: as many owners at a time as there are permits.
//!
//! On a master each permit is a lock of its own, an entry of the name's hash; see `scripts/lua/kinds/semaphore.lua`.

use super::Lock;
use crate::client::Redlock;
use crate::protocol::Kind;

impl Redlock {
    /// The semaphore of this name: at most `permits` guards of it are held at a time, by all clients together. A [`Guard`] is one
    /// permit. It waits, renews itself, tells its loss and is released as that of a [`lock`](Redlock::lock).
    ///
    /// A majority of the masters must give the same permit, each of which is a lock of its own. So no schedule and no
    /// fault lets more in than there are, where masters that each count up to `permits` would: of five, each is in three
    /// majorities of ten.
    ///
    /// All clients have to say the same number: while somebody has a permit, another number gets
    /// [`Error::OtherPermits`]. It may change as soon as nobody has one. A name that is held as another kind of lock gets
    /// [`Error::AnotherKind`]; both leave everything as it is. There are 1 to [`MAX_PERMITS`] permits, since a
    /// refusal may look at all of them. Names are as for [`lock`](Redlock::lock).
    ///
    /// Which permit one gets is drawn: [`Guard::permit`] tells. Its [`fence`](crate::Guard::fencing_token) is higher than those of all grants of
    /// this permit before it, and says nothing about the others, whose holders work at the same time: what a
    /// semaphore protects has to check fences for each permit by itself.
    ///
    /// An acquire asks for a permit that may be free. Where it is not, the masters tell which are, and it asks again at
    /// once: so [`try_acquire`](Lock::try_acquire) can take a few rounds, five at most. Whoever finds none waits in one queue
    /// for all of them, and is woken by the release of any.
    ///
    /// Every acquire takes another permit, so there is nothing to enter again, and every guard has an owner of its own:
    /// [`owned_by`](Lock::owned_by) gets [`Error::Invalid`], and an [`Owner::scope`] is passed over.
    /// [`inspect`](Lock::inspect) tells about each permit, [`force_release`](Lock::force_release) takes back the one of an owner, and
    /// [`hand_over`](crate::Guard::hand_over) gives one to another process.
    ///
    /// [`Guard`]: crate::Guard
    /// [`Guard::permit`]: crate::Guard::permit
    /// [`Owner::scope`]: crate::Owner::scope
    /// [`MAX_PERMITS`]: crate::config::MAX_PERMITS
    /// [`Error::OtherPermits`]: crate::Error::OtherPermits
    /// [`Error::AnotherKind`]: crate::Error::AnotherKind
    /// [`Error::Invalid`]: crate::Error::Invalid
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use quorate::Error;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let printers = redlock.semaphore("printers", 2);
    /// let (one, two) = (printers.acquire().await?, printers.acquire().await?);
    /// assert_ne!(one.permit(), two.permit());
    /// assert!(matches!(printers.try_acquire().await, Err(Error::Held { .. })));
    /// one.release().await?;
    /// let next = printers.acquire().await?;
    /// assert!(matches!(redlock.semaphore("printers", 3).try_acquire().await, Err(Error::OtherPermits { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Lock {
        Lock { permits: Some(permits), ..Lock::new(self.inner(), Kind::Semaphore, name.as_ref()) }
    }
}
