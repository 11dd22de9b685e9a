//! One physical connection to a master, and how it is set up.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::try_join_all;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, RedisConnectionInfo, RedisError, ServerError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::address::Address;
use super::dial::Dialler;
use super::dial::Stream;
use super::failure::Failure;
use super::script::Script;
use super::value::Value;
use crate::random::Random;
use crate::sync::{Mutex, MutexGuard};
use crate::trust::{Handshake, HelloOutcome, Insight, SessionHeader};
use crate::vote::Refusal;

/// What is needed to open a connection.
#[derive(Debug)]
pub(crate) struct LinkSettings {
    pub(crate) address: Address,
    pub(crate) dialler: Dialler,
    pub(crate) scripts: &'static [&'static Script],
    /// How its connections make themselves known, once that was told.
    pub(crate) handshake: OnceLock<Handshake>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) random: Arc<dyn Random>,
    /// How long a master may be silent before it counts as out of reach.
    pub(crate) patience: Duration,
}

/// A server's reply, or its error reply.
type Replied = Result<redis::Value, ServerError>;

/// One connection, set up and ready for calls.
pub(super) struct Session {
    pub(super) stream: Box<dyn Stream>,
    pub(super) identity: Option<Identity>,
    /// What its master knows it by; none where no handshake was asked for.
    pub(super) header: Option<SessionHeader>,
}

/// What the server knows a connection by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The server process; another one after every restart.
    run_id: String,
    /// The connection's number in that process.
    connection: i64,
}

/// What the masters of one client know of each other: which server process stands behind each, to
/// find one that is listed twice under two names; and what was logged already.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    processes: Mutex<Vec<(Arc<str>, String)>>,
    /// Whether the log was told that a user may not listen.
    refused: AtomicBool,
}

impl Roster {
    /// Notes that `master` is the process `run_id`, unless another master is that process already.
    fn claim(&self, master: &Arc<str>, run_id: &str) -> Result<(), String> {
        let mut known = self.processes.lock();
        if let Some((other, _)) = known.iter().find(|(name, id)| name != master && id == run_id) {
            return Err(format!("it is the same server as {other}, which has its one vote already"));
        }
        known.retain(|(name, _)| name != master);
        known.push((master.clone(), run_id.to_owned()));
        Ok(())
    }

    /// Whether nobody was told yet that one of the masters does not let its user listen.
    pub(super) fn is_first_refusal(&self) -> bool {
        !self.refused.swap(true, Ordering::Relaxed)
    }
}

/// Connects, logs in, loads the scripts, makes sure that nothing sent on `predecessor` can run any
/// more, and makes the connection known. The redis crate does that, and gives the stream back.
pub(super) async fn open(parts: &LinkSettings, predecessor: Option<&Identity>) -> Result<Session, Failure> {
    let LinkSettings { address, dialler, .. } = parts;
    let stream = dialler.dial(address.endpoint()).await.map_err(|error| error.to_string())?;
    let stream = Arc::new(Mutex::new(stream));
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let (connection, moves_bytes) =
        MultiplexedConnection::new_with_config(address.login(), Lent(stream.clone()), config).await.map_err(
            |error| {
                let text = without_secrets(describe(&error), address.login());
                Failure::without_connection(refusal_of_login(&error, &text), &text)
            },
        )?;
    let (identity, header) = {
        let mut moves_bytes = Box::pin(moves_bytes);
        let set_up = SetUp { connection };
        tokio::select! {
            done = set_up.run(parts, predecessor) => done?,
            () = &mut moves_bytes => return Err("the connection broke during its set-up".to_owned().into()),
        }
    };
    let stream = Arc::into_inner(stream).ok_or_else(|| "the connection is still in use".to_owned())?;
    let stream = stream.into_inner();
    Ok(Session { stream, identity, header })
}

/// A stream that is wanted back.
struct Lent(Arc<Mutex<Box<dyn Stream>>>);

impl Lent {
    fn stream(&self) -> MutexGuard<'_, Box<dyn Stream>> {
        self.0.lock()
    }
}

impl AsyncRead for Lent {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream()).poll_read(context, buffer)
    }
}

impl AsyncWrite for Lent {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream()).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream()).poll_shutdown(context)
    }
}

/// The set-up of a connection, which is logged in.
struct SetUp {
    connection: MultiplexedConnection,
}

impl SetUp {
    async fn run(
        &self,
        LinkSettings { address, scripts, roster, handshake, .. }: &LinkSettings,
        predecessor: Option<&Identity>,
    ) -> Result<(Option<Identity>, Option<SessionHeader>), Failure> {
        let identity = self.identify().await?;
        if let Some(Identity { run_id, .. }) = &identity {
            roster.claim(address.name(), run_id)?;
        }
        self.silence(address.name(), predecessor, identity.as_ref()).await?;
        // All at once: a server that is loading its data answers several times a second only.
        let loads = scripts.iter().map(|script| self.ask(command(&["SCRIPT", "LOAD", script.source()])));
        try_join_all(loads).await?;
        let header = match handshake.get() {
            Some(handshake) => Some(self.shake_hands(handshake).await?),
            None => None,
        };
        Ok((identity, header))
    }

    /// Asks for the server's run id and this connection's number. A user without the right to ask
    /// goes without.
    async fn identify(&self) -> Result<Option<Identity>, String> {
        let id = command(&["CLIENT", "ID"]);
        let server = command(&["INFO", "server"]);
        let (connection, info) = futures::try_join!(self.ask(id), self.ask(server))?;
        let (Ok(redis::Value::Int(connection)), Ok(info)) = (connection, info) else { return Ok(None) };
        let text = redis::from_redis_value::<String>(info).map_err(|error| error.to_string())?;
        let run_id = text.lines().find_map(|line| line.strip_prefix("run_id:")).map(str::to_owned);
        Ok(run_id.map(|run_id| Identity { run_id, connection }))
    }

    /// Closes the predecessor on the server's side, where it may still stand with calls that were
    /// not read yet. After this, they have run or never will. A server that restarted has no such
    /// connection, and may have given its number to somebody else.
    async fn silence(
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

    /// Makes the connection known.
    async fn shake_hands(&self, handshake: &Handshake) -> Result<SessionHeader, Failure> {
        let sight =
            if handshake.wants_fsync() { self.look_at_persistence().await? } else { Insight::Nothing };
        loop {
            let question = handshake.question(sight);
            let mut hello = command(&["EVAL", handshake.script().source(), "0"]);
            question.words.args().for_each(|word| {
                hello.arg(word);
            });
            let answer = match self.ask(hello).await? {
                Ok(reply) => Ok(value(reply)),
                Err(error) => Err(Failure::from_error_reply(&reply_text(&error))),
            };
            match handshake.answer(&question, answer) {
                HelloOutcome::Known(header) => return Ok(header),
                HelloOutcome::Again => handshake.sighted().await,
                HelloOutcome::Refused(why) => return Err(why),
            }
        }
    }

    /// Whether the server writes every change to disk before it answers, also while it rewrites its
    /// file. A user that may not ask gets no answer.
    async fn look_at_persistence(&self) -> Result<Insight, String> {
        let wanted = [("appendonly", "yes"), ("appendfsync", "always"), ("no-appendfsync-on-rewrite", "no")];
        let asked = wanted.map(|(setting, _)| self.ask(command(&["CONFIG", "GET", setting])));
        let found = try_join_all(asked).await?;
        let is_so = found
            .into_iter()
            .zip(wanted)
            .all(|(found, (_, wanted))| found.ok().and_then(setting).is_some_and(|found| found == wanted));
        Ok(if is_so { Insight::FsyncAlways } else { Insight::Nothing })
    }

    /// One command and its reply: the server's answer or error reply, or how the connection failed.
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

pub(super) fn describe(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (_, Some(detail)) => format!("{}: {detail}", error.category()),
        (_, None) => error.to_string(),
    }
}

/// What a server that did not let this client log in refuses. Some say that in words of their own.
fn refusal_of_login(error: &RedisError, text: &str) -> Refusal {
    match error.kind() {
        ErrorKind::AuthenticationFailed => Refusal::Password,
        _ => Refusal::of_reply(text),
    }
}

/// A server that does not know HELLO may quote it, with the password in it.
pub(super) fn without_secrets(mut text: String, login: &RedisConnectionInfo) -> String {
    if let Some((known, _)) = text.split_once(", with args") {
        text.truncate(known.len());
    }
    match login.password() {
        Some(password) if !password.is_empty() => text.replace(password, "***"),
        _ => text,
    }
}

pub(super) fn value(value: redis::Value) -> Value {
    match value {
        redis::Value::Nil => Value::Nil,
        redis::Value::Int(number) => Value::Int(number),
        redis::Value::BulkString(bytes) => Value::Text(String::from_utf8_lossy(&bytes).into()),
        redis::Value::SimpleString(text) => Value::Text(text.into()),
        redis::Value::Array(items) => Value::List(items.into_iter().map(self::value).collect()),
        // Lua scripts reply with nothing else.
        other => Value::Text(format!("{other:?}").into()),
    }
}
