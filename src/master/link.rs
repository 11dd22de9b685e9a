//! The connection to one master as a state machine without I/O: calls, replies and time go in;
//! messages, answers and the time of the next look come out. A driver opens connections for it and
//! moves its messages: the library's is `driver.rs`, and the simulator has its own.
//!
//! ```text
//! Idle        --first call-->                          Connecting
//! Connecting  --opened-->                              Up
//! Connecting  --failed, or took too long-->            Down
//! Up          --a call was not answered in time-->     Silent
//! Up          --broke-->                               Connecting, or Down if it had been of no use
//! Silent      --answered-->                            Up
//! Silent      --broke-->                               Connecting, or Down
//! Silent      --for too long-->                        Down
//! Down        --opened, in the background-->           Up
//! ```
//! In Idle and Connecting calls wait until they can be sent, each within its own time-out. In Down
//! their callers are told at once, in Silent those of votes.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::call::{Call, CallKind};
use super::failure::Failure;
use super::pending::{Batch, Delivery, Expired, Pending, PendingQueue, Sent};
use super::script::Script;
use super::value::Value;
use crate::backoff::Backoff;
use crate::random::Random;
use crate::vote::Silence;

#[cfg(test)]
mod tests;

/// How long one attempt to connect and log in may take: three times the second after which a lost
/// SYN is sent again.
pub(super) const OPEN_LIMIT: Duration = Duration::from_secs(3);

/// How long a silent connection is kept. While it stands, what was sent on it is cleaned up in
/// order behind it.
const SILENCE_LIMIT: Duration = Duration::from_secs(5);

/// A connection that lived this long was sound, as was one that answered a call: the next one is
/// opened at once, and calls wait for it.
const SOUND: Duration = Duration::from_secs(1);

/// Delays between attempts to connect: quick enough to be back within a lease, a second at most
/// however long it takes.
pub(super) const RECONNECT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// How many messages may be under way, at most: a master that is slow gets no more until it has
/// answered some, and what it was not sent can still be given up.
const UNDER_WAY: usize = 1_000;

const DOES_NOT_ANSWER: &str = "it does not answer";

/// Whether a master can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nobody has called yet.
    Idle,
    /// A connection is being opened, and nothing is known against the master.
    Connecting,
    /// A connection is open, and the master answers.
    Up,
    /// A connection is open, and a call on it was not answered in time.
    Silent,
    /// There is no connection that callers wait for, and what they are told; one may be being
    /// opened.
    Down(Failure),
}

/// The connection to one master, as a state machine.
#[derive(Debug)]
pub struct LinkState {
    /// What the log calls the master.
    master: Arc<str>,
    /// How long the master may be silent before it counts as out of reach, for every caller. A call
    /// with a shorter time-out only speaks for itself.
    patience: Duration,
    random: Arc<dyn Random>,
    reach: Reach,
    connection: Connection,
    backoff: Backoff,
    queue: PendingQueue,
    /// How long the last answer took, from when its message was sent.
    last_round_trip: Option<Duration>,
    deliveries: Vec<Delivery>,
}

#[derive(Clone, Copy, Debug)]
enum Connection {
    /// There is none, and none is wanted.
    None,
    /// The driver is to open one at this time.
    Due(Instant),
    /// The driver has been opening one since then.
    Opening(Instant),
    Open(Open),
}

#[derive(Clone, Copy, Debug)]
struct Open {
    since: Instant,
    /// Whether the master tells its time with every answer, as long as it knows the connection.
    is_known: bool,
    /// Whether a call was ever answered on it.
    has_served: bool,
    ping: Option<Ping>,
}

/// Asks whether the master answers at all. Its answer comes after those to all earlier calls.
#[derive(Clone, Copy, Debug)]
struct Ping {
    since: Instant,
    is_sent: bool,
}

/// What the driver is to send.
#[derive(Debug)]
pub enum Message<'a> {
    /// `PING`.
    Ping,
    /// One call of a script, with these operations.
    Evaluate {
        /// The script of all of them.
        script: &'static Script,
        /// Whether to send its source (`EVAL`), because the master does not know it by its digest
        /// (`EVALSHA`).
        with_source: bool,
        /// The operations: one at least.
        calls: &'a [Pending],
    },
}

/// For callers.
impl LinkState {
    /// A master that nobody has called yet. `random` spreads the attempts to connect.
    pub fn new(master: Arc<str>, patience: Duration, random: Arc<dyn Random>) -> Self {
        Self {
            master,
            patience,
            random,
            reach: Reach::Idle,
            connection: Connection::None,
            backoff: Backoff::new(RECONNECT.0, RECONNECT.1),
            queue: PendingQueue::default(),
            last_round_trip: None,
            deliveries: Vec::new(),
        }
    }

    /// Takes a call, to be sent in the order of these; or answers it at once where the master is
    /// out of reach. A silent master still takes clean-ups, for what they undo was sent to it.
    pub fn call(&mut self, call: Arc<Call>, index: usize, now: Instant) {
        let out_of_reach = match (&self.reach, call.kind) {
            (Reach::Down(why), _) => Some(why.clone()),
            (Reach::Silent, CallKind::Vote { .. }) => Some(unreachable(DOES_NOT_ANSWER)),
            _ => None,
        };
        match out_of_reach {
            Some(why) => self.deliveries.push(Delivery::refusal(call, index, why)),
            None => {
                self.queue.push(Pending::new(call, index, now));
                self.want(now);
            }
        }
    }

    /// Wants a connection, if there never was one.
    pub fn want(&mut self, now: Instant) {
        if self.reach == Reach::Idle {
            self.reach = Reach::Connecting;
            self.connection = Connection::Due(now);
        }
    }

    /// Whether the master can be reached.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// How long the last answer took; `None` before the first.
    pub(super) fn last_round_trip(&self) -> Option<Duration> {
        self.last_round_trip
    }
}

/// For the driver.
impl LinkState {
    /// When to open a connection, if one is to be opened.
    pub fn opens_at(&self) -> Option<Instant> {
        match self.connection {
            Connection::Due(at) => Some(at),
            _ => None,
        }
    }

    /// The driver begins to open a connection. It goes on while [`is_opening`](Self::is_opening),
    /// and then says how that went: [`opened`](Self::opened) or [`not_opened`](Self::not_opened).
    pub fn opening(&mut self, now: Instant) {
        if let Connection::Due(_) = self.connection {
            self.connection = Connection::Opening(now);
        }
    }

    /// Whether the connection that is being opened is still wanted.
    pub fn is_opening(&self) -> bool {
        matches!(self.connection, Connection::Opening(_))
    }

    /// The connection is open. `is_known` says whether the master tells its time with every answer,
    /// as it does while it knows the connection.
    pub fn opened(&mut self, is_known: bool, now: Instant) {
        if self.is_opening() {
            tracing::debug!(master = &*self.master, "connected");
            self.reach = Reach::Up;
            let open = Open { since: now, is_known, has_served: false, ping: self.ping_for_overdue(now) };
            self.connection = Connection::Open(open);
        }
    }

    /// The connection could not be opened. Callers get this failure.
    pub fn not_opened(&mut self, why: Failure, now: Instant) {
        if self.is_opening() {
            self.retry_later(why, now);
        }
    }

    /// Whether the connection that was opened is still wanted.
    pub fn is_open(&self) -> bool {
        matches!(self.connection, Connection::Open(_))
    }

    /// Gives `send` what is to be sent next, if there is anything. Its reply goes to
    /// [`answered`](Self::answered), in the order of messages.
    pub fn send_next<T>(&mut self, now: Instant, send: impl FnOnce(Message<'_>) -> T) -> Option<T> {
        let Connection::Open(open) = &mut self.connection else { return None };
        if let Some(ping) = open.ping.as_mut().filter(|ping| !ping.is_sent) {
            *ping = Ping { since: now, is_sent: true }; // this process may have stood still before
            self.queue.note_sent(Sent::Ping, now);
            return Some(send(Message::Ping));
        }
        if self.queue.under_way() >= UNDER_WAY {
            return None;
        }
        let mut unwanted = Vec::new();
        let batch = self.queue.next_batch(&mut unwanted);
        for pending in unwanted {
            let why = "it was given up before it could be sent";
            self.tell(pending, Err(unreachable(why)), None);
        }
        let batch = batch?;
        let script = batch.calls[0].call().script;
        let with_source = batch.with_source;
        let sent = send(Message::Evaluate { script, with_source, calls: &batch.calls });
        self.queue.note_sent(Sent::Batch(batch), now);
        Some(sent)
    }

    /// The reply to the oldest message that was not answered yet: a value, or the text of an error
    /// reply.
    pub fn answered(&mut self, reply: Result<Value, String>, now: Instant) {
        let Some((message, sent)) = self.queue.answered() else { return };
        self.last_round_trip = Some(now.duration_since(sent));
        match message {
            Sent::Ping => self.ping_answered(now),
            Sent::Batch(batch) => self.batch_answered(batch, reply, now),
        }
    }

    /// What the master says without being asked (RESP3). Nothing is subscribed to on this
    /// connection, so no reply is late for it and nothing follows from it.
    pub fn pushed(&mut self, push: &[Value]) {
        tracing::debug!(master = &*self.master, kind = ?push.first(), "the master told something");
    }

    fn ping_answered(&mut self, now: Instant) {
        if self.reach == Reach::Silent {
            self.reach = Reach::Up;
        }
        let ping = self.ping_for_overdue(now);
        if let Connection::Open(open) = &mut self.connection {
            open.ping = ping;
        }
    }

    /// Another ping where a call is overdue that the one before did not ask about: it was sent
    /// behind that, or not yet.
    fn ping_for_overdue(&self, now: Instant) -> Option<Ping> {
        self.queue.has_overdue().then_some(Ping { since: now, is_sent: false })
    }

    fn batch_answered(
        &mut self,
        Batch { calls, with_source }: Batch,
        reply: Result<Value, String>,
        now: Instant,
    ) {
        match reply {
            // The master ran nothing, so the calls can be sent again, in the order of what is sent
            // now.
            Err(error) if is_code(&error, &["NOSCRIPT"]) && !with_source => {
                return self.queue.send_with_source(calls);
            }
            // The error may be about the keys of one operation, with which the others are refused:
            // a user that may not have these keys, or a cluster, where keys of two locks are in two
            // places.
            Err(error) if is_code(&error, &["NOPERM", "CROSSSLOT"]) && calls.len() > 1 => {
                return self.queue.send_alone(calls);
            }
            Err(error) => {
                let refused = Failure::from_error_reply(&error);
                self.tell_all(calls, &Err(refused));
            }
            Ok(Value::List(items)) if items.len() == calls.len() + 1 => {
                let mut items = items.into_iter();
                let time = items.next().and_then(time_of);
                for (pending, item) in calls.into_iter().zip(items) {
                    self.tell(pending, Ok(item), time);
                }
                if let (None, Connection::Open(Open { is_known: true, .. })) = (time, self.connection) {
                    self.note_service();
                    return self.lose("it lost keys, or restarted, under this connection", true, now);
                }
            }
            Ok(strange) => return self.tell_all(calls, &Ok(strange)),
        }
        self.note_service();
    }

    /// The connection broke.
    pub fn broke(&mut self, why: &str, now: Instant) {
        self.lose(why, true, now);
    }

    /// The client is shut down: there will be no connection any more.
    pub fn close(&mut self) {
        let why = "the client was shut down";
        self.lose_sent(why);
        self.go_down(unreachable(why));
        self.connection = Connection::None;
    }

    /// When to call [`tick`](Self::tick).
    pub fn alarm(&self) -> Option<Instant> {
        let connection = match self.connection {
            Connection::Opening(since) if self.reach == Reach::Connecting => {
                Some(since + self.patience.min(OPEN_LIMIT))
            }
            Connection::Opening(since) => Some(since + OPEN_LIMIT),
            Connection::Open(Open { ping: Some(Ping { since, .. }), .. }) if self.reach == Reach::Up => {
                Some(since + self.patience.min(SILENCE_LIMIT))
            }
            Connection::Open(Open { ping: Some(Ping { since, .. }), .. }) => Some(since + SILENCE_LIMIT),
            _ => None,
        };
        [connection, self.queue.alarm()].into_iter().flatten().min()
    }

    /// Looks whose time is up. What was received before is to be handed in before: an answer that
    /// is there counts, even if this process stood still until its time was up.
    pub fn tick(&mut self, now: Instant) {
        if self.queue.alarm().is_some_and(|alarm| alarm <= now) {
            self.expire(now);
        }
        match self.connection {
            Connection::Opening(since) if since + OPEN_LIMIT <= now => {
                self.retry_later(unreachable(&format!("no connection within {OPEN_LIMIT:?}")), now);
            }
            Connection::Opening(since) if since + self.patience <= now => self.not_opened_in(self.patience),
            Connection::Open(Open { ping: Some(Ping { since, .. }), .. }) => {
                if since + SILENCE_LIMIT <= now {
                    self.lose(&format!("it has not answered for {SILENCE_LIMIT:?}"), false, now);
                } else if since + self.patience <= now {
                    self.fall_silent();
                }
            }
            _ => {}
        }
    }

    /// Where a call had as much time as the master is given by everybody, the next callers do not
    /// wait until the master has caught up; otherwise a ping finds out.
    fn expire(&mut self, now: Instant) {
        let Expired { unsent, unanswered, longest } = self.queue.expire(now);
        let longest_unsent = unsent.iter().map(Pending::timeout).max();
        for pending in unsent {
            let why = format!("not sent within {:?}", pending.timeout());
            self.tell(pending, Err(unreachable(&why)), None);
        }
        if let Some(time) = longest_unsent.filter(|time| *time >= self.patience) {
            self.not_opened_in(time);
        }
        if let Connection::Open(open) = &mut self.connection
            && !unanswered.is_empty()
        {
            open.ping.get_or_insert(Ping { since: now, is_sent: false });
        }
        self.deliveries.extend(unanswered);
        if longest.is_some_and(|time| time >= self.patience) {
            self.fall_silent();
        }
    }

    /// Moves the answers to callers to `deliveries`. Call it after everything else, and deliver
    /// with no lock held.
    pub fn take_deliveries(&mut self, deliveries: &mut Vec<Delivery>) {
        deliveries.append(&mut self.deliveries);
    }
}

/// From one state to another.
impl LinkState {
    fn fall_silent(&mut self) {
        if self.reach == Reach::Up {
            self.reach = Reach::Silent;
            self.give_up_waiting(unreachable(DOES_NOT_ANSWER), Pending::is_vote);
        }
    }

    /// It takes so long to open the connection: those that call next do not wait for it.
    fn not_opened_in(&mut self, time: Duration) {
        if self.reach == Reach::Connecting {
            self.go_down(unreachable(&format!("no connection within {time:?}")));
        }
    }

    fn go_down(&mut self, why: Failure) {
        self.reach = Reach::Down(why.clone());
        self.give_up_waiting(why, |_| true);
    }

    fn retry_later(&mut self, why: Failure, now: Instant) {
        tracing::debug!(master = &*self.master, why = why.text(), "unreachable");
        self.go_down(why);
        self.connection = Connection::Due(now + self.backoff.delay(self.random.next_u64()));
    }

    /// The connection is gone. `may_be_well`: masters may close connections, and the next one will
    /// tell.
    fn lose(&mut self, why: &str, may_be_well: bool, now: Instant) {
        let Connection::Open(open) = self.connection else { return };
        self.lose_sent(why);
        let was_sound = open.has_served || now.duration_since(open.since) > SOUND;
        if was_sound {
            self.backoff.reset();
        }
        if was_sound && may_be_well {
            tracing::debug!(master = &*self.master, why, "connection lost");
            self.reach = Reach::Connecting;
            self.connection = Connection::Due(now);
        } else {
            self.retry_later(unreachable(why), now);
        }
    }

    fn note_service(&mut self) {
        if let Connection::Open(open) = &mut self.connection {
            open.has_served = true;
        }
    }

    /// With the connection, the answers to what was sent are gone.
    fn lose_sent(&mut self, why: &str) {
        let lost = Failure::Unknown(Silence::ConnectionLost(why.into()));
        let sent = self.queue.take_sent().collect();
        self.tell_all(sent, &Err(lost));
    }

    /// These calls can be sent no more.
    fn give_up_waiting(&mut self, why: Failure, which: impl Fn(&Pending) -> bool) {
        let waiting = self.queue.take_waiting(which).collect();
        self.tell_all(waiting, &Err(why));
    }

    fn tell_all(&mut self, calls: Vec<Pending>, answer: &Result<Value, Failure>) {
        calls.into_iter().for_each(|pending| self.tell(pending, answer.clone(), None));
    }

    /// Answers a call, unless its time was up before.
    fn tell(&mut self, pending: Pending, answer: Result<Value, Failure>, time: Option<u64>) {
        self.deliveries.extend(pending.delivery(answer, time));
    }
}

fn unreachable(why: &str) -> Failure {
    Failure::Unreachable(why.into())
}

/// Whether an error reply begins with one of these words.
fn is_code(error: &str, codes: &[&str]) -> bool {
    error.split(' ').next().is_some_and(|first| codes.contains(&first))
}

/// The time at the head of the replies, if it is there.
fn time_of(head: Value) -> Option<u64> {
    match head {
        Value::Int(time) => time.try_into().ok(),
        _ => None,
    }
}
