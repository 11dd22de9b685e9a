//! Locks in the layouts of other libraries: [`Redlock::plain_mutex`](crate::Redlock::plain_mutex)
//! and [`Redlock::redisson_lock`](crate::Redlock::redisson_lock).
//!
//! These layouts have no place for a fencing token or a label. In all else such an [`UnfencedLock`]
//! is like [`Lock`](crate::Lock), and its [`UnfencedGuard`] like [`Guard`](crate::Guard): the same
//! waiting, wake-ups, renewal and errors.

use std::pin::Pin;
use std::time::Duration;

use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::fence::FencingToken;
use crate::handover::Handover;
use crate::inspection::Inspection;
use crate::owner::Owner;
use crate::time::Moment;
use crate::vote::Vote;

/// A lock in the layout of another library, with the options of the acquires to come.
///
/// Any [`Lock`](crate::Lock) converts to this type, for code that takes locks of all
/// kinds.
///
/// # Examples
///
/// ```
/// # quorate_testkit::doc(|masters| async move {
/// use quorate::compat;
/// let redlock = quorate::Redlock::builder().masters(masters).build()?;
/// let locks: [compat::UnfencedLock; 2] = [redlock.lock("invoice:42").into(), redlock.plain_mutex("invoice:42")];
/// for lock in locks {
///     lock.acquire().await?.release().await?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) });
/// ```
#[derive(Clone, Debug)]
#[must_use = "a lock is not held before it is acquired"]
pub struct UnfencedLock(pub(crate) crate::Lock);

/// One hold of an [`UnfencedLock`], until it is released or lost. Dropping it releases it in the
/// background.
#[derive(Debug)]
#[must_use = "the lock is released when its guard is dropped, which here is at once"]
pub struct UnfencedGuard(crate::Guard);

impl From<crate::Lock> for UnfencedLock {
    fn from(lock: crate::Lock) -> Self {
        Self(lock)
    }
}

impl From<crate::Guard> for UnfencedGuard {
    fn from(guard: crate::Guard) -> Self {
        Self(guard)
    }
}

/// The methods that do what the type in the crate's root does.
macro_rules! forwarded {
    ($of:literal: $($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[doc = concat!("As [`", $of, "::", stringify!($name), "`](crate::", $of, "::", stringify!($name), ").")]
        pub fn $name(self, $($argument: $type),*) -> Self {
            Self(self.0.$name($($argument),*))
        }
    )*};
    ($of:literal: $($name:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {$(
        #[doc = concat!("As [`", $of, "::", stringify!($name), "`](crate::", $of, "::", stringify!($name), ").")]
        pub fn $name(&self, $($argument: $type),*) -> $result {
            self.0.$name($($argument),*)
        }
    )*};
    ($of:literal: $(async $name:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {$(
        #[doc = concat!("As [`", $of, "::", stringify!($name), "`](crate::", $of, "::", stringify!($name), ").")]
        pub async fn $name(&self, $($argument: $type),*) -> Result<$result, Error> {
            self.0.$name($($argument),*).await
        }
    )*};
}

impl UnfencedLock {
    forwarded! { "Lock":
        ttl(ttl: Duration);
        no_renewal();
        lock_delay(delay: Duration);
        renew_every(interval: Duration);
        renew_at_most(times: u32);
        hold_at_most(time: Duration);
        heartbeat(interval: Duration);
        wait(wait: Duration);
        poll_every(interval: Duration, tries: u32);
        cancelled_by(token: CancellationToken);
        owned_by(owner: &Owner);
    }

    forwarded! { "Lock":
        name(&self) -> &str;
        release_blocking(&self) -> Result<(), Error>;
        force_release_blocking(&self, owner: &Owner) -> Result<(), Error>;
        inspect_blocking(&self) -> Result<Inspection, Error>;
        is_held_by_blocking(&self, owner: &Owner) -> Result<bool, Error>;
    }

    forwarded! { "Lock":
        async release(&self) -> ();
        async force_release(&self, owner: &Owner) -> ();
        async inspect(&self) -> Inspection;
        async is_held_by(&self, owner: &Owner) -> bool;
    }

    /// As [`Lock::try_acquire`](crate::Lock::try_acquire).
    pub fn try_acquire(&self) -> impl Future<Output = Result<UnfencedGuard, Error>> + Send + use<> {
        self.0.try_acquire().map(|granted| granted.map(UnfencedGuard))
    }

    /// As [`Lock::try_acquire_blocking`](crate::Lock::try_acquire_blocking).
    pub fn try_acquire_blocking(&self) -> Result<UnfencedGuard, Error> {
        self.0.try_acquire_blocking().map(UnfencedGuard)
    }

    /// As [`Lock::acquire`](crate::Lock::acquire).
    pub fn acquire(&self) -> impl Future<Output = Result<UnfencedGuard, Error>> + Send + use<> {
        self.0.acquire().map(|granted| granted.map(UnfencedGuard))
    }

    /// As [`Lock::acquire_blocking`](crate::Lock::acquire_blocking).
    pub fn acquire_blocking(&self) -> Result<UnfencedGuard, Error> {
        self.0.acquire_blocking().map(UnfencedGuard)
    }

    /// As [`Lock::adopt`](crate::Lock::adopt).
    pub async fn adopt(&self, handover: &Handover) -> Result<UnfencedGuard, Error> {
        self.0.adopt(handover).await.map(UnfencedGuard)
    }

    /// As [`Lock::adopt_blocking`](crate::Lock::adopt_blocking).
    pub fn adopt_blocking(&self, handover: &Handover) -> Result<UnfencedGuard, Error> {
        self.0.adopt_blocking(handover).map(UnfencedGuard)
    }
}

impl IntoFuture for UnfencedLock {
    type Output = Result<UnfencedGuard, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquire())
    }
}

impl UnfencedGuard {
    forwarded! { "Guard":
        name(&self) -> &str;
        permit(&self) -> Option<u32>;
        owner(&self) -> Owner;
        votes(&self) -> Vec<Vote>;
        deadline(&self) -> Moment;
        remaining(&self) -> Duration;
        is_valid(&self) -> bool;
        lost(&self) -> impl Future<Output = Error> + Send + use<>;
        lost_token(&self) -> CancellationToken;
        sleep_blocking(&self, time: Duration) -> Result<(), Error>;
        touch(&self) -> ();
        renewal_error(&self) -> Option<Error>;
        extend_blocking(&self, ttl: Duration) -> Result<(), Error>;
        hand_over_blocking(&self) -> Result<Handover, Error>;
    }

    forwarded! { "Guard":
        async extend(&self, ttl: Duration) -> ();
        async hand_over(&self) -> Handover;
    }

    /// The fencing token, if it has one: only the guard of a converted lock has.
    pub fn fencing_token_if_any(&self) -> Option<FencingToken> {
        self.0.fencing_token_if_any()
    }

    /// As [`Guard::run`](crate::Guard::run).
    pub async fn run<W: Future>(&self, work: W) -> Result<W::Output, Error> {
        self.0.run(work).await
    }

    /// As [`Guard::release`](crate::Guard::release).
    pub async fn release(self) -> Result<(), Error> {
        self.0.release().await
    }

    /// As [`Guard::release_blocking`](crate::Guard::release_blocking).
    pub fn release_blocking(self) -> Result<(), Error> {
        self.0.release_blocking()
    }
}
