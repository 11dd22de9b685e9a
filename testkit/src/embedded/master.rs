//! An embedded server as a client's master.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use quorate::seam::{
    Call, Failure, Handshake, HelloOutcome, Master, MasterIndex, NOT_HANDLED, SessionHeader, Subscriber,
    SubscriptionEvent, Value,
};
use tokio::sync::watch;

use super::server::EmbeddedServer;

/// A master that carries a call out at once, on the thread that makes it, and tells the answer
/// there. So there is nothing for time-outs to do, and calls run in the order in which they are
/// made.
#[derive(Debug)]
pub struct EmbeddedMaster {
    name: Arc<str>,
    server: EmbeddedServer,
    reachable: watch::Sender<bool>,
}

/// One client's way to it.
#[derive(Debug)]
struct EmbeddedLink {
    to: Arc<EmbeddedMaster>,
    handshake: OnceLock<Handshake>,
    /// Which of the server's lives it is, and the header by which that knows the client.
    header: Mutex<Option<(u64, SessionHeader)>>,
    /// Locked while a call runs, so that no undo of it comes between the question whether it is
    /// wanted and its run.
    turn: Mutex<()>,
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

    /// Makes it unreachable, or reachable again: while it is not, calls fail and do nothing, and
    /// subscribers are disconnected. The server stays as it is.
    ///
    /// It cannot fall silent: what a time-out does is to be tried on a real server, frozen.
    pub fn set_reachable(&self, reachable: bool) {
        self.reachable.send_replace(reachable);
    }

    /// What a client is built with. Each client needs one of its own.
    pub fn master(self: &Arc<Self>) -> Arc<dyn Master> {
        Arc::new(EmbeddedLink {
            to: self.clone(),
            handshake: OnceLock::new(),
            header: Mutex::default(),
            turn: Mutex::default(),
        })
    }
}

impl EmbeddedLink {
    /// What the server knows this master by, as after a connection was opened to it. A server that
    /// never lost anything is known to be new when it is.
    fn header(&self) -> Result<SessionHeader, Failure> {
        let Some(handshake) = self.handshake.get() else { return Ok(SessionHeader::default()) };
        let mut known = self.known();
        let server = &self.to.server;
        let life = server.lives();
        match &*known {
            Some((then, header)) if *then == life && !handshake.is_outdated() => Ok(header.clone()),
            _ => {
                let mut hello = handshake.hello(server.is_whole());
                loop {
                    let answer = server.greet(&hello);
                    hello = match handshake.outcome(&hello, answer) {
                        HelloOutcome::Known(header) => {
                            *known = Some((life, header.clone()));
                            return Ok(header);
                        }
                        HelloOutcome::Ask(next) => next,
                        HelloOutcome::Again(why)
                        | HelloOutcome::Hear(_, why)
                        | HelloOutcome::Refused(why) => return Err(why),
                    }
                }
            }
        }
    }

    /// Runs a call, if it is wanted when it has its turn. Returns the answer and the time.
    fn run(&self, call: &Call, index: MasterIndex) -> Result<(Result<Value, Failure>, Option<u64>), Failure> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if !*self.to.reachable.borrow() {
            return Err(Failure::Unreachable("it was put out of reach".into()));
        }
        let header = self.header()?;
        if !call.sink.is_wanted(index) {
            return Err(Failure::not_sent());
        }
        let run = |script, words| self.to.server.run(script, &header, words);
        let (time, answer) = match call.hot.as_ref().map(|(hot, words)| run(*hot, words)) {
            Some((time, answer)) if answer != Ok(NOT_HANDLED) => (time, answer),
            _ => run(call.script, &call.words),
        };
        if time.is_none() {
            *self.known() = None;
        }
        Ok((answer, time))
    }

    fn known(&self) -> MutexGuard<'_, Option<(u64, SessionHeader)>> {
        self.header.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Master for EmbeddedLink {
    fn name(&self) -> &Arc<str> {
        &self.to.name
    }

    fn introduce(&self, handshake: Handshake) {
        let _ = self.handshake.set(handshake); // it is set once
    }

    fn call(&self, call: Arc<Call>, index: MasterIndex) {
        let (answer, time) = self.run(&call, index).unwrap_or_else(|why| (Err(why), None));
        call.sink.receive(index, answer, time);
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        let mut reachable = self.to.reachable.subscribe();
        if *self.to.reachable.borrow() {
            let _ = self.header(); // the client learns the time; a call says what is wrong
        }
        async move { until(&mut reachable, true).await }.boxed()
    }

    fn listen(&self, channel: Arc<str>, ear: Subscriber) -> BoxFuture<'static, ()> {
        let server = self.to.server.clone();
        let mut reachable = self.to.reachable.subscribe();
        async move {
            loop {
                until(&mut reachable, true).await;
                let mut subscription = server.subscribe(&channel, ear.clone());
                ear(SubscriptionEvent::Subscribed);
                tokio::select! {
                    biased;
                    () = subscription.lost() => {} // which the server reports
                    () = until(&mut reachable, false) => {
                        drop(subscription);
                        ear(SubscriptionEvent::Disconnected);
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
