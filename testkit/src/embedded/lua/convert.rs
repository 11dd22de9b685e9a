//! Between Lua's values and Redis's replies, by the rules of Redis.

use mlua::{BorrowedBytes, Lua, MultiValue, Table, Value};

use crate::embedded::number;
use crate::embedded::resp::Resp;

/// How many words of a command need no allocation.
const FEW: usize = 8;

/// A whole number up to here is written with all its digits.
const SHORT: i64 = 1 << 53;

/// A word of a command.
enum Word {
    Text(BorrowedBytes),
    Number(String),
}

/// Shows the words of a command; `None` when there is something else among them than strings and
/// numbers.
pub(super) fn with_words<T>(values: &MultiValue, look: impl FnOnce(&[&[u8]]) -> T) -> Option<T> {
    if values.len() > FEW {
        let words: Vec<Word> = values.iter().map(Word::of).collect::<Option<_>>()?;
        return Some(look(&words.iter().map(Word::bytes).collect::<Vec<_>>()));
    }
    let mut words = [const { None }; FEW];
    let mut few: [&[u8]; FEW] = [b""; FEW];
    for (word, value) in words.iter_mut().zip(values) {
        *word = Some(Word::of(value)?);
    }
    for (bytes, word) in few.iter_mut().zip(words.iter().flatten()) {
        *bytes = word.bytes();
    }
    Some(look(&few[..values.len()]))
}

impl Word {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::Text(text.as_bytes())),
            Value::Integer(number) if number.abs() <= SHORT => Some(Self::Number(number.to_string())),
            Value::Integer(number) => Some(Self::Number(number::text(*number as f64))),
            Value::Number(number) => Some(Self::Number(number::text(*number))),
            _ => None,
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.as_bytes(),
        }
    }
}

/// What a script gets to see of a reply.
pub(super) fn value(lua: &Lua, reply: Resp) -> mlua::Result<Value> {
    let table = |field: &str, text: String| {
        let table = lua.create_table()?;
        table.raw_set(field, text)?;
        Ok(Value::Table(table))
    };
    match reply {
        Resp::Nil => Ok(Value::Boolean(false)),
        Resp::Int(number) => Ok(Value::Integer(number)),
        Resp::Bulk(bytes) => Ok(Value::String(lua.create_string(bytes)?)),
        Resp::Status(text) => table("ok", text),
        Resp::Error(text) => table("err", text),
        Resp::List(items) => {
            let list = lua.create_table_with_capacity(items.len(), 0)?;
            for (i, item) in items.into_iter().enumerate() {
                list.raw_set(i + 1, value(lua, item)?)?;
            }
            Ok(Value::Table(list))
        }
    }
}

/// What the harness answered for the script of this name: a tag, and what there is to say. The tags
/// are those of `harness.lua`.
pub(super) fn reply(answer: mlua::Result<MultiValue>, name: &str) -> Resp {
    answer.and_then(|answer| tagged(answer, name)).unwrap_or_else(|error| Resp::Error(format!("ERR {error}")))
}

fn tagged(answer: MultiValue, name: &str) -> mlua::Result<Resp> {
    let mut answer = answer.into_iter();
    let tag = answer.next().and_then(|tag| tag.as_i64());
    if tag == Some(3) {
        return Ok(Resp::List(list(answer.map(Ok))?));
    }
    let said = answer.next().unwrap_or(Value::Nil);
    let at = answer.next();
    match (tag, &said, at) {
        (Some(1), Value::String(text), Some(Value::String(at))) => {
            Ok(Resp::Error(format!("{} script: {name}, on {}.", text.display(), at.display())))
        }
        (Some(1), Value::String(text), _) => Ok(Resp::Error(text.to_string_lossy())),
        (Some(2), Value::String(text), _) => Ok(Resp::Status(text.to_string_lossy())),
        _ => item(said),
    }
}

fn item(value: Value) -> mlua::Result<Resp> {
    Ok(match value {
        Value::Integer(number) => Resp::Int(number),
        Value::Number(number) => Resp::Int(truncated(number)),
        Value::String(text) => Resp::Bulk(text.as_bytes().to_vec()),
        Value::Boolean(true) => Resp::Int(1),
        Value::Table(table) => self::table(&table)?,
        _ => Resp::Nil,
    })
}

fn table(table: &Table) -> mlua::Result<Resp> {
    if let Value::String(text) = table.raw_get("err")? {
        return Ok(Resp::Error(text.to_string_lossy()));
    }
    if let Value::String(text) = table.raw_get("ok")? {
        return Ok(Resp::Status(text.to_string_lossy()));
    }
    Ok(Resp::List(list((1..).map(|place: i64| table.raw_get(place)))?))
}

/// An array ends before its first nil.
fn list(items: impl Iterator<Item = mlua::Result<Value>>) -> mlua::Result<Vec<Resp>> {
    items.take_while(|item| !matches!(item, Ok(Value::Nil))).map(|value| item(value?)).collect()
}

/// As the machine's own conversion, which has one answer for whatever does not fit.
fn truncated(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}
