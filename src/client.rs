//! The client, and the locks that it makes. Which lock?
//!
//! | you want | use |
//! |---|---|
//! | one holder at a time, which may re-enter | [`Redlock::lock`] |
//! | the same, in the order in which they came | [`Redlock::fair_lock`] |
//! | one holder at a time, which may not | [`Redlock::mutex`] |
//! | such a one, together with clients of redsync, node-redlock, redis-py or rslock | [`Redlock::plain_mutex`] |
//! | several names at once, all of them or none | [`Redlock::lock_all`] |
//! | many readers at a time, or one writer | [`Redlock::read_lock`], [`Redlock::write_lock`] |
//! | so many holders at a time | [`Redlock::semaphore`] |
//! | a lock together with Java services that use Redisson's `RLock` | [`Redlock::redisson_lock`] |
//! | one leader among candidates, and others who want to know who leads | [`Redlock::election`] |
//!
//! What tells the kinds apart is how a lock is kept on a master: see `protocol/kind.rs` and
//! `scripts/lua/`. A [`Lock`] of any kind has the same options, waits and renews in the same way,
//! and gives the same [`Guard`](crate::Guard) and errors.

use std::fmt;
use std::sync::Arc;

use crate::blocking;
use crate::clock::Moment;
use crate::election::Election;
use crate::engine::Engine;
use crate::error::Error;
use crate::guard::Unfenced;
use crate::inner::Inner;
use crate::inspection::{Inspection, Listing};
use crate::lock::Lock;
use crate::owner::Owner;
use crate::protocol::{Kind, join_names};
use crate::trust::MasterStatus;

/// A client of N independent masters, and where locks come from. Clones share everything.
///
/// It keeps one background thread, which owns one connection to each master. Its futures therefore
/// run on any executor, and a guard can be dropped on any thread.
///
/// Dropping the last handle, guards included, ends the thread as soon as every release has reached
/// its masters, or after five seconds. Where releases are under way the drop waits for them, 250 ms
/// at most; to wait longer, or to know how it went, call [`shutdown`](Redlock::shutdown) before.
#[derive(Clone)]
pub struct Redlock {
    inner: Arc<Inner>,
}

impl Redlock {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// The lock of this name: one owner has it at a time, which may enter it more than once.
    /// Nothing is sent, or checked, before it is acquired.
    ///
    /// Names have 1 to [`MAX_NAME`](crate::config::MAX_NAME) bytes. Kinds share them: a name that
    /// is held as one kind is refused as another, with
    /// [`Error::AnotherKind`](crate::Error::AnotherKind), and nothing is overwritten.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(&self.inner, Kind::Lock, name.as_ref())
    }

    /// The fair lock of this name: a [`lock`](Redlock::lock) that is granted in the order in which
    /// its waiters came, whichever process they are in. It waits, renews itself, tells its loss and
    /// is released as that, an owner may enter it more than once, and uncontended it costs the
    /// same.
    ///
    /// # The order
    ///
    /// It is that of the moments at which the waiters called [`acquire`](Lock::acquire), by the
    /// masters' time. While somebody waits, a lock that is free is refused to all who came later,
    /// and to [`try_acquire`](Lock::try_acquire), which does not wait: it gets
    /// [`Error::Held`](crate::Error::Held), and the holder named there is the waiter whose turn it
    /// is. An owner that has the lock enters it again past those who wait.
    ///
    /// A waiter that is gone, because its process died or its connections did, is passed over at
    /// once. One that is there and does not answer, because its process stands still, has a second
    /// from when it is called, and the next one looks after two at the latest: so it is passed over
    /// within some three seconds, and has its turn when it is back. A hand-off is the release,
    /// which calls the next one, and that one's own round.
    ///
    /// Not promised is the order of two that came within some round trips of each other, and none
    /// buys a place by more than half a second. A partition may disturb it: a majority that does
    /// not know of a waiter does not wait for it. A waiter that cannot be called, since it may not
    /// subscribe or [polls](Lock::poll), is served when it asks and nobody is before it. A queue
    /// has 1,024 processes at most, each with a line of its own; those beyond ask from time to
    /// time, and are served in their order only once they have a place. None of this is about
    /// exclusion, which is that of [`lock`](Redlock::lock), whatever becomes of the queue.
    ///
    /// Waiting costs the masters more than with other locks: the first in the queue looks every
    /// second, the second every two seconds, and so on. Names are as for [`lock`](Redlock::lock),
    /// and are shared with it: while one is held as another kind it gets
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
        Lock::new(&self.inner, Kind::Fair, name.as_ref())
    }

    /// The mutex of this name: one owner has it at a time, and cannot enter it again. An owner that
    /// tries gets [`Error::AlreadyHeld`](crate::Error::AlreadyHeld), where a
    /// [`lock`](Redlock::lock) would let it in: for what must not be done twice at once even by one
    /// owner. Names are as for [`lock`](Redlock::lock).
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
        Lock::new(&self.inner, Kind::Mutex, name.as_ref())
    }

    /// The same in the layout that other libraries have: a STRING under the bare name, without the
    /// [prefix](crate::Builder::prefix), as SET NX PX leaves it. Clients of redsync, node-redlock,
    /// redis-py, rslock and others that use the same masters, in the same number, are kept out by
    /// it and keep it out, and neither side releases what the other holds.
    ///
    /// There is nothing on the masters but that key, so its guards have no [fencing
    /// token](Unfenced), a key that a master lost is not made again, and one that its clock ended,
    /// or that somebody deleted, is free. All clients should have one
    /// [prefix](crate::Builder::prefix): docs/SAFETY.md, "What is not protected", says why.
    ///
    /// Other libraries do not tell of their releases. A waiter that finds such a holder polls:
    /// after 20 ms at first; the pause doubles up to 500 ms while the same holder stays, and starts
    /// again at 20 ms when the holder has changed or was gone. While a client of Quorate's holds
    /// the lock, a waiter stands in the queue and is woken. [`poll`](Lock::poll) sets an interval
    /// of your own.
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
        Lock::new(&self.inner, Kind::PlainMutex, name.as_ref())
    }

    /// One lock over all of these names: it is granted all of them at once, or none, on each master
    /// in one script. It excludes a [`lock`](Redlock::lock) of any of its names, and every other
    /// lock over several of which one is the same; a waiter has nothing meanwhile, so that no
    /// order of names can come to a deadlock. There is one lease, one [`Guard`](crate::Guard) and
    /// one fencing token, which is above the last token of every name: resources that single locks
    /// guard take it, too.
    ///
    /// There are 1 to [`MAX_NAMES`](crate::config::MAX_NAMES) names, none of them twice, each as
    /// for [`lock`](Redlock::lock). Their order does not matter: they are sorted. Nothing is sent,
    /// or checked, before the lock is acquired: then other names are an
    /// [`Error::Invalid`](crate::Error::Invalid). The lock's [`name`](Lock::name), which errors
    /// show, is theirs with a `+` in between, as in `a+b`; a `+` or a backslash within a name has a
    /// backslash before it.
    ///
    /// [`Error::Held`](crate::Error::Held) tells who has the first of the names that is taken.
    /// While one waits, a caller for one of the names only may be served before: a lock over
    /// several names waits longer the more of them are in demand.
    ///
    /// What is held over several names has an owner of its own,
    /// [`Guard::owner`](crate::Guard::owner), also where one is [named](Lock::owned_by). That one
    /// may enter the same names again by `lock_all`; its locks of single names, or of other names,
    /// are others, which exclude this one, so that no release of one takes a name from the other.
    ///
    /// Masters are independent servers. A cluster would take such a lock only where its names share
    /// a hash tag, which is a name up to its first `}`: `order:7}a` and `order:7}b` do.
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
        Lock::new(&self.inner, Kind::Several, &join_names(names))
    }

    /// The right to read what a [`write_lock`](Redlock::write_lock) of the same name guards: any
    /// number of owners have it at a time, and no writer has the other then.
    ///
    /// Each reader has a lease, a renewal and a fencing token of its own, and is lost and released
    /// by itself: one that died keeps writers away for as long as its own TTL, however long others
    /// go on reading. Where a writer waits, a reader that comes waits behind it, so that writers
    /// get their turn; readers that hold the lock may enter again. When the last reader leaves, the
    /// writer is called, and has a second to come; until then readers that [try](Lock::try_acquire)
    /// are refused with [`Error::Held`](crate::Error::Held), which names the waiting acquire and a
    /// count of 0. Another writer may come in between.
    ///
    /// A token is above that of every writer before, and below that of every writer after; readers
    /// that come at the same time may have the same one. A resource refuses what comes with one
    /// that is below the last *writer's*, and stores no reader's, for readers come and go in any
    /// order.
    ///
    /// The owner of the write lock, [named](Lock::owned_by) or of a [scope](crate::Owner::scope),
    /// gets the read lock at once, and keeps it when it releases the other: so it lets other
    /// readers in, and no writer comes in between. The other way round is
    /// [`Error::Upgrade`](crate::Error::Upgrade). The two locks are different ones to every other
    /// owner, and have TTLs of their own.
    ///
    /// Kinds share names, as [`lock`](Redlock::lock) says. [`Lock::inspect`] tells one of the
    /// readers, and [`Lock::is_held_by`] whether an owner is one.
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
        Lock::new(&self.inner, Kind::Read, name.as_ref())
    }

    /// The right to change what a [`read_lock`](Redlock::read_lock) of the same name guards: one
    /// owner has it at a time, and nobody else reads meanwhile. It may enter again, and take the
    /// read lock, too.
    ///
    /// It is granted when no reader's lease is left on a majority of the masters. Readers that come
    /// while it is waited for wait behind it; see [`read_lock`](Redlock::read_lock), which has an
    /// example.
    pub fn write_lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(&self.inner, Kind::Write, name.as_ref())
    }

    /// The semaphore of this name: at most `permits` guards of it are held at a time, by all
    /// clients together. A [`Guard`] is one permit. It waits, renews itself, tells its loss and is
    /// released as that of a [`lock`](Redlock::lock).
    ///
    /// A majority of the masters must give the same permit, each of which is a lock of its own. So
    /// no schedule and no fault lets more in than there are, where masters that each count up to
    /// `permits` would: of five, each is in three majorities of ten.
    ///
    /// All clients have to say the same number: while somebody has a permit, another number gets
    /// [`Error::OtherPermits`]. It may change as soon as nobody has one. A name that is held as
    /// another kind of lock gets [`Error::AnotherKind`]; both leave everything as it is. There are
    /// 1 to [`MAX_PERMITS`] permits, since a refusal may look at all of them. Names are as for
    /// [`lock`](Redlock::lock).
    ///
    /// Which permit one gets is drawn: [`Guard::permit`] tells. Its
    /// [`fence`](crate::Guard::fencing_token) is higher than those of all grants of this permit
    /// before it, and says nothing about the others, whose holders work at the same time: what a
    /// semaphore protects has to check fences for each permit by itself.
    ///
    /// An acquire asks for a permit that may be free. Where it is not, the masters tell which are,
    /// and it asks again at once: so [`try_acquire`](Lock::try_acquire) can take a few rounds, five
    /// at most. A caller that finds none waits in one queue for all of them, and is woken by the
    /// release of any.
    ///
    /// Every acquire takes another permit, so there is nothing to enter again, and every guard has
    /// an owner of its own: [`owned_by`](Lock::owned_by) gets [`Error::Invalid`], and an
    /// [`Owner::scope`] is passed over. [`inspect`](Lock::inspect) tells about each permit,
    /// [`force_release`](Lock::force_release) takes back the one of an owner, and
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
        Lock::new(&self.inner, Kind::Semaphore, name.as_ref()).of_permits(permits)
    }

    /// The lock of this name as Redisson's `RLock` has it: a HASH under the bare name, without the
    /// [prefix](crate::Builder::prefix), whose field is `uuid:number`, and a channel for releases.
    /// With one master, or a quorum of them that Java services lock in the same way, a Java service
    /// and a Rust service exclude each other, wait for each other and wake each other. An owner may
    /// enter again.
    ///
    /// There is nothing on the masters but that key, so its guards have no [fencing
    /// token](Unfenced), a key that a master lost is not made again, and one that its clock ended,
    /// or that somebody deleted, is free. All clients should have one
    /// [prefix](crate::Builder::prefix): docs/SAFETY.md, "What is not protected", says why. While
    /// one waits here, the client listens on the lock's own channel, on one more connection to each
    /// master.
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
        Lock::new(&self.inner, Kind::Redisson, name.as_ref())
    }

    /// The election of this name: one leader at a time among all that campaign in it. Nothing is
    /// sent, or checked, before somebody campaigns or observes.
    ///
    /// Names have 1 to [`MAX_NAME`](crate::config::MAX_NAME) bytes. An election and a
    /// [`lock`](Redlock::lock) of one name are the same to the masters: who leads holds the lock.
    pub fn election(&self, name: impl AsRef<str>) -> Election {
        Election::new(self.lock(name))
    }

    /// What the masters know of a name, of whatever kind the lock is: asks each of them, and waits
    /// for each within its time-out. The answer was true when each master gave it, and may not be
    /// any more. Locks in a layout of another library have names of their own, and are inspected by
    /// [`Lock::inspect`](crate::Lock::inspect).
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`]. Masters that do not answer are in the votes.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use quorate::{LockKind, Part};
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let reads = [redlock.read_lock("map").acquire().await?, redlock.read_lock("map").acquire().await?];
    /// let seen = redlock.inspect("map").await?;
    /// assert_eq!(seen.kind(), Some(LockKind::ReadWrite));
    /// assert!(seen.held().iter().all(|held| held.part == Part::Read));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn inspect(&self, name: impl AsRef<str>) -> Result<Inspection, Error> {
        let name: Arc<str> = name.as_ref().into();
        let seen = self.engine().inspect(name.clone(), Kind::Lock).await?;
        Ok(Inspection::new(name, seen))
    }

    /// [`inspect`](Redlock::inspect) [without async](crate::blocking).
    pub fn inspect_blocking(&self, name: impl AsRef<str>) -> Result<Inspection, Error> {
        blocking::wait(&self.inner, self.inspect(name))
    }

    /// The names that are held or waited for on a majority of the masters, under this client's
    /// prefix. Nothing is asked before the first [`next`](Listing::next).
    ///
    /// # What it sees
    ///
    /// A name that is held or waited for from the beginning to the end is told once; one that is
    /// only for a part of that, once or not at all. Locks in a layout of another library have no
    /// prefix, and are not told.
    ///
    /// # What it costs
    ///
    /// A page asks each master to look at about a thousand of its keys, whosever they are, which
    /// keeps it from others for a few milliseconds; and all masters about each name found, 64
    /// together. It keeps in memory the names that it found.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.lock("invoice:42").acquire().await?;
    /// let mut listing = redlock.list();
    /// while let Some(page) = listing.next().await? {
    ///     for seen in page {
    ///         println!("{} is a {}", seen.name(), seen.kind().unwrap());
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn list(&self) -> Listing {
        Listing::begin(&self.inner)
    }

    /// How each master stands with this client: whether it may vote, and if not, why and for how
    /// long; whether it can be reached, since when, and how fast it answered last. Nothing is sent:
    /// it is what the last connection to each of them found. A master that nobody calls, and that
    /// falls silent without closing the connection, is not noticed before the next call.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn show(redlock: quorate::Redlock) {
    /// for status in redlock.master_status() {
    ///     match (status.reachable, status.unchanged_for, status.last_round_trip) {
    ///         (Some(true), _, Some(took)) => println!("{} answers within {took:?}", status.master),
    ///         (Some(false), Some(time), _) => println!("{} has been out of reach for {time:?}", status.master),
    ///         _ => println!("{}: {}", status.master, status.standing),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn master_status(&self) -> Vec<MasterStatus> {
        self.engine().master_status()
    }

    /// A new owner, to hold locks with more than once.
    ///
    /// An acquire that names an owner re-enters what that owner holds already. Its guards share one
    /// lease, each is one hold, and the lock is free when the last of them is released.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let me = redlock.owner();
    /// let outer = redlock.lock("invoice:42").owned_by(&me).acquire().await?;
    /// let inner = redlock.lock("invoice:42").owned_by(&me).acquire().await?;
    /// inner.release().await?; // one hold is left
    /// outer.release().await?; // and now none
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn owner(&self) -> Owner {
        self.engine().fresh_owner()
    }

    /// The present moment on the clock that guards' deadlines are on.
    pub fn now(&self) -> Moment {
        self.engine().clock().now()
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    fn engine(&self) -> &Arc<Engine> {
        self.inner.engine()
    }
}

impl fmt::Debug for Redlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redlock").field(&self.inner).finish()
    }
}
