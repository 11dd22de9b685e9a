//! Makes the handshake on a connection: on a new one while it is set up, and on an open one when
//! the master's record may be another one, or the client knows a newer one.

use std::time::Duration;

use tokio::time::timeout;

use super::asks::{Asks, Replied};
use crate::set::{Handshake, Hello, HelloOutcome, SessionHeader};
use crate::wire::Failure;

/// What is told why a handshake waits for other masters.
pub(super) type WaitsFor<'a> = dyn Fn(Failure) + Send + Sync + 'a;

/// From now on the server can be told to push a message when a key changes.
pub(super) async fn follow_changes(asks: &Asks<'_>) -> Result<(), String> {
    note_reply("tracking", asks.ask(&["CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP"]).await?);
    Ok(())
}

/// Shakes hands, again and again while it is not known what time it is, or what the others are.
pub(super) async fn shake_hands(
    asks: &Asks<'_>,
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
async fn ask_and_follow(asks: &Asks<'_>, key: &str, hello: &Hello) -> Result<Replied, String> {
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
