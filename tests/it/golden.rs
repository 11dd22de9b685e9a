//! The scripts of docs/protocol: that they are made of scripts/hash, and that masters, real and
//! embedded ones, do what the golden vectors say. docs/protocol/vectors/README.md has their form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::{env, fs, iter};

use quorate::seam::{Heard, Script};
use quorate_testkit::{EmbeddedServer, RedisServer, Resp, Subscription};
use redis::ConnectionLike;
use serde_json::Value;

/// What a kind's script is made of, beside what all have: in its first layer, and in its second.
const KINDS: [(&str, &[&str], &[&str]); 6] = [
    ("exclusive", &["quick"], &[]),
    ("fair", &["quick"], &["turn", "kinds/fair"]),
    ("semaphore", &[], &["kinds/semaphore"]),
    ("rw", &[], &["turn", "kinds/rw"]),
    ("plain", &[], &["shared/plain"]),
    ("redisson", &[], &["shared/redisson"]),
];

/// How far a moment may be from the one that is expected (us).
const NEAR: u64 = 1_000_000;

/// How long a call to an embedded server takes (us).
const A_CALL: u64 = 50;

/// When an embedded server starts (us since 1970).
const START: u64 = 1_700_000_000_123_456;

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A file without its comments.
fn code(file: &str) -> String {
    let text = fs::read_to_string(root(&format!("scripts/{file}.lua"))).unwrap();
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("--");
    text.lines().filter(is_code).map(|line| format!("{line}\n")).collect()
}

/// The script of a kind: three layers of files, each a function within the one before. Lua 5.1 looks
/// for captured locals in a list whenever a function is defined, but not for those of the functions
/// around.
fn assemble(first: &[&str], its: &[&str]) -> String {
    let is_shared = its.iter().any(|file| file.starts_with("shared/"));
    let verbs: &[&str] = match is_shared {
        true => &["shared/verbs"],
        false => &["verbs/acquire", "verbs/extend", "verbs/release", "verbs/transfer", "verbs/inspect"],
    };
    let common: &[&str] =
        if is_shared { &["vote", "hooks", "queue"] } else { &["vote", "hooks", "name", "queue"] };
    let layers = [[&["call"], first].concat(), [common, its].concat(), [verbs, &["run"]].concat()];
    let layer =
        |files: &Vec<&str>| files.iter().map(|file| code(&format!("hash/{file}"))).collect::<String>();
    let [call, kind, verbs] = layers.each_ref().map(layer);
    format!(
        "{call}local function kind()\n{kind}local function verbs()\n{verbs}end\nreturn verbs()\nend\nreturn kind()\n"
    )
}

fn text_of(kind: &str) -> String {
    fs::read_to_string(root(&format!("docs/protocol/{kind}.lua"))).unwrap_or_default()
}

/// With QUORATE_WRITE=1 they are made so.
#[test]
fn the_scripts_of_the_docs_are_made_of_the_files() {
    let kinds = KINDS.map(|(kind, first, its)| (kind, assemble(first, its)));
    let mut table = String::new();
    for (kind, code) in iter::once(("hello", code("lua/master/hello"))).chain(kinds) {
        let text = format!(
            "-- Quorate's protocol 2: {kind}. MIT OR Apache-2.0. docs/PROTOCOL.md says what it does.\n{code}"
        );
        table += &format!("| [{kind}.lua]({kind}.lua) | `{}` |\n", sha1_smol::Sha1::from(&text).digest());
        if env::var_os("QUORATE_WRITE").is_some() {
            fs::write(root(&format!("docs/protocol/{kind}.lua")), &text).unwrap();
        }
        assert!(text_of(kind) == text, "docs/protocol/{kind}.lua is not made of scripts/: QUORATE_WRITE=1");
    }
    let readme = fs::read_to_string(root("docs/protocol/README.md")).unwrap();
    assert!(readme.contains(&table), "docs/protocol/README.md has other SHA1s than:\n{table}");
}

#[test]
fn real_masters_do_what_the_vectors_say() {
    let server = RedisServer::start();
    let connection = Mutex::new(redis::Client::open(server.url()).unwrap().get_connection().unwrap());
    replay(|_| Master::Real(&server, &connection));
}

#[test]
fn embedded_masters_do_what_the_vectors_say() {
    replay(|_| {
        let time = Arc::new(AtomicU64::new(START));
        let its = time.clone();
        let clock = Arc::new(move || its.load(Ordering::Relaxed));
        Master::Embedded(EmbeddedServer::with_clock(0, clock), time)
    });
}

/// Replays every scene on a master of its own, and tells all that are not as they should be.
fn replay<'a>(begin: impl Fn(&str) -> Master<'a>) {
    let (mut scenes, mut wrong) = (0, Vec::new());
    let mut files: Vec<PathBuf> =
        fs::read_dir(root("docs/protocol/vectors")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    for file in files {
        let stem = file.file_stem().unwrap().to_str().unwrap();
        let kind = stem.split('-').next().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let all: Vec<Value> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{stem}: {error}"));
        for scene in all {
            let master = begin(kind);
            if scene.get("only").is_some_and(|only| only != master.what()) {
                continue;
            }
            scenes += 1;
            let about = scene["about"].as_str().unwrap();
            if let Err(why) = Scene::new(master, kind).play(scene["steps"].as_array().unwrap()) {
                wrong.push(format!("{stem}: {about}: {why}"));
            }
        }
    }
    println!("{scenes} scenes");
    assert!(scenes >= LEAST_SCENES, "only {scenes} scenes");
    assert!(wrong.is_empty(), "{} of {scenes} scenes:\n{}", wrong.len(), wrong.join("\n"));
}

/// Fewer mean that some were not found.
const LEAST_SCENES: usize = 150;

enum Master<'a> {
    Real(&'a RedisServer, &'a Mutex<redis::Connection>),
    Embedded(EmbeddedServer, Arc<AtomicU64>),
}

impl Master<'_> {
    fn what(&self) -> &'static str {
        match self {
            Self::Real(..) => "redis",
            Self::Embedded(..) => "embedded",
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
            Self::Embedded(server, time) => {
                time.fetch_add(A_CALL, Ordering::Relaxed);
                server.command(words)
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
            Self::Embedded(server, time) => {
                time.fetch_add(A_CALL, Ordering::Relaxed);
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
            Self::Embedded(_, time) => time.load(Ordering::Relaxed),
        }
    }

    fn pass(&self, millis: u64) {
        match self {
            Self::Real(..) => {
                let end = self.now() + millis * 1000;
                while self.now() < end {}
            }
            Self::Embedded(_, time) => drop(time.fetch_add(millis * 1000, Ordering::Relaxed)),
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
struct Scene<'a> {
    master: Master<'a>,
    script: Script,
    tokens: BTreeMap<String, u64>,
    ears: Vec<Ear>,
    heard: Arc<Mutex<Vec<(String, String)>>>,
}

/// Listens for as long as it lives.
enum Ear {
    /// With the first of its channels.
    Real(redis::Connection, String),
    Embedded(#[expect(dead_code, reason = "it is dropped")] Subscription),
}

type Step = Result<(), String>;

impl<'a> Scene<'a> {
    fn new(master: Master<'a>, kind: &str) -> Self {
        if matches!(master, Master::Real(..)) {
            master.command(&["ACL", "SETUSER", "default", "allcommands"]);
            master.command(&["CONFIG", "SET", "maxmemory", "0"]);
            master.command(&["REPLICAOF", "NO", "ONE"]);
        }
        master.command(&["FLUSHALL"]);
        master.command(&["SET", "marker", "m"]);
        // Scripts are made for ever.
        let script = Script::new("golden", text_of(kind).leak());
        Self { master, script, tokens: BTreeMap::new(), ears: Vec::new(), heard: Arc::default() }
    }

    fn play(mut self, steps: &[Value]) -> Step {
        for (at, step) in steps.iter().enumerate() {
            self.step(step).map_err(|why| format!("step {at}: {why}"))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Value) -> Step {
        let (what, value) = ["call", "redis", "hash", "queue", "ttl", "hears", "heard", "pass"]
            .iter()
            .find_map(|what| Some((*what, step.get(what)?)))
            .ok_or("it has nothing that it does")?;
        match what {
            "call" => self.call(step),
            "redis" => {
                let words: Vec<String> = list(value).iter().map(|word| self.text(word)).collect();
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

    fn call(&mut self, step: &Value) -> Step {
        let begins =
            |key: &str, usual: &str| step.get(key).map_or_else(|| usual.to_owned(), |value| self.text(value));
        let head = [("marker", "m"), ("votes_from", "0"), ("kept_free", "94300"), ("strict", "")];
        let mut args = vec!["marker".to_owned()];
        args.extend(head.map(|(key, usual)| begins(key, usual)));
        let mut keys = Vec::new();
        for operation in list(&step["call"]) {
            let (names, its) = (list(&operation[1]), list(&operation[2]));
            for name in names.iter().map(|name| name.as_str().unwrap()) {
                keys.extend([key_of(name), queue_of(name)]);
            }
            args.extend([self.text(&operation[0]), names.len().to_string(), its.len().to_string()]);
            args.extend(its.iter().map(|word| self.text(word)));
        }
        let reply = json(&self.master.eval(&self.script, &keys, &args));
        let Some(replies) = reply.as_array() else { return self.same(&step["reply"], &reply, "the call") };
        if let Some(time) = step.get("time") {
            self.same(time, &replies[0], "the time")?;
        }
        self.same(&step["reply"], &replies[1..].into(), "the reply")
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

    /// A word with its moments and tokens in place.
    fn text(&self, word: &Value) -> String {
        let Some(text) = word.as_str() else { return word.to_string() };
        let mut made = String::new();
        for part in text.split_inclusive(['<', '>']) {
            match (part.strip_suffix('>'), part.strip_suffix('<')) {
                (Some(name), _) => {
                    made += &self.value(name).map_or_else(|| part.to_owned(), |value| value.to_string())
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
                        self.value(name).unwrap().abs_diff(number) <= NEAR
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
                self.ears.push(Ear::Real(connection, channels[0].to_owned()));
            }
            Master::Embedded(server, _) => {
                for channel in channels {
                    let (heard, its) = (self.heard.clone(), (*channel).to_owned());
                    let ear = move |what| {
                        let Heard::Message(text) = what else { panic!("{what:?}") };
                        heard.lock().unwrap().push((its.clone(), text.to_string()));
                    };
                    self.ears.push(Ear::Embedded(server.subscribe(channel, Arc::new(ear))));
                }
            }
        }
    }

    /// What was heard since the last time.
    fn hear(&mut self) -> Vec<(String, String)> {
        const LAST: &str = "that was all";
        let mut heard = std::mem::take(&mut *self.heard.lock().unwrap());
        for ear in &mut self.ears {
            let Ear::Real(connection, channel) = ear else { continue };
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

fn key_of(name: &str) -> String {
    format!("{{{name}}}")
}

fn queue_of(name: &str) -> String {
    format!("{{{name}}}:queue")
}
