//! What the hot script handles, it does as the full one: the same operations go to two masters, one
//! of which has the full script alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quorate_testkit::{EmbeddedServer, Resp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::lab::RECORD;
use super::source::script;

const START: u64 = 1_700_000_000_123_456;
const KEY: &str = "{l}";
const QUEUE: &str = "{l}:queue";

/// An operation in the words of the full script, and in those of the hot one if it has them.
struct Operation {
    full: Vec<String>,
    hot: Option<Vec<String>>,
}

/// Two masters with the same clock.
struct Pair {
    full: EmbeddedServer,
    hot: EmbeddedServer,
    time: Arc<AtomicU64>,
    /// How often the hot script replied what.
    handled: BTreeMap<String, u32>,
}

#[test]
fn the_hot_script_does_as_the_full_one() {
    let mut handled = BTreeMap::new();
    for seed in 0..300 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut pair = Pair::new(handled);
        for step in 0..60 {
            pair.something_happens(&mut random);
            let operation = pair.operation(&mut random);
            pair.carry_out(&operation, &mut random, &format!("seed {seed}, step {step}"));
        }
        handled = pair.handled;
    }
    println!("{handled:?}");
    for what in ["acquire: granted", "acquire: held", "acquire: left", "release: granted", "release: left"] {
        assert!(handled.get(what).is_some_and(|times| *times > 100), "{what}: {handled:?}");
    }
}

impl Pair {
    fn new(handled: BTreeMap<String, u32>) -> Self {
        let time = Arc::new(AtomicU64::new(START));
        let server = || {
            let its = time.clone();
            let server = EmbeddedServer::with_clock(0, Arc::new(move || its.load(Ordering::Relaxed)));
            server.command(&["HSET", RECORD, "stamp", "m"]);
            server
        };
        Self { full: server(), hot: server(), time: time.clone(), handled }
    }

    /// One of few owners and rounds, so that they meet, and often the holder's.
    fn operation(&self, random: &mut StdRng) -> Operation {
        let now = self.time.load(Ordering::Relaxed);
        let field = |field| match self.full.command(&["HGET", KEY, field]) {
            Resp::Bulk(bytes) => Some(String::from_utf8(bytes).unwrap()),
            _ => None,
        };
        let is_holders = random.random_range(0..3) > 0;
        let owner = field("o:x").filter(|_| is_holders).unwrap_or(format!("c:{}", random.random_range(1..4)));
        let round = random.random_range(1..6).to_string();
        let ahead = [0, 0, 0, 0, 300_000, -300_000, 700_000, -3_000_000][random.random_range(0..8)];
        let trusted = (now / 1000 * 1000).saturating_add_signed(ahead).to_string();
        let kept = ["10", "500", "10000"][random.random_range(0..3)].to_owned();
        let label = ["", "", "its work"][random.random_range(0..3)].to_owned();
        let token = field("fence").filter(|_| is_holders).unwrap_or_else(|| (now / 1000 * 1000).to_string());
        let kind =
            ["lock", "lock", "lock", "lock", "fair", "fair", "mutex"][random.random_range(0..7)].to_owned();
        let words = |verb: &str, words: &[&String]| -> Vec<String> {
            [verb.to_owned()].into_iter().chain(words.iter().map(|word| (*word).clone())).collect()
        };
        let (none, zero, ticket, wakes) = (String::new(), "0".to_owned(), "c:9".to_owned(), "w:".to_owned());
        match random.random_range(0..10) {
            0..4 => {
                let its = [&kind, &owner, &round, &trusted, &kept, &label];
                Operation { full: words("acquire", &its), hot: Some(words("acquire", &its)) }
            }
            4..8 => Operation {
                full: words("release", &[&kind, &owner, &zero, &round, &token, &none, &wakes, &none, &none]),
                hot: Some(words("release", &[&kind, &owner, &round, &token])),
            },
            8 => {
                let its =
                    [&kind, &owner, &round, &trusted, &kept, &label, &none, &ticket, &trusted, &zero, &wakes];
                Operation { full: words("acquire", &its), hot: None }
            }
            _ => {
                let its = [
                    &kind,
                    &owner,
                    &"2".to_owned(),
                    &round,
                    &trusted,
                    &kept,
                    &label,
                    &token,
                    &"1".to_owned(),
                ];
                Operation { full: words("extend", &its), hot: None }
            }
        }
    }

    fn command(&self, words: &[&str]) {
        self.full.command(words);
        self.hot.command(words);
    }

    /// Time passes, mostly none, so that moments are met; or somebody changes the key.
    fn something_happens(&self, random: &mut StdRng) {
        match random.random_range(0..40) {
            0..10 => drop(self.time.fetch_add(1000, Ordering::Relaxed)),
            10..12 => drop(self.time.fetch_add(random.random_range(0..600_000), Ordering::Relaxed)),
            12 => self.command(&["DEL", QUEUE]),
            13..15 => self.command(&["DEL", KEY]),
            // What the hot script left of a lease that was released says as much in one field.
            15 if matches!(self.hot.command(&["HGET", KEY, "kind"]), Resp::Bulk(_)) => {
                self.command(&["HDEL", KEY, ["x", "o:x", "l:x", "kind", "fence"][random.random_range(0..5)]])
            }
            16 => self.command(&["SET", KEY, "of others"]),
            17 if self.full.command(&["EXISTS", KEY]) == Resp::Int(0) => {
                self.command(&["HSET", KEY, "field", "of others"]);
            }
            _ => {}
        }
    }

    fn carry_out(&mut self, operation: &Operation, random: &mut StdRng, when: &str) {
        let stamp = if random.random_range(0..20) == 0 { "another" } else { "m" };
        let votes_from =
            if random.random_range(0..20) == 0 { self.time.load(Ordering::Relaxed) + 1 } else { 0 };
        let header = [RECORD, stamp, &votes_from.to_string(), "94300"].map(str::to_owned);
        let in_full = |server: &EmbeddedServer| {
            let counts = ["1".to_owned(), (operation.full.len() - 1).to_string()];
            let (verb, its) = operation.full.split_first().unwrap();
            let args = header.iter().chain([verb]).chain(&counts).chain(its);
            let kind = if operation.full[1] == "fair" { "fair" } else { "exclusive" };
            server.eval(script(kind), &[KEY, QUEUE], &args.map(String::as_str).collect::<Vec<_>>())
        };
        let wanted = in_full(&self.full);
        let hot = operation.hot.as_ref().map(|hot| {
            let args: Vec<&str> = header.iter().chain(hot).map(String::as_str).collect();
            self.hot.eval(script("hot"), &[KEY], &args)
        });
        let got = match hot {
            Some(Resp::List(replies)) if replies[1] != Resp::Int(-1) => {
                let how = if matches!(replies[1], Resp::Int(_)) { "granted" } else { "held" };
                self.count(&operation.full[0], how);
                Resp::List(replies)
            }
            Some(left) => {
                assert!(matches!(left, Resp::List(_)), "{when}: {left:?}");
                self.count(&operation.full[0], "left");
                in_full(&self.hot)
            }
            None => in_full(&self.hot),
        };
        assert_eq!(got, wanted, "{when}: {:?}", operation.full);
        assert_eq!(keys(&self.hot), keys(&self.full), "{when}: {:?}", operation.full);
    }

    fn count(&mut self, verb: &str, how: &str) {
        *self.handled.entry(format!("{verb}: {how}")).or_default() += 1;
    }
}

/// What a server has, and for how long. A free name of which the `last` is the `fence` is the same
/// without `last` and `kind`.
fn keys(server: &EmbeddedServer) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for key in [KEY, QUEUE] {
        match server.command(&["HGETALL", key]) {
            Resp::List(items) => {
                let text = |item: &Resp| match item {
                    Resp::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                    other => format!("{other:?}"),
                };
                let pairs = items.chunks(2).map(|pair| (text(&pair[0]), text(&pair[1])));
                let mut fields: BTreeMap<String, String> = pairs.collect();
                let is_free = ["x", "queued"].iter().all(|field| !fields.contains_key(*field));
                if is_free && fields.get("last") == fields.get("fence") {
                    fields.retain(|field, _| field != "last" && field != "kind");
                }
                // How long it is kept is in the golden vectors.
                let is_kept_as_long = !is_free || fields.contains_key("last");
                let ttl = is_kept_as_long.then(|| server.command(&["PTTL", key]));
                all.push(format!("{fields:?} {ttl:?}"));
            }
            other => all.push(format!("{other:?}")),
        }
    }
    all
}
