//! Opens a connection to a master: dials, logs in, loads the scripts and shakes hands.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::try_join_all;
use redis::{PushInfo, PushKind};

use super::address::Address;
use super::asks::Asks;
use super::dial::{Dialler, Stream};
use super::hello::{self, WaitsFor};
use super::login::{self, LoggedIn};
use crate::random::Random;
use crate::set::{Handshake, SessionHeader};
use crate::sync::Mutex;
use crate::vote::Refusal;
use crate::wire::{Failure, Info, Script, Value};

/// What a link is made of: all that opening its connections needs.
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

/// One connection, set up and ready for calls.
pub(super) struct Session {
    pub(super) stream: Box<dyn Stream>,
    pub(super) identity: Option<Identity>,
    /// What the handshake gave it; `None` without a handshake.
    pub(super) header: Option<SessionHeader>,
    /// Whether the record, which the connection follows, changed since that.
    pub(super) record_changed: bool,
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
    /// Whether it was logged that releases cannot wake this client's waiters.
    refused: AtomicBool,
}

impl Roster {
    /// Notes that `master` is the process `run_id`, and no more the one that it was. An error if
    /// another master is that process.
    fn claim(&self, master: &Arc<str>, run_id: &str) -> Result<(), String> {
        let mut known = self.processes.lock();
        known.retain(|(name, _)| name != master);
        if let Some((other, _)) = known.iter().find(|(_, id)| id == run_id) {
            return Err(format!("it is the same server as {other}, which has its one vote already"));
        }
        known.push((master.clone(), run_id.to_owned()));
        Ok(())
    }

    /// A master has left the set: it may join again under another name.
    pub(super) fn forget(&self, master: &Arc<str>) {
        self.processes.lock().retain(|(name, _)| name != master);
    }

    /// Whether this is the first time that a master does not let its user subscribe or publish.
    pub(super) fn is_first_refusal(&self) -> bool {
        !self.refused.swap(true, Ordering::Relaxed)
    }
}

/// Connects, logs in, makes sure that nothing that was sent on `predecessor` can run any more,
/// loads the scripts, and shakes hands. Tells what it waits for where that is other masters. The
/// redis crate does that on a stream that it is lent.
pub(super) async fn open(
    settings: &LinkSettings,
    predecessor: Option<&Identity>,
    waits_for: &WaitsFor<'_>,
) -> Result<Session, Failure> {
    let invalidated = Arc::new(AtomicBool::new(false));
    let noted = invalidated.clone();
    let on_push = move |push: PushInfo| {
        noted.fetch_or(push.kind == PushKind::Invalidate, Ordering::Relaxed);
    };
    let LoggedIn { connection, mut moves_bytes, stream } =
        login::log_in(&settings.address, &settings.dialler, on_push).await?;
    let asks = Asks::Lent(connection);
    let (identity, header) = tokio::select! {
        done = prepare(&asks, settings, predecessor, waits_for) => done?,
        () = &mut moves_bytes => return Err("the connection broke during its set-up".to_owned().into()),
    };
    drop((asks, moves_bytes));
    let stream = Arc::into_inner(stream).ok_or_else(|| "the connection is still in use".to_owned())?;
    let record_changed = invalidated.load(Ordering::Relaxed);
    Ok(Session { stream: stream.into_inner(), identity, header, record_changed })
}

/// The set-up of a connection that is logged in.
async fn prepare(
    asks: &Asks<'_>,
    LinkSettings { address, scripts, roster, handshake, patience, .. }: &LinkSettings,
    predecessor: Option<&Identity>,
    waits_for: &WaitsFor<'_>,
) -> Result<(Option<Identity>, Option<SessionHeader>), Failure> {
    let identity = identify(asks).await?;
    if let Some(Identity { run_id, .. }) = &identity {
        let claimed = roster.claim(address.name(), run_id);
        claimed.map_err(|why| Failure::refused(Refusal::Other, why))?;
        if let Some(old) = predecessor.filter(|old| old.run_id == *run_id) {
            kill_predecessor(asks, address.name(), old.connection).await?;
        }
    }
    // Sent together: a server that is loading its data answers only a few times a second.
    let load = async |script: &&Script| asks.ask(&["SCRIPT", "LOAD", script.source()]).await;
    try_join_all(scripts.iter().map(load)).await?;
    let Some(handshake) = handshake.get() else { return Ok((identity, None)) };
    hello::follow_changes(asks).await?;
    Ok((identity, Some(hello::shake_hands(asks, handshake, *patience, waits_for).await?)))
}

/// Asks for the server's run id and this connection's number; `None` if the user has no right to.
/// Refuses a server that is too old.
async fn identify(asks: &Asks<'_>) -> Result<Option<Identity>, Failure> {
    let id = asks.ask(&["CLIENT", "ID"]);
    let server = asks.ask(&["INFO", "server"]);
    let (id, Ok(Value::Text(info))) = futures::try_join!(id, server)? else { return Ok(None) };
    let info = Info(info.to_string());
    if let Some(version) = info.too_old() {
        let why = format!("it is Redis {version}, which is too old");
        return Err(Failure::refused(Refusal::Unsupported, why));
    }
    let Ok(Value::Int(connection)) = id else { return Ok(None) };
    let run_id = info.get("run_id").map(str::to_owned);
    Ok(run_id.map(|run_id| Identity { run_id, connection }))
}

/// Kills the previous connection on the server, which may have calls of it that it did not read
/// yet: after this, those have run or never will. A server that restarted has no such connection,
/// and may have given its number to another client.
async fn kill_predecessor(asks: &Asks<'_>, master: &str, connection: i64) -> Result<(), String> {
    if let Err(error) = asks.ask(&["CLIENT", "KILL", "ID", &connection.to_string()]).await? {
        tracing::warn!(
            master,
            error,
            "cannot close the previous connection on the master: calls that were lost on it may still run"
        );
    }
    Ok(())
}
