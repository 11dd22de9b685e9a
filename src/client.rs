//! The client, and the locks that it makes. The kinds of locks differ in how a master keeps them:
//! see `wire/kind.rs` and `scripts/lua/`.

use std::sync::Arc;

use crate::admin::{ChangeStep, Init, SetChange, SetError};
use crate::blocking;
use crate::compat;
use crate::election::Election;
use crate::error::Error;
use crate::inner::Inner;
use crate::inspection::{Inspection, Listing};
use crate::invalid::Invalid;
use crate::link::Address;
use crate::lock::Lock;
use crate::owner::Owner;
use crate::set::MasterStatus;
use crate::time::Moment;
use crate::wire::{Kind, join_names};

/// A client of N independent masters, which makes locks. Clones share everything.
///
/// # Which lock?
///
/// | you want | use |
/// |---|---|
/// | one holder at a time, which may re-enter | [`lock`](Redlock::lock) |
/// | the same, granted in the order of arrival | [`fair_lock`](Redlock::fair_lock) |
/// | one holder at a time, which may not re-enter | [`mutex`](Redlock::mutex) |
/// | the same, together with redsync, node-redlock, redis-py or rslock | [`plain_mutex`](Redlock::plain_mutex) |
/// | a lock together with Java services that use Redisson's `RLock` | [`redisson_lock`](Redlock::redisson_lock) |
/// | several names at once, all or none | [`lock_all`](Redlock::lock_all) |
/// | many readers at a time, or one writer | [`read_lock`](Redlock::read_lock), [`write_lock`](Redlock::write_lock) |
/// | up to N holders at a time | [`semaphore`](Redlock::semaphore) |
/// | one leader among candidates, and others who follow it | [`election`](Redlock::election) |
///
/// All have the same options, waiting, renewal, and errors.
///
/// # Threads and shutdown
///
/// One background thread owns a connection to each master, so the client's futures run on any
/// executor, and a guard can be dropped on any thread.
///
/// Dropping the last handle, guards included, ends the thread as soon as every release has reached
/// its masters, or after five seconds. The drop itself waits up to 250 ms for releases under way;
/// to wait longer, or to see the result, call [`shutdown`](Redlock::shutdown) first.
#[derive(Clone, Debug)]
pub struct Redlock {
    pub(crate) inner: Arc<Inner>,
}

impl Redlock {
    /// The lock of this name: one owner at a time holds it, and may re-enter. Nothing is sent or
    /// checked before it is acquired.
    ///
    /// Names have 1 to [512](crate::config::MAX_NAME) bytes. All kinds share them: while a
    /// name is held as one kind, acquiring it as another fails with
    /// [`Error::AnotherKind`](crate::Error::AnotherKind), and nothing is overwritten.
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(&self.inner, Kind::Lock, name.as_ref())
    }

    /// The fair lock of this name: a [`lock`](Redlock::lock) that is granted in the order in which
    /// its waiters came, across processes. In all else it is like that one, and uncontended it
    /// costs the same.
    ///
    /// # The order
    ///
    /// Waiters are ordered by the time at which they called [`acquire`](Lock::acquire), on the
    /// masters' clocks. While one waits, later callers do not get a free lock, nor does
    /// [`try_acquire`](Lock::try_acquire): it fails with [`Error::Held`](crate::Error::Held), which
    /// names the waiter whose turn it is. An owner that has the lock re-enters ahead of the
    /// waiters.
    ///
    /// A waiter whose process or connections died is skipped at once. One whose process stands
    /// still has a second after its wake-up, and the next one polls every two seconds: so it is
    /// skipped within about three seconds, and gets its turn when it is back. A hand-off takes the
    /// release, which wakes the next waiter, and that waiter's own round.
    ///
    /// The order of two that came within a few round trips of each other is not promised, and a
    /// wrong clock gains a waiter half a second at most. A partition may disturb the order: a
    /// majority that does not know of a waiter does not wait for it. A waiter that cannot be woken,
    /// because it may not subscribe or [polls](Lock::poll_every), is served when it asks and nobody
    /// is ahead. A queue holds 1,024 processes at most, each with a local queue; others poll, and
    /// are ordered only once they have a place. Exclusion does not depend on the queue.
    ///
    /// Waiting costs the masters more than for other locks: the nth waiter in the queue polls every
    /// n seconds. Names are as for [`lock`](Redlock::lock).
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

    /// The mutex of this name: one owner at a time holds it, and cannot re-enter: it gets
    /// [`Error::AlreadyHeld`](crate::Error::AlreadyHeld). It is for what even one owner must not do
    /// twice at once. Names are as for [`lock`](Redlock::lock).
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

    /// A mutex in the layout of other libraries: a STRING under the bare name, without the
    /// [prefix](crate::Builder::prefix), as SET NX PX leaves it. It excludes clients of redsync,
    /// node-redlock, redis-py, rslock and others that use the same masters, and they exclude it;
    /// neither side releases what the other holds.
    ///
    /// The masters keep only that key: its guards have no [fencing token](crate::compat), a key
    /// that a master lost is not recreated, and one that its clock expired, or that somebody
    /// deleted, is free. Nor is it written on masters that join, so a lease is lost when most
    /// masters that granted it have left. All clients should use the same
    /// [prefix](crate::Builder::prefix): docs/SAFETY.md, "What is not protected", says why.
    ///
    /// Other libraries do not announce their releases, so a waiter polls while one of them holds
    /// the lock: after 20 ms at first; the pause doubles up to 500 ms while the holder stays the
    /// same, and starts again at 20 ms when it changes. While a Quorate client holds the lock,
    /// waiters queue and are woken. [`poll_every`](Lock::poll_every) sets an interval of your own.
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
    pub fn plain_mutex(&self, name: impl AsRef<str>) -> compat::UnfencedLock {
        compat::UnfencedLock(Lock::new(&self.inner, Kind::PlainMutex, name.as_ref()))
    }

    /// One lock over all of these names: on each master one script grants all of them or none. It
    /// excludes a [`lock`](Redlock::lock) of any of its names, and every lock over several that
    /// shares a name with it. A waiter holds none of the names, so no order of names can deadlock.
    /// There is one lease, one [`Guard`](crate::Guard) and one fencing token, above the last token
    /// of every name: resources that single locks guard accept it, too.
    ///
    /// There are 1 to [16](crate::config::MAX_NAMES) different names, each as for
    /// [`lock`](Redlock::lock), in any order: they are sorted. The acquire checks them, and fails
    /// with [`Error::Invalid`](crate::Error::Invalid). The lock's [`name`](Lock::name), which
    /// errors show, joins them with `+`, as in `a+b`; a `+` or a backslash within a name is escaped
    /// with a backslash.
    ///
    /// [`Error::Held`](crate::Error::Held) names the holder of the first name that is taken. A
    /// caller for a single name may overtake a waiter for several: the more of its names are in
    /// demand, the longer it waits.
    ///
    /// A lock over several names has an owner of its own, [`Guard::owner`](crate::Guard::owner),
    /// even if one is [named](Lock::owned_by). The named owner may re-enter the same names by
    /// `lock_all`; its locks of single names, or of other sets, exclude this one, so that no
    /// release of one frees a name of the other.
    ///
    /// Masters are independent servers. A cluster would take such a lock only if its names share a
    /// hash tag, which is a name up to its first `}`: `order:7}a` and `order:7}b` do.
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

    /// The read side of a read-write lock: any number of owners hold it at a time, and none holds
    /// the [`write_lock`](Redlock::write_lock) of the same name then.
    ///
    /// Each reader has its own lease, renewal and fencing token: one that died blocks writers for
    /// its own TTL only, however long others go on reading. New readers queue behind a waiting
    /// writer, so that writers get their turn; readers that hold the lock may re-enter. When the
    /// last reader leaves, the writer is woken and has a second to come; until then readers that
    /// [try](Lock::try_acquire) are refused with [`Error::Held`](crate::Error::Held), which names
    /// the waiting acquire and a count of 0. Another writer may overtake it.
    ///
    /// A reader's token is above that of every earlier writer and below that of every later one;
    /// simultaneous readers may have the same. A resource refuses what comes with a token below the
    /// last *writer's*, and stores no reader's, because readers come and go in any order.
    ///
    /// The owner of the write lock, [named](Lock::owned_by) or of a [scope](crate::Owner::scope),
    /// gets the read lock at once, and keeps it when it releases the write lock: a downgrade that
    /// lets readers in, and no writer in between. The other way round is
    /// [`Error::Upgrade`](crate::Error::Upgrade). Each of the two locks has its own TTL.
    ///
    /// Names are as for [`lock`](Redlock::lock). [`Lock::inspect`] names one of the readers, and
    /// [`Lock::is_held_by`] says whether an owner is one.
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

    /// The write side of a [`read_lock`](Redlock::read_lock), which has an example: one owner at a
    /// time holds it, and nobody else reads meanwhile. It may re-enter, and take the read lock,
    /// too.
    ///
    /// It is granted when no reader's lease is left on a majority of the masters. New readers queue
    /// behind a waiting writer.
    pub fn write_lock(&self, name: impl AsRef<str>) -> Lock {
        Lock::new(&self.inner, Kind::Write, name.as_ref())
    }

    /// The semaphore of this name: all clients together hold at most `permits` guards of it at a
    /// time. A [`Guard`] is one permit, and works as that of a [`lock`](Redlock::lock).
    ///
    /// Each permit is a lock of its own, which a majority of the masters must grant. So no schedule
    /// and no fault grants more permits than there are. If each master just counted up to
    /// `permits`, different majorities could grant too many.
    ///
    /// All clients have to give the same number: while a permit is held, another number gets
    /// [`Error::OtherPermits`], which changes nothing. There are 1 to
    /// [1,000](crate::config::MAX_PERMITS) permits, because a refusal may look at all of them.
    /// Names are as for [`lock`](Redlock::lock).
    ///
    /// An acquire gets a random permit, [`Guard::permit`]. Its
    /// [`fence`](crate::Guard::fencing_token) is higher than those of all earlier grants of this
    /// permit, and unrelated to those of other permits: a resource has to check fences per permit.
    ///
    /// If the permit that it asks for is taken, the masters say which are free, and it asks again
    /// at once: [`try_acquire`](Lock::try_acquire) can take up to five rounds. A caller that finds
    /// none waits in one queue for all permits, and the release of any wakes it.
    ///
    /// There is no re-entry: every acquire takes another permit with an owner of its own, so
    /// [`owned_by`](Lock::owned_by) is an [`Error::Invalid`] and an [`Owner::scope`] is ignored.
    /// [`inspect`](Lock::inspect) shows each permit, [`force_release`](Lock::force_release) takes
    /// an owner's away, and [`hand_over`](crate::Guard::hand_over) hands one to another process.
    ///
    /// [`Guard`]: crate::Guard
    /// [`Guard::permit`]: crate::Guard::permit
    /// [`Owner::scope`]: crate::Owner::scope
    /// [`MAX_PERMITS`]: crate::config::MAX_PERMITS
    /// [`Error::OtherPermits`]: crate::Error::OtherPermits
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

    /// The lock of this name in the layout of Redisson's `RLock`: a HASH under the bare name,
    /// without the [prefix](crate::Builder::prefix), whose field is `uuid:number`, and a channel
    /// for releases. With one master, or a quorum of them that Java services lock in the same way,
    /// Java and Rust services exclude, wait for and wake each other. An owner may re-enter.
    ///
    /// It has no more on the masters than that key, with the limits of a
    /// [`plain_mutex`](Redlock::plain_mutex). While a caller waits, the client listens on the
    /// lock's own channel, over one more connection to each master.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.redisson_lock("invoice:42").acquire().await?; // HGETALL invoice:42 is {guard.owner(): 1}
    /// guard.release().await?; // wakes waiters in Java, too
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn redisson_lock(&self, name: impl AsRef<str>) -> compat::UnfencedLock {
        compat::UnfencedLock(Lock::new(&self.inner, Kind::Redisson, name.as_ref()))
    }

    /// The election of this name: at most one of its candidates leads at a time. Nothing is sent or
    /// checked before one campaigns or observes.
    ///
    /// To the masters it is the [`lock`](Redlock::lock) of this name, which the leader holds.
    pub fn election(&self, name: impl AsRef<str>) -> Election {
        Election::new(self.lock(name))
    }

    /// What the masters know of a name, for any kind of lock: asks all of them, and waits for each
    /// within its time-out. The answer may have changed since they gave it. For locks in the layout
    /// of another library use [`Lock::inspect`](crate::Lock::inspect).
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
        self.lock(name).inspect().await
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
    /// A name that is held or waited for during the whole listing is returned once; one that is
    /// only for a part of it, once or not at all. Locks in the layout of another library have no
    /// prefix, and are not listed.
    ///
    /// # What it costs
    ///
    /// For a page each master scans about a thousand keys of any kind, which blocks it for a few
    /// milliseconds; then all masters are asked about the names found, 64 at a time. The names
    /// found stay in memory.
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

    /// Begins the client's masters as a set, or completes one that was begun: each gets a record
    /// that says which set it is one of. Without that no master votes. What is complete is left
    /// alone, so it may be run again at any time, with the set's current list. With an outdated
    /// list it begins a second set if all masters of that list are empty one day. So leave it to a
    /// person, or to what starts the machines, and not to each program that takes locks.
    ///
    /// Masters that may have been used have no vote for a little more than one
    /// [`max_ttl`](crate::Builder::max_ttl) first, and this waits for that; a person can say that
    /// no client ever used them: [`Init::never_used`]. Every ten seconds the log says what it waits
    /// for, or [`Init::on_progress`] is told.
    ///
    /// # Cancel safety
    ///
    /// What was begun stays, and is completed by the next run; no master votes before that.
    ///
    /// # Errors
    ///
    /// [`SetError::NotBegun`] if a master is of another set, or has other terms. So it is if a
    /// master is not reached within the client's [`wait`](crate::Builder::wait), and the
    /// quarantine, while the set has no majority. If a majority are members of the set, a master
    /// that does not answer is no error: this waits 3 s for it, and the master comes back to the
    /// set by itself.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// use quorate::{Init, Redlock};
    ///
    /// let redlock = Redlock::builder().masters(masters).build()?; // redis://10.0.0.1, redis://10.0.0.2, ...
    /// redlock.init(Init::new()).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn init(&self, how: Init) -> Result<(), SetError> {
        self.inner.engine.init(how).await
    }

    /// [`init`](Redlock::init) [without async](crate::blocking).
    pub fn init_blocking(&self, how: Init) -> Result<(), SetError> {
        blocking::wait(&self.inner, self.init(how))
    }

    /// What names the processes of masters that have no record, for whoever says that no client
    /// ever used them: see [`Init::never_used`]. It is the same for each client of these masters
    /// until one of them restarts.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`SetError::NoFingerprint`] if a master has a record, or cannot be reached within the
    /// client's [`wait`](crate::Builder::wait).
    ///
    /// # Examples
    ///
    /// See [`Init`].
    pub async fn fingerprint(&self) -> Result<Arc<str>, SetError> {
        self.inner.engine.fingerprint_of_new_masters().await
    }

    /// [`fingerprint`](Redlock::fingerprint) [without async](crate::blocking).
    pub fn fingerprint_blocking(&self) -> Result<Arc<str>, SetError> {
        blocking::wait(&self.inner, self.fingerprint())
    }

    /// Has masters that lost their state go on without members that are gone for good. Without this
    /// they wait for those: of three masters, one is dead, and another one comes back without its
    /// keys. This first waits 3 s for all members to answer; one that does not is gone, as a person
    /// says by calling this. Masters that lost their state vote when a quarantine is over. Does
    /// nothing if most masters are members of their set.
    ///
    /// If a member is only cut off, and knows of a change that the others missed or lost, two may
    /// hold a lock.
    ///
    /// # Cancel safety
    ///
    /// As [`init`](Redlock::init).
    ///
    /// # Errors
    ///
    /// [`SetError::NotRecovered`] if fewer than a quorum can be reached, or none of those knows its
    /// set, so that a set has to begin.
    pub async fn recover(&self) -> Result<(), SetError> {
        self.inner.engine.recover().await
    }

    /// [`recover`](Redlock::recover) [without async](crate::blocking).
    pub fn recover_blocking(&self) -> Result<(), SetError> {
        blocking::wait(&self.inner, self.recover())
    }

    /// Changes the set of masters while clients hold and wait for locks: adds a master, removes
    /// one, or replaces one. Clients that run learn of the
    /// change from the masters, and go on with the new ones; leases that are held go on. Those that
    /// start with the old list find the set by it, as long as one of its masters is there.
    ///
    /// A change is decided by most masters of the set. Before that a new master has no vote for a
    /// quarantine, and the leases of the generation before have to be over: this waits for both, a
    /// little more than one [`max_ttl`](crate::Builder::max_ttl), at the same time. What the set is
    /// already is left alone.
    ///
    /// # Cancel safety
    ///
    /// The change is made or is not made, and of a replacement perhaps the first half; run it again
    /// to know. Nothing has to be undone.
    ///
    /// # Errors
    ///
    /// [`SetError::Unfinished`] if most masters of the set do not answer. [`SetError::NotChanged`]
    /// if they would not when it is changed; if a new master is not reached within
    /// [`wait`](crate::Builder::wait), or is one of another set; if the one that is to leave is
    /// none of the set; or if that would become too small or too large. [`SetError::Invalid`] for a
    /// wrong URL.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn grow(redlock: quorate::Redlock) -> Result<(), quorate::SetError> {
    /// redlock.change_members(quorate::SetChange::add("redis://10.0.0.4")).await?;
    /// redlock.change_members(quorate::SetChange::add("redis://10.0.0.5")).await?;
    /// # Ok(()) }
    /// ```
    pub async fn change_members(&self, change: SetChange) -> Result<(), SetError> {
        let SetChange { add, remove, by_name, tell } = change;
        let named = |url: &Arc<str>| if by_name { Ok(url.clone()) } else { named(url) };
        let mut steps = Vec::new();
        if let Some(url) = add {
            steps.push(ChangeStep::Add { name: named(&url)?, url });
        }
        if let Some(url) = remove {
            steps.push(ChangeStep::Remove { name: named(&url)? });
        }
        self.inner.engine.change_members(steps, tell).await
    }

    /// [`change_members`](Redlock::change_members) [without async](crate::blocking).
    pub fn change_members_blocking(&self, change: SetChange) -> Result<(), SetError> {
        blocking::wait(&self.inner, self.change_members(change))
    }

    /// The status of each master: whether it may vote, and if not, why and for how long; whether it
    /// can be reached, since when, and its last round trip. Nothing is sent: it is what the last
    /// connection to each of them found, so a silent master whose connection is open is noticed at
    /// the next call.
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
        self.inner.engine.master_status()
    }

    /// A new owner, to hold locks with more than once.
    ///
    /// An acquire that names an owner re-enters what that owner holds. Its guards share one lease,
    /// each is one hold, and the lock is free when the last of them is released.
    ///
    /// The lease combines the options of the acquires. The first decides the
    /// [`label`](Lock::label), the [`lock_delay`](Lock::lock_delay), and how the lease is renewed:
    /// a later [`hold_at_most`](Lock::hold_at_most) or [`no_renewal`](Lock::no_renewal) changes
    /// nothing. Only if no acquire before had a renewal does a later one bring its own, for all
    /// guards. A later acquire prolongs the lease to its own TTL from then on, and never shortens
    /// it.
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
        self.inner.engine.fresh_owner()
    }

    /// The current time on the clock of the guards' deadlines.
    pub fn now(&self) -> Moment {
        self.inner.engine.clock().now()
    }

    /// How often this client asked a quorum first.
    #[cfg(feature = "unstable-testing")]
    pub fn quorum_first_counts(&self) -> crate::seam::QuorumFirstCounts {
        self.inner.engine.dispatcher.quorum_first_counts()
    }
}

/// What the record calls the master with this URL.
fn named(url: &str) -> Result<Arc<str>, Invalid> {
    Address::parse(url, None).map(|address| address.name().clone())
}
