//! The commands that there are, and how many words each takes.

use super::context::{Answer, Context};
use super::settings::Settings;
use super::{administration, hash, info, keys, text, zset};

/// What a server without keys uses (bytes): where `maxmemory` is less, memory is full.
const LEAST_MEMORY: i64 = 1 << 20;

/// A command of the server.
pub(super) struct Command {
    pub(super) name: &'static str,
    /// How many words it has with its name: exactly, or if negative, at least.
    arity: isize,
    pub(super) writes: bool,
    /// Whether it is refused where memory is full.
    needs_memory: bool,
    /// Whether a script may call it.
    pub(super) is_for_scripts: bool,
    pub(super) run: fn(&mut Context<'_>, &[&[u8]]) -> Answer,
}

/// Those that a lock asks for come first: they are found by looking at one after the other.
static COMMANDS: &[Command] = &[
    command("TIME", 1, keys::time),
    command("GET", 2, text::get),
    command("HSET", -4, hash::hset).writing().needing_memory(),
    command("PEXPIRE", -3, keys::pexpire).writing(),
    command("SET", -3, text::set).writing().needing_memory(),
    command("HMGET", -3, hash::hmget),
    command("DEL", -2, keys::del).writing(),
    command("ZPOPMIN", -2, zset::zpopmin).writing(),
    command("PTTL", 2, keys::pttl),
    command("HGETALL", 2, hash::hgetall),
    command("ZCARD", 2, zset::zcard),
    command("ZADD", -4, zset::zadd).writing().needing_memory(),
    command("ZRANK", 3, zset::zrank),
    command("ZREM", -3, zset::zrem).writing(),
    command("ZSCORE", 3, zset::zscore),
    command("PUBLISH", 3, keys::publish),
    command("HINCRBY", 4, hash::hincrby).writing().needing_memory(),
    command("HGET", 3, hash::hget),
    command("HDEL", -3, hash::hdel).writing(),
    command("HRANDFIELD", 4, hash::hrandfield),
    command("HLEN", 2, hash::hlen),
    command("PERSIST", 2, keys::persist).writing(),
    command("EXISTS", -2, keys::exists),
    command("TYPE", 2, keys::kind),
    command("KEYS", 2, keys::keys),
    command("SCAN", -2, keys::scan),
    command("DBSIZE", 1, keys::dbsize),
    command("INFO", -1, info::info),
    command("FLUSHALL", -1, keys::flushall).writing(),
    command("ZRANGE", -4, zset::zrange),
    command("CONFIG", -2, administration::config).for_clients(),
    command("REPLICAOF", 3, administration::replicaof).for_clients(),
    command("ACL", -2, administration::acl).for_clients(),
];

const fn command(name: &'static str, arity: isize, run: fn(&mut Context<'_>, &[&[u8]]) -> Answer) -> Command {
    Command { name, arity, writes: false, needs_memory: false, is_for_scripts: true, run }
}

impl Command {
    const fn writing(self) -> Self {
        Self { writes: true, ..self }
    }

    const fn needing_memory(self) -> Self {
        Self { needs_memory: true, ..self }
    }

    const fn for_clients(self) -> Self {
        Self { is_for_scripts: false, ..self }
    }

    /// The command of this name, in letters of any case.
    pub(super) fn find(name: &[u8]) -> Option<&'static Self> {
        COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether it takes this number of words, its name among them.
    pub(super) fn takes(&self, words: usize) -> bool {
        match self.arity {
            least @ ..0 => words >= least.unsigned_abs(),
            exactly => words == exactly.unsigned_abs(),
        }
    }

    /// Whether nobody may call it.
    pub(super) fn is_denied(&self, settings: &Settings) -> bool {
        !settings.denied.is_empty() && settings.denied.contains(self.name)
    }

    /// What is answered to a command that writes, before anything else, where it may not.
    pub(super) fn read_only(&self, settings: &Settings) -> Option<&'static str> {
        (settings.is_replica && self.writes)
            .then_some("READONLY You can't write against a read only replica.")
    }

    /// What is answered to a command that needs memory, where there is none.
    pub(super) fn out_of_memory(&self, settings: &Settings) -> Option<&'static str> {
        let is_full = (1..LEAST_MEMORY).contains(&settings.maxmemory);
        (is_full && self.needs_memory).then_some("OOM command not allowed when used memory > 'maxmemory'.")
    }
}
