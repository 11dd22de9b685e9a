//! Listens to a lab's server.

use std::sync::{Arc, Mutex};

use quorate::seam::Heard;
use quorate_testkit::Subscription;

use super::lab::Lab;

/// Who listens on one channel.
pub(super) struct Ear<'a> {
    lab: &'a Lab,
    channel: &'static str,
    kind: Kind,
}

enum Kind {
    /// What is heard is kept until it is asked for.
    Embedded {
        heard: Arc<Mutex<Vec<String>>>,
        _subscription: Subscription,
    },
    Real(Box<redis::Connection>),
}

impl<'a> Ear<'a> {
    pub(super) fn new(lab: &'a Lab, channel: &'static str) -> Self {
        let kind = match lab.within() {
            Some(server) => {
                let heard: Arc<Mutex<Vec<String>>> = Arc::default();
                let its = heard.clone();
                let ear = move |what| match what {
                    Heard::Message(text) => its.lock().unwrap().push(text.to_string()),
                    other => panic!("{other:?}"),
                };
                Kind::Embedded { heard, _subscription: server.subscribe(channel, Arc::new(ear)) }
            }
            None => {
                let client = redis::Client::open(lab.url().unwrap()).unwrap();
                let mut connection = client.get_connection().unwrap();
                connection.set_read_timeout(Some(crate::SOON)).unwrap();
                let subscribe = redis::cmd("SUBSCRIBE").arg(channel).get_packed_command();
                connection.send_packed_command(&subscribe).unwrap();
                connection.recv_response().unwrap();
                Kind::Real(Box::new(connection))
            }
        };
        Self { lab, channel, kind }
    }

    /// What was heard since the last time.
    pub(super) fn heard(&mut self) -> Vec<String> {
        const LAST: &str = "that was all";
        self.lab.command(&["PUBLISH", self.channel, LAST]);
        let mut heard = match &mut self.kind {
            Kind::Embedded { heard, .. } => std::mem::take(&mut *heard.lock().unwrap()),
            Kind::Real(connection) => {
                let mut heard: Vec<String> = Vec::new();
                while heard.last().is_none_or(|text| text != LAST) {
                    let push = connection.recv_response().unwrap();
                    heard.push(redis::from_redis_value::<(String, String, String)>(push).unwrap().2);
                }
                heard
            }
        };
        assert_eq!(heard.pop().as_deref(), Some(LAST));
        heard
    }
}
