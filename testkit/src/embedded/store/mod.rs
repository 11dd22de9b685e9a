//! A Redis keyspace in memory, and the commands on it: a function of what was there, the time and
//! the words.
//!
//! Replies and errors are those of Redis 7.0. Nothing here depends on addresses or on hashing: the
//! same commands at the same times give the same replies.

mod administration;
mod command;
mod context;
mod data;
mod errors;
mod hash;
mod info;
mod keys;
mod keyspace;
mod settings;
mod text;
mod zset;

pub use context::Store;
pub(super) use keyspace::Keyspace;
pub(super) use settings::Settings;

use super::resp::Resp;
use command::Command;
use context::Context;
use errors::{unknown, wrong_number};

impl Store {
    /// Carries out a command of a client at this moment, in microseconds of the wall clock.
    pub fn execute(&mut self, now_us: u64, words: &[&[u8]]) -> Resp {
        let Some(command) = words.first().and_then(|name| Command::find(name)) else {
            return Resp::Error(unknown(words));
        };
        if !command.takes(words.len()) {
            return Resp::Error(wrong_number(command.name));
        }
        if command.is_denied(&self.settings) {
            let name = command.name.to_ascii_lowercase();
            return Resp::Error(format!("NOPERM this user has no permissions to run the '{name}' command"));
        }
        self.run(command, now_us, words)
    }

    /// Executes a command of the running script, which gets less detailed errors.
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
            Some(Some(command)) if command.is_denied(&self.settings) => {
                "ERR The user executing the script can't run this command or subcommand"
            }
            Some(Some(command)) => return self.run(command, now_us, words),
        };
        Resp::Error(refused.to_owned())
    }

    fn run(&mut self, command: &Command, now: u64, words: &[&[u8]]) -> Resp {
        if let Some(refused) = command.read_only(&self.settings) {
            return Resp::Error(refused.to_owned());
        }
        if let Some(refused) = command.out_of_memory(&self.settings).filter(|_| !self.has_written) {
            return Resp::Error(refused.to_owned());
        }
        self.has_written = self.frozen.is_some() && (self.has_written || command.writes);
        let command_name = |name: &[u8]| Command::find(name).map(|command| command.name);
        (command.run)(&mut Context { store: self, now, command_name }, words).unwrap_or_else(Resp::Error)
    }
}

#[cfg(test)]
mod tests;
