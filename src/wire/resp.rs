//! RESP, as far as the calls of a link need it: packs commands, and parses replies and pushes of
//! RESP3, except verbatim strings and attributes, which no script replies with.

use bytes::{Buf, BytesMut};

use super::Value;

/// How deep arrays may be nested. The replies of scripts have three levels.
pub(crate) const MAX_DEPTH: usize = 16;

/// How long a text may be in bytes, and how many items an array may have: what Redis allows for a
/// text.
const MAX_LENGTH: usize = 512 * 1024 * 1024;

/// How long a line may be, in bytes: a server's errors are lines.
pub(crate) const MAX_LINE: usize = 64 * 1024;

/// How many items of an array get room before they arrive.
const ITEMS: usize = 128;

/// What a master sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The reply to the oldest command: a value, or the text of an error reply.
    Reply(Result<Value, String>),
    /// A push, which answers no command.
    Push(Vec<Value>),
}

/// Why the bytes cannot be RESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// No type begins with this byte.
    Type(u8),
    /// A number was to stand here.
    Number,
    /// A line or a text does not end as it has to.
    End,
    /// A text or an array has more than [`MAX_LENGTH`], a line more than [`MAX_LINE`], or arrays
    /// are nested deeper than [`MAX_DEPTH`].
    TooLarge,
}

/// Begins a command of so many words.
pub(crate) fn begin(out: &mut BytesMut, words: usize) {
    header(out, b'*', words);
}

/// A whole command.
pub(crate) fn command(out: &mut BytesMut, words: &[impl AsRef<str>]) {
    begin(out, words.len());
    words.iter().for_each(|one| word(out, one.as_ref()));
}

/// Adds a word to a command.
pub(crate) fn word(out: &mut BytesMut, word: &str) {
    header(out, b'$', word.len());
    out.extend_from_slice(word.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn header(out: &mut BytesMut, kind: u8, length: usize) {
    out.extend_from_slice(&[kind]);
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Parses bytes as they arrive, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    /// The arrays that are not complete yet, each within the one before.
    open: Vec<Array>,
}

#[derive(Debug)]
struct Array {
    is_push: bool,
    items: Vec<Value>,
    /// How many items are still to come.
    left: usize,
}

impl Parser {
    /// Takes the next frame from `input`; if it is not complete, takes what is there and returns
    /// `None`.
    pub(crate) fn parse(&mut self, input: &mut BytesMut) -> Result<Option<Frame>, Malformed> {
        while let Some((token, length)) = token(input)? {
            input.advance(length);
            let mut value = match token {
                Token::Value(value) => value,
                Token::Error(text) if self.open.is_empty() => return Ok(Some(Frame::Reply(Err(text)))),
                Token::Error(text) => Value::Text(text.into()),
                Token::Array { is_push: true, length: 0 } => return Err(Malformed::Number),
                Token::Array { length: 0, .. } => Value::List(Vec::new()),
                Token::Array { is_push, length: left } => {
                    if self.open.len() == MAX_DEPTH {
                        return Err(Malformed::TooLarge);
                    }
                    self.open.push(Array { is_push, items: Vec::with_capacity(left.min(ITEMS)), left });
                    continue;
                }
            };
            // An array that is complete now is an item of the one around it.
            loop {
                let Some(array) = self.open.last_mut() else { return Ok(Some(Frame::Reply(Ok(value)))) };
                array.items.push(value);
                array.left -= 1;
                if array.left > 0 {
                    break;
                }
                let Some(Array { is_push, items, .. }) = self.open.pop() else { break };
                if is_push && self.open.is_empty() {
                    return Ok(Some(Frame::Push(items)));
                }
                value = Value::List(items);
            }
        }
        Ok(None)
    }
}

/// What bytes begin with.
enum Token {
    Value(Value),
    Error(String),
    /// The items follow.
    Array {
        is_push: bool,
        length: usize,
    },
}

/// The first token, and its length; `None` if it is not complete.
fn token(bytes: &[u8]) -> Result<Option<(Token, usize)>, Malformed> {
    let Some((kind, rest)) = bytes.split_first() else { return Ok(None) };
    let Some(line) = line(rest)? else { return Ok(None) };
    let length = 1 + line.len() + 2;
    let token = match kind {
        b'+' | b',' | b'(' => Token::Value(Value::Text(text(line).into())),
        b'-' => Token::Error(text(line)),
        b'#' => Token::Value(Value::Int((line == b"t").into())),
        b':' => Token::Value(Value::Int(number(line)?)),
        b'_' => Token::Value(Value::Nil),
        b'$' | b'!' | b'=' | b'*' | b'~' | b'>' | b'%' => match count(line)? {
            None if *kind == b'>' => return Err(Malformed::Number),
            None => Token::Value(Value::Nil),
            Some(count) if matches!(kind, b'$' | b'!' | b'=') => {
                let Some(bytes) = bytes.get(length..length + count + 2) else { return Ok(None) };
                let Some(bytes) = bytes.strip_suffix(b"\r\n") else { return Err(Malformed::End) };
                let token = match kind {
                    b'$' => Token::Value(Value::Text(text(bytes).into())),
                    // The format comes first: `txt:`.
                    b'=' => Token::Value(Value::Text(text(bytes.get(4..).unwrap_or_default()).into())),
                    _ => Token::Error(text(bytes)),
                };
                return Ok(Some((token, length + count + 2)));
            }
            Some(count) => {
                let length = if *kind == b'%' { 2 * count } else { count };
                Token::Array { is_push: *kind == b'>', length }
            }
        },
        other => return Err(Malformed::Type(*other)),
    };
    Ok(Some((token, length)))
}

/// The bytes up to the end of the line, if that is there.
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    match bytes.iter().position(|byte| *byte == b'\r') {
        None if bytes.len() > MAX_LINE => Err(Malformed::TooLarge),
        None => Ok(None),
        Some(end) if end > MAX_LINE => Err(Malformed::TooLarge),
        Some(end) => match bytes.get(end + 1) {
            None => Ok(None),
            Some(b'\n') => Ok(Some(&bytes[..end])),
            Some(_) => Err(Malformed::End),
        },
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A number of items or bytes; `None` for -1, which is RESP2's null.
fn count(line: &[u8]) -> Result<Option<usize>, Malformed> {
    match number(line)? {
        -1 => Ok(None),
        count => match usize::try_from(count) {
            Ok(count) if count <= MAX_LENGTH => Ok(Some(count)),
            _ => Err(Malformed::TooLarge),
        },
    }
}

fn number(line: &[u8]) -> Result<i64, Malformed> {
    let (sign, digits) = match line {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() {
        return Err(Malformed::Number);
    }
    digits.iter().try_fold(0_i64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'));
        // Summed with the sign: the lowest number has no positive counterpart.
        let more = |digit| number.checked_mul(10)?.checked_add(sign * digit);
        digit.and_then(more).ok_or(Malformed::Number)
    })
}
