//! The calls of one master that were not answered yet: those that wait to be sent, and those that
//! were.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::call::{Call, CallKind};
use super::failure::Failure;
use super::value::Value;
use crate::vote::Silence;

/// How many operations one call to the master carries, at most. Each costs it some ten
/// microseconds, in which it serves nobody else.
const TOGETHER: usize = 64;

/// A call that the master has not answered yet.
#[derive(Debug)]
pub struct Pending {
    /// What the master is asked; `None` after a time-out, which its caller got as the answer.
    call: Option<Arc<Call>>,
    /// The master's index.
    index: usize,
    kind: CallKind,
    /// When its time is up; `None` once its caller was answered so.
    until: Option<Instant>,
    /// Whether it is to be sent alone: the master refused the call that it was in, and ran nothing.
    alone: bool,
}

impl Pending {
    pub(super) fn new(call: Arc<Call>, index: usize, now: Instant) -> Self {
        let kind = call.kind;
        let until = Some(now + call.kind.timeout());
        Self { call: Some(call), index, kind, until, alone: false }
    }

    /// What the master is asked.
    ///
    /// # Panics
    ///
    /// When its caller was answered: then it is not sent any more.
    pub fn call(&self) -> &Arc<Call> {
        self.call.as_ref().expect("what was answered is not sent")
    }

    /// When it was asked for, while its time is not up.
    #[cfg(feature = "simulation")]
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

    /// Whether it still has to be sent. Where its time was up, nobody waits for the answer.
    fn is_wanted(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.sink.is_wanted())
    }

    /// How it is answered, unless its time was up before.
    pub(super) fn delivery(self, answer: Result<Value, Failure>, time: Option<u64>) -> Option<Delivery> {
        self.call.map(|call| Delivery { call, index: self.index, answer, time })
    }

    /// That its time is up. The answer to a clean-up is still to come.
    fn timed_out(&mut self) -> Option<Delivery> {
        let call = if self.is_vote() { self.call.take() } else { self.call.clone() };
        let answer = Err(Failure::Unknown(Silence::TimedOut));
        call.map(|call| Delivery { call, index: self.index, answer, time: None })
    }
}

/// An answer to a caller. Deliver it with no lock held: the caller may call again.
#[derive(Debug)]
#[must_use = "somebody waits for it"]
pub struct Delivery {
    call: Arc<Call>,
    index: usize,
    answer: Result<Value, Failure>,
    /// What time it was on the master: see [`ReplySink::receive`](super::ReplySink::receive).
    time: Option<u64>,
}

impl Delivery {
    /// Of a call that never waited.
    pub(super) fn refusal(call: Arc<Call>, index: usize, why: Failure) -> Self {
        Self { call, index, answer: Err(why), time: None }
    }

    /// Tells it.
    pub fn tell(self) {
        let Self { call, index, answer, time } = self;
        call.sink.receive(index, answer, time);
    }
}

/// Calls of one script that are sent together.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) calls: Vec<Pending>,
    /// Whether the master does not know the script by its digest.
    pub(super) with_source: bool,
}

/// A message that is to be answered.
#[derive(Debug)]
pub(super) enum Sent {
    Ping,
    Batch(Batch),
}

/// All calls of one master, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct PendingQueue {
    waiting: VecDeque<Pending>,
    /// What the master ran nothing of, because it did not know the script.
    repeated: VecDeque<Batch>,
    /// With the moment at which each was sent.
    sent: VecDeque<(Sent, Instant)>,
    /// When to look for calls whose time is up.
    alarm: Option<Instant>,
}

/// The calls whose time is up.
#[derive(Debug, Default)]
pub(super) struct Expired {
    /// Votes that were not sent.
    pub(super) unsent: Vec<Pending>,
    /// What the callers of the others are told.
    pub(super) unanswered: Vec<Delivery>,
    /// The longest time-out of a vote among those.
    pub(super) longest: Option<Duration>,
}

impl PendingQueue {
    pub(super) fn push(&mut self, pending: Pending) {
        self.alarm = [self.alarm, pending.until].into_iter().flatten().min();
        self.waiting.push_back(pending);
    }

    /// Takes what is to be sent next, and puts the calls that nobody wants any more into
    /// `unwanted`.
    pub(super) fn next_batch(&mut self, unwanted: &mut Vec<Pending>) -> Option<Batch> {
        while let Some(mut batch) = self.repeated.pop_front().or_else(|| self.first_waiting()) {
            unwanted.extend(batch.calls.extract_if(.., |pending| !pending.is_wanted()));
            if !batch.calls.is_empty() {
                return Some(batch);
            }
        }
        None
    }

    /// The first calls that have the same script.
    fn first_waiting(&mut self) -> Option<Batch> {
        let first = self.waiting.front()?;
        let script = first.call().script;
        let same = |pending: &&Pending| std::ptr::eq(pending.call().script, script);
        let most = if first.alone { 1 } else { TOGETHER };
        let count = self.waiting.iter().take(most).take_while(same).count();
        Some(Batch { calls: self.waiting.drain(..count).collect(), with_source: false })
    }

    pub(super) fn note_sent(&mut self, sent: Sent, now: Instant) {
        self.sent.push_back((sent, now));
    }

    /// How many messages are not answered yet.
    pub(super) fn under_way(&self) -> usize {
        self.sent.len()
    }

    /// The oldest message, which was answered, and when it was sent.
    pub(super) fn answered(&mut self) -> Option<(Sent, Instant)> {
        self.sent.pop_front()
    }

    /// Has these sent again, with the source of their script.
    pub(super) fn send_with_source(&mut self, calls: Vec<Pending>) {
        self.repeated.push_back(Batch { calls, with_source: true });
    }

    /// Has these sent one by one, before everything that was never sent.
    pub(super) fn send_alone(&mut self, calls: Vec<Pending>) {
        let before = self.waiting.iter().take_while(|pending| pending.alone).count();
        let never_sent = self.waiting.split_off(before);
        let unanswered = calls.into_iter().filter(|pending| pending.call.is_some());
        self.waiting.extend(unanswered.map(|pending| Pending { alone: true, ..pending }));
        self.waiting.extend(never_sent);
    }

    /// Everything that was sent on the connection that is gone.
    pub(super) fn take_sent(&mut self) -> impl Iterator<Item = Pending> {
        let sent = self.sent.drain(..).filter_map(|(sent, _)| match sent {
            Sent::Ping => None,
            Sent::Batch(batch) => Some(batch),
        });
        sent.chain(self.repeated.drain(..)).flat_map(|batch| batch.calls)
    }

    /// Everything that was not sent, of which such calls only.
    pub(super) fn take_waiting(
        &mut self,
        wanted: impl Fn(&Pending) -> bool,
    ) -> impl Iterator<Item = Pending> {
        let (taken, kept): (VecDeque<_>, _) = self.waiting.drain(..).partition(wanted);
        self.waiting = kept;
        taken.into_iter()
    }

    /// Whether the time of a call is up that is still to be answered.
    pub(super) fn has_overdue(&self) -> bool {
        self.waiting.iter().chain(self.calls_sent()).any(|pending| pending.until.is_none())
    }

    fn calls_sent(&self) -> impl Iterator<Item = &Pending> {
        let sent = self.sent.iter().filter_map(|(sent, _)| match sent {
            Sent::Ping => None,
            Sent::Batch(batch) => Some(batch),
        });
        sent.chain(&self.repeated).flat_map(|batch| &batch.calls)
    }

    /// When to call [`expire`](PendingQueue::expire).
    pub(super) fn alarm(&self) -> Option<Instant> {
        self.alarm
    }

    /// Takes out the votes whose time is up, finds the clean-ups whose time is, and sets the alarm
    /// for the others.
    pub(super) fn expire(&mut self, now: Instant) -> Expired {
        let due = |pending: &Pending| pending.until.is_some_and(|until| until <= now);
        let mut expired = Expired::default();
        if self.waiting.iter().any(due) {
            expired.unsent = self.take_waiting(|pending| due(pending) && pending.is_vote()).collect();
        }
        let sent = self.sent.iter_mut().filter_map(|(sent, _)| match sent {
            Sent::Ping => None,
            Sent::Batch(batch) => Some(batch),
        });
        let sent = sent.chain(&mut self.repeated).flat_map(|batch| &mut batch.calls);
        for pending in self.waiting.iter_mut().chain(sent).filter(|pending| due(pending)) {
            pending.until = None;
            expired.unanswered.extend(pending.timed_out());
            if pending.is_vote() {
                expired.longest = expired.longest.max(Some(pending.timeout()));
            }
        }
        let left = self.waiting.iter().chain(self.calls_sent());
        // One that was answered leaves with its batch, and does no harm until then.
        self.alarm = left.filter_map(|pending| pending.until).min();
        expired
    }
}
