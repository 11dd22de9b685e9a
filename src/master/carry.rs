//! Carries calls to a master and answers back. What is posted by the time that the carrier is run leaves together: one
//! operation at once, and the more of them wait, the more go into one call, which costs the master and this process least.

use std::collections::VecDeque;

use futures::FutureExt;
use redis::Cmd;

use super::call::Call;
use super::link::Link;
use super::post::{Batch, Letter, Post, TOGETHER};
use super::session::{Answer, Answered, Session, WAITING_CALLS, reply_text, value};
use super::{Failure, Value};
use crate::trust::Passport;
use crate::vote::Silence;

/// How many calls may be under way, at most: what is sent beyond what the connection takes at once would not be in order.
/// It leaves room for what is sent again, and for a PING.
const UNDER_WAY: usize = WAITING_CALLS - 2 * TOGETHER;

/// One connection's carrier.
pub(super) struct Carrier<'a> {
    link: &'a Link,
    session: &'a Session,
    /// The answers to come, in the order of the calls.
    answers: VecDeque<Answer>,
    /// Whether the master does not know this connection any more.
    is_unknown: bool,
}

impl<'a> Carrier<'a> {
    pub(super) fn new(link: &'a Link, session: &'a Session) -> Self {
        Self { link, session, answers: VecDeque::new(), is_unknown: false }
    }

    /// Hands out the answers that are there, and sends what may be sent. Nobody is woken for an answer: it comes from the
    /// session's driver, which is run before each step.
    pub(super) fn step(&mut self) {
        while let Some(answer) = self.answers.front_mut() {
            let Some(answer) = answer.now_or_never() else { break };
            self.answers.pop_front();
            self.hand_out(answer);
        }
        while self.answers.len() < UNDER_WAY {
            let batch = self.link.with_post(Post::next_batch);
            if batch.is_empty() {
                break;
            }
            self.send("EVALSHA", batch);
        }
    }

    /// Whether the master restarted under this connection, or lost its keys: another connection is to be opened, which
    /// finds out.
    pub(super) fn is_unknown(&self) -> bool {
        self.is_unknown
    }

    /// Sends those that are still wanted in one call.
    fn send(&mut self, verb: &str, mut batch: Batch) {
        for letter in batch.extract_if(.., |letter| !is_wanted(letter)) {
            let why = "it was given up before it could be sent";
            letter.tell(Err(Failure::Unreachable(why.into())));
        }
        let Some(first) = batch.first() else { return };
        let script = match verb {
            "EVAL" => first.call.script.source(),
            _ => first.call.script.sha1(),
        };
        let mut answer = self.session.ask(evaluate(verb, script, self.session.passport(), &batch));
        self.link.with_post(|post| post.note_sent(batch));
        // The first poll hands it to the connection. If there is an answer already, the connection is gone.
        if let Some(now) = answer.as_mut().now_or_never() {
            answer = Box::pin(std::future::ready(now));
        }
        self.answers.push_back(answer);
    }

    /// Tells everybody of the oldest call what the master said.
    fn hand_out(&mut self, answer: Answered) {
        let batch = self.link.with_post(Post::answered);
        match answer {
            Err(why) => {
                let lost = Failure::Unknown(Silence::ConnectionLost(why.into()));
                batch.into_iter().for_each(|letter| letter.tell(Err(lost.clone())));
            }
            // The master did nothing, so it can be asked once more, in the order of what is sent now.
            Ok(Err(error)) if error.code() == "NOSCRIPT" => self.send("EVAL", batch),
            Ok(Err(error)) if batch.len() > 1 && is_about_one(&error) => {
                self.link.with_post(|post| post.send_alone(batch));
            }
            Ok(Err(error)) => {
                self.session.note_service();
                let refused = Failure::from_error_reply(&reply_text(&error));
                batch.into_iter().for_each(|letter| letter.tell(Err(refused.clone())));
            }
            Ok(Ok(redis::Value::Array(items))) if items.len() == batch.len() + 1 => {
                self.session.note_service();
                let mut items = items.into_iter();
                let time = items.next().and_then(time_of);
                self.is_unknown |= time.is_none() && self.session.is_known();
                batch.into_iter().zip(items).for_each(|(letter, item)| letter.tell_at(Ok(value(item)), time));
            }
            Ok(Ok(other)) => {
                let strange: Value = value(other);
                batch.into_iter().for_each(|letter| letter.tell(Ok(strange.clone())));
            }
        }
    }
}

impl Letter {
    /// Tells how it went, unless its time was up before.
    pub(super) fn tell(self, answer: Result<Value, Failure>) {
        self.tell_at(answer, None);
    }

    /// The same, and what time it was on the master.
    fn tell_at(self, answer: Result<Value, Failure>, time: Option<u64>) {
        if let Some(reply) = self.reply {
            reply.tell_at(answer, time);
        }
    }
}

/// Whether the call still has to be sent. One whose time was up has no one to hear of it.
fn is_wanted(letter: &Letter) -> bool {
    letter.reply.as_ref().is_some_and(super::call::Reply::is_wanted)
}

/// Whether the error may be about the keys of one operation, with which the others are refused: a user that may not have
/// these keys, or a cluster, where keys of two locks are in two places.
fn is_about_one(error: &redis::ServerError) -> bool {
    matches!(error.code(), "NOPERM" | "CROSSSLOT")
}

/// The time at the head of the replies, if it is there.
fn time_of(head: redis::Value) -> Option<u64> {
    match head {
        redis::Value::Int(time) => time.try_into().ok(),
        _ => None,
    }
}

/// One call for all of these, which have the same script.
fn evaluate(verb: &str, script: &str, passport: &Passport, batch: &Batch) -> Cmd {
    let calls = || batch.iter().map(|letter: &Letter| -> &Call { &letter.call });
    let (keys, args) = calls()
        .fold((0, 0), |(keys, args), call| (keys + call.words.keys().len(), args + call.words.args().len()));
    let bytes: usize = calls().map(|call| call.words.bytes()).sum();
    let head: usize = passport.args().map(str::len).sum();
    let mut command = Cmd::with_capacity(6 + keys + args, verb.len() + script.len() + 8 + head + bytes);
    command.arg(verb).arg(script).arg(keys);
    calls().flat_map(|call| call.words.keys()).for_each(|key| {
        command.arg(key);
    });
    passport.args().chain(calls().flat_map(|call| call.words.args())).for_each(|arg| {
        command.arg(arg);
    });
    command
}
