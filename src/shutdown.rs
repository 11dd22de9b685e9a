//! The result of a shutdown.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::blocking;
use crate::client::Redlock;
use crate::error::Error;

/// The result of a [shutdown](crate::Redlock::shutdown): whether everything was done by its
/// deadline, and which masters have not confirmed it. It may be ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shutdown {
    /// The masters that have not confirmed every release and clean-up yet, in the order of the
    /// client's masters.
    pub unconfirmed: Vec<Unconfirmed>,
    pub(crate) is_complete: bool,
}

/// A master that has not confirmed everything.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unconfirmed {
    /// The master, as in its URL, without user and password.
    pub master: Arc<str>,
    /// How many releases and clean-ups it has not confirmed. Their entries there end with their
    /// TTL.
    pub left: usize,
}

impl Redlock {
    /// Refuses further acquires, ends those that wait, and waits up to `deadline` until every
    /// release under way has reached its masters. Guards stay valid, and can be extended and
    /// released as before.
    ///
    /// The result names the masters, such as dead ones, that have not confirmed everything by then.
    /// The rest goes on in the background while the process and a handle live; otherwise the
    /// entries end with their TTL.
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
        let engine = self.inner.engine.clone();
        self.inner.host.executor.spawn(async move {
            let in_time = tokio::time::timeout(deadline, engine.close()).await.is_ok();
            let _ = reply.send(in_time); // the caller may have gone
        });
        let is_complete = flushed.await.unwrap_or(false);
        let unconfirmed = self
            .inner
            .engine
            .unacknowledged()
            .map(|(master, left)| Unconfirmed { master: master.clone(), left });
        Shutdown { unconfirmed: unconfirmed.collect(), is_complete }
    }

    /// [`shutdown`](Redlock::shutdown) [without async](crate::blocking).
    pub fn shutdown_blocking(&self, deadline: Duration) -> Result<Shutdown, Error> {
        blocking::wait(&self.inner, async { Ok(self.shutdown(deadline).await) })
    }
}

impl Shutdown {
    /// Whether by the deadline every release and clean-up was confirmed, or no longer needed
    /// because the TTL was over, and no other operation was under way.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }
}

impl fmt::Display for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.unconfirmed {
            _ if self.is_complete => f.write_str("every master has confirmed every release and clean-up"),
            [] => f.write_str("operations are still under way"),
            [first, others @ ..] => {
                first.fmt(f)?;
                others.iter().try_for_each(|unconfirmed| write!(f, "; {unconfirmed}"))
            }
        }
    }
}

impl fmt::Display for Unconfirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has not confirmed {} releases, which end with their TTL", self.master, self.left)
    }
}
