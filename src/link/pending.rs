//! The calls to one master that have no answer yet: those that wait to be sent, and those that were
//! sent.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::vote::Silence;
use crate::wire::{Call, CallKind, Failure, MasterIndex, NOT_HANDLED, Script, Value, Words};

/// How many operations one message carries. Each costs the master some ten microseconds, in which
/// it serves nobody else.
const MOST_IN_A_BATCH: usize = 64;

/// A call that the master has not answered yet.
#[derive(Debug)]
pub struct Pending {
    /// What the master is asked; `None` for a vote whose caller got its time-out as the answer.
    call: Option<Arc<Call>>,
    /// The master's index.
    index: MasterIndex,
    kind: CallKind,
    /// When it times out; `None` once its caller was answered with that.
    until: Option<Instant>,
    /// Whether it is to be sent alone: the master refused the batch that it was in, and ran
    /// nothing.
    alone: bool,
    turn: Turn,
    /// Whether it is sent again, and the first time may have left something: a part of it that the
    /// hot script did, or a place in the queue.
    pub(super) may_be_half_done: bool,
}

/// Which time it is that a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// To the hot script, if there is one for it.
    First,
    /// The first time, but before one on the same key that the hot script left, and that was made
    /// before. If it is refused, it is sent again behind that one.
    Early,
    /// To the full script: the hot one left it, or it was early.
    Again,
}

impl Pending {
    pub(super) fn new(call: Arc<Call>, index: MasterIndex, now: Instant) -> Self {
        let kind = call.kind;
        let until = Some(now + call.kind.timeout());
        Self {
            call: Some(call),
            index,
            kind,
            until,
            alone: false,
            turn: Turn::First,
            may_be_half_done: false,
        }
    }

    /// The script that is to run it.
    pub fn script(&self) -> &'static Script {
        let call = self.call();
        match call.hot {
            Some((hot, _)) if self.turn != Turn::Again => hot,
            _ => call.script,
        }
    }

    /// Its words for that script.
    pub fn words(&self) -> &Words {
        self.call().words_for(self.script())
    }

    fn has_hot(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.hot.is_some())
    }

    /// The keys that it is sent with: its hashes, and for the full script also their queues.
    fn keys(&self) -> impl Iterator<Item = &str> {
        self.call.iter().flat_map(|call| call.words_for(self.script()).keys())
    }

    /// Whether it is to be sent again, to the full script: the hot one left it, or a part of it; or
    /// it was early, and refused.
    pub(super) fn is_left(&self, reply: &Value) -> bool {
        let is_left = self.turn != Turn::Again && self.has_hot() && *reply == NOT_HANDLED;
        is_left || (self.turn == Turn::Early && reply.list().is_some())
    }

    /// What the master is asked.
    ///
    /// # Panics
    ///
    /// When its caller has its only answer: such a call is not sent any more.
    pub fn call(&self) -> &Arc<Call> {
        self.call.as_ref().expect("what was answered is not sent")
    }

    /// When its caller made it; `None` after its time-out.
    #[cfg(feature = "unstable-testing")]
    pub fn asked(&self) -> Option<Instant> {
        self.until.map(|until| until - self.kind.timeout())
    }

    pub(super) fn timeout(&self) -> Duration {
        self.kind.timeout()
    }

    /// Whether it is a vote, rather than a clean-up.
    pub fn is_vote(&self) -> bool {
        matches!(self.kind, CallKind::Vote { .. })
    }

    /// Whether it still has to be sent: not if its caller gave it up, and only a clean-up after its
    /// time-out.
    fn is_wanted(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.sink.is_wanted(self.index))
    }

    /// Its answer, unless the time-out was that.
    pub(super) fn delivery(self, answer: Result<Value, Failure>, time: Option<u64>) -> Option<Delivery> {
        self.call.map(|call| Delivery { call, index: self.index, answer, time })
    }

    /// The answer that it timed out. A clean-up gets a second one when the master answers.
    fn timed_out(&mut self) -> Option<Delivery> {
        let call = if self.is_vote() { self.call.take() } else { self.call.clone() };
        let answer = Err(Failure::Unknown(Silence::TimedOut));
        call.map(|call| Delivery { call, index: self.index, answer, time: None })
    }
}

/// An answer to a caller. Deliver it with no lock held: the caller may make another call.
#[derive(Debug)]
#[must_use = "somebody waits for it"]
pub struct Delivery {
    call: Arc<Call>,
    index: MasterIndex,
    answer: Result<Value, Failure>,
    /// What time it was on the master: see [`ReplySink::receive`](crate::wire::ReplySink::receive).
    time: Option<u64>,
}

impl Delivery {
    /// Hands the answer to the call's sink.
    pub fn deliver(self) {
        let Self { call, index, answer, time } = self;
        call.sink.receive(index, answer, time);
    }
}

/// Calls of one script that are sent together.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) calls: Vec<Pending>,
    /// Whether to send the script's source: the master did not know its digest.
    pub(super) with_source: bool,
}

impl Batch {
    /// Takes the first of these calls that have the same script.
    fn first_of(calls: &mut VecDeque<Pending>) -> Option<Self> {
        let first = calls.front()?;
        let script = first.script();
        let same = |pending: &&Pending| std::ptr::eq(pending.script(), script);
        let most = if first.alone { 1 } else { MOST_IN_A_BATCH };
        let count = calls.iter().take(most).take_while(same).count();
        Some(Self { calls: calls.drain(..count).collect(), with_source: false })
    }
}

/// A message that was sent and has no reply yet.
#[derive(Debug)]
pub(super) enum Sent {
    Ping,
    Look,
    /// A command of a handshake, and who waits for the reply.
    Question(oneshot::Sender<Result<Value, String>>),
    Batch(Batch),
}

/// All calls to one master, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct PendingQueue {
    waiting: VecDeque<Pending>,
    /// The batches to send again: the master did not know their script, or its record is another
    /// one, and ran nothing.
    repeated: VecDeque<Batch>,
    /// With the moment at which each was sent.
    sent: VecDeque<(Sent, Instant)>,
    /// When the next call times out, or sooner.
    alarm: Option<Instant>,
}

/// The calls that timed out.
#[derive(Debug, Default)]
pub(super) struct Expired {
    /// Votes that were not sent.
    pub(super) unsent: Vec<Pending>,
    /// The answers to the others: that they timed out.
    pub(super) unanswered: Vec<Delivery>,
    /// The longest time-out of a vote among the others, in which the master answered nothing: of
    /// what was sent again it has answered the first sending.
    pub(super) longest: Option<Duration>,
}

impl PendingQueue {
    pub(super) fn push(&mut self, pending: Pending) {
        self.alarm = [self.alarm, pending.until].into_iter().flatten().min();
        self.waiting.push_back(pending);
    }

    /// Takes the calls to send next, and moves those that nobody wants any more to `unwanted`.
    pub(super) fn next_batch(&mut self, unwanted: &mut Vec<Pending>) -> Option<Batch> {
        while let Some(mut batch) = self.repeated.pop_front().or_else(|| Batch::first_of(&mut self.waiting)) {
            unwanted.extend(batch.calls.extract_if(.., |pending| !pending.is_wanted()));
            if !batch.calls.is_empty() {
                return Some(batch);
            }
        }
        None
    }

    /// Whether there is anything to send.
    pub(super) fn has_unsent(&self) -> bool {
        !self.waiting.is_empty() || !self.repeated.is_empty()
    }

    pub(super) fn note_sent(&mut self, sent: Sent, now: Instant) {
        self.sent.push_back((sent, now));
    }

    /// How many messages have no reply yet.
    pub(super) fn under_way(&self) -> usize {
        self.sent.len()
    }

    /// Takes the oldest message, which now has its reply, and when it was sent.
    pub(super) fn answered(&mut self) -> Option<(Sent, Instant)> {
        self.sent.pop_front()
    }

    /// Queues these to be sent again, before all calls that were never sent.
    pub(super) fn send_again(&mut self, batch: Batch) {
        self.repeated.push_back(batch);
    }

    /// Queues these to be sent to the full script, before all calls that were never sent. What goes
    /// before them on the same keys, as it was sent already, is early.
    pub(super) fn send_in_full(&mut self, mut calls: Vec<Pending>) {
        let left: HashSet<&str> = calls.iter().flat_map(Pending::keys).collect();
        for pending in calls_in(&mut self.sent, &mut self.repeated) {
            if pending.turn == Turn::First && pending.keys().any(|key| left.contains(key)) {
                pending.turn = Turn::Early;
            }
        }
        calls.retain(|pending| pending.call.is_some());
        calls.iter_mut().for_each(|pending| pending.turn = Turn::Again);
        let mut calls = VecDeque::from(calls);
        while let Some(batch) = Batch::first_of(&mut calls) {
            self.send_again(batch);
        }
    }

    /// Queues these to be sent one by one, before all calls that were never sent.
    pub(super) fn send_alone(&mut self, calls: Vec<Pending>) {
        let before = self.waiting.iter().take_while(|pending| pending.alone).count();
        let never_sent = self.waiting.split_off(before);
        let unanswered = calls.into_iter().filter(|pending| pending.call.is_some());
        self.waiting.extend(unanswered.map(|pending| Pending { alone: true, ..pending }));
        self.waiting.extend(never_sent);
    }

    /// Takes all calls that were sent: their connection is gone.
    pub(super) fn take_sent(&mut self) -> impl Iterator<Item = Pending> {
        let sent = self.sent.drain(..).filter_map(|(sent, _)| match sent {
            Sent::Ping | Sent::Look | Sent::Question(_) => None,
            Sent::Batch(batch) => Some(batch),
        });
        sent.chain(self.repeated.drain(..)).flat_map(|batch| batch.calls)
    }

    /// Takes the calls that were not sent and that `wanted` selects.
    pub(super) fn take_waiting(
        &mut self,
        wanted: impl Fn(&Pending) -> bool,
    ) -> impl Iterator<Item = Pending> {
        let (taken, kept): (VecDeque<_>, _) = self.waiting.drain(..).partition(wanted);
        self.waiting = kept;
        taken.into_iter()
    }

    /// Whether a call has timed out that still has no reply.
    pub(super) fn has_overdue(&self) -> bool {
        let sent = self.sent.iter().filter_map(|(sent, _)| match sent {
            Sent::Ping | Sent::Look | Sent::Question(_) => None,
            Sent::Batch(batch) => Some(batch),
        });
        let sent = sent.chain(&self.repeated).flat_map(|batch| &batch.calls);
        self.waiting.iter().chain(sent).any(|pending| pending.until.is_none())
    }

    /// When to call [`expire`](PendingQueue::expire).
    pub(super) fn alarm(&self) -> Option<Instant> {
        self.alarm
    }

    /// Finds the calls that time out now, takes the votes among those that were not sent, and sets
    /// the alarm for the rest.
    pub(super) fn expire(&mut self, now: Instant) -> Expired {
        let due = |pending: &Pending| pending.until.is_some_and(|until| until <= now);
        let mut expired = Expired::default();
        if self.waiting.iter().any(due) {
            expired.unsent = self.take_waiting(|pending| due(pending) && pending.is_vote()).collect();
        }
        self.alarm = None;
        for pending in self.waiting.iter_mut().chain(calls_in(&mut self.sent, &mut self.repeated)) {
            if !due(pending) {
                self.alarm = [self.alarm, pending.until].into_iter().flatten().min();
                continue;
            }
            // A vote stays in its batch until the reply, with neither `call` nor `until`.
            pending.until = None;
            expired.unanswered.extend(pending.timed_out());
            if pending.is_vote() && pending.turn != Turn::Again {
                expired.longest = expired.longest.max(Some(pending.timeout()));
            }
        }
        expired
    }
}

/// The calls that were sent, and those that are to be sent again.
fn calls_in<'a>(
    sent: &'a mut VecDeque<(Sent, Instant)>,
    repeated: &'a mut VecDeque<Batch>,
) -> impl Iterator<Item = &'a mut Pending> {
    let batches = sent.iter_mut().filter_map(|(sent, _)| match sent {
        Sent::Ping | Sent::Look | Sent::Question(_) => None,
        Sent::Batch(batch) => Some(batch),
    });
    batches.chain(repeated).flat_map(|batch| &mut batch.calls)
}
