//! RESP, as far as the calls of a link need it: commands are packed, and replies and pushes of RESP3 are parsed.

use bytes::BytesMut;

use super::Value;

/// How deep arrays may be nested. The replies of scripts have three levels.
pub(super) const MAX_DEPTH: usize = 16;

/// How long a text may be, and how many items an array may have: as much as Redis allows for a text (512 MiB).
const MAX_LENGTH: usize = 512 * 1024 * 1024;

/// What a master sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The reply to the oldest command: a value, or the text of an error reply.
    Reply(Result<Value, String>),
    /// Something that nobody asked for.
    Push(Vec<Value>),
}

/// Why the bytes cannot be RESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// No type begins with this byte.
    Type(u8),
    /// A number was to stand here.
    Number,
    /// A line or a text does not end as it has to.
    End,
    /// A text or an array has more than [`MAX_LENGTH`], or arrays are nested deeper than [`MAX_DEPTH`].
    TooLarge,
}

/// Begins a command of so many words.
pub(super) fn begin(out: &mut BytesMut, words: usize) {
    header(out, b'*', words);
}

/// Adds a word to a command.
pub(super) fn word(out: &mut BytesMut, word: &str) {
    header(out, b'$', word.len());
    out.extend_from_slice(word.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn header(out: &mut BytesMut, kind: u8, length: usize) {
    out.extend_from_slice(&[kind]);
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The first frame in `bytes`, and how long it is; `None` where it is not all there.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Frame, usize)>, Malformed> {
    let mut input = Input { bytes, at: 0 };
    let frame = match bytes.first() {
        Some(b'-' | b'!') => input.value(0).map(|error| Frame::Reply(Err(text_of(error)))),
        Some(b'>') => input.value(0).map(|items| match items {
            Value::List(items) => Frame::Push(items),
            other => Frame::Push(vec![other]),
        }),
        _ => input.value(0).map(|value| Frame::Reply(Ok(value))),
    };
    match frame {
        Ok(frame) => Ok(Some((frame, input.at))),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Malformed(why)) => Err(why),
    }
}

fn text_of(value: Value) -> String {
    value.text().map(|text| text.to_string()).unwrap_or_default()
}

/// Why parsing stops.
enum Stop {
    Incomplete,
    Malformed(Malformed),
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn value(&mut self, depth: usize) -> Result<Value, Stop> {
        let kind = *self.take(1)?.first().ok_or(Stop::Incomplete)?;
        match kind {
            b'+' | b'-' | b',' | b'(' => Ok(text(self.line()?)),
            b'#' => Ok(Value::Int((self.line()? == b"t").into())),
            b':' => number(self.line()?).map(Value::Int),
            b'_' => self.line().map(|_| Value::Nil),
            b'$' | b'!' => match self.length()? {
                None => Ok(Value::Nil),
                Some(length) => {
                    let bytes = self.take(length)?;
                    if self.take(2)? != b"\r\n" {
                        return Err(Stop::Malformed(Malformed::End));
                    }
                    Ok(text(bytes))
                }
            },
            b'*' | b'~' | b'>' => self.items(depth, 1),
            b'%' => self.items(depth, 2),
            other => Err(Stop::Malformed(Malformed::Type(other))),
        }
    }

    /// So many values for each that is counted.
    fn items(&mut self, depth: usize, each: usize) -> Result<Value, Stop> {
        let Some(count) = self.length()? else { return Ok(Value::Nil) };
        if depth == MAX_DEPTH {
            return Err(Stop::Malformed(Malformed::TooLarge));
        }
        let left = self.bytes.len() - self.at;
        let mut items = Vec::with_capacity((count * each).min(left / 3)); // no item is shorter than three bytes
        for _ in 0..count * each {
            items.push(self.value(depth + 1)?);
        }
        Ok(Value::List(items))
    }

    fn length(&mut self) -> Result<Option<usize>, Stop> {
        match number(self.line()?)? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) if length <= MAX_LENGTH => Ok(Some(length)),
                _ => Err(Stop::Malformed(Malformed::TooLarge)),
            },
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Stop> {
        let taken = self.bytes.get(self.at..self.at + count).ok_or(Stop::Incomplete)?;
        self.at += count;
        Ok(taken)
    }

    /// Up to the end of the line.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\r').ok_or(Stop::Incomplete)?;
        match rest.get(end + 1) {
            None => Err(Stop::Incomplete),
            Some(b'\n') => {
                self.at += end + 2;
                Ok(&rest[..end])
            }
            Some(_) => Err(Stop::Malformed(Malformed::End)),
        }
    }
}

fn text(bytes: &[u8]) -> Value {
    Value::Text(String::from_utf8_lossy(bytes).into())
}

fn number(line: &[u8]) -> Result<i64, Stop> {
    let (sign, digits) = match line {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() {
        return Err(Stop::Malformed(Malformed::Number));
    }
    digits.iter().try_fold(0_i64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'));
        // The lowest number has no positive of its own.
        let more = |digit| number.checked_mul(10)?.checked_add(sign * digit);
        digit.and_then(more).ok_or(Stop::Malformed(Malformed::Number))
    })
}
