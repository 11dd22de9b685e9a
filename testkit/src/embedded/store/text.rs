//! Strings: GET, and SET with EX, PX, KEEPTTL, NX and XX.

use super::context::{Answer, Context};
use super::data::Data;
use super::errors::{NOT_AN_INTEGER, SYNTAX, WRONG_TYPE};
use super::keyspace::Entry;
use crate::embedded::number;
use crate::embedded::resp::Resp;

pub(super) fn get(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let horizon = context.horizon();
    match context.store.keyspace.get(words[1], horizon).map(|entry| &entry.data) {
        None => Ok(Resp::Nil),
        Some(Data::Text(text)) => Ok(Resp::Bulk(text.clone())),
        Some(_) => Err(WRONG_TYPE.to_owned()),
    }
}

/// The options of SET.
#[derive(Default)]
struct SetOptions<'a> {
    /// Whether the key has to be there already, or must not be.
    there: Option<bool>,
    /// How long it is to live, and in what unit (ms).
    life: Option<(&'a [u8], i64)>,
    /// Whether it lives as long as it would have.
    keeps: bool,
}

pub(super) fn set(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let options = SetOptions::parse(&words[3..])?;
    let until = options.until(context.millis())?;
    let horizon = context.horizon();
    let there = context.store.keyspace.get(words[1], horizon).map(|entry| entry.until);
    let kept = there.flatten().filter(|_| options.keeps);
    if options.there.is_some_and(|wanted| wanted != there.is_some()) {
        return Ok(Resp::Nil);
    }
    let until = until.or(kept);
    context.store.keyspace.put(words[1], Entry { data: Data::Text(words[2].to_vec()), until });
    Ok(Resp::ok())
}

impl<'a> SetOptions<'a> {
    fn parse(words: &[&'a [u8]]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match (word.to_ascii_uppercase().as_slice(), options.there, options.life) {
                (b"NX", None | Some(false), _) => options.there = Some(false),
                (b"XX", None | Some(true), _) => options.there = Some(true),
                (b"KEEPTTL", _, None) => options.keeps = true,
                (unit @ (b"EX" | b"PX"), _, None) if !options.keeps => {
                    let life = words.next().ok_or(SYNTAX)?;
                    options.life = Some((life, if unit == b"EX" { 1000 } else { 1 }));
                }
                _ => return Err(SYNTAX.to_owned()),
            }
        }
        Ok(options)
    }

    fn until(&self, now: i64) -> Result<Option<i64>, String> {
        let Some((life, unit)) = self.life else { return Ok(None) };
        let life = number::integer(life).ok_or(NOT_AN_INTEGER)?;
        let until = life.checked_mul(unit).and_then(|life| now.checked_add(life));
        match until {
            Some(until) if life > 0 => Ok(Some(until)),
            _ => Err("ERR invalid expire time in 'set' command".to_owned()),
        }
    }
}
