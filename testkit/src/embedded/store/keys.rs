//! Commands about keys of any type, about the server, and PUBLISH.

use super::context::{Answer, Context};
use super::data::Data;
use super::errors::{NOT_AN_INTEGER, SYNTAX};
use crate::embedded::number;
use crate::embedded::resp::Resp;

pub(super) fn del(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let horizon = context.horizon();
    let keyspace = &mut context.store.keyspace;
    let gone = words[1..].iter().filter(|key| {
        keyspace.get(key, horizon);
        keyspace.remove(key).is_some()
    });
    Ok(Resp::count(gone.count()))
}

pub(super) fn exists(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let horizon = context.horizon();
    let keyspace = &mut context.store.keyspace;
    Ok(Resp::count(words[1..].iter().filter(|key| keyspace.get(key, horizon).is_some()).count()))
}

pub(super) fn kind(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let horizon = context.horizon();
    let name = match context.store.keyspace.get(words[1], horizon).map(|entry| &entry.data) {
        None => "none",
        Some(Data::Text(_)) => "string",
        Some(Data::Hash(_)) => "hash",
        Some(Data::Zset(_)) => "zset",
    };
    Ok(Resp::Status(name.to_owned()))
}

/// Without the options of Redis 7.0 (NX, XX, GT, LT).
pub(super) fn pexpire(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    if let Some(option) = words.get(3) {
        return Err(format!("ERR Unsupported option {}", String::from_utf8_lossy(option)));
    }
    let life = number::integer(words[2]).ok_or(NOT_AN_INTEGER)?;
    let now = context.millis();
    let until = now.checked_add(life).ok_or("ERR invalid expire time in 'pexpire' command")?;
    let horizon = context.horizon();
    let Some(entry) = context.store.keyspace.get(words[1], horizon) else { return Ok(Resp::Int(0)) };
    if until <= now {
        context.store.keyspace.remove(words[1]);
    } else {
        entry.until = Some(until);
    }
    Ok(Resp::Int(1))
}

/// Whether there was an end to its life.
pub(super) fn persist(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let horizon = context.horizon();
    let entry = context.store.keyspace.get(words[1], horizon);
    Ok(Resp::count(usize::from(entry.is_some_and(|entry| entry.until.take().is_some()))))
}

pub(super) fn pttl(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let horizon = context.horizon();
    let now = context.millis();
    Ok(Resp::Int(match context.store.keyspace.get(words[1], horizon).map(|entry| entry.until) {
        None => -2,
        Some(None) => -1,
        Some(Some(until)) => (until - now).max(0),
    }))
}

/// It goes on while a script runs, as in Redis 7.0.
pub(super) fn time(context: &mut Context<'_>, _: &[&[u8]]) -> Answer {
    let parts = [context.now / 1_000_000, context.now % 1_000_000];
    Ok(Resp::List(parts.map(|part| Resp::Bulk(part.to_string().into_bytes())).into()))
}

/// All of them: no other pattern is known.
pub(super) fn keys(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    if words[1] != b"*" {
        return Err("ERR this server knows the pattern * only".to_owned());
    }
    let horizon = context.horizon();
    Ok(Resp::List(context.store.keyspace.keys(horizon).map(|key| Resp::Bulk(key.clone())).collect()))
}

/// All hashes at once whose keys begin with what stands before the pattern's last `*`, and end with
/// what stands behind it: no other pattern is known.
pub(super) fn scan(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let &[_, b"0", b"MATCH", pattern, b"COUNT", count, b"TYPE", b"hash"] = words else {
        return Err("ERR this server knows SCAN 0 MATCH pattern COUNT number TYPE hash only".to_owned());
    };
    number::integer(count).ok_or(NOT_AN_INTEGER)?;
    let pattern: Vec<u8> = pattern.iter().copied().filter(|byte| *byte != b'\\').collect();
    let star = pattern.iter().rposition(|byte| *byte == b'*').ok_or(SYNTAX)?;
    let is_found = |key: &&Vec<u8>| {
        key.len() >= pattern.len() - 1
            && key.starts_with(&pattern[..star])
            && key.ends_with(&pattern[star + 1..])
    };
    let horizon = context.horizon();
    let keyspace = &mut context.store.keyspace;
    let mut keys: Vec<Vec<u8>> = keyspace.keys(horizon).filter(is_found).cloned().collect();
    keys.retain(|key| matches!(keyspace.get(key, horizon).map(|entry| &entry.data), Some(Data::Hash(_))));
    Ok(Resp::List(vec![Resp::Bulk(b"0".to_vec()), Resp::List(keys.into_iter().map(Resp::Bulk).collect())]))
}

pub(super) fn dbsize(context: &mut Context<'_>, _: &[&[u8]]) -> Answer {
    let horizon = context.horizon();
    Ok(Resp::count(context.store.keyspace.keys(horizon).len()))
}

pub(super) fn flushall(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let known = |word: &[u8]| word.eq_ignore_ascii_case(b"ASYNC") || word.eq_ignore_ascii_case(b"SYNC");
    if words.len() > 2 || !words[1..].iter().all(|word| known(word)) {
        return Err(SYNTAX.to_owned());
    }
    context.store.keyspace.clear();
    Ok(Resp::ok())
}

/// Publishes a message, and returns the number of subscribers.
pub(super) fn publish(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let subscribers = context.store.listeners.get(words[1]).copied().unwrap_or(0);
    if subscribers > 0 {
        context.store.published.push((words[1].to_vec(), words[2].to_vec()));
    }
    Ok(Resp::count(subscribers))
}
