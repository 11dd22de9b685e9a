//! Opens a connection to a master: dials, logs in, loads the scripts and shakes hands.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::try_join_all;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, PushInfo, PushKind, ServerError};
use tokio::time::timeout;

use super::address::Address;
use super::answer::{Failure, Value};
use super::dial::{Dialler, Stream};
use super::login::{self, LoggedIn, describe};
use super::script::Script;
use crate::random::Random;
use crate::sync::Mutex;
use crate::trust::{Handshake, Hello, HelloOutcome, Insight, SessionHeader};

/// What a link is made of: all that opening its connections needs.
#[derive(Debug)]
pub(crate) struct LinkSettings {
    pub(crate) address: Address,
    pub(crate) dialler: Dialler,
    pub(crate) scripts: &'static [&'static Script],
    /// Set by [`Master::introduce`](super::Master::introduce).
    pub(crate) handshake: OnceLock<Handshake>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) random: Arc<dyn Random>,
    /// How long the master may be silent before it counts as silent for every caller.
    pub(crate) patience: Duration,
}

/// A server's reply, or its error reply.
type Replied = Result<redis::Value, ServerError>;

/// One connection, set up and ready for calls.
pub(super) struct Session {
    pub(super) stream: Box<dyn Stream>,
    pub(super) identity: Option<Identity>,
    /// What the handshake gave it; `None` without a handshake.
    pub(super) header: Option<SessionHeader>,
}

/// How the server identifies a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The server process; another one after every restart.
    run_id: String,
    /// The connection's number in that process.
    connection: i64,
}

/// What the masters of one client share: which server process each of them is, to find a server
/// that is listed under two names; and what was logged already.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    processes: Mutex<Vec<(Arc<str>, String)>>,
    /// Whether it was logged that a user has no right to subscribe.
    refused: AtomicBool,
}

impl Roster {
    /// Notes that `master` is the process `run_id`. An error if another master is that process.
    fn claim(&self, master: &Arc<str>, run_id: &str) -> Result<(), String> {
        let mut known = self.processes.lock();
        if let Some((other, _)) = known.iter().find(|(name, id)| name != master && id == run_id) {
            return Err(format!("it is the same server as {other}, which has its one vote already"));
        }
        known.retain(|(name, _)| name != master);
        known.push((master.clone(), run_id.to_owned()));
        Ok(())
    }

    /// Whether this is the first time that a master does not let its user subscribe.
    pub(super) fn is_first_refusal(&self) -> bool {
        !self.refused.swap(true, Ordering::Relaxed)
    }
}

/// Connects, logs in, makes sure that nothing that was sent on `predecessor` can run any more,
/// loads the scripts, and shakes hands. The redis crate does that on a stream that it is lent.
pub(super) async fn open(
    settings: &LinkSettings,
    predecessor: Option<&Identity>,
) -> Result<Session, Failure> {
    let invalidated = Arc::new(AtomicBool::new(false));
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_push_sender(note_invalidations(invalidated.clone()));
    let LoggedIn { connection, mut moves_bytes, stream } =
        login::log_in(&settings.address, &settings.dialler, &config).await?;
    let set_up = SetUp { connection };
    let (identity, header) = tokio::select! {
        done = set_up.run(settings, predecessor) => done?,
        () = &mut moves_bytes => return Err("the connection broke during its set-up".to_owned().into()),
    };
    drop((set_up, moves_bytes));
    if invalidated.load(Ordering::Relaxed) {
        return Err(RECORD_CHANGED.to_owned().into());
    }
    let stream = Arc::into_inner(stream).ok_or_else(|| "the connection is still in use".to_owned())?;
    Ok(Session { stream: stream.into_inner(), identity, header })
}

const RECORD_CHANGED: &str = "its record changed while the connection was set up";

/// Notes whether a key changed that the connection follows.
fn note_invalidations(noted: Arc<AtomicBool>) -> impl Fn(PushInfo) -> Result<(), Infallible> {
    move |push| {
        noted.fetch_or(push.kind == PushKind::Invalidate, Ordering::Relaxed);
        Ok(())
    }
}

/// The set-up of a connection that is logged in.
struct SetUp {
    connection: MultiplexedConnection,
}

impl SetUp {
    async fn run(
        &self,
        LinkSettings { address, scripts, roster, handshake, patience, .. }: &LinkSettings,
        predecessor: Option<&Identity>,
    ) -> Result<(Option<Identity>, Option<SessionHeader>), Failure> {
        let identity = self.identify().await?;
        if let Some(Identity { run_id, .. }) = &identity {
            roster.claim(address.name(), run_id)?;
        }
        self.kill_predecessor(address.name(), predecessor, identity.as_ref()).await?;
        // Sent together: a server that is loading its data answers only a few times a second.
        let loads = scripts.iter().map(|script| self.ask(command(&["SCRIPT", "LOAD", script.source()])));
        try_join_all(loads).await?;
        let Some(handshake) = handshake.get() else { return Ok((identity, None)) };
        Ok((identity, Some(self.shake_hands(handshake, *patience).await?)))
    }

    /// Asks for the server's run id and this connection's number; `None` if the user has no right
    /// to.
    async fn identify(&self) -> Result<Option<Identity>, String> {
        let id = command(&["CLIENT", "ID"]);
        let server = command(&["INFO", "server"]);
        let (connection, info) = futures::try_join!(self.ask(id), self.ask(server))?;
        let (Ok(redis::Value::Int(connection)), Ok(info)) = (connection, info) else { return Ok(None) };
        let text = redis::from_redis_value::<String>(info).map_err(|error| error.to_string())?;
        let run_id = text.lines().find_map(|line| line.strip_prefix("run_id:")).map(str::to_owned);
        Ok(run_id.map(|run_id| Identity { run_id, connection }))
    }

    /// Kills the previous connection on the server, which may have calls of it that it did not read
    /// yet: after this, those have run or never will. A server that restarted has no such
    /// connection, and may have given its number to another client.
    async fn kill_predecessor(
        &self,
        master: &str,
        predecessor: Option<&Identity>,
        identity: Option<&Identity>,
    ) -> Result<(), String> {
        let (Some(old), Some(new)) = (predecessor, identity) else { return Ok(()) };
        if old.run_id != new.run_id {
            return Ok(());
        }
        let kill = self.ask(command(&["CLIENT", "KILL", "ID", &old.connection.to_string()])).await?;
        if let Err(error) = kill {
            tracing::warn!(
                master,
                error = &*reply_text(&error),
                "cannot close the previous connection on the master: calls that were lost on it may still run"
            );
        }
        Ok(())
    }

    /// Shakes hands, again and again while it is not known what time it is, or what the others are.
    async fn shake_hands(&self, handshake: &Handshake, patience: Duration) -> Result<SessionHeader, Failure> {
        self.note_reply(
            "tracking",
            self.ask(command(&["CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP"])).await?,
        );
        let mut insight = Insight::Unknown;
        let mut hello = handshake.hello(insight);
        loop {
            let answer = match self.ask_and_follow(handshake.key(), &hello).await? {
                Ok(reply) => Ok(value(reply)),
                Err(error) => Err(Failure::from_error_reply(&reply_text(&error))),
            };
            hello = match handshake.outcome(&hello, answer) {
                HelloOutcome::Known(header) => return Ok(header),
                HelloOutcome::Ask(next) => next,
                HelloOutcome::Look => {
                    insight = self.look_at_persistence().await?;
                    handshake.hello(insight)
                }
                HelloOutcome::Again => {
                    handshake.until_time_is_known().await;
                    handshake.hello(insight)
                }
                HelloOutcome::Hear(news, why) => {
                    let heard = handshake.until_more_is_heard(news);
                    timeout(patience, heard).await.map_err(|_| why)?;
                    handshake.hello(insight)
                }
                HelloOutcome::Refused(why) => return Err(why),
            }
        }
    }

    /// Sends a request of the handshake, and has the server push a message when another connection
    /// changes the record from now on; also where that is undone before the next call could see it,
    /// by a copy of older keys. A server that does not know how, or does not let this user, is
    /// looked at with the next connection only.
    async fn ask_and_follow(&self, key: &str, hello: &Hello) -> Result<Replied, String> {
        let mut eval = command(&["EVAL", hello.script.source(), "0"]);
        hello.words.args().for_each(|word| {
            eval.arg(word);
        });
        let next = self.ask(command(&["CLIENT", "CACHING", "YES"]));
        let read = self.ask(command(&["HGET", key, "stamp"]));
        let (next, _, answer) = futures::try_join!(next, read, self.ask(eval))?;
        self.note_reply("caching", next);
        Ok(answer)
    }

    fn note_reply(&self, what: &str, reply: Replied) {
        if let Err(error) = reply {
            let error = &*reply_text(&error);
            tracing::debug!(what, error, "the server does not say when its record changes");
        }
    }

    /// Whether the server writes every change to disk before it answers, also while it rewrites its
    /// file.
    async fn look_at_persistence(&self) -> Result<Insight, String> {
        let wanted = [("appendonly", "yes"), ("appendfsync", "always"), ("no-appendfsync-on-rewrite", "no")];
        let asked = wanted.map(|(setting, _)| self.ask(command(&["CONFIG", "GET", setting])));
        let found = try_join_all(asked).await?;
        let found = found.into_iter().map(|found| found.ok().and_then(setting));
        let Some(found) = found.collect::<Option<Vec<_>>>() else { return Ok(Insight::NotTold) };
        let is_so = found.iter().zip(wanted).all(|(found, (_, wanted))| *found == wanted);
        Ok(Insight::KeepsAll(is_so))
    }

    /// Sends one command. An error is how the connection failed; an error reply is a reply.
    async fn ask(&self, command: Cmd) -> Result<Replied, String> {
        match self.connection.clone().send_packed_command(&command).await {
            Ok(redis::Value::ServerError(error)) => Ok(Err(error)),
            Ok(value) => Ok(Ok(value)),
            Err(error) => Err(describe(&error)),
        }
    }
}

pub(super) fn command(words: &[&str]) -> Cmd {
    let mut command = Cmd::with_capacity(words.len(), 64);
    words.iter().for_each(|word| {
        command.arg(word);
    });
    command
}

/// The value in the answer to a `CONFIG GET` of one setting: a map.
pub(super) fn setting(found: redis::Value) -> Option<String> {
    let pairs = redis::from_redis_value::<BTreeMap<String, String>>(found).ok()?;
    pairs.into_values().next()
}

/// The error reply as the server sent it.
pub(super) fn reply_text(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}

pub(super) fn value(value: redis::Value) -> Value {
    match value {
        redis::Value::Nil => Value::Nil,
        redis::Value::Int(number) => Value::Int(number),
        redis::Value::BulkString(bytes) => Value::Text(String::from_utf8_lossy(&bytes).into()),
        redis::Value::SimpleString(text) => Value::Text(text.into()),
        redis::Value::Array(items) => Value::List(items.into_iter().map(self::value).collect()),
        // Lua scripts reply with nothing else than the above.
        other => Value::Text(format!("{other:?}").into()),
    }
}
