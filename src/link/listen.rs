//! Listens on one channel of a master, on a connection of its own, so that calls go on if it
//! breaks.

use std::sync::Arc;
use std::time::Duration;

use redis::{PushInfo, PushKind, Value};
use tokio::time::timeout;

use super::asks::Asks;
use super::contract::{Subscriber, SubscriptionEvent};
use super::login::{self, LoggedIn, describe};
use super::session::LinkSettings;
use super::state::{OPEN_LIMIT, RECONNECT};
use crate::backoff::Backoff;
use crate::vote::Refusal;

/// Why a connection does not listen.
enum NotListening {
    /// It could not be opened, or not subscribe.
    NotOpened(String),
    /// The user may not subscribe, or not publish, or the server does not know the command.
    Refused(String),
}

/// When to try again after a refusal: rights seldom change.
const REFUSED: Duration = Duration::from_secs(30);

/// Listens for as long as it is polled, across reconnects. A missing right is logged once a client.
pub(super) async fn listen(settings: Arc<LinkSettings>, channel: Arc<str>, subscriber: Subscriber) {
    let master = &**settings.address.name();
    let mut backoff = Backoff::new(RECONNECT.0, RECONNECT.1);
    loop {
        match listen_once(&settings, &channel, &subscriber).await {
            Err(NotListening::Refused(why)) => {
                if settings.roster.is_first_refusal() {
                    tracing::warn!(master, why, "releases cannot wake waiting acquires, which poll");
                }
                subscriber(SubscriptionEvent::Disconnected);
                tokio::time::sleep(REFUSED).await;
                continue;
            }
            Err(NotListening::NotOpened(why)) => tracing::debug!(master, why, "cannot listen"),
            Ok(()) => {
                tracing::debug!(master, "does not listen any more");
                backoff.reset();
            }
        }
        subscriber(SubscriptionEvent::Disconnected);
        tokio::time::sleep(backoff.delay(settings.random.next_u64())).await;
    }
}

/// Listens on one connection, until it breaks: the next one is opened soon then.
async fn listen_once(
    settings: &LinkSettings,
    channel: &Arc<str>,
    subscriber: &Subscriber,
) -> Result<(), NotListening> {
    let heard = subscriber.clone();
    let on_push = move |push: PushInfo| {
        if let (PushKind::Message, Some(Value::BulkString(text))) = (push.kind, push.data.last()) {
            heard(SubscriptionEvent::Message(String::from_utf8_lossy(text).into()));
        }
    };
    let opening = login::log_in(&settings.address, &settings.dialler, on_push);
    let too_long = |what: &str| NotListening::NotOpened(format!("no {what} within {OPEN_LIMIT:?}"));
    let opened = timeout(OPEN_LIMIT, opening).await.map_err(|_| too_long("connection"))?;
    let LoggedIn { mut connection, mut moves_bytes, .. } =
        opened.map_err(|why| NotListening::NotOpened(why.text().to_owned()))?;
    let asks = Asks::Lent(connection.clone());
    let subscribing = async {
        // The releases of a user that may not publish wake nobody. No ticket has this number.
        let published = asks.ask(&["PUBLISH", channel, "0"]).await.map_err(NotListening::NotOpened)?;
        published.map_err(NotListening::by_reply)?;
        let subscribed = connection.subscribe(&**channel).await;
        subscribed.map_err(|error| NotListening::by_reply(describe(&error)))
    };
    let broke = "the connection broke during its set-up";
    tokio::select! {
        subscribed = timeout(OPEN_LIMIT, subscribing) => subscribed.map_err(|_| too_long("subscription"))??,
        () = &mut moves_bytes => return Err(NotListening::NotOpened(broke.to_owned())),
    }
    subscriber(SubscriptionEvent::Subscribed);
    moves_bytes.await;
    Ok(())
}

impl NotListening {
    /// The server did not carry out a command, or the connection broke, as this says.
    fn by_reply(reply: String) -> Self {
        match Refusal::of_reply(&reply) {
            Refusal::NoPermission | Refusal::Password | Refusal::Unsupported => Self::Refused(reply),
            _ => Self::NotOpened(reply),
        }
    }
}
