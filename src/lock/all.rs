//! The lock over several names: all of them at once, or none.
//!
//! On a master it is a lock of each name, all of one owner and with one token, which one operation takes and leaves together. The
//! engine knows it by one name, in which the names are joined.

use super::Lock;
use crate::client::Redlock;
use crate::protocol::{Kind, join_names};

impl Redlock {
    /// One lock over all of these names: it is granted all of them at once, or none, on each master in one script. It excludes a
    /// [`lock`](Redlock::lock) of any of its names, and every other lock over several of which one is the same; whoever waits
    /// has nothing meanwhile, so that no order of names can come to a deadlock. There is one lease, one [`Guard`](crate::Guard)
    /// and one fencing token, which is above the last token of every name: resources that single locks guard take it, too.
    ///
    /// There are 1 to [`MAX_NAMES`](crate::config::MAX_NAMES) names, none of them twice, each as for [`lock`](Redlock::lock).
    /// Their order does not matter: they are sorted. Nothing is sent, or checked, before the lock is acquired: then other names
    /// are an [`Error::Invalid`](crate::Error::Invalid). The lock's [`name`](Lock::name), which errors show, is theirs with a `+`
    /// in between, as in `a+b`; a `+` or a backslash within a name has a backslash before it.
    ///
    /// [`Error::Held`](crate::Error::Held) tells who has the first of the names that is taken. While one waits, whoever comes for
    /// one of the names only may be served before: a lock over several names waits longer the more of them are in demand.
    ///
    /// What is held over several names has an owner of its own, [`Guard::owner`](crate::Guard::owner), also where one is
    /// [named](Lock::owned_by). That one may enter the same names again by `lock_all`; its locks of single names, or of other
    /// names, are others, which exclude this one, so that no release of one takes a name from the other.
    ///
    /// Masters are independent servers. A cluster would take such a lock only where its names share a hash tag, which is a name up
    /// to its first `}`: `order:7}a` and `order:7}b` do.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use quorate::Error;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let both = redlock.lock_all(["account:1", "account:2"]).acquire().await?;
    /// assert!(matches!(redlock.lock("account:2").try_acquire().await, Err(Error::Held { .. })));
    /// both.release().await?;
    ///
    /// let one = redlock.lock("account:2").acquire().await?;
    /// let error = redlock.lock_all(["account:2", "account:1"]).try_acquire().await.unwrap_err();
    /// assert_eq!(*error.holder().unwrap().owner, *one.owner().to_string());
    /// assert!(redlock.lock("account:1").inspect().await?.is_free()); // nothing was taken
    ///
    /// let error = redlock.lock_all(["a", "a"]).try_acquire().await.unwrap_err();
    /// assert_eq!(error.to_string(), "the name \"a\" is given twice; the names of one lock must differ");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn lock_all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Lock {
        Lock::new(self.inner(), Kind::Several, &join_names(names))
    }
}
