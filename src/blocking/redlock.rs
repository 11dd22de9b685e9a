//! The handle to a set of masters.

use std::time::Duration;

use super::{Lock, wait};
use crate::builder::Builder;
use crate::clock::Moment;
use crate::error::Error;
use crate::lock::{Inspection, Unfenced};
use crate::owner::Owner;
use crate::trust::MasterStatus;

/// A client of N independent masters whose calls block: [`Redlock`](crate::Redlock) without async. Clones share everything.
///
/// # Examples
///
/// ```
/// # quorate_testkit::doc_blocking(|masters| {
/// let redlock = quorate::Redlock::builder().masters(masters).build_blocking()?;
/// std::thread::scope(|scope| {
///     for _ in 0..3 {
///         scope.spawn(|| {
///             let guard = redlock.lock("invoice:42").acquire().expect("there are masters");
///             println!("one thread at a time: {guard:?}");
///         });
///     }
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(()) });
/// ```
#[derive(Clone, Debug)]
pub struct Redlock(crate::Redlock);

impl Redlock {
    /// Begins a client: the same [`Builder`], of which [`build_blocking`](Builder::build_blocking) makes one.
    pub fn builder() -> Builder {
        crate::Redlock::builder()
    }

    /// [`Redlock::lock`](crate::Redlock::lock): the lock of this name.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        self.0.lock(name).into()
    }

    /// [`Redlock::fair_lock`](crate::Redlock::fair_lock): a lock in the order of arrival.
    pub fn fair_lock(&self, name: impl AsRef<str>) -> Lock {
        self.0.fair_lock(name).into()
    }

    /// [`Redlock::mutex`](crate::Redlock::mutex): a lock that its owner cannot enter again.
    pub fn mutex(&self, name: impl AsRef<str>) -> Lock {
        self.0.mutex(name).into()
    }

    /// [`Redlock::plain_mutex`](crate::Redlock::plain_mutex): the same, shared with clients that set a string.
    pub fn plain_mutex(&self, name: impl AsRef<str>) -> Lock<Unfenced> {
        self.0.plain_mutex(name).into()
    }

    /// [`Redlock::lock_all`](crate::Redlock::lock_all): several names at once, all of them or none.
    pub fn lock_all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Lock {
        self.0.lock_all(names).into()
    }

    /// [`Redlock::read_lock`](crate::Redlock::read_lock): the right to read, for many at a time.
    pub fn read_lock(&self, name: impl AsRef<str>) -> Lock {
        self.0.read_lock(name).into()
    }

    /// [`Redlock::write_lock`](crate::Redlock::write_lock): the right to change what those who read have a lock for.
    pub fn write_lock(&self, name: impl AsRef<str>) -> Lock {
        self.0.write_lock(name).into()
    }

    /// [`Redlock::semaphore`](crate::Redlock::semaphore): so many holders at a time.
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Lock {
        self.0.semaphore(name, permits).into()
    }

    /// [`Redlock::redisson_lock`](crate::Redlock::redisson_lock): a lock shared with Redisson's `RLock`.
    pub fn redisson_lock(&self, name: impl AsRef<str>) -> Lock<Unfenced> {
        self.0.redisson_lock(name).into()
    }

    /// [`Redlock::inspect`](crate::Redlock::inspect): what the masters know of a name.
    ///
    /// # Errors
    ///
    /// Those of [`Redlock::inspect`](crate::Redlock::inspect).
    pub fn inspect(&self, name: impl AsRef<str>) -> Result<Inspection, Error> {
        wait(&self.0, self.0.inspect(name))
    }

    /// [`Redlock::list`](crate::Redlock::list): the names that are held or waited for, a page at a time.
    pub fn list(&self) -> Listing {
        Listing(self.0.list())
    }

    /// [`Redlock::standings`](crate::Redlock::standings): how each master stands with this client.
    pub fn standings(&self) -> Vec<MasterStatus> {
        self.0.standings()
    }

    /// [`Redlock::owner`](crate::Redlock::owner): a new owner, to hold locks with more than once.
    pub fn owner(&self) -> Owner {
        self.0.owner()
    }

    /// [`Redlock::now`](crate::Redlock::now): the present moment on the clock that guards' deadlines are on.
    pub fn now(&self) -> Moment {
        self.0.now()
    }

    /// [`Redlock::shutdown`](crate::Redlock::shutdown): refuses every further acquire, ends those that wait on other threads,
    /// and waits for every release that is under way, for `deadline` at most.
    ///
    /// # Errors
    ///
    /// [`Error::Unflushed`] when the deadline came first; [`Error::Invalid`] where a call [may not
    /// block](crate::blocking#where-it-may-not-be-called), and then the client was not shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// let redlock = quorate::Redlock::builder().masters(masters).build_blocking()?;
    /// drop(redlock.lock("invoice:42").acquire()?); // released in the background
    /// redlock.shutdown(std::time::Duration::from_secs(1))?;
    /// assert!(redlock.lock("invoice:42").acquire().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn shutdown(&self, deadline: Duration) -> Result<(), Error> {
        wait(&self.0, self.0.shutdown(deadline))
    }

    /// The same client, for async code.
    pub fn into_async(self) -> crate::Redlock {
        self.0
    }
}

/// A page of names each: see [`Listing::next`](crate::Listing::next). After an error it asks again.
#[derive(Debug)]
pub struct Listing(crate::Listing);

impl Iterator for Listing {
    type Item = Result<Vec<Inspection>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let redlock = self.0.redlock().clone();
        wait(&redlock, self.0.next()).transpose()
    }
}

impl From<crate::Redlock> for Redlock {
    /// The same client, whose calls block.
    fn from(redlock: crate::Redlock) -> Self {
        Self(redlock)
    }
}
