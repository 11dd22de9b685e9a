//! Makes the handshake on a connection: on a new one while it is set up, and on an open one when
//! the master's record may be another one, or the client knows a newer one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::answer::Failure;
use super::asks::{Asks, Replied};
use super::link::OPEN_LIMIT;
use crate::sync::Mutex;
use crate::trust::{Handshake, Hello, HelloOutcome, SessionHeader};

/// What is told why a handshake waits for other masters.
pub(super) type WaitsFor<'a> = dyn Fn(Failure) + Send + Sync + 'a;

/// Why a handshake on an open connection waits for other masters, if it does.
pub(super) type Waiting = Arc<Mutex<Option<Failure>>>;

/// From now on the server can be told to push a message when a key changes.
pub(super) async fn follow_changes(asks: &Asks) -> Result<(), String> {
    note_reply("tracking", asks.ask(&["CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP"]).await?);
    Ok(())
}

/// Makes the handshake once more, on an open connection. That takes no longer than a new connection
/// may.
pub(super) async fn shake_hands_again(
    asks: Asks,
    handshake: Handshake,
    patience: Duration,
    waiting: Waiting,
) -> Result<SessionHeader, Failure> {
    let waits_for = |why| *waiting.lock() = Some(why);
    let made = timeout(OPEN_LIMIT, shake_hands(&asks, &handshake, patience, &waits_for)).await;
    let too_long = || format!("no handshake within {OPEN_LIMIT:?}").into();
    made.unwrap_or_else(|_| Err(waiting.lock().take().unwrap_or_else(too_long)))
}

/// Shakes hands, again and again while it is not known what time it is, or what the others are.
pub(super) async fn shake_hands(
    asks: &Asks,
    handshake: &Handshake,
    patience: Duration,
    waits_for: &WaitsFor<'_>,
) -> Result<SessionHeader, Failure> {
    let mut hello = handshake.hello(false);
    loop {
        let answer = ask_and_follow(asks, handshake.key(), &hello).await?;
        let answer = answer.map_err(|error| Failure::from_error_reply(&error));
        hello = match handshake.outcome(&hello, answer) {
            HelloOutcome::Known(header) => return Ok(header),
            HelloOutcome::Ask(next) => next,
            HelloOutcome::Again(why) => {
                waits_for(why);
                handshake.until_time_is_known().await;
                handshake.hello(false)
            }
            HelloOutcome::Hear(news, why) => {
                waits_for(why.clone());
                let heard = handshake.until_more_is_heard(news);
                timeout(patience, heard).await.map_err(|_| why)?;
                handshake.hello(false)
            }
            HelloOutcome::Refused(why) => return Err(why),
        }
    }
}

/// Sends a request of the handshake, and has the server push a message when another connection
/// changes the record from now on; also where that is undone before the next call could see it, by
/// a copy of older keys. A server that does not know how, or does not let this user, is looked at
/// when a call names another record only.
async fn ask_and_follow(asks: &Asks, key: &str, hello: &Hello) -> Result<Replied, String> {
    let mut eval = vec!["EVAL", hello.script.source(), "0"];
    eval.extend(hello.words.args());
    let next = ["CLIENT", "CACHING", "YES"];
    let read = ["HGET", key, "stamp"];
    let (next, _, answer) = futures::try_join!(asks.ask(&next), asks.ask(&read), asks.ask(&eval))?;
    note_reply("caching", next);
    Ok(answer)
}

fn note_reply(what: &str, reply: Replied) {
    if let Err(error) = reply {
        tracing::debug!(what, error, "the server does not say when its record changes");
    }
}
