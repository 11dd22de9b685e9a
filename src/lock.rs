//! A lock by its name: options, acquire, release. `client.rs` makes locks of each kind.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::blocking;
use crate::config::check_permits;
use crate::engine::{Adoption, Polling, Request};
use crate::error::Error;
use crate::guard::{Fenced, Guard, Unfenced};
use crate::handover::Handover;
use crate::inner::Inner;
use crate::inspection::Inspection;
use crate::invalid::Invalid;
use crate::owner::Owner;
use crate::protocol::Kind;
use crate::renewal::RenewalOptions;
use crate::text::quoted;

/// A lock by its name, with the options of the acquires to come. It holds nothing; a [`Guard`]
/// does.
///
/// Only one owner at a time has a guard; of a semaphore, as many as it has permits. Every acquire
/// has an owner of its own, so that two tasks exclude each other, unless one is named: with
/// [`owned_by`](Lock::owned_by), or by [`Owner::scope`]. Its type says whether its guards have a
/// fencing token: see [`Fenced`].
#[derive(Clone)]
#[must_use = "a lock is not held before it is acquired"]
pub struct Lock<F = Fenced> {
    pub(crate) client: Arc<Inner>,
    kind: Kind,
    /// How many there are, of a semaphore.
    permits: Option<u32>,
    pub(crate) name: Arc<str>,
    pub(crate) options: Options,
    fencing: PhantomData<fn() -> F>,
}

/// What was said of the acquires to come.
#[derive(Clone)]
pub(crate) struct Options {
    ttl: Duration,
    delay: Duration,
    label: Arc<str>,
    wait: Duration,
    owner: Option<Owner>,
    renewal: RenewalOptions,
    polling: Option<Polling>,
    pub(crate) cancelled: Option<CancellationToken>,
}

impl Lock {
    /// What others are told of the holder, instead of the client's own
    /// [`label`](crate::Builder::label): at most [`MAX_LABEL`](crate::config::MAX_LABEL) bytes
    /// without control characters. An owner that re-enters leaves it as it is. The layouts of other
    /// libraries have no place for it.
    pub fn label(mut self, label: impl AsRef<str>) -> Self {
        self.options.label = label.as_ref().into();
        self
    }
}

impl From<Lock> for Lock<Unfenced> {
    /// The same lock, beside others that have no fencing tokens.
    fn from(lock: Lock) -> Self {
        let Lock { client, kind, permits, name, options, .. } = lock;
        Self { client, kind, permits, name, options, fencing: PhantomData }
    }
}

impl<F> Lock<F> {
    pub(crate) fn new(client: &Arc<Inner>, kind: Kind, name: &str) -> Self {
        let settings = client.engine().settings();
        let options = Options {
            ttl: settings.ttl,
            delay: Duration::ZERO,
            label: settings.label.clone(),
            wait: settings.wait,
            owner: None,
            renewal: RenewalOptions::default(),
            polling: None,
            cancelled: None,
        };
        Self { client: client.clone(), kind, permits: None, name: name.into(), options, fencing: PhantomData }
    }

    /// The same of a semaphore, which has so many permits.
    pub(crate) fn of_permits(mut self, permits: u32) -> Self {
        self.permits = Some(permits);
        self
    }

    /// How long the lease lasts unless it is renewed, from [`MIN_TTL`](crate::config::MIN_TTL) to
    /// the client's [`max_ttl`](crate::Builder::max_ttl). It is also how long a holder that dies
    /// blocks everybody else. While the guard lives it is renewed in the background, unless
    /// [`lease`](Lock::lease) fixed it.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.ttl = ttl;
        self.options.renewal.fixed = false;
        self
    }

    /// A lease of this TTL that is not renewed: it ends by itself, whether or not the guard still
    /// lives.
    pub fn lease(mut self, ttl: Duration) -> Self {
        self.options.ttl = ttl;
        self.options.renewal.fixed = true;
        self
    }

    /// Keeps the lock from others for so long after a lease that ended without a release: for what
    /// its holder sent before it died, and cannot be fenced. Consul calls it the lock delay. It is
    /// measured by the masters' clocks, or in [strict](crate::Builder::strict) mode by those who
    /// wait, and is together with the TTL no longer than the [`max_ttl`](crate::Builder::max_ttl).
    /// The default is none.
    pub fn lock_delay(mut self, delay: Duration) -> Self {
        self.options.delay = delay;
        self
    }

    /// How often the lease is renewed: every millisecond to every two thirds of the TTL, so that a
    /// renewal that fails can be tried again. The default is a third, as Redisson's watchdog has
    /// it.
    pub fn renew_every(mut self, interval: Duration) -> Self {
        self.options.renewal.interval = Some(interval);
        self
    }

    /// Renews the lease `times` times at most; then it runs out.
    pub fn renew_at_most(mut self, times: u32) -> Self {
        self.options.renewal.times = Some(times);
        self
    }

    /// Renews the lease for as long as it ends within `time` of the acquire: nobody holds the lock
    /// for longer. It must not be below the TTL.
    pub fn hold_at_most(mut self, time: Duration) -> Self {
        self.options.renewal.at_most = Some(time);
        self
    }

    /// Renews the lease for as long as the work gives a sign of life, [`Guard::touch`], at least
    /// this often, from 10 ms on: when the work hangs, the lease runs out. The acquire is the first
    /// sign.
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.options.renewal.heartbeat = Some(interval);
        self
    }

    /// How long [`acquire`](Lock::acquire) waits for the lock, up to
    /// [`MAX_WAIT`](crate::config::MAX_WAIT). Zero is one try.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.options.wait = wait;
        self
    }

    /// Makes [`acquire`](Lock::acquire) ask every `interval`, which is 1 ms at least, `tries` times
    /// at most and within the [`wait`](Lock::wait), instead of standing in the queue until it is
    /// woken. It puts load on the masters for as long as it waits, and a caller that polls may go
    /// without while those in the queue are served.
    pub fn poll(mut self, interval: Duration, tries: u32) -> Self {
        self.options.polling = Some(Polling { interval, tries });
        self
    }

    /// Ends an acquire that waits when `token` is cancelled, with [`Error::Cancelled`]. It leaves
    /// nothing behind.
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.options.cancelled = Some(token);
        self
    }

    /// Who is to hold it: an owner that holds it already re-enters. See
    /// [`Redlock::owner`](crate::Redlock::owner). Permits of a
    /// [`semaphore`](crate::Redlock::semaphore) have owners of their own, so that no other can be
    /// named.
    pub fn owned_by(mut self, owner: &Owner) -> Self {
        self.options.owner = Some(*owner);
        self
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tries once: one round to all masters. Returns as soon as a majority granted, or none can. Of
    /// a semaphore it asks for other permits, four at most, while the masters say that one is free.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, at any moment, gives the lock back: every master that granted, or may
    /// still, is told so in the background, in order behind the acquire. A master that is out of
    /// reach hears it when it is back, or its entry ends with the TTL.
    ///
    /// # Errors
    ///
    /// [`Error::Held`] when another owner has it, [`Error::NoQuorum`] when too few masters can
    /// vote, and [`Error::Refused`] when so many refuse for good that the rest are no quorum, all
    /// within the per-master time-out; [`Error::Lost`] when this task was not run until the lease
    /// was over; [`Error::Invalid`] and [`Error::Closed`] before anything is sent.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.lock("invoice:42").try_acquire().await?;
    /// match redlock.lock("invoice:42").try_acquire().await {
    ///     Err(quorate::Error::Held { holder, .. }) => assert_eq!(*holder.owner, *guard.owner().to_string()),
    ///     other => panic!("{other:?}"),
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn try_acquire(&self) -> Result<Guard<F>, Error> {
        self.acquire_as(self.named_owner()?, Duration::ZERO).await
    }

    /// [`try_acquire`](Lock::try_acquire) [without async](crate::blocking).
    pub fn try_acquire_blocking(&self) -> Result<Guard<F>, Error> {
        blocking::wait(&self.client, self.try_acquire())
    }

    /// Waits for the lock, for the [`wait`](Lock::wait) at most.
    ///
    /// Waiters of one client stand in line, in the order in which they found the lock taken, and
    /// the first of them has a place in a queue on every master. A release wakes the first in the
    /// queue; where wake-ups are lost, a waiter asks again when the TTLs of the holder have run
    /// out. The order is a courtesy and not a promise, but for a
    /// [`fair_lock`](crate::Redlock::fair_lock): a newcomer may get the lock while the first in the
    /// queue wakes up. The last try is made when the wait ends, so it can take a per-master
    /// time-out longer.
    ///
    /// # Cancel safety
    ///
    /// As [`try_acquire`](Lock::try_acquire).
    ///
    /// # Errors
    ///
    /// [`Error::WaitTimedOut`] when another owner had it to the end, [`Error::NoQuorum`] when too
    /// few masters could vote at the end, [`Error::QueueFull`] when this client has too many
    /// waiters for this lock, [`Error::Cancelled`] by a token, and the others of
    /// [`try_acquire`](Lock::try_acquire), of which [`Error::Refused`], [`Error::AnotherKind`] and
    /// [`Error::OtherPermits`] are not waited for. With a wait of zero it does what
    /// [`try_acquire`](Lock::try_acquire) does. A lease that is
    /// over before this task is run is taken anew while the wait lasts, and [`Error::Lost`] only at
    /// its end.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use std::time::Duration;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.lock("invoice:42").ttl(Duration::from_secs(5)).acquire().await?;
    /// assert!(guard.remaining() > Duration::from_secs(4));
    /// let error = redlock.lock("invoice:42").wait(Duration::from_millis(20)).acquire().await.unwrap_err();
    /// assert!(matches!(error, quorate::Error::WaitTimedOut { .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn acquire(&self) -> Result<Guard<F>, Error> {
        self.acquire_as(self.named_owner()?, self.options.wait).await
    }

    /// [`acquire`](Lock::acquire) [without async](crate::blocking).
    pub fn acquire_blocking(&self) -> Result<Guard<F>, Error> {
        blocking::wait(&self.client, self.acquire())
    }

    /// Waits for the lock for this owner, or for one that nobody else knows.
    pub(crate) async fn acquire_as(&self, owner: Option<Owner>, wait: Duration) -> Result<Guard<F>, Error> {
        // The wait and the owner are the caller's: an election has others than these options.
        let Options { ttl, delay, label, renewal, polling, cancelled, .. } = self.options.clone();
        let renewal = renewal.for_ttl(ttl, self.client.engine().usual_renewal())?;
        let request = Request {
            name: self.name.clone(),
            kind: self.kind,
            permits: self.permits,
            ttl,
            delay,
            label,
            wait,
            owner,
            renewal,
            polling,
            cancelled,
        };
        let grant = self.client.engine().acquire(request).await?;
        Ok(Guard::new(grant, self.client.clone()))
    }

    /// Takes up a lock that was [handed over](Guard::hand_over): one round, which a majority must
    /// grant. The guard's owner is a new one, its lease counts from here, and it is kept as this
    /// lock's options say. It returns when every master has answered, or its time-out is over: none
    /// is left to the hand-over.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the lock back to the hand-over, in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Held`] when it was adopted already, or was not adopted in time and somebody else
    /// has the lock; [`Error::Lost`] when nobody has it any more; [`Error::NoQuorum`], or
    /// [`Error::Refused`], when too few masters can vote: the hand-over is as good as it was.
    /// [`Error::Invalid`] for one of another lock or kind of lock, of other masters or of another
    /// key prefix.
    ///
    /// # Examples
    ///
    /// See [`Guard::hand_over`].
    pub async fn adopt(&self, handover: &Handover) -> Result<Guard<F>, Error> {
        if *handover.name() != self.name {
            let shown = |name: &str| quoted(name, 28);
            return Err(handover
                .invalid(&format!("it is for lock {}, not {}", shown(handover.name()), shown(&self.name)))
                .into());
        }
        if handover.kind() != self.kind || handover.permit().map(|permit| permit.of) != self.permits {
            return Err(handover
                .invalid("it is for another kind of lock, or another number of permits")
                .into());
        }
        let Options { ttl, label, renewal, .. } = self.options.clone();
        let renewal = renewal.for_ttl(ttl, self.client.engine().usual_renewal())?;
        let adoption = Adoption { handover: handover.clone(), kind: self.kind, ttl, label, renewal };
        let grant = self.client.engine().adopt(adoption).await?;
        Ok(Guard::new(grant, self.client.clone()))
    }

    /// [`adopt`](Lock::adopt) [without async](crate::blocking).
    pub fn adopt_blocking(&self, handover: &Handover) -> Result<Guard<F>, Error> {
        blocking::wait(&self.client, self.adopt(handover))
    }

    /// Gives back one hold of the named owner, whichever of its guards that belongs to: for code
    /// that unlocks in another place than it locks. That guard then has nothing left to release;
    /// where it was the last hold, it is no longer valid either.
    ///
    /// # Cancel safety
    ///
    /// Once polled, it runs to its end in the background.
    ///
    /// # Errors
    ///
    /// [`Error::NotHeld`] when the owner has no hold left in this process, and those of
    /// [`Guard::release`]; [`Error::Invalid`] when no owner is named.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let me = redlock.owner();
    /// let lock = redlock.lock("invoice:42").owned_by(&me);
    /// let guard = lock.acquire().await?;
    /// lock.release().await?;
    /// assert!(matches!(lock.release().await, Err(quorate::Error::NotHeld { .. })));
    /// assert!(matches!(guard.release().await, Err(quorate::Error::NotHeld { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn release(&self) -> Result<(), Error> {
        let owner = self.named_owner()?.ok_or_else(Invalid::no_owner)?;
        self.client.engine().release_by_owner(self.kind, self.name.clone(), owner).await
    }

    /// [`release`](Lock::release) [without async](crate::blocking).
    pub fn release_blocking(&self) -> Result<(), Error> {
        blocking::wait(&self.client, self.release())
    }

    /// Takes the lock away from `owner`, whoever that is and however often it entered: for a lock
    /// that is stuck. If that owner still works, it is told when it next renews, extends or
    /// releases; so is a guard of this client, unless its owner was named, and then it is told at
    /// once. A lock whose owner is not one of Quorate's cannot be broken: delete its key.
    ///
    /// # Cancel safety
    ///
    /// Once polled, it runs to its end in the background.
    ///
    /// # Errors
    ///
    /// [`Error::NotHeld`] when a majority says that this owner does not have it,
    /// [`Error::AnotherKind`] or [`Error::OtherPermits`] when it has no such lock under this name
    /// but another, [`Error::NoQuorum`], or [`Error::Refused`], when too few masters answered to be
    /// sure that it is free, and [`Error::Invalid`].
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let stuck = redlock.lock("invoice:42").acquire().await?;
    /// redlock.lock("invoice:42").force_release(&stuck.owner()).await?;
    /// let free = redlock.lock("invoice:42").try_acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn force_release(&self, owner: &Owner) -> Result<(), Error> {
        self.client.engine().break_lock(self.name.clone(), *owner, self.kind, self.permits).await
    }

    /// [`force_release`](Lock::force_release) [without async](crate::blocking).
    pub fn force_release_blocking(&self, owner: &Owner) -> Result<(), Error> {
        blocking::wait(&self.client, self.force_release(owner))
    }

    /// What the masters know of the lock's name: [`Redlock::inspect`](crate::Redlock::inspect),
    /// which finds out the kind by itself; for a lock over several names, of all of them together,
    /// and for one in a layout of another library, of its key.
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
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// assert!(redlock.lock("invoice:42").inspect().await?.is_free());
    /// let guard = redlock.lock("invoice:42").acquire().await?;
    /// let holder = redlock.lock("invoice:42").inspect().await?.holder().unwrap();
    /// assert_eq!(*holder.owner, *guard.owner().to_string());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn inspect(&self) -> Result<Inspection, Error> {
        check_permits(self.permits)?;
        let seen = self.client.engine().inspect(self.name.clone(), self.kind).await?;
        Ok(Inspection::new(self.name.clone(), seen))
    }

    /// [`inspect`](Lock::inspect) [without async](crate::blocking).
    pub fn inspect_blocking(&self) -> Result<Inspection, Error> {
        blocking::wait(&self.client, self.inspect())
    }

    /// Whether `owner` has the lock: whether a majority of the masters says so. It was true when
    /// they answered, and may not be any more.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NoQuorum`], or [`Error::Refused`], when too few masters answered to know, and
    /// [`Error::Invalid`].
    ///
    /// # Examples
    ///
    /// See [`Redlock::mutex`](crate::Redlock::mutex).
    pub async fn is_held_by(&self, owner: &Owner) -> Result<bool, Error> {
        let engine = self.client.engine();
        let name = self.name.clone();
        let owner = engine.owner_on_masters(self.kind, &name, *owner);
        engine.is_held_by(name, self.kind, self.permits, owner).await
    }

    /// [`is_held_by`](Lock::is_held_by) [without async](crate::blocking).
    pub fn is_held_by_blocking(&self, owner: &Owner) -> Result<bool, Error> {
        blocking::wait(&self.client, self.is_held_by(owner))
    }

    /// The owner that was named. A permit has one of its own.
    fn named_owner(&self) -> Result<Option<Owner>, Invalid> {
        match (self.permits, self.options.owner) {
            (Some(_), Some(owner)) => Err(Invalid::owned_permit(&self.name, owner)),
            (Some(_), None) => Ok(None),
            (None, owner) => Ok(owner.or_else(|| Owner::of_scope(self.client.engine().client()))),
        }
    }
}

impl<F> fmt::Debug for Lock<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, options: Options { ttl, wait, owner, .. }, .. } = self;
        f.debug_struct("Lock")
            .field("kind", &kind.word())
            .field("name", name)
            .field("ttl", ttl)
            .field("wait", wait)
            .field("owner", owner)
            .finish_non_exhaustive()
    }
}
