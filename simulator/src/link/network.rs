//! The network between a client and a master: its weather, and what is on its way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use quorate::seam::{Call, Failure, Hello, Script, SessionHeader, Value};
use quorate_history::Time;

use crate::pipe::Pipe;

/// How the network behaves on one link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// How long a message takes, at least and at most.
    pub(crate) delay: (Duration, Duration),
    /// How many of a thousand messages are executed twice, the second time later, as behind a proxy
    /// that repeats.
    pub(crate) repeated: u64,
    /// How many of a thousand messages are overtaken by later ones. The replies stay in order.
    pub(crate) overtaken: u64,
}

pub(super) struct Network {
    pub(super) weather: Weather,
    /// Whether there is a connection, open or being opened.
    pub(super) is_connected: bool,
    /// Its number.
    pub(super) connection: u64,
    /// The last connection that the server knows: nothing of an earlier one is executed any more.
    pub(super) known: u64,
    /// How many messages there ever were.
    pub(super) count: u64,
    /// The messages of this connection that were not answered yet.
    pub(super) sent: BTreeMap<u64, Arc<Request>>,
    /// The replies that are there before those to earlier messages.
    pub(super) received: BTreeMap<u64, NetworkReply>,
    pub(super) there: Pipe<u64>,
    pub(super) back: Pipe<FromMaster>,
}

/// A message to the master.
pub(super) struct Request {
    /// Since when its sender waits, where that tells something of the master.
    pub(super) asked: Option<Time>,
    pub(super) header: SessionHeader,
    pub(super) task: RequestKind,
}

pub(super) enum RequestKind {
    /// One of the first messages of a connection. It tells whether the master was new when the
    /// first question was made up.
    Hello(Option<Hello>, bool),
    Ping,
    Look,
    Calls(&'static Script, Vec<Arc<Call>>),
}

/// What a master says to the question of a handshake.
pub(super) type Greeting = Result<Value, Failure>;

pub(super) enum NetworkReply {
    Greeting(Option<Greeting>),
    To(Result<Value, String>),
}

/// What a master sends.
pub(super) enum FromMaster {
    /// The reply to the message of this number.
    Reply(u64, NetworkReply),
    /// The word that its record changed.
    Invalidation,
}

impl RequestKind {
    /// Whether a lease may be longer when it was answered.
    pub(super) fn is_extension(&self) -> bool {
        let extends = |call: &Arc<Call>| call.words.args().next() == Some("extend");
        matches!(self, Self::Calls(_, calls) if calls.iter().any(extends))
    }

    pub(super) fn calls(&self) -> &[Arc<Call>] {
        match self {
            Self::Calls(_, calls) => calls,
            _ => &[],
        }
    }
}

impl Network {
    pub(super) fn new(weather: Weather) -> Self {
        Self {
            weather,
            is_connected: false,
            connection: 0,
            known: 0,
            count: 0,
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            there: Pipe::new(),
            back: Pipe::new(),
        }
    }

    pub(super) fn connect(&mut self) {
        self.is_connected = true;
        self.connection += 1;
    }

    /// The number of the connection, if there is one.
    pub(super) fn connection(&self) -> Option<u64> {
        self.is_connected.then_some(self.connection)
    }

    /// Since when the master owes an answer that tells something of it.
    pub(super) fn oldest_question(&self) -> Option<Time> {
        self.sent.values().filter_map(|request| request.asked).min()
    }

    /// The oldest message, if the reply to it is there.
    pub(super) fn next_reply(&mut self) -> Option<(Arc<Request>, NetworkReply)> {
        let number = *self.sent.first_key_value()?.0;
        let reply = self.received.remove(&number)?;
        Some((self.sent.remove(&number)?, reply))
    }
}
