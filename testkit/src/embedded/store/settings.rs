//! What a server is told about itself: CONFIG SET, REPLICAOF and ACL SETUSER, as far as a lock's scripts notice.

use std::collections::BTreeSet;

use super::command::Command;
use super::text::SYNTAX;
use super::{Answer, Context};
use crate::embedded::number;
use crate::embedded::resp::Resp;

const POLICIES: [&str; 8] = [
    "noeviction",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

/// What a server without keys uses (bytes): where `maxmemory` is less, memory is full.
const LEAST_MEMORY: i64 = 1 << 20;

/// The settings of a server until it restarts.
#[derive(Debug)]
pub(in crate::embedded) struct Settings {
    /// The commands that nobody may call.
    denied: BTreeSet<&'static str>,
    pub(super) is_replica: bool,
    pub(super) maxmemory: i64,
    pub(super) policy: &'static str,
}

impl Default for Settings {
    fn default() -> Self {
        Self { denied: BTreeSet::new(), is_replica: false, maxmemory: 0, policy: POLICIES[0] }
    }
}

impl Settings {
    /// Whether nobody may call this command.
    pub(super) fn denies(&self, command: &Command) -> bool {
        !self.denied.is_empty() && self.denied.contains(command.name)
    }

    /// What a command that writes is answered before anything else, if it may not.
    pub(super) fn read_only(&self, command: &Command) -> Option<&'static str> {
        (self.is_replica && command.writes).then_some("READONLY You can't write against a read only replica.")
    }

    /// What a command is answered that needs memory, where there is none.
    pub(super) fn full(&self, command: &Command) -> Option<&'static str> {
        let is_full = (1..LEAST_MEMORY).contains(&self.maxmemory);
        (is_full && command.needs_memory).then_some("OOM command not allowed when used memory > 'maxmemory'.")
    }
}

/// `CONFIG SET maxmemory N` and `maxmemory-policy NAME`. Nothing is evicted by it.
pub(super) fn config(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let [_, set, name, value] = words else { return Err(SYNTAX.to_owned()) };
    if !set.eq_ignore_ascii_case(b"SET") {
        return Err(SYNTAX.to_owned());
    }
    let settings = &mut context.store.settings;
    match name.to_ascii_lowercase().as_slice() {
        b"maxmemory" => settings.maxmemory = number::integer(value).ok_or(SYNTAX)?,
        b"maxmemory-policy" => {
            let policy = POLICIES.iter().find(|policy| policy.as_bytes() == *value);
            settings.policy = policy.ok_or(SYNTAX)?;
        }
        _ => {
            let name = String::from_utf8_lossy(name);
            return Err(format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'"));
        }
    }
    Ok(Resp::ok())
}

/// `REPLICAOF HOST PORT` or `NO ONE`. It keeps what it has, and gets nothing from there.
pub(super) fn replicaof(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let is_none = words[1].eq_ignore_ascii_case(b"no") && words[2].eq_ignore_ascii_case(b"one");
    context.store.settings.is_replica = !is_none;
    Ok(Resp::ok())
}

/// `ACL SETUSER default`, with commands to allow and to deny, as in `-set +get`.
pub(super) fn acl(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    if words.len() < 3 || !words[1].eq_ignore_ascii_case(b"SETUSER") || words[2] != b"default" {
        return Err(SYNTAX.to_owned());
    }
    for rule in &words[3..] {
        let failed = |why| {
            let rule = String::from_utf8_lossy(rule);
            Err(format!("ERR Error in ACL SETUSER modifier '{rule}': {why}"))
        };
        let (may, name) = match rule {
            [b'+', name @ ..] => (true, name),
            [b'-', name @ ..] => (false, name),
            _ => return failed("Syntax error"),
        };
        let Some(command) = Command::find(name) else {
            return failed("Unknown command or category name in ACL");
        };
        let denied = &mut context.store.settings.denied;
        if may {
            denied.remove(command.name)
        } else {
            denied.insert(command.name)
        };
    }
    Ok(Resp::ok())
}
