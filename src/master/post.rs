//! The calls of one master that were not answered yet: those that wait to be sent, and those that were.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::call::{Call, Overdue, Reply, Terms};

/// How many operations one call to the master carries, at most. Each costs it some ten microseconds, in which it serves
/// nobody else.
pub(super) const TOGETHER: usize = 64;

/// One call, and where its answer goes.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) call: Call,
    /// `None` when it was answered already: its time was up.
    pub(super) reply: Option<Reply>,
    /// When its time is up; `None` when that was told.
    until: Option<Instant>,
    /// Whether it is to be sent alone: the master refused the call that it was in, and ran nothing.
    alone: bool,
}

impl Letter {
    pub(super) fn new(call: Call, reply: Reply) -> Self {
        let until = Some(now() + call.terms.timeout());
        Self { call, reply: Some(reply), until, alone: false }
    }

    pub(super) fn timeout(&self) -> Duration {
        self.call.terms.timeout()
    }

    pub(super) fn is_vote(&self) -> bool {
        matches!(self.call.terms, Terms::Vote { .. })
    }
}

/// The present moment for time-outs, which are tokio's timers.
#[allow(clippy::disallowed_methods, reason = "no lease is measured with it")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Letters that are sent together.
pub(super) type Batch = Vec<Letter>;

/// Both kinds, each in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Post {
    waiting: VecDeque<Letter>,
    sent: VecDeque<Batch>,
    /// When to look for those whose time is up; `None` while there is nothing to wait for.
    alarm: Option<Instant>,
}

/// What the clock has to say.
#[derive(Debug, Default)]
pub(super) struct Expired {
    /// Votes that were not sent in time.
    pub(super) unsent: VecDeque<Letter>,
    /// Votes that were not answered in time, each with its time-out.
    pub(super) unanswered: Vec<(Reply, Duration)>,
    /// The same of clean-ups, whose answers are still to come.
    pub(super) overdue: Vec<Overdue>,
}

impl Post {
    /// Takes a letter. Answers whether it has to be looked at before the alarm.
    pub(super) fn push(&mut self, letter: Letter) -> bool {
        let sooner = letter.until.filter(|until| self.alarm.is_none_or(|alarm| *until < alarm));
        self.waiting.push_back(letter);
        self.alarm = sooner.or(self.alarm);
        sooner.is_some()
    }

    /// Takes the letters that are to be sent next, which have the same script.
    pub(super) fn next_batch(&mut self) -> Batch {
        let Some(first) = self.waiting.front() else { return Batch::new() };
        let script = first.call.script;
        let same = |letter: &&Letter| std::ptr::eq(letter.call.script, script);
        let most = if first.alone { 1 } else { TOGETHER };
        let count = self.waiting.iter().take(most).take_while(same).count();
        self.waiting.drain(..count).collect()
    }

    /// Takes back letters of a call that was refused, to be sent one by one, before everything that was never sent.
    pub(super) fn send_alone(&mut self, batch: Batch) {
        let before = self.waiting.iter().take_while(|letter| letter.alone).count();
        let never_sent = self.waiting.split_off(before);
        self.waiting.extend(batch.into_iter().map(|letter| Letter { alone: true, ..letter }));
        self.waiting.extend(never_sent);
    }

    /// Notes that these were sent, in one call.
    pub(super) fn note_sent(&mut self, batch: Batch) {
        self.sent.push_back(batch);
    }

    /// The letters of the oldest call, which was answered.
    pub(super) fn answered(&mut self) -> Batch {
        self.sent.pop_front().unwrap_or_default()
    }

    /// Everything that was sent.
    pub(super) fn take_sent(&mut self) -> Vec<Letter> {
        self.sent.drain(..).flatten().collect()
    }

    /// Everything that was not, of which such letters only.
    pub(super) fn take_waiting(&mut self, wanted: impl Fn(&Letter) -> bool) -> VecDeque<Letter> {
        let (taken, kept) = self.waiting.drain(..).partition(wanted);
        self.waiting = kept;
        taken
    }

    /// When to call [`expire`](Post::expire).
    pub(super) fn alarm(&self) -> Option<Instant> {
        self.alarm
    }

    /// Takes out the votes whose time is up, finds the clean-ups whose time is, and sets the alarm for the others.
    pub(super) fn expire(&mut self, now: Instant) -> Expired {
        let mut expired = Expired::default();
        let due = |letter: &Letter| letter.until.is_some_and(|until| until <= now);
        if self.waiting.iter().any(due) {
            expired.unsent = self.take_waiting(|letter| due(letter) && letter.is_vote());
        }
        let waiting = self.waiting.iter_mut();
        for letter in waiting.chain(self.sent.iter_mut().flatten()).filter(|letter| due(letter)) {
            letter.until = None;
            if !letter.is_vote() {
                expired.overdue.extend(letter.reply.iter().map(Reply::overdue));
            } else if let Some(reply) = letter.reply.take() {
                expired.unanswered.push((reply, letter.timeout()));
            }
        }
        let left = self.waiting.iter().chain(self.sent.iter().flatten());
        // One that was answered leaves with its batch, and does no harm until then.
        self.alarm = left.filter_map(|letter| letter.until).min();
        expired
    }
}
