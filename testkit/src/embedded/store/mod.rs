//! A Redis keyspace in memory, and the commands on it: a function of what was there, the time and the words.
//!
//! Replies and errors are those of Redis 7.0. Nothing here depends on addresses or on hashing: the same commands at the same
//! times give the same replies.

mod command;
mod hash;
mod info;
mod keys;
mod keyspace;
mod settings;
mod text;
mod zset;

use std::collections::BTreeMap;

pub(super) use keyspace::Keyspace;
pub(super) use settings::Settings;

use super::resp::Resp;
use command::Command;

/// The keys of one server, who listens there, and what was published to them.
#[derive(Debug, Default)]
pub struct Store {
    /// What names the process; another one after every restart.
    pub(super) run_id: String,
    /// When it was started, by its own clock (us).
    pub(super) started: u64,
    pub(super) keyspace: Keyspace,
    pub(super) settings: Settings,
    /// How many listen on each channel.
    pub(super) listeners: BTreeMap<Vec<u8>, usize>,
    /// What was published to those that listen, and was not handed to them yet.
    pub(super) published: Vec<(Vec<u8>, Vec<u8>)>,
    /// When the script began that runs now (ms): what is alive then is alive to its end.
    frozen: Option<i64>,
    /// Whether the script that runs now wrote: it is let in where memory is full from then on.
    has_written: bool,
}

/// One command at one moment.
pub(super) struct Context<'a> {
    store: &'a mut Store,
    /// The wall clock, in microseconds.
    now: u64,
}

impl Context<'_> {
    /// The wall clock, in milliseconds.
    fn millis(&self) -> i64 {
        millis(self.now)
    }

    /// By when a key must have expired to be gone.
    fn horizon(&self) -> i64 {
        self.store.frozen.unwrap_or_else(|| self.millis())
    }
}

/// What a command answers: a reply, or the words of an error.
pub(super) type Answer = Result<Resp, String>;

impl Store {
    /// Carries out a command of a client at this moment, in microseconds of the wall clock.
    pub fn execute(&mut self, now_us: u64, words: &[&[u8]]) -> Resp {
        let Some(command) = words.first().and_then(|name| Command::find(name)) else {
            return Resp::Error(unknown(words));
        };
        if !command.takes(words.len()) {
            return Resp::Error(wrong_number(command.name));
        }
        if self.settings.denies(command) {
            let name = command.name.to_ascii_lowercase();
            return Resp::Error(format!("NOPERM this user has no permissions to run the '{name}' command"));
        }
        self.run(command, now_us, words)
    }

    /// Carries out a command of the script that runs now, which is told less about what is wrong with it.
    pub(super) fn execute_for_script(&mut self, now_us: u64, words: &[&[u8]]) -> Resp {
        let refused = match words.first().map(|name| Command::find(name)) {
            None => "ERR Please specify at least one argument for this redis lib call",
            Some(None) => "ERR Unknown Redis command called from script",
            Some(Some(command)) if !command.takes(words.len()) => {
                "ERR Wrong number of args calling Redis command from script"
            }
            Some(Some(command)) if !command.is_for_scripts => {
                "ERR This Redis command is not allowed from script"
            }
            Some(Some(command)) if self.settings.denies(command) => {
                "ERR The user executing the script can't run this command or subcommand"
            }
            Some(Some(command)) => return self.run(command, now_us, words),
        };
        Resp::Error(refused.to_owned())
    }

    /// From here on keys do not expire.
    pub(super) fn freeze(&mut self, now_us: u64) {
        (self.frozen, self.has_written) = (Some(millis(now_us)), false);
    }

    /// From here on keys expire again.
    pub(super) fn thaw(&mut self) {
        (self.frozen, self.has_written) = (None, false);
    }

    /// Drops the keys whose time is over, as a server does in its spare time.
    pub fn expire(&mut self, now_us: u64) {
        self.keyspace.expire(millis(now_us));
    }

    fn run(&mut self, command: &Command, now: u64, words: &[&[u8]]) -> Resp {
        if let Some(refused) = self.settings.read_only(command) {
            return Resp::Error(refused.to_owned());
        }
        if let Some(refused) = self.settings.full(command).filter(|_| !self.has_written) {
            return Resp::Error(refused.to_owned());
        }
        self.has_written = self.frozen.is_some() && (self.has_written || command.writes);
        (command.run)(&mut Context { store: self, now }, words).unwrap_or_else(Resp::Error)
    }
}

fn millis(now_us: u64) -> i64 {
    i64::try_from(now_us / 1000).expect("a clock does not show the end of time")
}

fn wrong_number(name: &str) -> String {
    format!("ERR wrong number of arguments for '{}' command", name.to_ascii_lowercase())
}

fn unknown(words: &[&[u8]]) -> String {
    let name = words.first().map(|name| String::from_utf8_lossy(name)).unwrap_or_default();
    let args = words.iter().skip(1).map(|word| format!("'{}' ", String::from_utf8_lossy(word)));
    format!("ERR unknown command '{name}', with args beginning with: {}", args.collect::<String>())
}

#[cfg(test)]
mod tests;
