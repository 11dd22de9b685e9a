//! Asks a server about itself for the doctor, on a connection of its own, and writes nothing there.
//! The other files judge the answers.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use tokio::time::timeout;

use super::facts::{ClockLook, Denied, FoundRecord, Server, Unasked};
use crate::link::{Address, Asks, Dialler, LoggedIn, RedisConnection, Replied, log_in, subscribe};
use crate::set::{HELLO, MasterRecord, SessionHeader};
use crate::time::Clock;
use crate::wire::{Info, Script, Value, Words};

/// How often to measure the round trip and ask for the time: enough for a median that one slow
/// answer does not change.
const TIMES: usize = 5;

/// To connect and log in takes several round trips: names, TCP, TLS, and the login itself.
const ROUND_TRIPS_TO_OPEN: u32 = 4;

/// Every command that a client needs, as `ACL SETUSER` names it, in a form that cannot change
/// anything: it reads, or is refused for its arguments (which a server looks at after the user's
/// rights), or is about a key that nobody has.
const PROBES: [(&str, &[&str]); 32] = [
    ("ping", &["PING"]),
    ("info", &["INFO", "server"]),
    ("time", &["TIME"]),
    ("client|id", &["CLIENT", "ID"]),
    ("client|tracking", &["CLIENT", "TRACKING", "no mode"]),
    ("client|caching", &["CLIENT", "CACHING", "no mode"]),
    ("client|kill", &["CLIENT", "KILL", "ID", "no number"]),
    ("script|load", &["SCRIPT", "LOAD", "(no script"]),
    ("eval", &["EVAL", "(no script", "0"]),
    ("evalsha", &["EVALSHA", "0000000000000000000000000000000000000000", "0"]),
    ("get", &["GET", KEY]),
    ("set", &["SET", KEY, "v", "NX", "XX"]),
    ("exists", &["EXISTS", KEY]),
    ("scan", &["SCAN", "0", "COUNT", "no number"]),
    ("hget", &["HGET", KEY, "f"]),
    ("hlen", &["HLEN", KEY]),
    ("hmget", &["HMGET", KEY, "f"]),
    ("hgetall", &["HGETALL", KEY]),
    ("hrandfield", &["HRANDFIELD", KEY, "1", "WITHVALUES"]),
    HSET,
    ("hdel", &["HDEL", KEY, "f"]),
    ("pttl", &["PTTL", KEY]),
    ("pexpire", &["PEXPIRE", KEY, "no number"]),
    ("del", &["DEL", KEY]),
    ("publish", &["PUBLISH", CHANNEL, ""]),
    ("zadd", &["ZADD", KEY, "no number", "m"]),
    ("zcard", &["ZCARD", KEY]),
    ("zpopmin", &["ZPOPMIN", KEY, "no number"]),
    ("zrange", &["ZRANGE", KEY, "0", "0"]),
    ("zrank", &["ZRANK", KEY, "m"]),
    ("zrem", &["ZREM", KEY, "m"]),
    ("zscore", &["ZSCORE", KEY, "m"]),
];

/// A write with a field that has no value. A server that refuses all writes says so instead.
const HSET: (&str, &[&str]) = ("hset", &["HSET", KEY, "f", "v", "f"]);

/// These stand for a key that nobody has, and a channel that nobody listens on.
const KEY: &str = "{key}";
const CHANNEL: &str = "{channel}";

/// What the doctor needs to ask a server.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) clock: Arc<dyn Clock>,
    /// The key of the record.
    pub(crate) record: String,
    /// The key of the decree.
    pub(crate) decree: String,
    /// A key that nobody has, of the kind that locks have.
    pub(crate) key: String,
    /// A channel that nobody listens on, of the kind that clients are woken on.
    pub(crate) channel: String,
    /// A call of a script about a key that nobody has.
    pub(crate) call: (&'static Script, Words),
    /// How long it may take to answer.
    pub(crate) patience: Duration,
}

/// Asks a server about itself. It takes four times the patience to connect, and then the patience
/// for each of some ten questions, at most.
pub(crate) async fn examine(
    address: &Address,
    dialler: &Dialler,
    visit: &Visit,
) -> Result<Box<Server>, Unasked> {
    let opening = log_in(address, dialler, |_| {});
    let patience = visit.patience * ROUND_TRIPS_TO_OPEN;
    let LoggedIn { connection, moves_bytes, .. } = match timeout(patience, opening).await {
        Ok(opened) => opened.map_err(Unasked::Failed)?,
        Err(_) => return Err(Unasked::Silent(patience)),
    };
    let mut asker = Asker { asks: Asks::Lent(connection.clone()), connection, visit };
    tokio::select! {
        seen = asker.look() => seen.map(Box::new),
        () = moves_bytes => Err(broke()),
    }
}

/// Asks the questions, each with a time-out.
struct Asker<'a> {
    asks: Asks<'a>,
    connection: RedisConnection,
    visit: &'a Visit,
}

impl Asker<'_> {
    async fn look(&mut self) -> Result<Server, Unasked> {
        let words = ["HGETALL", &self.visit.record];
        let promises = ["HGET", &self.visit.decree, "incarnation"];
        let (info, record, decree) =
            futures::try_join!(self.ask(&["INFO"]), self.ask(&words), self.ask(&promises))?;
        let mut server = Server {
            info: Info(info.ok().and_then(|info| Some(info.text()?.to_string())).unwrap_or_default()),
            record: record.map_or_else(FoundRecord::Unread, found_record),
            decree: decree.ok().and_then(incarnation_of),
            ..Server::default()
        };
        self.look_at_rights(&mut server).await?;
        server.refuses_calls = self.make_calls().await?.err();
        for _ in 0..TIMES {
            let asked = self.visit.clock.now();
            let _ = self.ask(&["PING"]).await?; // an error is an answer
            server.round_trips.push(self.visit.clock.now().since(asked));
            server.looks.extend(self.time().await?);
        }
        Ok(server)
    }

    /// Sends one command. An error is that there was no reply in time; an error reply is a reply.
    async fn ask(&self, words: &[&str]) -> Result<Replied, Unasked> {
        match timeout(self.visit.patience, self.asks.ask(words)).await {
            Ok(reply) => reply.map_err(|_| broke()),
            Err(_) => Err(self.silent()),
        }
    }

    async fn time(&self) -> Result<Option<ClockLook>, Unasked> {
        let asked = self.visit.clock.now();
        let said = self.ask(&["TIME"]).await?;
        let answered = self.visit.clock.now();
        let time = said.ok().and_then(|time| match time.list()? {
            [seconds, micros] => u64::try_from(seconds.int()? * 1_000_000 + micros.int()?).ok(),
            _ => None,
        });
        Ok(time.map(|time| ClockLook { asked, answered, time }))
    }

    /// Asks what a client asks first: the question of its handshake, and a call of a script. No
    /// master votes on it, as its record is not named.
    async fn make_calls(&self) -> Result<Result<(), String>, Unasked> {
        let Visit { record, decree, call: (script, words), .. } = self.visit;
        let time = self.time().await?.map_or(1, |look| look.time).to_string();
        let hello = self.ask(&["EVAL", HELLO.source(), "0", record, &time, decree]).await?;
        let keys = words.keys().len().to_string();
        let header = SessionHeader::default();
        let call = ["EVAL", script.source(), &keys].into_iter();
        let call = call.chain(words.keys()).chain(header.args()).chain(words.args());
        let call = self.ask(&call.collect::<Vec<_>>()).await?;
        Ok(hello.and(call).map(drop))
    }

    /// Tries every command that a client needs.
    async fn look_at_rights(&mut self, server: &mut Server) -> Result<(), Unasked> {
        let tries = PROBES.map(|(_, words)| {
            let fill = |word: &&str| match *word {
                KEY => self.visit.key.clone(),
                CHANNEL => self.visit.channel.clone(),
                word => word.to_owned(),
            };
            let words: Vec<String> = words.iter().map(fill).collect();
            let this = &*self;
            async move { this.ask(&words.iter().map(String::as_str).collect::<Vec<_>>()).await }
        });
        for ((name, _), said) in PROBES.iter().zip(try_join_all(tries).await?) {
            let Err(error) = said else { continue };
            note(&mut server.denied, name, &error);
            if *name == HSET.0 && !error.starts_with("NOPERM") && !error.starts_with("ERR") {
                server.refuses_writes = Some(error);
            }
        }
        let subscribing = subscribe(&mut self.connection, &self.visit.channel);
        let subscribed = timeout(self.visit.patience, subscribing).await.map_err(|_| self.silent())?;
        if let Err(error) = subscribed {
            note(&mut server.denied, "subscribe", &error);
        }
        Ok(())
    }

    fn silent(&self) -> Unasked {
        Unasked::Silent(self.visit.patience)
    }
}

fn broke() -> Unasked {
    Unasked::Failed("the connection broke".to_owned().into())
}

/// Notes which right is missing, or that the server does not know the command, if a refusal is for
/// that. It has the right in its text only, which may name the user, too.
fn note(denied: &mut Denied, name: &'static str, refusal: &str) {
    let is_denied = refusal.starts_with("NOPERM");
    if refusal.starts_with("ERR unknown command") || refusal.starts_with("ERR unknown subcommand") {
        denied.unknown.push(name); // a server looks at that before the user's rights
    } else if is_denied && refusal.contains(" permissions to run ") {
        denied.commands.push(name);
    } else if is_denied && refusal.contains(" channel") {
        denied.channels = true;
    } else if is_denied {
        denied.keys = true;
    }
}

/// What the reply to HGETALL of the record's key says.
fn found_record(reply: Value) -> FoundRecord {
    let words = reply.list().unwrap_or_default();
    match MasterRecord::read(words) {
        _ if words.is_empty() => FoundRecord::Absent,
        Some(record) => FoundRecord::Read(Box::new(record)),
        None => FoundRecord::Strange,
    }
}

/// What the reply to HGET of a decree says.
fn incarnation_of(reply: Value) -> Option<Arc<str>> {
    if reply == Value::Nil { Some("".into()) } else { reply.text().cloned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::set::RECORD;
    use crate::wire::SCRIPTS;

    /// What the scripts run on a master.
    fn commands(text: &str) -> impl Iterator<Item = String> {
        let calls = ["call('", "try('"].map(|call| text.split(call).skip(1)); // redis.call and redis.pcall, or a short name
        let names =
            calls.into_iter().flatten().filter_map(|call| Some(call.split_once('\'')?.0.to_lowercase()));
        names.filter(|name| name.bytes().all(|byte| byte.is_ascii_lowercase()))
    }

    #[test]
    fn every_command_of_the_scripts_is_tried() {
        let scripts = SCRIPTS.iter().copied().chain([&HELLO, &RECORD]);
        let found: BTreeSet<String> = scripts.flat_map(|script| commands(script.source())).collect();
        assert!(found.len() > 20, "{found:?}");
        for name in found {
            assert!(PROBES.iter().any(|(known, _)| *known == name), "{name} is not tried");
        }
    }

    #[test]
    fn a_refusal_is_told_by_what_it_is_about_and_not_by_the_users_name() {
        for (refusal, wanted) in [
            (
                "NOPERM this user has no permissions to run the 'hset' command or its subcommand",
                (1, false, false),
            ),
            ("NOPERM User my channel key has no permissions to run the 'hset' command", (1, false, false)),
            (
                "NOPERM this user has no permissions to access one of the keys used as arguments",
                (0, true, false),
            ),
            ("NOPERM No permissions to access a key", (0, true, false)),
            ("NOPERM No permissions to access a channel", (0, false, true)),
        ] {
            let mut denied = Denied::default();
            note(&mut denied, "hset", refusal);
            assert_eq!((denied.commands.len(), denied.keys, denied.channels), wanted, "{refusal}");
        }
    }
}
