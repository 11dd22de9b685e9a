//! Plays a scene of the golden vectors on a master: docs/protocol/vectors/README.md has their form.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use quorate::seam::{Script, SubscriptionEvent};
use quorate_testkit::{EmbeddedServer, RedisServer, Resp, Subscription};
use redis::ConnectionLike;
use serde_json::Value;

/// How far a moment may be from the one that is expected (us).
const NEAR: u64 = 1_000_000;

/// How long a call to an embedded server takes (us).
const A_CALL: u64 = 50;

/// When an embedded server starts (us since 1970).
const START: u64 = 1_700_000_000_123_456;

/// The key of the master's record.
const RECORD: &str = "master";

pub(super) enum Master<'a> {
    Real(&'a RedisServer, &'a Mutex<redis::Connection>),
    Embedded {
        server: EmbeddedServer,
        time: Arc<AtomicU64>,
        /// How long a call takes (us): none where the scene is about moments that a real clock does
        /// not meet.
        a_call: u64,
    },
}

impl Master<'_> {
    /// A new embedded master, whose clock stands still if the scene has to be exact.
    pub(super) fn embedded(is_exact: bool) -> Self {
        let time = Arc::new(AtomicU64::new(START));
        let its = time.clone();
        let server = EmbeddedServer::with_clock(0, Arc::new(move || its.load(Ordering::Relaxed)));
        Self::Embedded { server, time, a_call: if is_exact { 0 } else { A_CALL } }
    }

    /// How far a moment may be from the one that is expected (us).
    fn near(&self) -> u64 {
        match self {
            Self::Embedded { a_call: 0, .. } => 0,
            _ => NEAR,
        }
    }

    fn command(&self, words: &[&str]) -> Resp {
        match self {
            Self::Real(_, connection) => {
                let mut command = redis::cmd(words[0]);
                command.arg(&words[1..]);
                match connection.lock().unwrap().req_command(&command) {
                    Ok(value) => value.into(),
                    Err(error) => Resp::Error(error.to_string()),
                }
            }
            Self::Embedded { server, time, a_call } => {
                time.fetch_add(*a_call, Ordering::Relaxed);
                match words {
                    ["EVAL", text, keys, rest @ ..] => {
                        let (keys, args) = rest.split_at(keys.parse().unwrap());
                        // Scripts are made for ever.
                        server.eval(&Script::new("of the scene", text.to_string().leak()), keys, args)
                    }
                    words => server.command(words),
                }
            }
        }
    }

    fn eval(&self, script: &Script, keys: &[String], args: &[String]) -> Resp {
        let (keys, args): (Vec<&str>, Vec<&str>) =
            (keys.iter().map(|key| &**key).collect(), args.iter().map(|arg| &**arg).collect());
        match self {
            Self::Real(..) => {
                let count = keys.len().to_string();
                self.command(&[&["EVAL", script.source(), &count][..], &keys, &args].concat())
            }
            Self::Embedded { server, time, a_call } => {
                time.fetch_add(*a_call, Ordering::Relaxed);
                server.eval(script, &keys, &args)
            }
        }
    }

    fn now(&self) -> u64 {
        match self {
            Self::Real(..) => {
                let Resp::List(parts) = self.command(&["TIME"]) else { panic!("no time") };
                let part = |i: usize| plain(&parts[i]).parse::<u64>().unwrap();
                part(0) * 1_000_000 + part(1)
            }
            Self::Embedded { time, .. } => time.load(Ordering::Relaxed),
        }
    }

    fn pass(&self, millis: u64) {
        match self {
            Self::Real(..) => {
                let end = self.now() + millis * 1000;
                while self.now() < end {}
            }
            Self::Embedded { time, .. } => drop(time.fetch_add(millis * 1000, Ordering::Relaxed)),
        }
    }
}

/// A reply as JSON, to be compared.
fn json(reply: &Resp) -> Value {
    match reply {
        Resp::Nil => Value::Null,
        Resp::Int(number) => (*number).into(),
        Resp::List(items) => items.iter().map(json).collect(),
        Resp::Error(text) => text.clone().into(),
        other => plain(other).into(),
    }
}

fn plain(reply: &Resp) -> String {
    match reply {
        Resp::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Resp::Status(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

/// What a scene knows: its master, the tokens that have names, and what was heard.
pub(super) struct Scene<'a> {
    master: Master<'a>,
    script: &'a Script,
    tokens: BTreeMap<String, u64>,
    ears: Vec<Subscriber>,
    heard: Arc<Mutex<Vec<(String, String)>>>,
}

/// Listens for as long as it lives.
enum Subscriber {
    /// With the first of its channels.
    Real(redis::Connection, String),
    Embedded(#[expect(dead_code, reason = "it is dropped")] Subscription),
}

pub(super) type Step = Result<(), String>;

impl<'a> Scene<'a> {
    /// Begins on a master that is empty from here on.
    pub(super) fn new(master: Master<'a>, script: &'a Script) -> Self {
        if matches!(master, Master::Real(..)) {
            master.command(&["ACL", "SETUSER", "default", "allcommands"]);
            master.command(&["CONFIG", "SET", "maxmemory", "0"]);
            master.command(&["REPLICAOF", "NO", "ONE"]);
        }
        master.command(&["FLUSHALL"]);
        master.command(&["HSET", RECORD, "stamp", "m"]);
        Self { master, script, tokens: BTreeMap::new(), ears: Vec::new(), heard: Arc::default() }
    }

    /// What is not as it should be.
    pub(super) fn play(mut self, steps: &[Value]) -> Step {
        for (at, step) in steps.iter().enumerate() {
            self.step(step).map_err(|why| format!("step {at}: {why}"))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Value) -> Step {
        let (what, value) = ["call", "hot", "run", "redis", "hash", "queue", "ttl", "hears", "heard", "pass"]
            .iter()
            .find_map(|what| Some((*what, step.get(what)?)))
            .ok_or("it has nothing that it does")?;
        match what {
            "call" => self.call(step, list(value)),
            "hot" => self.call_hot(step, list(value)),
            "run" => {
                let reply = json(&self.master.eval(self.script, &[], &self.texts(value)));
                self.same(&step["reply"], &reply, "the reply")
            }
            "redis" => {
                let words = self.texts(value);
                let reply = self.master.command(&words.iter().map(|word| &**word).collect::<Vec<_>>());
                match step.get("reply") {
                    Some(wanted) => self.same(wanted, &json(&reply), "the reply"),
                    None if matches!(reply, Resp::Error(_)) => Err(format!("{reply:?}")),
                    None => Ok(()),
                }
            }
            "hash" => each(value, |name, wanted| self.hash(name, wanted)),
            "queue" => each(value, |name, wanted| {
                let queue = self.master.command(&["ZRANGE", &queue_of(name), "0", "-1"]);
                self.same(wanted, &json(&queue), &format!("the queue of {name}"))
            }),
            "ttl" => each(value, |name, wanted| {
                let Resp::Int(left) = self.master.command(&["PTTL", &key_of(name)]) else {
                    return Err("no TTL".into());
                };
                let most = wanted.as_i64().unwrap();
                let is_near = (most - 1000..=most).contains(&left);
                is_near.then_some(()).ok_or_else(|| format!("{name} lives for {left} ms, not {most}"))
            }),
            "hears" => {
                self.listen(&list(value).iter().map(|channel| channel.as_str().unwrap()).collect::<Vec<_>>());
                Ok(())
            }
            "heard" => {
                let heard = self.hear();
                self.same(value, &serde_json::json!(heard), "what was heard")
            }
            _ => {
                self.master.pass(value.as_u64().unwrap());
                Ok(())
            }
        }
    }

    fn call(&mut self, step: &Value, operations: &[Value]) -> Step {
        let (mut keys, mut args) = (Vec::new(), Vec::new());
        for operation in operations {
            let (names, its) = (list(&operation[1]), list(&operation[2]));
            for name in names.iter().map(|name| name.as_str().unwrap()) {
                keys.extend([key_of(name), queue_of(name)]);
            }
            args.extend([self.text(&operation[0]), names.len().to_string(), its.len().to_string()]);
            args.extend(self.texts(&operation[2]));
        }
        self.send(step, &keys, args)
    }

    /// Operations in the words of the hot script.
    fn call_hot(&mut self, step: &Value, operations: &[Value]) -> Step {
        let keys: Vec<String> = operations.iter().map(|words| key_of(words[1].as_str().unwrap())).collect();
        let words = |operation: &Value| {
            let words = list(operation).iter().enumerate().filter(|(place, _)| *place != 1);
            words.map(|(_, word)| self.text(word)).collect::<Vec<_>>()
        };
        let args = operations.iter().flat_map(words).collect();
        self.send(step, &keys, args)
    }

    /// Sends these behind the session header, and compares what comes back.
    fn send(&mut self, step: &Value, keys: &[String], args: Vec<String>) -> Step {
        let begins =
            |key: &str, usual: &str| step.get(key).map_or_else(|| usual.to_owned(), |value| self.text(value));
        let head = [("stamp", "m"), ("votes_from", "0"), ("kept_free", "94300")];
        let header = head.map(|(key, usual)| begins(key, usual));
        let args: Vec<String> = [RECORD.to_owned()].into_iter().chain(header).chain(args).collect();
        let reply = json(&self.master.eval(self.script, keys, &args));
        let Some(replies) = reply.as_array() else { return self.same(&step["reply"], &reply, "the call") };
        if let Some(time) = step.get("time") {
            self.same(time, &replies[0], "the time")?;
        }
        let replies = replies.get(1..).unwrap_or_default();
        self.same(&step["reply"], &replies.into(), "the reply")
    }

    fn hash(&mut self, name: &str, wanted: &Value) -> Step {
        let Resp::List(items) = self.master.command(&["HGETALL", &key_of(name)]) else {
            return Err("no hash".into());
        };
        let fields: BTreeMap<String, String> =
            items.chunks(2).map(|pair| (plain(&pair[0]), plain(&pair[1]))).collect();
        let wanted = wanted.as_object().unwrap();
        if !fields.keys().eq(wanted.keys().collect::<std::collections::BTreeSet<_>>()) {
            return Err(format!("{name} has {fields:?}, not {wanted:?}"));
        }
        fields.iter().try_for_each(|(field, value)| self.same(&wanted[field], &value.as_str().into(), field))
    }

    /// Words with what stands for something in place.
    fn texts(&self, words: &Value) -> Vec<String> {
        list(words).iter().map(|word| self.text(word)).collect()
    }

    /// A word with its moments, tokens and ids in place.
    fn text(&self, word: &Value) -> String {
        let Some(text) = word.as_str() else { return word.to_string() };
        let mut made = String::new();
        for part in text.split_inclusive(['<', '>']) {
            match (part.strip_suffix('>'), part.strip_suffix('<')) {
                (Some(name), _) => {
                    let id = || self.id(name).unwrap_or_else(|| part.to_owned());
                    made += &self.value(name).map_or_else(id, |value| value.to_string());
                }
                (_, Some(before)) => made += before,
                _ => made += part,
            }
        }
        made
    }

    /// What stands for `@N`, `now` or a token's name.
    fn value(&self, name: &str) -> Option<u64> {
        match name.strip_prefix('@') {
            Some(micros) => Some(self.master.now().saturating_add_signed(micros.parse().unwrap())),
            None if name == "now" => Some(self.master.now()),
            None => self.tokens.get(name).copied(),
        }
    }

    /// What stands for `run_id` or `replid2`.
    fn id(&self, name: &str) -> Option<String> {
        let field = match name {
            "run_id" => "run_id",
            "replid2" => "master_replid2",
            _ => return None,
        };
        let info = plain(&self.master.command(&["INFO"]));
        let mut fields = info.lines().filter_map(|line| line.split_once(':'));
        Some(fields.find(|(name, _)| *name == field).unwrap().1.to_owned())
    }

    /// Whether something is as it should be; tokens that are new get their names.
    fn same(&mut self, wanted: &Value, got: &Value, what: &str) -> Step {
        let other = || Err(format!("{what} is {got}, not {wanted}"));
        if let (Some(wanted), Some(got)) = (wanted.as_array(), got.as_array()) {
            if wanted.len() != got.len() {
                return other();
            }
            let mut pairs = wanted.iter().zip(got);
            let compared = pairs.try_for_each(|(wanted, got)| self.same(wanted, got, what));
            return compared.map_err(|why| format!("{why}, in {}", Value::from(got.clone())));
        }
        let Some(text) = wanted.as_str() else { return if wanted == got { Ok(()) } else { other() } };
        let is_same = match text {
            "*" => true,
            _ if text.starts_with('^') => got.as_str().is_some_and(|got| got.starts_with(&text[1..])),
            _ if text.starts_with("<ms ") => {
                let most: i64 = text[4..text.len() - 1].parse().unwrap();
                got.as_i64().is_some_and(|left| (most - 1000..=most).contains(&left))
            }
            "<run_id>" | "<replid2>" => got.as_str() == self.id(&text[1..text.len() - 1]).as_deref(),
            _ if text.contains('<') => return self.same_words(text, got, what),
            _ => wanted == got,
        };
        if is_same { Ok(()) } else { other() }
    }

    fn same_words(&mut self, wanted: &str, got: &Value, what: &str) -> Step {
        let text = got.as_str().map_or_else(|| got.to_string(), str::to_owned);
        let words: Vec<&str> = text.split(' ').collect();
        let wants: Vec<&str> = wanted.split(' ').collect();
        let is_same = words.len() == wants.len()
            && wants.iter().zip(words).all(|(want, word)| {
                let name = want.strip_prefix('<').and_then(|want| want.strip_suffix('>'));
                match (name, word.parse::<u64>()) {
                    (Some(name), Ok(number)) if name.starts_with('@') || name == "now" => {
                        self.value(name).unwrap().abs_diff(number) <= self.master.near()
                    }
                    (Some(name), Ok(number)) => {
                        *self.tokens.entry(name.to_owned()).or_insert(number) == number
                    }
                    _ => *want == word || *want == "*",
                }
            });
        if is_same { Ok(()) } else { Err(format!("{what} is {text}, not {wanted}")) }
    }

    fn listen(&mut self, channels: &[&str]) {
        match &self.master {
            Master::Real(server, _) => {
                let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
                connection.set_read_timeout(Some(crate::SOON)).unwrap();
                let subscribe = redis::cmd("SUBSCRIBE").arg(channels).get_packed_command();
                connection.send_packed_command(&subscribe).unwrap();
                channels.iter().for_each(|_| drop(connection.recv_response().unwrap()));
                self.ears.push(Subscriber::Real(connection, channels[0].to_owned()));
            }
            Master::Embedded { server, .. } => {
                for channel in channels {
                    let (heard, its) = (self.heard.clone(), (*channel).to_owned());
                    let ear = move |what| {
                        let SubscriptionEvent::Message(text) = what else { panic!("{what:?}") };
                        heard.lock().unwrap().push((its.clone(), text.to_string()));
                    };
                    self.ears.push(Subscriber::Embedded(server.subscribe(channel, Arc::new(ear))));
                }
            }
        }
    }

    /// What was heard since the last time.
    fn hear(&mut self) -> Vec<(String, String)> {
        const LAST: &str = "that was all";
        let mut heard = std::mem::take(&mut *self.heard.lock().unwrap());
        for ear in &mut self.ears {
            let Subscriber::Real(connection, channel) = ear else { continue };
            self.master.command(&["PUBLISH", channel, LAST]);
            loop {
                let push = connection.recv_response().unwrap();
                let (_, channel, text): (String, String, String) = redis::from_redis_value(push).unwrap();
                if text == LAST {
                    break;
                }
                heard.push((channel, text));
            }
        }
        heard
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

fn each(values: &Value, mut check: impl FnMut(&str, &Value) -> Step) -> Step {
    values.as_object().unwrap().iter().try_for_each(|(name, value)| check(name, value))
}

/// A name after `=` is a key as it is.
fn key_of(name: &str) -> String {
    name.strip_prefix('=').map_or_else(|| format!("{{{name}}}"), str::to_owned)
}

fn queue_of(name: &str) -> String {
    format!("{}:queue", key_of(name))
}
