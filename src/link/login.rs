//! Opens a stream to a master and logs in. Nothing is asked yet.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, PushInfo, RedisConnectionInfo, RedisError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::address::Address;
use super::dial::{self, Dialler, Stream};
use crate::sync::{Mutex, MutexGuard};
use crate::vote::Refusal;
use crate::wire::Failure;

/// A connection that the redis crate runs.
pub(crate) type RedisConnection = MultiplexedConnection;

/// A connection that is logged in.
pub(crate) struct LoggedIn {
    pub(crate) connection: RedisConnection,
    /// The connection works while this is polled.
    pub(crate) moves_bytes: BoxFuture<'static, ()>,
    /// What the other two use.
    pub(super) stream: Arc<Mutex<Box<dyn Stream>>>,
}

/// Connects and logs in. `on_push` is told what the server pushes. A password that can change is
/// read first. Where the master refuses it, it is read again, and tried if it is another one by
/// now.
pub(crate) async fn log_in(
    address: &Address,
    dialler: &Dialler,
    on_push: impl Fn(PushInfo) + Send + Sync + 'static,
) -> Result<LoggedIn, Failure> {
    let on_push = move |push| {
        on_push(push);
        Ok::<(), Infallible>(())
    };
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_push_sender(on_push);
    let login = address.login().await?;
    match log_in_with(&login, address, dialler, &config).await {
        Err(refused @ Failure::Refused { reason: Refusal::Password, .. }) => {
            let changed = address.login().await?;
            if changed.password() == login.password() {
                return Err(refused);
            }
            log_in_with(&changed, address, dialler, &config).await
        }
        done => done,
    }
}

async fn log_in_with(
    login: &RedisConnectionInfo,
    address: &Address,
    dialler: &Dialler,
    config: &AsyncConnectionConfig,
) -> Result<LoggedIn, Failure> {
    let not_dialled = |error: io::Error| match error.to_string() {
        why if dial::is_about_certificate(&error) => Failure::refused(Refusal::Certificate, why),
        why => why.into(),
    };
    let stream = dialler.dial(address.endpoint()).await.map_err(not_dialled)?;
    let stream = Arc::new(Mutex::new(stream));
    match MultiplexedConnection::new_with_config(login, Lent(stream.clone()), config.clone()).await {
        Ok((connection, driver)) => Ok(LoggedIn { connection, moves_bytes: driver.boxed(), stream }),
        Err(error) => {
            let mut text = without_secrets(describe(&error), login);
            let reason = match error.kind() {
                // Some servers do not say it by the first word.
                ErrorKind::AuthenticationFailed => Refusal::Password,
                _ => Refusal::of_reply(&text),
            };
            if let (Refusal::Password, Some(source)) = (reason, address.password_source()) {
                text = format!("{text} (it is from {source})");
            } else if reason == Refusal::Password && login.password() == Some("") {
                text.push_str(" (its URL has a user and no password)");
            }
            // Without a code or a login error it is no reply: the connection broke, say.
            if error.code().is_some() || reason.is_permanent() {
                Err(Failure::refused(reason, text))
            } else {
                Err(text.into())
            }
        }
    }
}

/// A stream for the redis crate to use, and to give back.
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

/// Subscribes a connection to a channel. An error says why that failed.
pub(crate) async fn subscribe(connection: &mut RedisConnection, channel: &str) -> Result<(), String> {
    connection.subscribe(channel).await.map_err(|error| describe(&error))
}

pub(super) fn describe(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (_, Some(detail)) => format!("{}: {detail}", error.category()),
        (_, None) => error.to_string(),
    }
}

/// A text of the server without the password: a server that does not know HELLO may quote that.
fn without_secrets(mut text: String, login: &RedisConnectionInfo) -> String {
    if let Some((known, _)) = text.split_once(", with args") {
        text.truncate(known.len());
    }
    match login.password() {
        Some(password) if !password.is_empty() => text.replace(password, "***"),
        _ => text,
    }
}
