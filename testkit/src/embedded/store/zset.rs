//! Sorted sets. A queue is short, so members are found by looking at one after the other.

use super::context::{Answer, Context};
use super::data::{AddOptions, Data, Put, Zset};
use super::errors::{NOT_AN_INTEGER, SYNTAX, WRONG_TYPE};
use super::keyspace::Entry;
use crate::embedded::number;
use crate::embedded::resp::Resp;

/// The sorted set at a key, if there is one.
fn at<'a>(context: &'a mut Context<'_>, key: &[u8]) -> Result<Option<&'a mut Zset>, String> {
    let horizon = context.horizon();
    match context.store.keyspace.get(key, horizon).map(|entry| &mut entry.data) {
        None => Ok(None),
        Some(Data::Zset(zset)) => Ok(Some(zset)),
        Some(_) => Err(WRONG_TYPE.to_owned()),
    }
}

pub(super) fn zcard(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    Ok(Resp::count(at(context, words[1])?.map_or(0, |zset| zset.len())))
}

/// With the options NX, XX and CH; Redis has more.
pub(super) fn zadd(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let (options, pairs) = options(&words[2..]);
    if pairs.is_empty() || pairs.len() % 2 == 1 {
        return Err(SYNTAX.to_owned());
    }
    if options.only_new && options.only_old {
        return Err("ERR XX and NX options at the same time are not compatible".to_owned());
    }
    let scores: Option<Vec<f64>> = pairs.iter().step_by(2).map(|score| number::float(score)).collect();
    let scores = scores.ok_or("ERR value is not a valid float")?;
    let mut fresh = Zset::default();
    let found = at(context, words[1])?;
    let is_there = found.is_some();
    let zset = found.unwrap_or(&mut fresh);
    let members = pairs.iter().skip(1).step_by(2);
    let count =
        scores.into_iter().zip(members).filter(|&(score, member)| match zset.put(score, member, &options) {
            Put::Added => true,
            Put::Changed => options.count_changed,
            Put::Left => false,
        });
    let count = count.count();
    if !is_there && fresh.len() > 0 {
        context.store.keyspace.put(words[1], Entry::new(Data::Zset(fresh)));
    }
    Ok(Resp::count(count))
}

/// The options that stand first, and the words behind them.
fn options<'a, 'b>(words: &'a [&'b [u8]]) -> (AddOptions, &'a [&'b [u8]]) {
    let mut options = AddOptions::default();
    for (i, word) in words.iter().enumerate() {
        match word.to_ascii_uppercase().as_slice() {
            b"NX" => options.only_new = true,
            b"XX" => options.only_old = true,
            b"CH" => options.count_changed = true,
            _ => return (options, &words[i..]),
        }
    }
    (options, &[])
}

pub(super) fn zrank(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let rank = at(context, words[1])?.and_then(|zset| zset.rank(words[2]));
    Ok(rank.map_or(Resp::Nil, Resp::count))
}

pub(super) fn zscore(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let found = at(context, words[1])?.and_then(|zset| Some(zset.0[zset.rank(words[2])?].0));
    Ok(found.map_or(Resp::Nil, |score| Resp::Bulk(number::text(score).into_bytes())))
}

pub(super) fn zrem(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let Some(zset) = at(context, words[1])? else { return Ok(Resp::Int(0)) };
    let removed = words[2..].iter().filter(|member| zset.remove(member)).count();
    context.drop_if_empty(words[1]);
    Ok(Resp::count(removed))
}

pub(super) fn zpopmin(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let most = match words {
        [_, _] => 1,
        [_, _, count] => number::integer(count)
            .and_then(|count| usize::try_from(count).ok())
            .ok_or("ERR value is out of range, must be positive")?,
        _ => return Err(SYNTAX.to_owned()),
    };
    let Some(zset) = at(context, words[1])? else { return Ok(Resp::List(Vec::new())) };
    let popped = zset.0.drain(..most.min(zset.len())).flat_map(|(score, member)| with_score(score, member));
    let popped = popped.collect();
    context.drop_if_empty(words[1]);
    Ok(Resp::List(popped))
}

/// By rank, with or without the scores; Redis has more.
pub(super) fn zrange(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let with_scores = match &words[4..] {
        [] => false,
        [option] if option.eq_ignore_ascii_case(b"WITHSCORES") => true,
        _ => return Err(SYNTAX.to_owned()),
    };
    let bound = |word| number::integer(word).ok_or(NOT_AN_INTEGER);
    let first = bound(words[2])?;
    let last = bound(words[3])?;
    let Some(zset) = at(context, words[1])? else { return Ok(Resp::List(Vec::new())) };
    let count = i64::try_from(zset.len()).expect("the count is too large");
    let from_the_front = |place: i64| if place < 0 { place.saturating_add(count) } else { place };
    let first = from_the_front(first).max(0);
    let last = from_the_front(last);
    let chosen = (0..).zip(&zset.0).filter(|(rank, _)| (first..=last).contains(rank));
    let words = chosen.flat_map(|(_, (score, member))| {
        with_score(*score, member.clone()).into_iter().take(if with_scores { 2 } else { 1 })
    });
    Ok(Resp::List(words.collect()))
}

fn with_score(score: f64, member: Vec<u8>) -> [Resp; 2] {
    [Resp::Bulk(member), Resp::Bulk(number::text(score).into_bytes())]
}
