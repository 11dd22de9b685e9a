//! A real server and an embedded one that are asked the same.

use quorate::seam::Script;
use quorate_testkit::{EmbeddedServer, RedisServer, Resp};
use redis::ConnectionLike;

use crate::moments::PATIENCE;
use crate::operations::Request;

/// How far two times that the servers tell may lie apart (ms): one was asked after the other, on a
/// busy machine.
const APART: f64 = 5_000.0;

/// Both servers.
pub(crate) struct Pair {
    pub(crate) embedded: EmbeddedServer,
    real: redis::Connection,
    pub(crate) server: RedisServer,
}

impl Pair {
    pub(crate) fn start() -> Self {
        let server = RedisServer::start();
        let real = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        Self { embedded: EmbeddedServer::new(0), real, server }
    }

    /// With Redis 7.0, whose errors and numbers an embedded server repeats; others have other texts
    /// for the same. A test that compares texts is skipped there.
    pub(crate) fn of_the_same_words() -> Option<Self> {
        let pair = Self::start();
        let info: String = pair.server.command(&["INFO", "server"]);
        let is_7_0 = info.contains("redis_version:7.0.");
        if !is_7_0 {
            println!("skipped: it compares texts, which are those of Redis 7.0");
        }
        is_7_0.then_some(pair)
    }

    /// What both answer to these, the embedded one first.
    pub(crate) fn ask(&mut self, script: &Script, requests: &[Request]) -> Vec<(Resp, Resp)> {
        let embedded = requests.iter().map(|request| match request {
            Request::Script(keys, args) => self.embedded.eval(script, &strs(keys), &strs(args)),
            Request::Command(words) => self.embedded.command(&strs(words)),
        });
        let embedded: Vec<Resp> = embedded.collect();
        let mut pipeline = redis::pipe();
        for request in requests {
            match request {
                Request::Script(keys, args) => {
                    pipeline.cmd("EVAL").arg(script.source()).arg(keys.len()).arg(keys).arg(args)
                }
                Request::Command(words) => pipeline.cmd(&words[0]).arg(&words[1..]),
            };
        }
        embedded.into_iter().zip(self.ask_real(&pipeline)).collect()
    }

    fn ask_real(&mut self, pipeline: &redis::Pipeline) -> Vec<Resp> {
        let packed = pipeline.get_packed_pipeline();
        let replies = self.real.req_packed_commands(&packed, 0, pipeline.cmd_iter().count());
        replies.unwrap().into_iter().map(Resp::from).collect()
    }

    /// Panics where the two do not have the same keys, with the same contents and until the same
    /// time.
    pub(crate) fn compare_keys(&mut self, script: &Script) {
        let mut keys = self.embedded.keys();
        let list = self.ask(script, &[command(&["KEYS", "*"])]).remove(0);
        let Resp::List(real) = list.1 else { panic!("{list:?}") };
        let mut real: Vec<String> = real.into_iter().map(text).collect();
        keys.sort();
        real.sort();
        assert_eq!(keys, real, "keys: embedded, real");
        for key in &keys {
            for looks in [vec!["TYPE", key], vec!["PTTL", key], self.contents(key)] {
                let (embedded, real) = self.ask(script, &[command(&looks)]).remove(0);
                assert!(same(&embedded, &real), "{looks:?}\nembedded {embedded:?}\nreal     {real:?}");
            }
        }
    }

    /// The command that shows all of a key.
    fn contents<'a>(&self, key: &'a str) -> Vec<&'a str> {
        match self.embedded.command(&["TYPE", key]) {
            Resp::Status(kind) if kind == "hash" => vec!["HGETALL", key],
            Resp::Status(kind) if kind == "zset" => vec!["ZRANGE", key, "0", "-1", "WITHSCORES"],
            _ => vec!["GET", key],
        }
    }
}

pub(crate) fn command(words: &[&str]) -> Request {
    Request::Command(words.iter().map(|&word| word.to_owned()).collect())
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn text(reply: Resp) -> String {
    match reply {
        Resp::Bulk(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Whether two replies say the same. A number from a thousand up is a time to live, and one of 13
/// digits and more a moment, or a token, which is one where it was made by the server.
pub(crate) fn same(one: &Resp, other: &Resp) -> bool {
    match (one, other) {
        (Resp::List(one), Resp::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (&Resp::Int(one), &Resp::Int(other)) => {
            one == other || is_about(one as f64, other as f64) || is_time_to_ask(one, other)
        }
        (Resp::Bulk(one), Resp::Bulk(other)) => one == other || is_same_text(one, other),
        _ => one == other,
    }
}

/// Whether two texts differ in times and moments only, and in those by little.
fn is_same_text(one: &[u8], other: &[u8]) -> bool {
    let (Ok(one), Ok(other)) = (std::str::from_utf8(one), std::str::from_utf8(other)) else { return false };
    if let (Some(one), Some(other)) = (seconds_off(one), seconds_off(other)) {
        return (one - other).abs() * 1000.0 < APART;
    }
    if let (Ok(one), Ok(other)) = (one.parse::<f64>(), other.parse::<f64>())
        && one.abs() > 2f64.powi(53)
    {
        return (one - other).abs() < one.abs() * 1e-9; // doubles are no more exact there
    }
    let no_digit = |c: char| !c.is_ascii_digit();
    let is_same = |(one, other): (&str, &str)| {
        one == other || matches!((one.parse(), other.parse()), (Ok(one), Ok(other)) if is_about(one, other))
    };
    one.chars().filter(|&c| no_digit(c)).eq(other.chars().filter(|&c| no_digit(c)))
        && one.split(no_digit).zip(other.split(no_digit)).all(is_same)
}

/// How far the client's time was from the server's, where it was refused for that.
fn seconds_off(text: &str) -> Option<f64> {
    text.strip_prefix("CLOCK the time that the client trusts is ")?
        .strip_suffix(" s from the time here")?
        .parse()
        .ok()
}

/// Whether these are what is left of the second in which whoever is called may ask (ms), and about
/// the same: it was called within the batch.
fn is_time_to_ask(one: i64, other: i64) -> bool {
    let least = 1000 - i64::try_from(PATIENCE.as_millis()).expect("it is short");
    [one, other].iter().all(|left| (least..=1000).contains(left))
}

/// Whether these are times to live, or moments, and about the same.
fn is_about(one: f64, other: f64) -> bool {
    const MOMENT: f64 = 1e12;
    const ROUNDED: f64 = 1e-12;
    let (least, apart) = (one.min(other), (one - other).abs());
    least >= 1000.0 && apart < APART || least > MOMENT && apart < (APART * 1000.0).max(one * ROUNDED)
}
