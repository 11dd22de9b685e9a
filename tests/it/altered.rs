//! A master to which calls go otherwise than they were sent.

use std::sync::Arc;

use futures::future::BoxFuture;
use quorate::seam::{Call, Handshake, Master, MasterIndex, Subscriber};

/// A master, and what becomes of each call on its way there.
#[derive(Debug)]
pub(crate) struct Altered(pub(crate) Arc<dyn Master>, pub(crate) fn(Arc<Call>) -> Arc<Call>);

impl Master for Altered {
    fn name(&self) -> &Arc<str> {
        self.0.name()
    }

    fn introduce(&self, handshake: Handshake) {
        self.0.introduce(handshake);
    }

    fn call(&self, call: Arc<Call>, index: MasterIndex) {
        self.0.call(self.1(call), index);
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        self.0.ready()
    }

    fn listen(&self, channel: Arc<str>, ear: Subscriber) -> BoxFuture<'static, ()> {
        self.0.listen(channel, ear)
    }
}
