//! Sends the commands that are no calls: those of a set-up, a handshake and an examination.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ServerError};
use tokio::sync::oneshot;

use super::login::describe;
use super::state::{LinkState, Question};
use crate::sync::Mutex;
use crate::wire::Value;

/// Where commands are sent.
pub(crate) enum Asks<'a> {
    /// On a new connection, by the redis crate.
    Lent(MultiplexedConnection),
    /// On an open one, between calls.
    Open(&'a Mutex<LinkState>),
}

/// A server's reply, or the text of its error reply.
pub(crate) type Replied = Result<Value, String>;

impl Asks<'_> {
    /// Sends one command. An error is how the connection failed; an error reply is a reply.
    pub(crate) async fn ask(&self, words: &[&str]) -> Result<Replied, String> {
        match self {
            Self::Lent(connection) => match connection.clone().send_packed_command(&command(words)).await {
                Ok(redis::Value::ServerError(error)) => Ok(Err(reply_text(&error))),
                Ok(reply) => Ok(Ok(value(reply))),
                Err(error) => Err(describe(&error)),
            },
            Self::Open(link) => {
                let (reply, replied) = oneshot::channel();
                let words = words.iter().map(|&word| word.to_owned()).collect();
                link.lock().ask(Question { words, reply });
                replied.await.map_err(|_| "the connection broke".to_owned())
            }
        }
    }
}

fn command(words: &[&str]) -> Cmd {
    let mut command = Cmd::with_capacity(words.len(), 64);
    words.iter().for_each(|word| {
        command.arg(word);
    });
    command
}

/// The error reply as the server sent it.
fn reply_text(error: &ServerError) -> String {
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
        redis::Value::Map(pairs) => Value::List(
            pairs.into_iter().flat_map(|(key, its)| [self::value(key), self::value(its)]).collect(),
        ),
        redis::Value::VerbatimString { text, .. } => Value::Text(text.into()),
        // Nothing that is asked is answered with anything else.
        other => Value::Text(format!("{other:?}").into()),
    }
}
