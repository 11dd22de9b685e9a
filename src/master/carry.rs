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
}

impl<'a> Carrier<'a> {
    pub(super) fn new(link: &'a Link, session: &'a Session) -> Self {
        Self { link, session, answers: VecDeque::new() }
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
        let mut answer = self.session.ask(evaluate(verb, script, &batch));
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
            Ok(Ok(redis::Value::Array(items))) if items.len() == batch.len() => {
                self.session.note_service();
                batch.into_iter().zip(items).for_each(|(letter, item)| letter.tell(Ok(value(item))));
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
        if let Some(reply) = self.reply {
            reply.tell(answer);
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

/// One call for all of these, which have the same script.
fn evaluate(verb: &str, script: &str, batch: &Batch) -> Cmd {
    let calls = || batch.iter().map(|letter: &Letter| -> &Call { &letter.call });
    let (keys, args) = calls()
        .fold((0, 0), |(keys, args), call| (keys + call.words.keys().len(), args + call.words.args().len()));
    let bytes: usize = calls().map(|call| call.words.bytes()).sum();
    let mut command = Cmd::with_capacity(3 + keys + args, verb.len() + script.len() + 8 + bytes);
    command.arg(verb).arg(script).arg(keys);
    calls().flat_map(|call| call.words.keys()).for_each(|key| {
        command.arg(key);
    });
    calls().flat_map(|call| call.words.args()).for_each(|arg| {
        command.arg(arg);
    });
    command
}
