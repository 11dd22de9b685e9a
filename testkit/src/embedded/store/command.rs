//! The commands that there are, and how many words each takes.

use super::{Answer, Context, hash, keys, text, zset};

/// A command of the server.
pub(super) struct Command {
    pub(super) name: &'static str,
    /// How many words it has with its name: so many, or where it is negative, that many at least.
    arity: isize,
    pub(super) run: fn(&mut Context<'_>, &[&[u8]]) -> Answer,
}

/// Those that a lock asks for come first: they are found by looking at one after the other.
static COMMANDS: &[Command] = &[
    command("HLEN", 2, hash::hlen),
    command("HSET", -4, hash::hset),
    command("PEXPIRE", -3, keys::pexpire),
    command("HMGET", -3, hash::hmget),
    command("DEL", -2, keys::del),
    command("ZPOPMIN", -2, zset::zpopmin),
    command("PTTL", 2, keys::pttl),
    command("HGETALL", 2, hash::hgetall),
    command("TIME", 1, keys::time),
    command("ZCARD", 2, zset::zcard),
    command("ZADD", -4, zset::zadd),
    command("ZRANK", 3, zset::zrank),
    command("ZREM", -3, zset::zrem),
    command("PUBLISH", 3, keys::publish),
    command("HINCRBY", 4, hash::hincrby),
    command("HGET", 3, hash::hget),
    command("HDEL", -3, hash::hdel),
    command("GET", 2, text::get),
    command("SET", -3, text::set),
    command("EXISTS", -2, keys::exists),
    command("TYPE", 2, keys::kind),
    command("KEYS", 2, keys::keys),
    command("DBSIZE", 1, keys::dbsize),
    command("FLUSHALL", -1, keys::flushall),
    command("ZRANGE", -4, zset::zrange),
];

const fn command(name: &'static str, arity: isize, run: fn(&mut Context<'_>, &[&[u8]]) -> Answer) -> Command {
    Command { name, arity, run }
}

impl Command {
    /// The command of this name, in letters of any case.
    pub(super) fn find(name: &[u8]) -> Option<&'static Self> {
        COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Whether it takes so many words, its name among them.
    pub(super) fn takes(&self, words: usize) -> bool {
        match self.arity {
            least @ ..0 => words >= least.unsigned_abs(),
            exactly => words == exactly.unsigned_abs(),
        }
    }
}
