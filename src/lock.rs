//! A lock by its name: options, acquire, release. `client.rs` makes locks of each kind.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::blocking;
use crate::config::check_permits;
use crate::engine::{Adoption, Polling, Request};
use crate::error::Error;
use crate::guard::Guard;
use crate::handover::Handover;
use crate::inner::Inner;
use crate::inspection::Inspection;
use crate::invalid::Invalid;
use crate::owner::Owner;
use crate::renewal::{Renewal, RenewalOptions};
use crate::text::quoted;
use crate::wire::Kind;

/// A lock by its name, with the options of the acquires to come. It holds nothing; a [`Guard`]
/// does.
///
/// One owner at a time holds it; a semaphore has as many holders as permits. Each acquire gets a
/// new owner, so two tasks exclude each other, unless [`owned_by`](Lock::owned_by) or
/// [`Owner::scope`] names one. A task can run an acquire: `tokio::spawn(lock.acquire())`. It is
/// outside of the scope in which it is spawned.
#[derive(Clone)]
#[must_use = "a lock is not held before it is acquired"]
pub struct Lock {
    pub(crate) client: Arc<Inner>,
    /// What each acquire asks for, apart from its renewal, which the options for that make.
    pub(crate) request: Request,
    renewal: RenewalOptions,
}

impl Lock {
    pub(crate) fn new(client: &Arc<Inner>, kind: Kind, name: &str) -> Self {
        let settings = client.engine.settings();
        let request = Request {
            name: name.into(),
            kind,
            permits: None,
            ttl: settings.ttl,
            delay: Duration::ZERO,
            label: settings.label.clone(),
            wait: settings.wait,
            renewal: None,
            owner: None,
            polling: None,
            cancelled: None,
        };
        Self { client: client.clone(), request, renewal: RenewalOptions::default() }
    }

    /// Makes it a semaphore with this number of permits.
    pub(crate) fn of_permits(mut self, permits: u32) -> Self {
        self.request.permits = Some(permits);
        self
    }

    /// How long the lease lasts unless it is renewed, and so how long a holder that dies blocks the
    /// others: from [10 ms](crate::config::MIN_TTL) to the client's
    /// [`max_ttl`](crate::Builder::max_ttl). While the guard lives the lease is renewed in the
    /// background, unless [`no_renewal`](Lock::no_renewal) is given.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.request.ttl = ttl;
        self
    }

    /// The lease is not renewed: it ends after the [`ttl`](Lock::ttl), even while the guard lives.
    pub fn no_renewal(mut self) -> Self {
        self.renewal.off = true;
        self
    }

    /// The label that others see beside the holder, instead of the client's own
    /// [`label`](crate::Builder::label): at most [64](crate::config::MAX_LABEL) bytes
    /// without control characters. Re-entry does not change it.
    pub fn label(mut self, label: impl AsRef<str>) -> Self {
        self.request.label = label.as_ref().into();
        self
    }

    /// How long the lock stays taken after a lease that ended without a release: time for what its
    /// holder sent before it died, where that cannot be fenced. Consul calls it the lock delay. The
    /// masters' clocks measure it. TTL and delay together must not exceed the
    /// [`max_ttl`](crate::Builder::max_ttl). The default is none.
    ///
    /// A release in time ends the delay. Once the lease is [lost](Guard::lost), a release or a drop
    /// of the guard sends nothing, so the delay takes its course. Two things end it early:
    /// [`force_release`](Lock::force_release), and the same named owner that acquires the lock
    /// again.
    pub fn lock_delay(mut self, delay: Duration) -> Self {
        self.request.delay = delay;
        self
    }

    /// The time between renewals: from a millisecond to two thirds of the TTL, so that a failed
    /// renewal can be retried. The default is a third, as for Redisson's watchdog.
    pub fn renew_every(mut self, interval: Duration) -> Self {
        self.renewal.interval = Some(interval);
        self
    }

    /// Renews the lease `times` times at most; then it runs out.
    pub fn renew_at_most(mut self, times: u32) -> Self {
        self.renewal.times = Some(times);
        self
    }

    /// Renews the lease only as far as `time` after the acquire, so nobody holds the lock for
    /// longer. `time` must not be below the TTL.
    pub fn hold_at_most(mut self, time: Duration) -> Self {
        self.renewal.at_most = Some(time);
        self
    }

    /// Renews the lease only while the work calls [`Guard::touch`] at least this often, so that it
    /// runs out when the work hangs. The shortest interval is 10 ms; the acquire counts as the
    /// first call.
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.renewal.heartbeat = Some(interval);
        self
    }

    /// How long [`acquire`](Lock::acquire) waits, up to [24 hours](crate::config::MAX_WAIT). Zero
    /// means one try.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.request.wait = wait;
        self
    }

    /// Makes [`acquire`](Lock::acquire) poll instead of waiting in the queue: every `interval`, 1
    /// ms at least, up to `tries` times within the [`wait`](Lock::wait). Polling puts load on the
    /// masters, and waiters in the queue may be served first.
    pub fn poll_every(mut self, interval: Duration, tries: u32) -> Self {
        self.request.polling = Some(Polling { interval, tries });
        self
    }

    /// Ends a waiting acquire with [`Error::Cancelled`] when `token` is cancelled. It leaves
    /// nothing behind.
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.request.cancelled = Some(token);
        self
    }

    /// The owner that acquires it; one that holds it already re-enters. See
    /// [`Redlock::owner`](crate::Redlock::owner). A [`semaphore`](crate::Redlock::semaphore)
    /// refuses it: each permit has an owner of its own.
    pub fn owned_by(mut self, owner: &Owner) -> Self {
        self.request.owner = Some(*owner);
        self
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        &self.request.name
    }

    /// Tries once, with one round to all masters (a busy client asks [a quorum
    /// first](crate::Builder::quorum_first_above)), and returns as soon as a majority has granted
    /// or none can; a second round where the masters' tokens differ, or refused its time. A
    /// semaphore tries up to four more permits while the masters say that one is free.
    ///
    /// Of clients that try at the same moment one gets the lock, if all masters answer: where the
    /// clients share out the masters, all but the one with most of them give theirs back, and that
    /// one asks again. This takes two more round trips, and one or two per-master time-outs if a
    /// master or a client stands still. Readers and writers that try at the same moment may all be
    /// refused.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, at any moment, gives the lock back: a release follows the acquire to
    /// every master that granted, or may still, in the background. A master that cannot be reached
    /// gets it when it is back, or its entry ends with the TTL.
    ///
    /// # Errors
    ///
    /// Within the per-master time-out, or within three where the vote was split: [`Error::Held`]
    /// when another owner has it or more of the masters, [`Error::NoQuorum`] when too few masters
    /// can vote, and [`Error::Refused`] when too few are left because others refuse permanently.
    /// [`Error::Lost`] when the lease ended before this task ran again. [`Error::Invalid`] and
    /// [`Error::Closed`] before anything is sent.
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
    pub fn try_acquire(&self) -> impl Future<Output = Result<Guard, Error>> + Send + use<> {
        self.clone().acquire_within(Duration::ZERO)
    }

    /// [`try_acquire`](Lock::try_acquire) [without async](crate::blocking).
    pub fn try_acquire_blocking(&self) -> Result<Guard, Error> {
        blocking::wait(&self.client, self.try_acquire())
    }

    /// Acquires the lock, waiting for the [`wait`](Lock::wait) at most. The future borrows nothing,
    /// so a task may run it; awaiting the lock itself does the same.
    ///
    /// The waiters of one client queue locally, in the order in which they began to wait, and the
    /// first of them has a place in a queue on every master. A release wakes the head of
    /// that queue; if the wake-up is lost, the waiter asks again when the holder's TTLs have run
    /// out. Only a [`fair_lock`](crate::Redlock::fair_lock) promises the order: otherwise a
    /// newcomer may get the lock while the head of the queue wakes up. The last try is made when
    /// the wait ends, so the call can take one per-master time-out longer.
    ///
    /// # Cancel safety
    ///
    /// As for [`try_acquire`](Lock::try_acquire). A future that is neither dropped nor polled any
    /// more may be granted the lock: it keeps that from others for one TTL, as the lease is renewed
    /// only once the future has returned the guard.
    ///
    /// # Errors
    ///
    /// [`Error::WaitTimedOut`] when another owner had it until the wait ended, [`Error::NoQuorum`]
    /// when too few masters could vote then, [`Error::QueueFull`] when this client has too many
    /// waiters for this lock, [`Error::Cancelled`] by a token, and those of
    /// [`try_acquire`](Lock::try_acquire): [`Error::Refused`], [`Error::AnotherKind`] and
    /// [`Error::OtherPermits`] at once, [`Error::Lost`] only when the wait is over, since until
    /// then a lease that ended too early is acquired again.
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
    ///
    /// let waiting = tokio::spawn(redlock.lock("invoice:42").acquire());
    /// guard.release().await?;
    /// waiting.await??.release().await?;
    /// let guard = redlock.lock("invoice:42").await?; // the same
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn acquire(&self) -> impl Future<Output = Result<Guard, Error>> + Send + use<> {
        self.clone().acquire_within(self.request.wait)
    }

    /// [`acquire`](Lock::acquire) [without async](crate::blocking).
    pub fn acquire_blocking(&self) -> Result<Guard, Error> {
        blocking::wait(&self.client, self.acquire())
    }

    async fn acquire_within(self, wait: Duration) -> Result<Guard, Error> {
        let owner = self.named_owner()?;
        self.acquire_as(owner, wait).await
    }

    /// Acquires the lock for this owner, or for a new one.
    pub(crate) async fn acquire_as(self, owner: Option<Owner>, wait: Duration) -> Result<Guard, Error> {
        // The caller gives the wait and the owner: an election's differ from these options.
        let request = Request { owner, wait, renewal: self.renewal()?, ..self.request };
        let grant = self.client.engine.acquire(request).await?;
        Ok(Guard::new(grant, self.client))
    }

    /// Acquires a lock that was [handed over](Guard::hand_over), in one round that a majority must
    /// grant. Returns when every master has answered or timed out, so that none still holds it for
    /// the hand-over.
    ///
    /// The guard has a new owner and a new lease, by this lock's [`ttl`](Lock::ttl), renewal,
    /// [`label`](Lock::label) and [`lock_delay`](Lock::lock_delay). The other options do not apply:
    /// an owner, by [`owned_by`](Lock::owned_by) or [`Owner::scope`], cannot re-enter the lock, and
    /// an adoption neither waits nor polls, nor hears [`cancelled_by`](Lock::cancelled_by).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future returns the lock to the hand-over, in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Held`] when it was adopted already, or too late and another owner has the lock;
    /// [`Error::Lost`] when nobody has it any more; [`Error::NoQuorum`] or [`Error::Refused`] when
    /// too few masters can vote, and the hand-over stays valid. [`Error::Invalid`] when it is for
    /// another lock, kind of lock, set of masters or key prefix, or when an option is outside its
    /// limits.
    ///
    /// # Examples
    ///
    /// See [`Guard::hand_over`].
    pub async fn adopt(&self, handover: &Handover) -> Result<Guard, Error> {
        if *handover.name() != self.request.name {
            let shown = |name: &str| quoted(name, 28);
            return Err(handover
                .invalid(&format!("it is for lock {}, not {}", shown(handover.name()), shown(self.name())))
                .into());
        }
        let permits = handover.permit.map(|permit| permit.of);
        if handover.kind != self.request.kind || permits != self.request.permits {
            return Err(handover
                .invalid("it is for another kind of lock, or another number of permits")
                .into());
        }
        let handover = handover.clone();
        let Request { kind, ttl, delay, label, .. } = self.request.clone();
        let adoption = Adoption { handover, kind, ttl, delay, label, renewal: self.renewal()? };
        let grant = self.client.engine.adopt(adoption).await?;
        Ok(Guard::new(grant, self.client.clone()))
    }

    /// [`adopt`](Lock::adopt) [without async](crate::blocking).
    pub fn adopt_blocking(&self, handover: &Handover) -> Result<Guard, Error> {
        blocking::wait(&self.client, self.adopt(handover))
    }

    /// Releases one hold of the named owner, for code that unlocks in another place than it locks.
    /// One of the owner's guards then has nothing left to release; after the last hold, none is
    /// valid any more.
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
        self.client.engine.release_by_owner(self.request.kind, self.request.name.clone(), owner).await
    }

    /// [`release`](Lock::release) [without async](crate::blocking).
    pub fn release_blocking(&self) -> Result<(), Error> {
        blocking::wait(&self.client, self.release())
    }

    /// Takes the lock away from `owner`, with all its holds: for a lock that is stuck. Where that
    /// owner still works, its next renewal, extend or release finds the lock lost; if `owner` is a
    /// named owner of this client, its guards are lost at once. A lock of another library's owner
    /// cannot be released by force: delete its key.
    ///
    /// # Cancel safety
    ///
    /// Once polled, it runs to its end in the background.
    ///
    /// # Errors
    ///
    /// [`Error::NotHeld`] when a majority says that this owner does not have it,
    /// [`Error::AnotherKind`] or [`Error::OtherPermits`] when it holds another kind of lock under
    /// this name, [`Error::NoQuorum`] or [`Error::Refused`] when too few masters answered to be
    /// sure that it is free, and [`Error::Invalid`].
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// # let guard = redlock.lock("invoice:42").acquire().await?;
    /// let stuck = redlock.lock("invoice:42");
    /// let holder = stuck.inspect().await?.holder().expect("somebody has it");
    /// # assert!(holder == guard.owner());
    /// stuck.force_release(&holder.owner.parse()?).await?;
    /// let free = stuck.try_acquire().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn force_release(&self, owner: &Owner) -> Result<(), Error> {
        let Request { name, kind, permits, .. } = &self.request;
        self.client.engine.break_lock(name.clone(), *owner, *kind, *permits).await
    }

    /// [`force_release`](Lock::force_release) [without async](crate::blocking).
    pub fn force_release_blocking(&self, owner: &Owner) -> Result<(), Error> {
        blocking::wait(&self.client, self.force_release(owner))
    }

    /// What the masters know of the lock's name, as [`Redlock::inspect`](crate::Redlock::inspect);
    /// also for a lock over several names, and for one in the layout of another library.
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
        let Request { name, kind, permits, .. } = &self.request;
        check_permits(*permits)?;
        let seen = self.client.engine.inspect(name.clone(), *kind).await?;
        Ok(Inspection::new(name.clone(), seen))
    }

    /// [`inspect`](Lock::inspect) [without async](crate::blocking).
    pub fn inspect_blocking(&self) -> Result<Inspection, Error> {
        blocking::wait(&self.client, self.inspect())
    }

    /// Whether a majority of the masters says that `owner` has the lock. The answer may have
    /// changed since they gave it.
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
        let engine = &self.client.engine;
        let Request { name, kind, permits, .. } = &self.request;
        let owner = engine.owner_on_masters(*kind, name, *owner);
        engine.is_held_by(name.clone(), *kind, *permits, owner).await
    }

    /// [`is_held_by`](Lock::is_held_by) [without async](crate::blocking).
    pub fn is_held_by_blocking(&self, owner: &Owner) -> Result<bool, Error> {
        blocking::wait(&self.client, self.is_held_by(owner))
    }

    /// How leases are renewed; `None` for a fixed one.
    fn renewal(&self) -> Result<Option<Arc<Renewal>>, Invalid> {
        self.renewal.for_ttl(self.request.ttl, self.client.engine.usual_renewal())
    }

    /// The owner of `owned_by`, or of `Owner::scope`; none for a semaphore.
    fn named_owner(&self) -> Result<Option<Owner>, Invalid> {
        match (self.request.permits, self.request.owner) {
            (Some(_), Some(owner)) => Err(Invalid::owned_permit(self.name(), owner)),
            (Some(_), None) => Ok(None),
            (None, owner) => Ok(owner.or_else(|| Owner::of_scope(self.client.engine.client()))),
        }
    }
}

/// `redlock.lock("invoice:42").await` is [`acquire`](Lock::acquire).
impl IntoFuture for Lock {
    type Output = Result<Guard, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let wait = self.request.wait;
        Box::pin(self.acquire_within(wait))
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { kind, name, ttl, wait, owner, .. } = &self.request;
        f.debug_struct("Lock")
            .field("kind", &kind.word())
            .field("name", name)
            .field("ttl", ttl)
            .field("wait", wait)
            .field("owner", owner)
            .finish_non_exhaustive()
    }
}
