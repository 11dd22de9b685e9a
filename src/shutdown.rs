//! What a shutdown came to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::blocking;
use crate::client::Redlock;
use crate::error::Error;

/// What a [shutdown](crate::Redlock::shutdown) came to: whether everything was done by its
/// deadline, and what masters were not told. There is no need to look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shutdown {
    /// The masters that have not confirmed every release and clean-up yet, in the order of the
    /// client's masters.
    pub untold: Vec<Untold>,
    pub(crate) is_complete: bool,
}

/// A master that was not told everything.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Untold {
    /// The master, as in its URL, without user and password.
    pub master: Arc<str>,
    /// How many releases and clean-ups it has not confirmed. What it has of them ends with its TTL.
    pub left: usize,
}

impl Redlock {
    /// Refuses every further acquire, ends those that wait, and lets every release that is under
    /// way reach its masters, for `deadline` at most. Guards that are still held stay valid, and
    /// can be extended and released as before.
    ///
    /// It tells which masters did not hear of everything by then, a dead one for example. What is
    /// left goes on in the background while the process and a handle live; otherwise it ends with
    /// its TTL.
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
        let engine = self.inner().engine().clone();
        self.inner().executor().spawn(async move {
            let in_time = tokio::time::timeout(deadline, engine.close()).await.is_ok();
            let _ = reply.send(in_time); // the caller may have gone
        });
        let is_complete = flushed.await.unwrap_or(false);
        let untold = self
            .inner()
            .engine()
            .unacknowledged()
            .map(|(master, left)| Untold { master: master.clone(), left });
        Shutdown { untold: untold.collect(), is_complete }
    }

    /// [`shutdown`](Redlock::shutdown) [without async](crate::blocking).
    pub fn shutdown_blocking(&self, deadline: Duration) -> Result<Shutdown, Error> {
        blocking::wait(self.inner(), async { Ok(self.shutdown(deadline).await) })
    }
}

impl Shutdown {
    /// Whether every release and clean-up reached its masters by the deadline, or was not needed
    /// any more because the TTL was over, and no other operation was under way.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }
}

impl fmt::Display for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.untold {
            _ if self.is_complete => f.write_str("every master was told what there was to tell"),
            [] => f.write_str("operations are still under way"),
            [first, others @ ..] => {
                first.fmt(f)?;
                others.iter().try_for_each(|untold| write!(f, "; {untold}"))
            }
        }
    }
}

impl fmt::Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has not confirmed {} releases, which end with their TTL", self.master, self.left)
    }
}
