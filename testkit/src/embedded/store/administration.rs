//! Commands that configure a server: CONFIG SET, REPLICAOF and ACL SETUSER, as far as a lock's
//! scripts notice.

use super::context::{Answer, Context};
use super::errors::SYNTAX;
use super::settings::POLICIES;
use crate::embedded::number;
use crate::embedded::resp::Resp;

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

/// `REPLICAOF HOST PORT` or `NO ONE`. It keeps what it has, and gets nothing from there; but when
/// it is a master again it says that it was a replica.
pub(super) fn replicaof(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let is_none = words[1].eq_ignore_ascii_case(b"no") && words[2].eq_ignore_ascii_case(b"one");
    let was_replica = std::mem::replace(&mut context.store.settings.is_replica, !is_none);
    context.store.promotions += u64::from(is_none && was_replica);
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
        let Some(command) = (context.command_name)(name) else {
            return failed("Unknown command or category name in ACL");
        };
        let denied = &mut context.store.settings.denied;
        if may {
            denied.remove(command)
        } else {
            denied.insert(command)
        };
    }
    Ok(Resp::ok())
}
