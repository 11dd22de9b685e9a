//! What a connection asks first, and what it may say from then on.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::knowledge::Trust;
use super::standing::Standing;
use super::terms::ColdStart;
use crate::clock::Moment;
use crate::master::{Failure, Script, Value, Words};
use crate::vote::Refusal;

/// The script that a connection runs first, by itself.
pub static HELLO: Script = Script::of("hello", &[&[("hello", include_str!("../../scripts/lua/hello.lua"))]]);

/// How a master's connections make themselves known. A master asks the
/// [`question`](Handshake::question) on every new connection before anything else, and again when
/// the head of a call's replies is nil.
#[derive(Clone)]
pub struct Handshake {
    trust: Arc<Trust>,
    index: usize,
    /// Whether there ever was a marker.
    seen: Arc<AtomicBool>,
}

/// What every call on one connection begins with: see `scripts/lua/call.lua`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHeader(Arc<Words>);

/// What is to be asked, and when that was made up.
#[derive(Debug)]
pub struct Hello {
    /// The arguments of the script; it has no keys.
    pub words: Words,
    asked: Moment,
    /// Whether the time in it is that of most masters, rather than this host's.
    by_others: bool,
}

/// What the connecting side knows of a master, besides what the master says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insight {
    /// Nothing.
    Nothing,
    /// It was asked, and loses nothing when it restarts: its `appendfsync` is `always`.
    FsyncAlways,
    /// It is new: it never restarted, nor lost a key. Only one that lives in this process can be
    /// known so well.
    New,
}

/// What became of the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HelloOutcome {
    /// The connection may be used, with this at the head of every call.
    Known(SessionHeader),
    /// Its clock and that of this host differ, or it may have forgotten what it granted, and it is
    /// not known yet what time it is. To be asked again when [`Handshake::sighted`] says so.
    Again,
    /// It may not be used. Callers get this failure.
    Refused(Failure),
}

impl Default for SessionHeader {
    /// That of a connection that was never made known: no master gives it a vote.
    fn default() -> Self {
        Self(Arc::new((0..5).fold(Words::new(0), |words, _| words.with(""))))
    }
}

impl SessionHeader {
    /// The arguments that stand before those of the operations.
    pub fn args(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.args()
    }

    /// The same as they are sent.
    pub(crate) fn packed_args(&self) -> &str {
        self.0.packed_args()
    }
}

impl Handshake {
    /// How the master at `index` makes its connections known.
    pub(crate) fn new(trust: Arc<Trust>, index: usize) -> Self {
        Self { trust, index, seen: Arc::default() }
    }

    /// The script that is asked. It runs alone, and its reply is not a list of operations'.
    pub fn script(&self) -> &'static Script {
        &HELLO
    }

    /// Whether the answer depends on how the master persists.
    pub fn wants_fsync(&self) -> bool {
        self.trust.terms.cold_start == ColdStart::Fsync
    }

    /// What to ask now.
    pub fn question(&self, sight: Insight) -> Hello {
        let terms = &self.trust.terms;
        let trusted = if sight == Insight::New { ColdStart::None } else { terms.cold_start };
        let asked = self.trust.clock.now();
        let by_others = self.trust.knows_the_time();
        let words = Words::new(0)
            .with(&terms.marker)
            .with(terms)
            .with(terms.quarantine().as_micros())
            .with(trusted)
            .with(terms.quarantine().as_millis().div_ceil(1000))
            .with(self.trust.time())
            .with(u8::from(sight == Insight::FsyncAlways))
            .with(u8::from(self.seen.load(Ordering::Relaxed)))
            .with(u8::from(by_others));
        Hello { words, asked, by_others }
    }

    /// What the master's answer means.
    pub fn answer(&self, question: &Hello, answer: Result<Value, Failure>) -> HelloOutcome {
        let refused = |failure: Failure| {
            self.trust.standings()[self.index] = Standing::Refused(failure.text().into());
            HelloOutcome::Refused(failure)
        };
        match answer.map(|value| read(&value)) {
            Ok(Some(Answer::Welcome { marker, votes_from, time, why })) => {
                self.sight(question, time);
                self.seen.store(true, Ordering::Relaxed);
                let left = Duration::from_micros(votes_from.saturating_sub(time));
                let until = self.trust.clock.now() + left;
                self.trust.standings()[self.index] = if left.is_zero() {
                    Standing::Trusted
                } else {
                    Standing::Quarantined { until, left, is_new: &*why == "new" }
                };
                let terms = &self.trust.terms;
                self.trust.watched.begin(self.index, &marker);
                let words = Words::new(0).with(&terms.marker).with(marker).with(votes_from);
                let words =
                    words.with(terms.kept_free().as_millis()).with(if terms.strict { "1" } else { "" });
                HelloOutcome::Known(SessionHeader(Arc::new(words)))
            }
            Ok(Some(Answer::Refused { error, time })) => {
                self.sight(question, time);
                match error.strip_prefix("CLOCK ") {
                    Some(_) if !question.by_others => HelloOutcome::Again,
                    Some(why) => refused(Failure::Unreachable(why.into())),
                    None => {
                        let why = error.split_once(' ').map_or(&*error, |(_, why)| why);
                        refused(Failure::without_connection(Refusal::of_reply(&error), why))
                    }
                }
            }
            Ok(None) => refused(Failure::Unreachable("it answered the handshake in an unknown form".into())),
            Err(Failure::Refused { reason, detail }) => {
                refused(Failure::without_connection(reason, &format!("the handshake failed: {detail}")))
            }
            Err(unreachable @ Failure::Unreachable(_)) => HelloOutcome::Refused(unreachable),
            Err(Failure::Unknown(_)) => {
                HelloOutcome::Refused(Failure::Unreachable("it did not answer the handshake".into()))
            }
        }
    }

    /// Resolves when most masters' time was seen, so that the question may get another answer.
    pub async fn sighted(&self) {
        self.trust.until_it_knows_the_time().await;
    }

    fn sight(&self, question: &Hello, time: u64) {
        // A master with a wrong clock has no vote, but may be connected.
        let _ = self.trust.hear_time(self.index, question.asked, self.trust.clock.now(), time);
        self.trust.sighted.notify_waiters();
    }
}

enum Answer {
    Welcome { marker: Arc<str>, votes_from: u64, time: u64, why: Arc<str> },
    Refused { error: Arc<str>, time: u64 },
}

fn read(reply: &Value) -> Option<Answer> {
    let items = reply.list()?;
    let text = |i: usize| items.get(i).and_then(Value::text).cloned();
    let number = |i: usize| items.get(i).and_then(Value::int)?.try_into().ok();
    match &*text(0)? {
        "welcome" => Some(Answer::Welcome {
            marker: text(1)?,
            votes_from: number(2)?,
            time: number(3)?,
            why: text(4)?,
        }),
        "refused" => Some(Answer::Refused { error: text(1)?, time: number(2)? }),
        _ => None,
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake").field("index", &self.index).finish_non_exhaustive()
    }
}
