//! A master that is a Redis or Valkey server.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::link::{Link, Parts};
use super::{Call, Ear, Master, Reply, listen};
use crate::executor::Executor;

pub(crate) use super::session::Roster;

/// A Redis server, reached over one multiplexed connection that a supervisor keeps open.
pub(crate) struct RedisMaster {
    name: Arc<str>,
    parts: Arc<Parts>,
    link: Arc<Link>,
}

impl RedisMaster {
    /// A master whose connection is opened by the first call, and kept by `executor` until `closing` is cancelled.
    pub(crate) fn new(parts: Parts, executor: &Executor, closing: CancellationToken) -> Self {
        let name = parts.address.name().clone();
        let link = Arc::new(Link::new(parts.patience));
        let parts = Arc::new(parts);
        let (keeper, its) = (Keeper(link.clone()), parts.clone());
        executor.spawn(async move {
            closing.run_until_cancelled(keeper.0.supervise(&its)).await;
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

    fn call(&self, call: Call, reply: Reply) {
        self.link.call(call, reply);
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        let link = self.link.clone();
        async move { link.ready().await }.boxed()
    }

    fn listen(&self, channel: Arc<str>, ear: Ear) -> BoxFuture<'static, ()> {
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
