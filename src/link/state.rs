//! The link to one master as a state machine without I/O ([`LinkState`]): calls, replies and the
//! time go in; messages, answers and the time of the next [`tick`](LinkState::tick) come out. A
//! driver opens its connections and moves its messages: in the library `RedisMaster` (`driver.rs`);
//! the simulator has its own.
//!
//! ```text
//! Idle        --first call, or a wish to be connected-->  Connecting
//! Connecting  --opened-->                              Up
//! Connecting  --failed, or took too long-->            Down
//! Up          --a vote with a time-out of `patience` or more was not answered in time-->  Silent
//! Up          --a ping was not answered within `patience`-->                              Silent
//! Up          --broke-->                               Connecting, or Down if it had been of no use
//! Silent      --a ping was answered-->                 Up
//! Silent      --broke-->                               Connecting, or Down
//! Silent      --for too long-->                        Down
//! Down        --opened, in the background-->           Up
//! ```
//! In Up and Silent the handshake is made again on the same connection when the master's record may
//! be another one, or the client knows a newer one; calls wait for that.
//! Every other call that is not answered in time only has a ping sent. In Idle and Connecting calls
//! wait until they can be sent, each within its own time-out. In Down every call fails at once; in
//! Silent only votes do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::pending::{Batch, Delivery, Expired, Pending, PendingQueue, Sent};
use crate::backoff::Backoff;
use crate::random::Random;
use crate::vote::Silence;
use crate::wire::{Call, CallKind, Failure, Info, MasterIndex, Script, Value};

#[cfg(test)]
mod tests;

/// How long one attempt to connect and log in may take: three times the second after which a lost
/// SYN is sent again.
pub(super) const OPEN_LIMIT: Duration = Duration::from_secs(3);

/// How long a silent connection is kept. Meanwhile clean-ups are sent on it, behind the calls that
/// they undo.
const SILENCE_LIMIT: Duration = Duration::from_secs(5);

/// A connection that lived this long, or answered a call, was sound: when it breaks, the next one
/// is opened at once, and calls wait for that.
const SOUND: Duration = Duration::from_secs(1);

/// Delays between attempts to connect: quick enough to be back within a lease, a second at most
/// however long it takes.
pub(super) const RECONNECT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// How long after an attempt to connect to a master that is none of the set any more the next one
/// is made: should it come back, it has to be told so.
pub(super) const OUTSIDE: Duration = Duration::from_secs(30);

/// How long after the last look a call is sent behind another one: whether the master may drop
/// keys.
const LOOK: Duration = Duration::from_secs(5);

/// How many messages may wait for their replies. A slow master is sent no more than that, so that
/// calls can be given up before they are sent.
const MOST_UNDER_WAY: usize = 1_000;

const DOES_NOT_ANSWER: &str = "it does not answer";

const GIVEN_UP: &str = "it was given up before the master had done all of it";

/// Whether a master can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nobody needed a connection yet.
    Idle,
    /// A connection is being opened, and calls wait for it.
    Connecting,
    /// A connection is open, and the master answers.
    Up,
    /// A connection is open, and a call on it was not answered in time.
    Silent,
    /// Every call fails at once, with this failure. A connection may be being opened.
    Down(Failure),
}

/// The connection to one master, as a state machine.
#[derive(Debug)]
pub struct LinkState {
    /// What the log calls the master.
    master: Arc<str>,
    /// How long the master may be silent before it counts as silent for every caller. A call with a
    /// shorter time-out fails by itself, and has a ping sent.
    patience: Duration,
    random: Arc<dyn Random>,
    reach: Reach,
    connection: Connection,
    /// What the handshake waits for that is under way, if it is known.
    waits_for: Option<Failure>,
    backoff: Backoff,
    queue: PendingQueue,
    /// The next commands of a handshake on an open connection.
    questions: VecDeque<Question>,
    /// How long the last answer took, from when its message was sent.
    last_round_trip: Option<Duration>,
    deliveries: Vec<Delivery>,
}

#[derive(Clone, Copy, Debug)]
enum Connection {
    /// There is none, and no call has wanted one; or the link is closed.
    None,
    /// The driver is to open one at this moment.
    Due(Instant),
    /// The driver has been opening one since this moment.
    Opening(Instant),
    Open(Open),
}

#[derive(Clone, Copy, Debug)]
struct Open {
    since: Instant,
    /// Whether the handshake made this connection known, so that the master puts its time at the
    /// head of every reply.
    is_known: bool,
    /// Whether a call was ever answered on it.
    has_served: bool,
    /// When to look again whether the master may drop keys.
    looks_at: Instant,
    ping: Option<Ping>,
    handshake: HandshakeState,
    /// Whether the record may be another one than the last handshake saw: no vote counts until it
    /// was made again, which is due or under way.
    may_have_changed: bool,
}

/// How far the handshake is on an open connection. Calls are sent when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandshakeState {
    Done,
    /// The driver is to make it again.
    Due,
    /// The driver makes it, and whether the record was changed again meanwhile.
    UnderWay {
        is_due_again: bool,
    },
}

/// A command of a handshake on an open connection, and who waits for the reply.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) words: Vec<String>,
    pub(super) reply: oneshot::Sender<Result<Value, String>>,
}

/// A `PING`, which finds out whether the master answers at all. Its reply comes after those to all
/// calls that were sent before it.
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
    /// `INFO memory`.
    Look,
    /// A command of a handshake.
    Ask(&'a [String]),
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
    /// A link before its first call. `random` spreads the attempts to connect.
    pub fn new(master: Arc<str>, patience: Duration, random: Arc<dyn Random>) -> Self {
        Self {
            master,
            patience,
            random,
            reach: Reach::Idle,
            connection: Connection::None,
            waits_for: None,
            backoff: Backoff::new(RECONNECT.0, RECONNECT.1),
            queue: PendingQueue::default(),
            questions: VecDeque::new(),
            last_round_trip: None,
            deliveries: Vec::new(),
        }
    }

    /// Queues a call, to be sent in the order of calls; or answers it at once if the master is out
    /// of reach. Clean-ups go to a silent master, too: it may have received what they undo.
    pub fn call(&mut self, call: Arc<Call>, index: MasterIndex, now: Instant) {
        let out_of_reach = match (&self.reach, call.kind) {
            (Reach::Down(why), _) => Some(why.clone()),
            (Reach::Silent, CallKind::Vote { .. }) => Some(unreachable(DOES_NOT_ANSWER)),
            _ => None,
        };
        match out_of_reach {
            Some(why) => self.queue_answer(Pending::new(call, index, now), Err(why), None),
            None => {
                self.queue.push(Pending::new(call, index, now));
                self.want_connection(now);
            }
        }
    }

    /// Has a connection opened, if none ever was.
    pub fn want_connection(&mut self, now: Instant) {
        if self.reach == Reach::Idle {
            self.reach = Reach::Connecting;
            self.connection = Connection::Due(now);
        }
    }

    /// Has a connection opened now, if one is to be opened later.
    pub fn connect_now(&mut self, now: Instant) {
        self.want_connection(now);
        if let Connection::Due(at) = &mut self.connection {
            *at = now.min(*at);
        }
    }

    /// Has no connection opened for a while, unless somebody wants it [now](Self::connect_now).
    pub fn put_off(&mut self, now: Instant) {
        if let Connection::Due(at) = &mut self.connection {
            *at = now + OUTSIDE;
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
    /// and then calls [`opened`](Self::opened) or [`not_opened`](Self::not_opened).
    pub fn opening(&mut self, now: Instant) {
        if let Connection::Due(_) = self.connection {
            self.connection = Connection::Opening(now);
            self.waits_for = None;
        }
    }

    /// The handshake that is under way waits for other masters: calls that do not wait as long fail
    /// with this.
    pub(super) fn waits_for(&mut self, why: Failure) {
        self.waits_for = Some(why);
    }

    /// Whether the connection that is being opened is still wanted.
    pub fn is_opening(&self) -> bool {
        matches!(self.connection, Connection::Opening(_))
    }

    /// The connection is open. `is_known` says whether the handshake made it known, so that the
    /// master puts its time at the head of every reply.
    pub fn opened(&mut self, is_known: bool, now: Instant) {
        if self.is_opening() {
            tracing::debug!(master = &*self.master, "connected");
            self.reach = Reach::Up;
            self.waits_for = None;
            self.connection = Connection::Open(Open {
                since: now,
                is_known,
                has_served: false,
                looks_at: now + LOOK,
                ping: self.ping_for_overdue(now),
                handshake: HandshakeState::Done,
                may_have_changed: false,
            });
        }
    }

    /// Whether the driver is to make the handshake again on the open connection. It then calls
    /// [`greeted`](Self::greeted) or [`not_greeted`](Self::not_greeted), if the connection is still
    /// the same. Returns that once for each time.
    pub fn takes_up_handshake(&mut self) -> bool {
        let Connection::Open(open) = &mut self.connection else { return false };
        let is_due = open.handshake == HandshakeState::Due;
        if is_due {
            self.waits_for = None;
            open.handshake = HandshakeState::UnderWay { is_due_again: false };
        }
        is_due
    }

    /// Has the handshake made again on an open connection, unless that is under way. What was sent
    /// before counts if the record is what it was.
    pub fn renew_handshake(&mut self) {
        if let Connection::Open(open) = &mut self.connection
            && open.handshake == HandshakeState::Done
        {
            open.handshake = HandshakeState::Due;
        }
    }

    /// Has a command of a handshake sent on the open connection. If that is gone, the question is
    /// dropped: on the next connection nobody waits for the reply.
    pub(super) fn ask(&mut self, question: Question) {
        if self.is_open() {
            self.questions.push_back(question);
        }
    }

    /// The handshake was made again: calls can be sent.
    pub fn greeted(&mut self) {
        let Connection::Open(open) = &mut self.connection else { return };
        self.waits_for = None;
        open.handshake = match open.handshake {
            HandshakeState::UnderWay { is_due_again: true } => HandshakeState::Due,
            _ => HandshakeState::Done,
        };
        open.may_have_changed = open.handshake == HandshakeState::Due;
    }

    /// The handshake that was made again came to this failure: the connection is given up.
    pub fn not_greeted(&mut self, why: Failure, now: Instant) {
        if self.is_open() {
            self.fail_sent(why.text());
            self.retry_later(why, now);
        }
    }

    /// The connection could not be opened. Calls fail with this failure.
    pub fn not_opened(&mut self, why: Failure, now: Instant) {
        if self.is_opening() {
            self.retry_later(why, now);
        }
    }

    /// Whether the connection that the driver opened is still wanted.
    pub fn is_open(&self) -> bool {
        matches!(self.connection, Connection::Open(_))
    }

    /// Calls `send` with the next message, if there is one. The driver hands the replies to
    /// [`answered`](Self::answered), in the order of the messages.
    pub fn send_next<T>(&mut self, now: Instant, send: impl FnOnce(Message<'_>) -> T) -> Option<T> {
        let Connection::Open(open) = &mut self.connection else { return None };
        if let Some(ping) = open.ping.as_mut().filter(|ping| !ping.is_sent) {
            *ping = Ping { since: now, is_sent: true }; // this process may have stood still before
            self.queue.note_sent(Sent::Ping, now);
            return Some(send(Message::Ping));
        }
        if let Some(Question { words, reply }) = self.questions.pop_front() {
            self.queue.note_sent(Sent::Question(reply), now);
            return Some(send(Message::Ask(&words)));
        }
        if open.handshake != HandshakeState::Done || self.queue.under_way() >= MOST_UNDER_WAY {
            return None;
        }
        if open.looks_at <= now && self.queue.has_unsent() {
            open.looks_at = now + LOOK;
            self.queue.note_sent(Sent::Look, now);
            return Some(send(Message::Look));
        }
        let mut unwanted = Vec::new();
        let batch = self.queue.next_batch(&mut unwanted);
        for pending in unwanted {
            self.queue_not_sent(pending, Failure::not_sent());
        }
        let batch = batch?;
        let script = batch.calls[0].script();
        let with_source = batch.with_source;
        let sent = send(Message::Evaluate { script, with_source, calls: &batch.calls });
        self.queue.note_sent(Sent::Batch(batch), now);
        Some(sent)
    }

    /// Hands in the reply to the oldest message without one: a value, or the text of an error
    /// reply.
    pub fn answered(&mut self, reply: Result<Value, String>, now: Instant) {
        let Some((message, sent)) = self.queue.answered() else { return };
        self.last_round_trip = Some(now.duration_since(sent));
        match message {
            Sent::Ping => self.ping_answered(now),
            Sent::Look => self.look_answered(reply, now),
            Sent::Question(asked) => drop(asked.send(reply)), // the handshake may have ended
            Sent::Batch(batch) => self.batch_answered(batch, reply),
        }
    }

    /// A master that may drop keys has no vote. What it answers behind this counts no more; the
    /// next handshake refuses it.
    fn look_answered(&mut self, reply: Result<Value, String>, now: Instant) {
        let Ok(Value::Text(info)) = reply else { return };
        if let Some(policy) = Info(info.to_string()).evicts() {
            self.connection_lost(&format!("its maxmemory-policy is {policy} now"), true, now);
        }
    }

    /// Hands in a push of RESP3, which is no reply. The connection follows one key, the record: if
    /// that is another one by now, what the master answers behind the push counts no more.
    pub fn pushed(&mut self, push: &[Value]) {
        match push.first().and_then(Value::text) {
            Some(kind) if **kind == *"invalidate" => self.record_changed(),
            kind => tracing::debug!(master = &*self.master, ?kind, "the master told something"),
        }
    }

    /// The record is another one: the handshake is to be made again.
    pub(super) fn record_changed(&mut self) {
        let Connection::Open(open) = &mut self.connection else { return };
        open.may_have_changed = true;
        open.handshake = match open.handshake {
            HandshakeState::Done | HandshakeState::Due => HandshakeState::Due,
            HandshakeState::UnderWay { .. } => HandshakeState::UnderWay { is_due_again: true },
        };
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

    /// Another ping if a call is overdue: it was sent after the last ping, or was not sent yet, so
    /// that ping's reply says nothing about it.
    fn ping_for_overdue(&self, now: Instant) -> Option<Ping> {
        self.queue.has_overdue().then_some(Ping { since: now, is_sent: false })
    }

    fn batch_answered(&mut self, Batch { calls, with_source }: Batch, reply: Result<Value, String>) {
        match reply {
            // The master ran nothing, so the calls can be sent again.
            Err(error) if is_code(&error, &["NOSCRIPT"]) && !with_source => {
                return self.queue.send_again(Batch { calls, with_source: true });
            }
            // The master refused all operations of the batch, perhaps for the keys of one: the user
            // has no right to them, or in a cluster two locks are in two slots. Each is sent alone.
            Err(error) if is_code(&error, &["NOPERM", "CROSSSLOT"]) && calls.len() > 1 => {
                return self.queue.send_alone(calls);
            }
            Err(error) => {
                let (left, whole) = calls.into_iter().partition(|pending| pending.may_be_half_done);
                self.queue_answer_to_all(whole, &Err(Failure::from_error_reply(&error)));
                self.queue_answer_to_all(left, &Err(lost(&error)));
            }
            Ok(Value::List(items)) if items.len() == calls.len() + 1 => {
                let mut items = items.into_iter();
                let time = items.next().and_then(|time| time.int()?.try_into().ok());
                self.note_served();
                let votes_count = match (time, self.connection) {
                    (None, Connection::Open(Open { is_known: true, .. })) => {
                        return self.forgot(calls, items);
                    }
                    (Some(_), Connection::Open(Open { may_have_changed: true, .. })) => false,
                    _ => true,
                };
                let mut left = Vec::new();
                for (mut pending, item) in calls.into_iter().zip(items) {
                    if pending.is_left(&item) {
                        pending.may_be_half_done = true;
                        left.push(pending);
                        continue;
                    }
                    let answer = match item {
                        // What is to be gone is gone, whatever else the master knows.
                        item if votes_count || !pending.is_vote() => Ok(item),
                        _ => Err(lost("its record changed before it answered")),
                    };
                    self.queue_answer(pending, answer, time);
                }
                if !left.is_empty() {
                    self.queue.send_in_full(left);
                }
                return;
            }
            Ok(strange) => return self.queue_answer_to_all(calls, &Ok(strange)),
        }
        self.note_served();
    }

    /// The record is another one than these calls name. The operations that were refused for that,
    /// and what the hot script left, did nothing: they are sent again when the handshake is made.
    fn forgot(&mut self, calls: Vec<Pending>, items: impl Iterator<Item = Value>) {
        let is_refused = |item: &Value| match item.list() {
            Some([Value::Text(refused), Value::Text(why)]) => {
                **refused == *"refused" && is_code(why, &["FORGOT"])
            }
            _ => false,
        };
        let (again, done): (Vec<_>, Vec<_>) = calls
            .into_iter()
            .zip(items)
            .partition(|(pending, item)| pending.is_left(item) || is_refused(item));
        if !again.is_empty() {
            self.queue.send_in_full(again.into_iter().map(|(pending, _)| pending).collect());
        }
        for (pending, item) in done {
            self.queue_answer(pending, Ok(item), None);
        }
        if let Connection::Open(open) = &mut self.connection {
            open.may_have_changed = true;
        }
        // What was sent before a handshake that is due, or under way, tells nothing new.
        self.renew_handshake();
    }

    /// The connection broke, for this reason.
    pub fn broke(&mut self, why: &str, now: Instant) {
        self.connection_lost(why, true, now);
    }

    /// The client is shut down: no connection will be opened any more.
    pub fn close(&mut self) {
        let why = "the client was shut down";
        self.fail_sent(why);
        self.go_down(unreachable(why));
        self.connection = Connection::None;
    }

    /// When to call [`tick`](Self::tick).
    pub fn alarm(&self) -> Option<Instant> {
        let has_patience = matches!(self.reach, Reach::Connecting | Reach::Up);
        let patience = if has_patience { self.patience } else { Duration::MAX };
        let connection = match self.connection {
            Connection::Opening(since) => Some(since + patience.min(OPEN_LIMIT)),
            Connection::Open(Open { ping: Some(Ping { since, .. }), .. }) => {
                Some(since + patience.min(SILENCE_LIMIT))
            }
            _ => None,
        };
        [connection, self.queue.alarm()].into_iter().flatten().min()
    }

    /// Handles what is overdue. Hand in all replies that were received before calling this: a reply
    /// that is there counts, even if this process stood still past its time-out.
    pub fn tick(&mut self, now: Instant) {
        if self.queue.alarm().is_some_and(|alarm| alarm <= now) {
            self.expire(now);
        }
        match self.connection {
            Connection::Opening(since) if since + OPEN_LIMIT <= now => {
                let why = self.not_opened_yet(&format!("no connection within {OPEN_LIMIT:?}"));
                self.retry_later(why, now);
            }
            Connection::Opening(since) if since + self.patience <= now => self.not_opened_in(self.patience),
            Connection::Open(Open { ping: Some(Ping { since, .. }), .. }) => {
                if since + SILENCE_LIMIT <= now {
                    self.connection_lost(&format!("it has not answered for {SILENCE_LIMIT:?}"), false, now);
                } else if since + self.patience <= now {
                    self.fall_silent();
                }
            }
            _ => {}
        }
    }

    /// Answers the calls whose time-out is over. If one of them had a time-out of `patience` or
    /// more, the master counts as silent, or as down where it was not connected. Otherwise a ping
    /// finds out whether it answers.
    fn expire(&mut self, now: Instant) {
        let Expired { unsent, unanswered, longest } = self.queue.expire(now);
        let longest_unsent = unsent.iter().map(Pending::timeout).max();
        for pending in unsent {
            let why = self.not_opened_yet(&format!("not sent within {:?}", pending.timeout()));
            self.queue_not_sent(pending, why);
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

    /// Moves the answers to callers to `deliveries`. Call this after every other method, and
    /// deliver them with no lock held.
    pub fn take_deliveries(&mut self, deliveries: &mut Vec<Delivery>) {
        deliveries.append(&mut self.deliveries);
    }
}

/// From one state to another.
impl LinkState {
    fn fall_silent(&mut self) {
        if self.reach == Reach::Up {
            self.reach = Reach::Silent;
            self.fail_waiting(unreachable(DOES_NOT_ANSWER), Pending::is_vote);
        }
    }

    /// Opening the connection has taken this long: from now on calls fail instead of waiting for
    /// it.
    fn not_opened_in(&mut self, time: Duration) {
        if self.reach == Reach::Connecting {
            self.go_down(self.not_opened_yet(&format!("no connection within {time:?}")));
        }
    }

    /// Why no call can be sent yet: what the handshake waits for, or what is seen from here.
    pub(super) fn not_opened_yet(&self, seen: &str) -> Failure {
        self.waits_for.clone().unwrap_or_else(|| unreachable(seen))
    }

    fn go_down(&mut self, why: Failure) {
        self.reach = Reach::Down(why.clone());
        self.fail_waiting(why, |_| true);
    }

    fn retry_later(&mut self, why: Failure, now: Instant) {
        tracing::debug!(master = &*self.master, why = why.text(), "unreachable");
        self.go_down(why);
        self.connection = Connection::Due(now + self.backoff.delay(self.random.next_u64()));
    }

    /// The connection is gone. With `may_be_well` the next one is opened at once if this one was
    /// sound, for a master in good health may close a connection.
    fn connection_lost(&mut self, why: &str, may_be_well: bool, now: Instant) {
        let Connection::Open(open) = self.connection else { return };
        self.waits_for = None;
        self.fail_sent(why);
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

    fn note_served(&mut self) {
        if let Connection::Open(open) = &mut self.connection {
            open.has_served = true;
        }
    }

    /// The calls that were sent get no replies any more: their outcome is unknown.
    fn fail_sent(&mut self, why: &str) {
        self.questions.clear();
        let sent = self.queue.take_sent().collect();
        self.queue_answer_to_all(sent, &Err(lost(why)));
    }

    /// Fails the calls that were not sent and that `which` selects.
    fn fail_waiting(&mut self, why: Failure, which: impl Fn(&Pending) -> bool) {
        for pending in self.queue.take_waiting(which).collect::<Vec<_>>() {
            self.queue_not_sent(pending, why.clone());
        }
    }

    /// Answers a call that is not sent any more: nothing of it was done, unless that is the second
    /// time.
    fn queue_not_sent(&mut self, pending: Pending, why: Failure) {
        let why = if pending.may_be_half_done { lost(GIVEN_UP) } else { why };
        self.queue_answer(pending, Err(why), None);
    }

    fn queue_answer_to_all(&mut self, calls: Vec<Pending>, answer: &Result<Value, Failure>) {
        calls.into_iter().for_each(|pending| self.queue_answer(pending, answer.clone(), None));
    }

    /// Queues the answer to a call for [`take_deliveries`](Self::take_deliveries), unless the
    /// time-out was its answer.
    fn queue_answer(&mut self, pending: Pending, answer: Result<Value, Failure>, time: Option<u64>) {
        self.deliveries.extend(pending.delivery(answer, time));
    }
}

fn unreachable(why: &str) -> Failure {
    Failure::Unreachable(why.into())
}

/// A call that was sent and has no answer.
fn lost(why: &str) -> Failure {
    Failure::Unknown(Silence::ConnectionLost(why.into()))
}

/// Whether an error reply begins with one of these words.
fn is_code(error: &str, codes: &[&str]) -> bool {
    error.split(' ').next().is_some_and(|first| codes.contains(&first))
}
