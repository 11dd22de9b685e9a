//! Strings: GET, and SET with EX, PX, KEEPTTL, NX and XX.

use super::keyspace::{Data, Entry};
use super::{Answer, Context};
use crate::embedded::number;
use crate::embedded::resp::Resp;

pub(super) const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
pub(super) const SYNTAX: &str = "ERR syntax error";
pub(super) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";

pub(super) fn get(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let horizon = context.horizon();
    match context.store.keyspace.get(words[1], horizon).map(|entry| &entry.data) {
        None => Ok(Resp::Nil),
        Some(Data::Text(text)) => Ok(Resp::Bulk(text.clone())),
        Some(_) => Err(WRONG_TYPE.to_owned()),
    }
}

/// What SET was told besides the key and its value.
#[derive(Default)]
struct Options<'a> {
    /// Whether the key has to be there already, or must not be.
    there: Option<bool>,
    /// How long it is to live, and in what unit (ms).
    life: Option<(&'a [u8], i64)>,
    /// Whether it lives as long as it would have.
    keeps: bool,
}

pub(super) fn set(context: &mut Context<'_>, words: &[&[u8]]) -> Answer {
    let options = Options::parse(&words[3..])?;
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

impl<'a> Options<'a> {
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
