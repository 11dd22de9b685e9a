//! A master that is a Redis or Valkey server.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::call::Call;
use super::contract::{Master, Subscriber};
use super::driver::LinkDriver;
use super::listen;
use super::session::LinkSettings;
use crate::executor::Executor;
use crate::trust::{Contact, Handshake};

/// A Redis server: one connection for all calls, kept open, and one for each channel it listens on.
pub(crate) struct RedisMaster {
    name: Arc<str>,
    settings: Arc<LinkSettings>,
    link: Arc<LinkDriver>,
}

impl RedisMaster {
    /// A master whose connection is opened when it is first needed. `executor` runs its I/O task
    /// until `closing` is cancelled.
    pub(crate) fn new(settings: LinkSettings, executor: &Executor, closing: CancellationToken) -> Self {
        let name = settings.address.name().clone();
        let link = Arc::new(LinkDriver::new(&settings));
        let settings = Arc::new(settings);
        let closes = CloseOnDrop(link.clone());
        let of_task = settings.clone();
        executor.spawn(async move {
            closing.run_until_cancelled(closes.0.drive(&of_task)).await;
        });
        Self { name, settings, link }
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
        let _ = self.settings.handshake.set(handshake); // called once
    }

    fn call(&self, call: Arc<Call>, index: usize) {
        self.link.call(call, index);
    }

    fn connect_now(&self) {
        self.link.connect_now();
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        let link = self.link.clone();
        async move { link.ready().await }.boxed()
    }

    fn contact(&self) -> Option<Contact> {
        self.link.contact()
    }

    fn listen(&self, channel: Arc<str>, subscriber: Subscriber) -> BoxFuture<'static, ()> {
        listen::listen(self.settings.clone(), channel, subscriber).boxed()
    }
}

/// Closes the link when its I/O task ends, also when the runtime drops that.
struct CloseOnDrop(Arc<LinkDriver>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
