//! Several embedded masters at once.

use std::ops::Index;
use std::sync::Arc;

use quorate::seam::Master;

use super::master::EmbeddedMaster;
use super::server::EmbeddedServer;
use super::wall_clock::WallClock;

/// Independent embedded servers, to be the masters of one client.
///
/// # Examples
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use quorate::Redlock;
/// use quorate_testkit::EmbeddedMasters;
///
/// let embedded = EmbeddedMasters::new(3);
/// let redlock = Redlock::builder().masters(&embedded).build()?;
/// embedded[0].set_reachable(false);
/// let guard = redlock.lock("invoice:42").acquire().await?;
/// assert_eq!(embedded.keys().len(), 2); // both others had to grant it
/// guard.release().await?;
/// # Ok::<(), quorate::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EmbeddedMasters(Vec<Arc<EmbeddedMaster>>);

impl EmbeddedMasters {
    /// `count` empty servers.
    pub fn new(count: usize) -> Self {
        Self::of((0..count).map(EmbeddedServer::new))
    }

    /// The same, with a wall clock of their own, in microseconds since 1970: what they expire keys
    /// by.
    pub fn with_clock(count: usize, clock: WallClock) -> Self {
        Self::of((0..count).map(|number| EmbeddedServer::with_clock(number, clock.clone())))
    }

    fn of(servers: impl Iterator<Item = EmbeddedServer>) -> Self {
        Self(servers.map(|server| Arc::new(EmbeddedMaster::new(server))).collect())
    }

    /// What one client is built with; `builder.masters(&embedded)` does the same.
    pub fn masters(&self) -> Vec<Arc<dyn Master>> {
        self.0.iter().map(EmbeddedMaster::master).collect()
    }

    /// The masters.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &EmbeddedMaster> {
        self.0.iter().map(|master| &**master)
    }

    /// Every key on every server that [is in use](crate::in_use), with the server's place.
    ///
    /// An acquire or a release returns with a majority, and the last master may still be at work:
    /// wait with [`eventually`](crate::eventually), or for
    /// [`Redlock::shutdown`](quorate::Redlock::shutdown).
    pub fn keys(&self) -> Vec<(usize, String)> {
        let keys = self.iter().enumerate();
        keys.flat_map(|(i, master)| master.server().keys_in_use().into_iter().map(move |key| (i, key)))
            .collect()
    }

    /// `Ok` when there is no key on any server, and otherwise the keys. See
    /// [`keys`](EmbeddedMasters::keys) for when to ask.
    ///
    /// # Errors
    ///
    /// The keys that are there.
    pub fn empty(&self) -> Result<(), Vec<(usize, String)>> {
        let keys = self.keys();
        if keys.is_empty() { Ok(()) } else { Err(keys) }
    }
}

impl IntoIterator for &EmbeddedMasters {
    type Item = Arc<dyn Master>;
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.masters().into_iter()
    }
}

impl Index<usize> for EmbeddedMasters {
    type Output = EmbeddedMaster;

    fn index(&self, place: usize) -> &EmbeddedMaster {
        &self.0[place]
    }
}
