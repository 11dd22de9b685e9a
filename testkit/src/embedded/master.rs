//! An embedded server as a client's master.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use quorate::seam::{Call, Ear, Failure, Heard, Master, Reply};
use tokio::sync::watch;

use super::server::EmbeddedServer;

/// A master that carries a call out at once, on the thread that makes it, and tells the answer there. So there is nothing
/// for time-outs to do, and calls run in the order in which they are made.
#[derive(Debug)]
pub struct EmbeddedMaster {
    name: Arc<str>,
    server: EmbeddedServer,
    reachable: watch::Sender<bool>,
}

impl EmbeddedMaster {
    /// This server, within reach.
    pub fn new(server: EmbeddedServer) -> Self {
        let name = format!("embedded://{}", server.number()).into();
        Self { name, server, reachable: watch::Sender::new(true) }
    }

    /// The server behind it.
    pub fn server(&self) -> &EmbeddedServer {
        &self.server
    }

    /// Puts it out of reach, or back: calls fail and do nothing, and whoever listens is told to be deaf. The server stays
    /// as it is.
    ///
    /// It cannot fall silent: what a time-out does is to be tried on a real server, frozen.
    pub fn set_reachable(&self, reachable: bool) {
        self.reachable.send_replace(reachable);
    }
}

impl Master for EmbeddedMaster {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn call(&self, call: Call, reply: Reply) {
        let not_sent = match () {
            () if !reply.is_wanted() => Some("it was given up before it could be sent"),
            () if !*self.reachable.borrow() => Some("it was put out of reach"),
            () => None,
        };
        match not_sent {
            Some(why) => reply.tell(Err(Failure::Unreachable(why.into()))),
            None => {
                let mut answers = self.server.run(call.script, &[&call.words]);
                reply.tell(answers.pop().expect("one operation has one answer"));
            }
        }
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        let mut reachable = self.reachable.subscribe();
        async move { until(&mut reachable, true).await }.boxed()
    }

    fn listen(&self, channel: Arc<str>, ear: Ear) -> BoxFuture<'static, ()> {
        let (server, mut reachable) = (self.server.clone(), self.reachable.subscribe());
        async move {
            loop {
                until(&mut reachable, true).await;
                let mut subscription = server.subscribe(&channel, ear.clone());
                ear(Heard::Listening);
                tokio::select! {
                    biased;
                    () = subscription.lost() => {} // and told by the server
                    () = until(&mut reachable, false) => {
                        drop(subscription);
                        ear(Heard::Deaf);
                    }
                }
            }
        }
        .boxed()
    }
}

/// Resolves when the master is as wanted; never, if it is gone.
async fn until(reachable: &mut watch::Receiver<bool>, wanted: bool) {
    if reachable.wait_for(|reachable| *reachable == wanted).await.is_err() {
        std::future::pending().await
    }
}
