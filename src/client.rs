//! The handle to a set of masters.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::blocking;
use crate::builder::Builder;
use crate::clock::Moment;
use crate::coordinator::Coordinator;
use crate::error::Error;
use crate::inner::Inner;
use crate::lock::Election;
use crate::owner::Owner;
use crate::shutdown::{Shutdown, Untold};
use crate::trust::MasterStatus;

/// A client of N independent masters, and where locks come from. Clones share everything.
///
/// It keeps one background thread, which owns one connection to each master. Its futures therefore run on any
/// executor, and a guard can be dropped on any thread.
///
/// Dropping the last handle, guards included, ends the thread as soon as every release has reached its masters, or
/// after five seconds. Where releases are under way the drop waits for them, 250 ms at most; to wait longer, or to
/// know how it went, call [`shutdown`](Redlock::shutdown) before.
#[derive(Clone)]
pub struct Redlock {
    inner: Arc<Inner>,
}

impl Redlock {
    /// Begins a client. See [`Builder`].
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The client that the environment describes, by the variables which the command reads too: see [`env`](crate::env). For
    /// more settings begin with [`Builder::from_env`].
    ///
    /// # Errors
    ///
    /// [`Invalid::Environment`](crate::Invalid::Environment), which names the variable, and those of [`Builder::build`].
    ///
    /// # Examples
    ///
    /// ```
    /// // QUORATE_MASTERS=redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
    /// match quorate::Redlock::from_env() {
    ///     Ok(redlock) => println!("{} masters", redlock.master_status().len()),
    ///     Err(error) => assert!(error.to_string().contains("QUORATE_MASTERS")), // it is not set
    /// }
    /// ```
    pub fn from_env() -> Result<Self, Error> {
        Builder::from_env()?.build()
    }

    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    /// The election of this name: one leader at a time among all that campaign in it. Nothing is sent, or checked, before
    /// somebody campaigns or observes.
    ///
    /// Names have 1 to [`MAX_NAME`](crate::config::MAX_NAME) bytes. An election and a [`lock`](Redlock::lock) of one name are
    /// the same to the masters: who leads holds the lock.
    pub fn election(&self, name: impl AsRef<str>) -> Election {
        Election::new(self.lock(name))
    }

    /// How each master stands with this client: whether it may vote, and if not, why and for how long; whether it can be
    /// reached, since when, and how fast it answered last. Nothing is sent: it is what the last connection to each of them
    /// found. A master that nobody calls, and that falls silent without closing the connection, is not noticed before the next
    /// call.
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
        self.engine().standings()
    }

    /// A new owner, to hold locks with more than once.
    ///
    /// An acquire that names an owner re-enters what that owner holds already. Its guards share one lease, each is
    /// one hold, and the lock is free when the last of them is released.
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

    /// Refuses every further acquire, ends those that wait, and lets every release that is under way reach its masters,
    /// for `deadline` at most. Guards that are still held stay valid, and can be extended and released as before.
    ///
    /// It tells which masters did not hear of everything by then, a dead one for example. What is left goes on in the
    /// background while the process and a handle live; otherwise it ends with its TTL.
    ///
    /// # Cancel safety
    ///
    /// Once polled, the client is shut down; dropping the future only stops the waiting.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// drop(redlock.lock("invoice:42").acquire().await?); // released in the background
    /// let shutdown = redlock.shutdown(std::time::Duration::from_secs(1)).await;
    /// assert!(shutdown.is_complete(), "{shutdown}"); // a line for the log, where it is not
    /// assert!(redlock.lock("invoice:42").acquire().await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub async fn shutdown(&self, deadline: Duration) -> Shutdown {
        let (reply, flushed) = oneshot::channel();
        let engine = self.engine().clone();
        self.inner.executor().spawn(async move {
            let in_time = tokio::time::timeout(deadline, engine.close()).await.is_ok();
            let _ = reply.send(in_time); // the caller may have gone
        });
        let is_complete = flushed.await.unwrap_or(false);
        let untold = self.engine().untold().map(|(master, left)| Untold { master: master.clone(), left });
        Shutdown { untold: untold.collect(), is_complete }
    }

    /// [`shutdown`](Redlock::shutdown) [without async](crate::blocking).
    pub fn shutdown_blocking(&self, deadline: Duration) -> Result<Shutdown, Error> {
        blocking::wait(&self.inner, async { Ok(self.shutdown(deadline).await) })
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    fn engine(&self) -> &Arc<Coordinator> {
        self.inner.engine()
    }
}

impl fmt::Debug for Redlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redlock").field(&self.inner).finish()
    }
}
