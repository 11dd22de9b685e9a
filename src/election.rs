//! Leader election: a candidate campaigns for the lock of the election's name, leads while it holds
//! it, and resigns.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::blocking;
use crate::config::{self, DEFAULT_LOOK, MAX_WAIT};
use crate::error::Error;
use crate::fence::FencingToken;
use crate::guard::Guard;
use crate::lock::Lock;
use crate::observer::{self, Observed, Observer};
use crate::owner::Owner;

/// An election by its name, with the options of the campaigns to come. It holds nothing; a
/// [`Leadership`] does.
///
/// It is the [`Lock`] of this name: at most one candidate leads at a time, a candidate waits for
/// its turn without limit, and others can [`observe`](Election::observe) who leads. Every campaign
/// is a candidate of its own: it ignores an [`Owner::scope`]. `quorate status` shows the leader,
/// and [`Lock::force_release`] deposes it.
///
/// # Examples
///
/// ```
/// # async fn schedule() -> Result<(), quorate::Error> { Ok(()) }
/// # quorate_testkit::doc(|masters| async move {
/// let redlock = quorate::Redlock::builder().masters(masters).build()?;
/// let first = redlock.election("scheduler").campaign().await?; // waits until it leads
/// let term = first.term();
/// first.run(schedule()).await??; // nobody else leads; the work is dropped before that could change
/// first.resign().await?; // or drop it: it resigns in the background
/// let second = redlock.election("scheduler").campaign().await?;
/// assert!(second.term() > term);
/// # Ok::<(), Box<dyn std::error::Error>>(()) });
/// ```
#[derive(Clone, Debug)]
#[must_use = "nobody is elected before somebody campaigns"]
pub struct Election {
    lock: Lock,
    /// Without limit if `None`.
    wait: Option<Duration>,
    look_every: Duration,
}

impl Election {
    pub(crate) fn new(lock: Lock) -> Self {
        Self { lock, wait: None, look_every: DEFAULT_LOOK }
    }

    /// How long a leader that dies blocks the others; see [`Lock::ttl`]. The default is the
    /// client's.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.lock = self.lock.ttl(ttl);
        self
    }

    /// How long a campaign waits, up to [24 hours](crate::config::MAX_WAIT); zero means one try.
    /// The default is no limit: a candidate has nothing better to do.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// How long nobody leads after a leader that did not resign; see [`Lock::lock_delay`]. The
    /// default is none.
    pub fn lock_delay(mut self, delay: Duration) -> Self {
        self.lock = self.lock.lock_delay(delay);
        self
    }

    /// The label that others see beside the leader; see [`Lock::label`].
    pub fn label(mut self, label: impl AsRef<str>) -> Self {
        self.lock = self.lock.label(label);
        self
    }

    /// Ends [`campaign`](Election::campaign) and [`lead`](Election::lead) with [`Error::Cancelled`]
    /// when `token` is cancelled.
    pub fn cancelled_by(mut self, token: CancellationToken) -> Self {
        self.lock = self.lock.cancelled_by(token);
        self
    }

    /// How often an [`Observer`] looks, from [10 ms](crate::config::MIN_LOOK) to
    /// [24 hours](crate::config::MAX_LOOK). The default is [1 s](crate::config::DEFAULT_LOOK).
    pub fn look_every(mut self, interval: Duration) -> Self {
        self.look_every = interval;
        self
    }

    /// The election's name.
    pub fn name(&self) -> &str {
        self.lock.name()
    }

    /// Waits until it leads: without limit, through faults of the masters that may pass, or for the
    /// [`wait`](Election::wait). Candidates queue as the waiters of [`Lock::acquire`] do, and the
    /// future borrows nothing either.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, at any moment, ends the candidacy and leaves nothing behind, as for
    /// [`Lock::try_acquire`].
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], [`Error::Closed`], [`Error::Cancelled`], [`Error::Refused`] when too few
    /// masters are left because others refuse permanently, and [`Error::QueueFull`] when too many
    /// candidates of this client wait. With a [`wait`](Election::wait) also the others of
    /// [`Lock::acquire`].
    ///
    /// # Examples
    ///
    /// See [`Election`].
    pub fn campaign(&self) -> impl Future<Output = Result<Leadership, Error>> + Send + use<> {
        let lock = self.lock.clone();
        let wait = self.wait;
        async move {
            loop {
                match lock.clone().acquire_as(None, wait.unwrap_or(MAX_WAIT)).await {
                    Ok(guard) => return Ok(Leadership { guard }),
                    // The engine's wait is limited, and a candidacy is not.
                    Err(Error::WaitTimedOut { .. } | Error::NoQuorum { .. } | Error::Lost { .. })
                        if wait.is_none() => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// [`campaign`](Election::campaign) [without async](crate::blocking).
    pub fn campaign_blocking(&self) -> Result<Leadership, Error> {
        blocking::wait(&self.lock.client, self.campaign())
    }

    /// Campaigns, runs `work` while it leads, resigns, and returns the result of `work`. If the
    /// leadership is lost, `work` is dropped before anybody else can lead, provided that it yields,
    /// and a new campaign begins, with new work.
    ///
    /// Work that ends after the lease did counts as lost, and begins again as well. A panic of
    /// `work` goes through, and resigns in the background. If `work` shares the [`Leadership`] with
    /// other tasks, they have to drop it when `work` ends: this resigns only then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work` and resigns in the background. To wait for the resignation,
    /// use [`cancelled_by`](Election::cancelled_by).
    ///
    /// # Errors
    ///
    /// Those of [`campaign`](Election::campaign). On [`Error::Cancelled`] `work` was dropped, if it
    /// ran, and this has resigned. The result of work that can fail is within this one, as for
    /// [`Guard::run`].
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let term = redlock.election("scheduler").lead(|leadership| async move {
    ///     // Schedule, with leadership.term() on whatever is written; return in order to stop leading.
    ///     leadership.term()
    /// }).await?;
    /// assert!(term.get() > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn lead<W: Future>(
        &self,
        mut work: impl FnMut(Arc<Leadership>) -> W,
    ) -> Result<W::Output, Error> {
        loop {
            let leadership = Arc::new(self.campaign().await?);
            let work = work(leadership.clone());
            let ended = tokio::select! {
                biased;
                () = self.cancelled() => Err(Error::Cancelled { name: self.lock.request.name.clone() }),
                ended = leadership.run(work) => ended,
            };
            if let Err(Error::Lost { .. }) = ended {
                continue;
            }
            // If it fails, it goes on in the background, or the lease runs out: the work is over
            // either way.
            if let Some(leadership) = Arc::into_inner(leadership) {
                let _ = leadership.resign().await;
            }
            return ended;
        }
    }

    async fn cancelled(&self) {
        match &self.lock.request.cancelled {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Asks every master who leads, and waits for each within its time-out. The answer may have
    /// changed since they gave it.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] and [`Error::Closed`]. If too few masters answer, the result is
    /// [`Observed::Unknown`]; [`Lock::inspect`] has each master's answer.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use quorate::Observed;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// assert_eq!(redlock.election("scheduler").leader().await?, Observed::Nobody);
    /// let leadership = redlock.election("scheduler").campaign().await?;
    /// let Observed::Leader(leader) = redlock.election("scheduler").leader().await? else { panic!() };
    /// assert_eq!(*leader.owner, *leadership.owner().to_string());
    /// assert_eq!(leader.term, Some(leadership.term()));
    /// assert!(leader.is_ours); // a candidate of this very client
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn leader(&self) -> Result<Observed, Error> {
        observer::look(&self.lock.client.engine, &self.lock.request.name).await
    }

    /// [`leader`](Election::leader) [without async](crate::blocking).
    pub fn leader_blocking(&self) -> Result<Observed, Error> {
        blocking::wait(&self.lock.client, self.leader())
    }

    /// Follows who leads, from now on: see [`Observer`].
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a name or an interval outside its limits.
    ///
    /// # Examples
    ///
    /// See [`Observer`].
    pub fn observe(&self) -> Result<Observer, Error> {
        config::check_name(&self.lock.request.name)?;
        config::check_look(self.look_every)?;
        Ok(Observer::begin(&self.lock.client, &self.lock.request.name, self.look_every))
    }
}

/// The leader's [`Guard`] of the election's lock, until it resigns or the lease is lost.
///
/// Dropping it resigns in the background, from any thread, with or without a runtime. If the
/// process dies, the next candidate leads after the TTL.
#[derive(Debug)]
#[must_use = "a leader that is dropped resigns, which here is at once"]
pub struct Leadership {
    guard: Guard,
}

impl Leadership {
    /// The number of this term: its [`Guard::fencing_token`], higher than that of every earlier
    /// term, so that a resource can refuse the writes of an earlier leader: see
    /// [`fence`](crate::fence). It rises with the time, and not by one.
    pub fn term(&self) -> FencingToken {
        self.guard.fencing_token()
    }

    /// Who leads. As text it is what an [`Observer`] sees as
    /// [`Leader::owner`](crate::Leader::owner).
    pub fn owner(&self) -> Owner {
        self.guard.owner()
    }

    /// Whether it still leads, by the clock now.
    pub fn is_leader(&self) -> bool {
        self.guard.is_valid()
    }

    /// How long it still leads if no renewal succeeds any more, by the clock now; zero when it does
    /// not lead.
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// Waits until the leadership is lost, and returns how, before anybody else can lead. The
    /// future borrows nothing: see [`Guard::lost`].
    ///
    /// # Cancel safety
    ///
    /// Nothing changes, and it can be called again.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use std::time::Duration;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let leadership = redlock.election("scheduler").ttl(Duration::from_millis(300)).campaign().await?;
    /// redlock.lock("scheduler").force_release(&leadership.owner()).await?; // somebody deposes it
    /// assert!(matches!(leadership.lost().await, quorate::Error::Lost { .. })); // at its next renewal
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn lost(&self) -> impl Future<Output = Error> + Send + use<> {
        self.guard.lost()
    }

    /// A token for work in other tasks, cancelled when the leadership is lost or resigned. See
    /// [`Guard::lost_token`].
    pub fn lost_token(&self) -> CancellationToken {
        self.guard.lost_token()
    }

    /// Runs `work` and returns its result. If the leadership is lost first, `work` is dropped
    /// before anybody else can lead, provided that it yields.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `work`; the leadership stays as it is.
    ///
    /// # Errors
    ///
    /// As for [`Guard::run`].
    ///
    /// # Examples
    ///
    /// See [`Election`].
    pub async fn run<W: Future>(&self, work: W) -> Result<W::Output, Error> {
        self.guard.run(work).await
    }

    /// Sleeps for `time` while it leads, [without async](crate::blocking), and fails at once with
    /// [`Error::Lost`] when the leadership is lost: see [`Guard::sleep_blocking`].
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc_blocking(|masters| {
    /// # use std::time::Duration;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let leadership = redlock.election("scheduler").campaign_blocking()?; // waits until it leads
    /// for _ in 0..3 {
    ///     assert!(leadership.is_leader()); // before each step of the work
    ///     leadership.sleep_blocking(Duration::from_millis(20))?; // nobody else leads yet, should it be lost
    /// }
    /// leadership.resign_blocking()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn sleep_blocking(&self, time: Duration) -> Result<(), Error> {
        self.guard.sleep_blocking(time)
    }

    /// Stops leading, so that the next candidate can. Returns when a majority has confirmed it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future, polled or not, resigns in the background.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] when it no longer led, and [`Error::ReleaseUnconfirmed`] when too few
    /// masters confirmed it in time: it goes on in the background, as for [`Guard::release`].
    ///
    /// # Examples
    ///
    /// See [`Election`].
    pub async fn resign(self) -> Result<(), Error> {
        self.guard.release().await
    }

    /// [`resign`](Leadership::resign) [without async](crate::blocking).
    pub fn resign_blocking(self) -> Result<(), Error> {
        self.guard.release_blocking()
    }

    /// The guard itself, for its other methods.
    pub fn into_guard(self) -> Guard {
        self.guard
    }
}
