//! Listens to both servers of a pair, on the same channels.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate::seam::SubscriptionEvent;
use quorate_testkit::Subscription;

use crate::pair::{Pair, command};

/// A channel and a message on it.
type Message = (String, String);

/// What was received, and is not compared yet.
pub(crate) struct Ears {
    embedded: Arc<Mutex<Vec<Message>>>,
    _subscriptions: Vec<Subscription>,
    real: redis::Connection,
    /// One of them.
    channel: &'static str,
}

impl Ears {
    pub(crate) fn subscribe(pair: &Pair, channels: &[&'static str]) -> Self {
        let embedded: Arc<Mutex<Vec<Message>>> = Arc::default();
        let subscriptions = channels.iter().map(|&channel| {
            let received = embedded.clone();
            let ear = move |message| match message {
                SubscriptionEvent::Message(text) => {
                    received.lock().unwrap().push((channel.to_owned(), text.to_string()))
                }
                other => panic!("{other:?}"),
            };
            pair.embedded.subscribe(channel, Arc::new(ear))
        });
        let subscriptions = subscriptions.collect();
        let mut real = redis::Client::open(pair.server.url()).unwrap().get_connection().unwrap();
        real.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut subscribe = redis::cmd("SUBSCRIBE");
        subscribe.arg(channels);
        real.send_packed_command(&subscribe.get_packed_command()).unwrap();
        channels.iter().for_each(|_| drop(real.recv_response().unwrap()));
        Self { embedded, _subscriptions: subscriptions, real, channel: channels[0] }
    }

    /// Panics where the real server did not say what the embedded one said, in the same order.
    /// Returns how many messages there were.
    pub(crate) fn compare(&mut self) -> u64 {
        let received = std::mem::take(&mut *self.embedded.lock().unwrap());
        for message in &received {
            assert_eq!(*message, self.next(), "embedded, real");
        }
        received.len().try_into().unwrap()
    }

    /// Hears out what both said, and compares nothing.
    pub(crate) fn forget(&mut self, pair: &mut Pair) {
        const LAST: &str = "nobody has this number";
        pair.ask(crate::exclusive(), &[command(&["PUBLISH", self.channel, LAST])]);
        self.embedded.lock().unwrap().clear();
        while self.next().1 != LAST {}
    }

    /// What the real server says next.
    fn next(&mut self) -> Message {
        let push = self.real.recv_response().unwrap();
        let (_, channel, text): (String, String, String) = redis::from_redis_value(push).unwrap();
        (channel, text)
    }
}
