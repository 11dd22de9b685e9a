//! Listens on one channel of a master, on a connection of its own, so that calls go on if it
//! breaks.

use std::sync::Arc;
use std::time::Duration;

use redis::{AsyncConnectionConfig, PushInfo, PushKind, Value};

use super::asks::Asks;
use super::contract::{Subscriber, SubscriptionEvent};
use super::link::{OPEN_LIMIT, RECONNECT};
use super::login::{self, LoggedIn, describe};
use super::session::LinkSettings;
use crate::backoff::Backoff;
use crate::vote::Refusal;

/// How a connection ended.
enum Ended {
    /// It could not be opened, or not subscribe.
    NotOpened(String),
    /// It broke after it had subscribed: the next one is opened soon.
    Broke,
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
            Ended::Refused(why) => {
                if settings.roster.is_first_refusal() {
                    tracing::warn!(master, why, "releases cannot wake waiting acquires, which poll");
                }
                subscriber(SubscriptionEvent::Disconnected);
                tokio::time::sleep(REFUSED).await;
                continue;
            }
            Ended::NotOpened(why) => tracing::debug!(master, why, "cannot listen"),
            Ended::Broke => {
                tracing::debug!(master, "does not listen any more");
                backoff.reset();
            }
        }
        subscriber(SubscriptionEvent::Disconnected);
        tokio::time::sleep(backoff.delay(settings.random.next_u64())).await;
    }
}

/// Listens on one connection, to its end.
async fn listen_once(settings: &LinkSettings, channel: &Arc<str>, subscriber: &Subscriber) -> Ended {
    let config =
        AsyncConnectionConfig::new().set_response_timeout(None).set_push_sender(sender(subscriber.clone()));
    let opening = login::log_in(&settings.address, &settings.dialler, &config);
    let LoggedIn { mut connection, mut moves_bytes, .. } =
        match tokio::time::timeout(OPEN_LIMIT, opening).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(why)) => return Ended::NotOpened(why.text().to_owned()),
            Err(_) => return Ended::NotOpened(format!("no connection within {OPEN_LIMIT:?}")),
        };
    let asks = Asks::Lent(connection.clone());
    let subscribing = async {
        // The releases of a user that may not publish wake nobody. No ticket has this number.
        let published = asks.ask(&["PUBLISH", channel, "0"]).await.map_err(Ended::NotOpened)?;
        published.map_err(Ended::by_reply)?;
        let subscribed = connection.subscribe(&**channel).await;
        subscribed.map_err(|error| Ended::by_reply(describe(&error)))
    };
    let subscribed = tokio::select! {
        subscribed = tokio::time::timeout(OPEN_LIMIT, subscribing) => subscribed,
        () = &mut moves_bytes => return Ended::NotOpened("the connection broke during its set-up".to_owned()),
    };
    match subscribed {
        Ok(Ok(())) => subscriber(SubscriptionEvent::Subscribed),
        Ok(Err(ended)) => return ended,
        Err(_) => return Ended::NotOpened(format!("no subscription within {OPEN_LIMIT:?}")),
    }
    moves_bytes.await;
    Ended::Broke
}

impl Ended {
    /// The server did not carry out a command, or the connection broke, as this says.
    fn by_reply(reply: String) -> Self {
        match Refusal::of_reply(&reply) {
            Refusal::NoPermission | Refusal::Password | Refusal::Unsupported => Self::Refused(reply),
            _ => Self::NotOpened(reply),
        }
    }
}

fn sender(subscriber: Subscriber) -> impl Fn(PushInfo) -> Result<(), std::convert::Infallible> {
    move |push| {
        if let (PushKind::Message, Some(Value::BulkString(text))) = (push.kind, push.data.last()) {
            subscriber(SubscriptionEvent::Message(String::from_utf8_lossy(text).into()));
        }
        Ok(())
    }
}
