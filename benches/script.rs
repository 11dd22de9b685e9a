//! Acquire and release as commands, for the contenders that talk to the masters themselves, and
//! what a reply to them says. The only file of the benches that knows how the library's script is
//! laid out.

use std::time::UNIX_EPOCH;

use quorate::seam::{SCRIPTS, Script};

/// What stands at the head of every call: the key of the master's record, its stamp, until when the
/// master has no vote, and for how long (ms) it remembers a name that is free.
const HEAD: [&str; 4] = ["bench:master", "bench", "0", "94300"];

/// How long (ms) leases last, and keep others away.
const TTL: &str = "30000";

/// Deletes a lock that this owner has.
static COMPARE_AND_DELETE: Script = Script::new(
    "compare_and_delete",
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
);

/// What a contender sends.
#[derive(Clone, Copy)]
pub(crate) struct Commands {
    /// What its keys begin with.
    pub(crate) prefix: &'static str,
    script: fn() -> &'static Script,
    pub(crate) acquire: for<'a> fn(&'a Name, &'a Turn) -> Vec<&'a str>,
    pub(crate) release: for<'a> fn(&'a Name, &'a Turn) -> Vec<&'a str>,
}

/// A SET, and a script that compares and deletes.
pub(crate) const FLOOR: Commands = Commands {
    prefix: "floor",
    script: || &COMPARE_AND_DELETE,
    acquire: |name, turn| vec!["SET", &name.lock, &turn.owner, "NX", "PX", TTL],
    release: |name, turn| vec!["EVALSHA", COMPARE_AND_DELETE.sha1(), "1", &name.lock, &turn.owner],
};

/// The library's script of the common case.
pub(crate) const SAME_SCRIPT: Commands =
    Commands { prefix: "same-script", script: || SCRIPTS[0], acquire, release };

/// A lock's key.
#[derive(Default)]
pub(crate) struct Name {
    lock: String,
}

impl Name {
    pub(crate) fn new(prefix: &str, lock: &str) -> Self {
        Self { lock: format!("{prefix}:{{{lock}}}") }
    }
}

/// Who asks, in which round, and with the token that the lock has then.
pub(crate) struct Turn {
    owner: String,
    round: String,
    token: String,
}

impl Turn {
    /// The first operation of an owner; nobody was ever this owner.
    pub(crate) fn new(owner: u64, round: u64) -> Self {
        let owner = format!("9c7e6ad4-8f0c-4b7f-9d3a-0123456789ab:{owner}");
        let token = UNIX_EPOCH.elapsed().unwrap().as_micros().to_string();
        Self { owner, round: round.to_string(), token }
    }

    /// The next one of the same owner.
    pub(crate) fn then(self, round: u64) -> Self {
        Self { round: round.to_string(), ..self }
    }
}

fn acquire<'a>(name: &'a Name, turn: &'a Turn) -> Vec<&'a str> {
    call(name, &["acquire", "lock", &turn.owner, &turn.round, &turn.token, TTL, ""])
}

fn release<'a>(name: &'a Name, turn: &'a Turn) -> Vec<&'a str> {
    call(name, &["release", "lock", &turn.owner, &turn.round, &turn.token])
}

fn call<'a>(name: &'a Name, args: &[&'a str]) -> Vec<&'a str> {
    [&["EVALSHA", SCRIPTS[0].sha1(), "1", &name.lock], &HEAD[..], args].concat()
}

/// Whether a reply, whose last word this is, grants what was asked for: by OK, by 1, or by a token.
/// Where an operation's reply is a list, it has no such word.
pub(crate) fn grants(word: &[u8]) -> bool {
    let number = |word: &str| word.parse().is_ok_and(|number: u64| number > 0);
    std::str::from_utf8(word).is_ok_and(|word| word == "OK" || number(word))
}

impl Commands {
    /// Makes the masters know the script, and the stamp.
    pub(crate) fn load(&self, masters: &[String]) {
        let script = (self.script)();
        for master in masters {
            let mut connection = redis::Client::open(&**master).unwrap().get_connection().unwrap();
            let digest: String =
                redis::cmd("SCRIPT").arg("LOAD").arg(script.source()).query(&mut connection).unwrap();
            assert_eq!(digest, script.sha1());
            let [record, stamp, ..] = HEAD;
            let () = redis::cmd("HSET").arg(record).arg("stamp").arg(stamp).query(&mut connection).unwrap();
        }
    }
}
