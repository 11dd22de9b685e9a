//! What a proxy and its connections share.

use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::cut::Cut;
use super::strobe::Strobe;
use super::weather::Weather;

/// What the connections of a proxy look at.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) seed: u64,
    pub(super) weather: watch::Sender<Weather>,
    pub(super) server: Mutex<SocketAddr>,
    pub(super) ordered: Mutex<Cut>,
    pub(super) strobe: Mutex<Option<Strobe>>,
    pub(super) cuts: AtomicUsize,
    pub(super) connections: AtomicUsize,
}

impl Shared {
    pub(super) fn server(&self) -> MutexGuard<'_, SocketAddr> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ordered(&self) -> MutexGuard<'_, Cut> {
        self.ordered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn strobe(&self) -> MutexGuard<'_, Option<Strobe>> {
        self.strobe.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
