//! A master that is a Redis or Valkey server.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::call::Call;
use super::contact::Contact;
use super::contract::Master;
use super::driver::Link;
use super::listen;
use super::session::LinkSettings;
use super::subscriber::Subscriber;
use crate::executor::Executor;
use crate::trust::Handshake;

/// A Redis server, reached over one multiplexed connection that is kept open.
pub(crate) struct RedisMaster {
    name: Arc<str>,
    parts: Arc<LinkSettings>,
    link: Arc<Link>,
}

impl RedisMaster {
    /// A master whose connection is opened by the first call, and kept by `executor` until
    /// `closing` is cancelled.
    pub(crate) fn new(parts: LinkSettings, executor: &Executor, closing: CancellationToken) -> Self {
        let name = parts.address.name().clone();
        let link = Arc::new(Link::new(&parts));
        let parts = Arc::new(parts);
        let keeper = Keeper(link.clone());
        let its = parts.clone();
        executor.spawn(async move {
            closing.run_until_cancelled(keeper.0.drive(&its)).await;
        });
        Self { name, parts, link }
    }
}

impl fmt::Debug for RedisMaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisMaster").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Master for RedisMaster {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn introduce(&self, handshake: Handshake) {
        let _ = self.parts.handshake.set(handshake); // it is told once
    }

    fn call(&self, call: Arc<Call>, index: usize) {
        self.link.call(call, index);
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        let link = self.link.clone();
        async move { link.ready().await }.boxed()
    }

    fn contact(&self) -> Option<Contact> {
        self.link.contact()
    }

    fn listen(&self, channel: Arc<str>, ear: Subscriber) -> BoxFuture<'static, ()> {
        listen::listen(self.parts.clone(), channel, ear).boxed()
    }
}

/// Ends what is under way when the runtime does.
struct Keeper(Arc<Link>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.close();
    }
}
