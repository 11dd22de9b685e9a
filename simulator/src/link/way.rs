//! A link as the library's engine sees it.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use quorate::seam::{Call, Handshake, LinkState, Master, MasterIndex, Reach, Subscriber};

use super::Link;
use crate::hearing::Hearing;

/// A link as the engine sees it.
#[derive(Debug)]
pub(crate) struct Way(pub(crate) Arc<Link>);

impl Master for Way {
    fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    fn introduce(&self, handshake: Handshake) {
        let _ = self.0.handshake.set(handshake); // it is set once
    }

    fn call(&self, call: Arc<Call>, index: MasterIndex) {
        if !self.0.process.is_dead() {
            self.0.with(|link, now| link.call(call, index, now));
        }
    }

    fn connect_now(&self) {
        self.0.with(LinkState::connect_now);
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        let link = self.0.clone();
        async move {
            link.with(|link, now| link.want_connection(now));
            loop {
                let answers = link.up.notified();
                if *link.state().link.reach() == Reach::Up {
                    return;
                }
                answers.await;
            }
        }
        .boxed()
    }

    fn listen(&self, channel: Arc<str>, ear: Subscriber) -> BoxFuture<'static, ()> {
        let link = self.0.clone();
        async move {
            let _listening = Hearing::begin(&link, channel, ear);
            std::future::pending().await
        }
        .boxed()
    }
}
