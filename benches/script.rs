//! The library's acquire and release as commands, for the contenders that talk to the masters themselves, and what a
//! reply to them says. The only file of the benches that knows how the script is laid out.

use std::sync::LazyLock;

macro_rules! verbs {
    ($($name:literal),*) => {
        concat!($(include_str!(concat!("../scripts/lua/reentrant/", $name, ".lua"))),*)
    };
}

/// The script, as the library puts it together.
const SOURCE: &str =
    verbs!("lock", "acquire", "queue", "extend", "release", "withdraw", "transfer", "inspect", "run");

static DIGEST: LazyLock<String> = LazyLock::new(|| sha1_smol::Sha1::from(SOURCE).digest().to_string());

/// A lock's keys.
#[derive(Clone)]
pub(crate) struct Name {
    lock: String,
    queue: String,
}

impl Name {
    pub(crate) fn new(contender: &str, lock: &str) -> Self {
        Self { lock: format!("{contender}:{{{lock}}}"), queue: format!("{contender}:waiting:{{{lock}}}") }
    }
}

/// An owner that nobody ever was.
pub(crate) fn owner(number: u64) -> String {
    format!("9c7e6ad4-8f0c-4b7f-9d3a-0123456789ab:{number}")
}

/// The words of the command that takes the lock for an owner.
pub(crate) fn acquire<'a>(name: &'a Name, owner: &'a str, round: &'a str) -> Vec<&'a str> {
    vec!["EVALSHA", &DIGEST, "1", &name.lock, "acquire", owner, "1", "30000", round]
}

/// The words of the command that gives the lock back.
pub(crate) fn release<'a>(name: &'a Name, owner: &'a str, round: &'a str) -> Vec<&'a str> {
    let (keys, wakes) = (["2", &*name.lock, &*name.queue], "bench:wake:");
    [&["EVALSHA", &*DIGEST][..], &keys, &["release", owner, "0", round, wakes]].concat()
}

/// Whether a reply, which is an array of one, grants what was asked for.
pub(crate) fn grants(word: &[u8]) -> bool {
    word == b"1"
}

/// Makes the masters know the script.
pub(crate) fn load(masters: &[String]) {
    for master in masters {
        let mut connection = redis::Client::open(&**master).unwrap().get_connection().unwrap();
        let digest: String = redis::cmd("SCRIPT").arg("LOAD").arg(SOURCE).query(&mut connection).unwrap();
        assert_eq!(digest, *DIGEST);
    }
}
