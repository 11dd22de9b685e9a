//! The handshake: a connection's last step before it carries calls, which finds out whether the
//! master may vote.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::knowledge::Trust;
use super::standing::Standing;
use super::terms::ColdStart;
use crate::clock::Moment;
use crate::master::{Failure, Script, Value, Words};
use crate::sync::Mutex;
use crate::vote::Refusal;

/// The script that a connection runs by itself, before it carries calls.
pub static HELLO: Script = Script::of("hello", &[&[("hello", include_str!("../../scripts/lua/hello.lua"))]]);

/// The handshake of one client with one master. Every new connection sends
/// [`hello`](Handshake::hello) before any call, and again when the head of a call's replies is
/// nil.
#[derive(Clone)]
pub struct Handshake {
    trust: Arc<Trust>,
    index: usize,
    seen: Arc<Mutex<SeenMarkers>>,
}

/// The markers that this client saw on one master. One that is back after another was there, or
/// has an earlier end, is what a master has that went back: somebody put an older copy of its keys
/// there, or its address led to another server for a while.
#[derive(Debug, Default)]
struct SeenMarkers {
    last: Option<Arc<str>>,
    /// Those before, the oldest first.
    before: VecDeque<Arc<str>>,
    /// The latest end (us) of a quarantine.
    latest: u64,
}

impl SeenMarkers {
    /// How many are remembered: each is a restart, or a loss of keys, that this client saw.
    const MOST_BEFORE: usize = 16;

    fn note(&mut self, marker: &Arc<str>, votes_from: u64) {
        if let Some(last) = self.last.replace(marker.clone())
            && last != *marker
        {
            self.before.retain(|before| before != marker);
            self.before.push_back(last);
            if self.before.len() > Self::MOST_BEFORE {
                self.before.pop_front();
            }
        }
        self.latest = self.latest.max(votes_from);
    }
}

/// What every call on one connection begins with: see `scripts/lua/call.lua`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHeader(Arc<Words>);

/// The request of a handshake, and when it was made.
#[derive(Debug)]
pub struct Hello {
    /// The arguments of the script; it has no keys.
    pub words: Words,
    asked: Moment,
    /// Whether the time in it is that of most masters, and not this host's.
    has_masters_time: bool,
}

/// What this side knows of a master's persistence before the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insight {
    /// Nothing.
    Nothing,
    /// It loses nothing when it restarts: its `appendfsync` is `always`.
    FsyncAlways,
    /// It is new: it never restarted, nor lost a key. Only one that lives in this process can be
    /// known so well.
    New,
}

/// What came of a [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HelloOutcome {
    /// The connection may be used, with this at the head of every call.
    Known(SessionHeader),
    /// This client does not know yet what time most masters show, and needs that here: this host's
    /// clock differs from the master's, or the master may have forgotten what it granted. Shake
    /// hands again after [`Handshake::until_time_is_known`].
    Again,
    /// The connection may not be used. Calls fail with this.
    Refused(Failure),
}

impl Default for SessionHeader {
    /// The header without a handshake: with it no master votes.
    fn default() -> Self {
        Self(Arc::new((0..5).fold(Words::new(0), |words, _| words.with(""))))
    }
}

impl SessionHeader {
    /// The arguments that stand before those of the operations.
    pub fn args(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.args()
    }

    /// The marker's key, and its text.
    pub(crate) fn marker(&self) -> Option<(&str, &str)> {
        let mut args = self.args();
        args.next().zip(args.next())
    }

    /// The same arguments in RESP, as they are sent.
    pub(crate) fn packed_args(&self) -> &str {
        self.0.packed_args()
    }
}

impl Handshake {
    /// The handshake with the master at `index`.
    pub(crate) fn new(trust: Arc<Trust>, index: usize) -> Self {
        Self { trust, index, seen: Arc::default() }
    }

    /// The script of the request. It is sent by itself, and replies one answer, not a list.
    pub fn script(&self) -> &'static Script {
        &HELLO
    }

    /// Whether the outcome depends on how the master persists its data.
    pub fn wants_fsync(&self) -> bool {
        self.trust.terms.cold_start == ColdStart::Fsync
    }

    /// The request to send now.
    pub fn hello(&self, insight: Insight) -> Hello {
        let terms = &self.trust.terms;
        let trusted = if insight == Insight::New { ColdStart::None } else { terms.cold_start };
        let asked = self.trust.clock.now();
        let has_masters_time = self.trust.knows_the_time();
        let seen = self.seen.lock();
        let words = Words::new(0)
            .with(&terms.marker)
            .with(terms)
            .with(terms.quarantine().as_micros())
            .with(trusted)
            .with(terms.quarantine().as_millis().div_ceil(1000))
            .with(self.trust.time())
            .with(u8::from(insight == Insight::FsyncAlways))
            .with(seen.last.as_ref().map_or(String::new(), |_| seen.latest.to_string()))
            .with(u8::from(has_masters_time));
        let words = seen.before.iter().fold(words, |words, marker| words.with(marker));
        Hello { words, asked, has_masters_time }
    }

    /// Reads the master's answer, and notes whether the master may vote.
    pub fn outcome(&self, hello: &Hello, answer: Result<Value, Failure>) -> HelloOutcome {
        let refused = |failure: Failure| {
            self.trust.standings()[self.index] = Standing::Refused(failure.text().into());
            HelloOutcome::Refused(failure)
        };
        match answer.map(|value| read(&value)) {
            Ok(Some(Answer::Welcome { marker, votes_from, time, why })) => {
                self.note_time(hello, time);
                self.seen.lock().note(&marker, votes_from);
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
                self.note_time(hello, time);
                match error.strip_prefix("CLOCK ") {
                    Some(_) if !hello.has_masters_time => HelloOutcome::Again,
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

    /// Resolves when this client knows what time most masters show, so that another hello may
    /// succeed.
    pub async fn until_time_is_known(&self) {
        self.trust.until_it_knows_the_time().await;
    }

    fn note_time(&self, hello: &Hello, time: u64) {
        // A master with a wrong clock has no vote, but may be connected.
        let _ = self.trust.hear_time(self.index, hello.asked, self.trust.clock.now(), time);
        self.trust.time_seen.notify_waiters();
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
