//! Hashes. As in a small one of Redis, fields stay in the order in which they came.

use super::context::{Answer, Context};
use super::data::{Data, Hash};
use super::errors::{NOT_AN_INTEGER, WRONG_TYPE, wrong_number};
use super::keyspace::Entry;
use crate::embedded::number;
use crate::embedded::resp::Resp;

/// The hash at a key, if there is one.
fn at<'a>(context: &'a mut Context<'_>, key: &[u8]) -> Result<Option<&'a mut Hash>, String> {
    let horizon = context.horizon();
    match context.store.keyspace.get(key, horizon).map(|entry| &mut entry.data) {
        None => Ok(None),
        Some(Data::Hash(hash)) => Ok(Some(hash)),
        Some(_) => Err(WRONG_TYPE.to_owned()),
    }
}

/// Changes the hash at a key, which is made if there is none.
fn change<T>(
    context: &mut Context<'_>,
    key: &[u8],
    change: impl FnOnce(&mut Hash) -> T,
) -> Result<T, String> {
    if let Some(hash) = at(context, key)? {
        return Ok(change(hash));
    }
    let mut hash = Hash::default();
    let changed = change(&mut hash);
    context.store.keyspace.put(key, Entry::new(Data::Hash(hash)));
    Ok(changed)
}

pub(super) fn hlen(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    Ok(Resp::count(at(context, words[1])?.map_or(0, |hash| hash.len())))
}

pub(super) fn hset(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    if words.len() % 2 == 1 {
        return Err(wrong_number("hset"));
    }
    change(context, words[1], |hash| {
        Resp::count(words[2..].chunks_exact(2).filter(|pair| hash.set(pair[0], pair[1])).count())
    })
}

pub(super) fn hget(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    Ok(Resp::text(at(context, words[1])?.and_then(|hash| hash.get(words[2]))))
}

pub(super) fn hmget(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let hash = at(context, words[1])?;
    let values = words[2..].iter().map(|field| Resp::text(hash.as_ref().and_then(|hash| hash.get(field))));
    Ok(Resp::List(values.collect()))
}

pub(super) fn hgetall(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let Some(hash) = at(context, words[1])? else { return Ok(Resp::List(Vec::new())) };
    let words = hash.0.iter().flat_map(|(field, value)| [field, value]);
    Ok(Resp::List(words.map(|word| Resp::Bulk(word.clone())).collect()))
}

/// `HRANDFIELD key count WITHVALUES`, of distinct fields. Its dice are the clock, so that a test is
/// the same every time: the fields from one on.
pub(super) fn hrandfield(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let count =
        number::integer(words[2]).and_then(|count| usize::try_from(count).ok()).ok_or(NOT_AN_INTEGER)?;
    if !words[3].eq_ignore_ascii_case(b"WITHVALUES") {
        return Err("ERR syntax error".to_owned());
    }
    let now = context.now;
    let Some(hash) = at(context, words[1])? else { return Ok(Resp::List(Vec::new())) };
    let from = usize::try_from(now).unwrap_or(0) % hash.len().max(1);
    let all = hash.0.iter().cycle().skip(from).take(hash.len().min(count));
    Ok(Resp::List(
        all.flat_map(|(field, value)| [field, value]).map(|word| Resp::Bulk(word.clone())).collect(),
    ))
}

pub(super) fn hdel(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let Some(hash) = at(context, words[1])? else { return Ok(Resp::Int(0)) };
    let removed = words[2..].iter().filter(|field| hash.remove(field)).count();
    context.drop_if_empty(words[1]);
    Ok(Resp::count(removed))
}

pub(super) fn hincrby(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let by = number::integer(words[3]).ok_or(NOT_AN_INTEGER)?;
    let old = match at(context, words[1])?.and_then(|hash| hash.get(words[2])) {
        Some(value) => number::integer(value).ok_or("ERR hash value is not an integer")?,
        None => 0,
    };
    let new = old.checked_add(by).ok_or("ERR increment or decrement would overflow")?;
    change(context, words[1], |hash| hash.set(words[2], new.to_string().as_bytes()))?;
    Ok(Resp::Int(new))
}
