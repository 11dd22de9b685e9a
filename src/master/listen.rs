//! Listens on one channel of a master, on a connection of its own: whatever becomes of it, calls go
//! on.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisError, Value};

use super::link::{OPEN_LIMIT, RECONNECT};
use super::session::{LinkSettings, describe, without_secrets};
use super::subscriber::{Subscriber, SubscriptionEvent};
use crate::backoff::Backoff;

/// How a connection came to its end.
enum Ended {
    /// It was never there.
    NotOpened(String),
    /// It broke, after it had been of use: the next one will do.
    Broke,
    /// The server's user may not listen.
    Refused(String),
}

/// When to ask again where the user may not listen: rights change seldom.
const REFUSED: Duration = Duration::from_secs(30);

/// Listens for as long as it is polled, across reconnects. That the user may not listen is logged
/// once a client.
pub(super) async fn listen(parts: Arc<LinkSettings>, channel: Arc<str>, ear: Subscriber) {
    let master = &**parts.address.name();
    let mut backoff = Backoff::new(RECONNECT.0, RECONNECT.1);
    loop {
        match hear(&parts, &channel, &ear).await {
            Ended::Refused(why) => {
                if parts.roster.is_first_refusal() {
                    tracing::warn!(master, why, "cannot listen for releases: waiting acquires poll");
                }
                ear(SubscriptionEvent::Disconnected);
                tokio::time::sleep(REFUSED).await;
                continue;
            }
            Ended::NotOpened(why) => tracing::debug!(master, why, "cannot listen"),
            Ended::Broke => {
                tracing::debug!(master, "does not listen any more");
                backoff.reset();
            }
        }
        ear(SubscriptionEvent::Disconnected);
        tokio::time::sleep(backoff.delay(parts.random.next_u64())).await;
    }
}

/// Listens on one connection, to its end.
async fn hear(parts: &LinkSettings, channel: &Arc<str>, ear: &Subscriber) -> Ended {
    let opening = async {
        let stream = parts.dialler.dial(parts.address.endpoint()).await.map_err(|error| error.to_string())?;
        let config =
            AsyncConnectionConfig::new().set_response_timeout(None).set_push_sender(sender(ear.clone()));
        MultiplexedConnection::new_with_config(parts.address.login(), stream, config)
            .await
            .map_err(|error| without_secrets(describe(&error), parts.address.login()))
    };
    let (mut connection, driver) = match tokio::time::timeout(OPEN_LIMIT, opening).await {
        Ok(Ok(opened)) => opened,
        Ok(Err(why)) => return Ended::NotOpened(why),
        Err(_) => return Ended::NotOpened(format!("no connection within {OPEN_LIMIT:?}")),
    };
    let mut driver = pin!(driver);
    let subscribed = tokio::select! {
        subscribed = tokio::time::timeout(OPEN_LIMIT, connection.subscribe(&**channel)) => subscribed,
        () = &mut driver => return Ended::NotOpened("the connection broke during its set-up".to_owned()),
    };
    match subscribed {
        Ok(Ok(())) => ear(SubscriptionEvent::Subscribed),
        Ok(Err(error)) if is_refusal(&error) => return Ended::Refused(describe(&error)),
        Ok(Err(error)) => return Ended::NotOpened(describe(&error)),
        Err(_) => return Ended::NotOpened(format!("no subscription within {OPEN_LIMIT:?}")),
    }
    driver.await;
    Ended::Broke
}

fn is_refusal(error: &RedisError) -> bool {
    matches!(error.code(), Some("NOPERM" | "NOAUTH"))
}

fn sender(ear: Subscriber) -> impl Fn(PushInfo) -> Result<(), std::convert::Infallible> {
    move |push| {
        if let (PushKind::Message, Some(Value::BulkString(text))) = (push.kind, push.data.last()) {
            ear(SubscriptionEvent::Message(String::from_utf8_lossy(text).into()));
        }
        Ok(())
    }
}
