//! A master that is a Redis or Valkey server.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::link::{Link, Parts};
use super::{Call, Ear, Failure, Master, Terms, Value, listen};
use crate::vote::Silence;

pub(crate) use super::session::Roster;

/// A Redis server, reached over one multiplexed connection that a supervisor keeps open.
pub(crate) struct RedisMaster {
    name: Arc<str>,
    parts: Arc<Parts>,
    link: Arc<Link>,
}

impl RedisMaster {
    /// A master whose connection is opened by the first call, and kept on `runtime` until `closing` is cancelled.
    pub(crate) fn new(parts: Parts, runtime: &tokio::runtime::Handle, closing: CancellationToken) -> Self {
        let name = parts.address.name().clone();
        let link = Arc::new(Link::new(parts.patience));
        let parts = Arc::new(parts);
        let (supervised, its) = (link.clone(), parts.clone());
        runtime.spawn(async move { closing.run_until_cancelled(supervised.supervise(&its)).await });
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

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Value, Failure>> {
        let link = self.link.clone();
        async move {
            match &call.terms {
                Terms::Vote { timeout, .. } => vote(&link, &call, *timeout).await,
                Terms::CleanUp => link.for_clean_up().await?.run(&call).await,
            }
        }
        .boxed()
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        let link = self.link.clone();
        async move { link.ready().await }.boxed()
    }

    fn listen(&self, channel: Arc<str>, ear: Ear) -> BoxFuture<'static, ()> {
        listen::listen(self.parts.clone(), channel, ear).boxed()
    }
}

async fn vote(link: &Link, call: &Call, timeout: Duration) -> Result<Value, Failure> {
    let mut patience = pin!(tokio::time::sleep(timeout));
    let session = tokio::select! {
        biased;
        session = link.for_vote() => session?,
        () = &mut patience => return Err(link.not_opened_in(timeout)),
    };
    if call.terms.withdrawn() {
        return Err(Failure::Unreachable("it was given up before it could be sent".into()));
    }
    tokio::select! {
        biased;
        answer = session.run(call) => answer,
        () = &mut patience => {
            link.unanswered_in(timeout);
            Err(Failure::Unknown(Silence::TimedOut))
        }
    }
}
