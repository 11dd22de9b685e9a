//! RESP, as far as the calls of a link need it: commands are packed, and replies and pushes of RESP3 are parsed.

use bytes::BytesMut;

use super::Value;

/// How deep arrays may be nested. The replies of scripts have three levels.
const MAX_DEPTH: usize = 16;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::session::value as of_redis;
    use super::*;

    fn parsed(bytes: &[u8]) -> Option<(Frame, usize)> {
        parse(bytes).unwrap()
    }

    fn reply(bytes: &str) -> Value {
        match parsed(bytes.as_bytes()) {
            Some((Frame::Reply(Ok(value)), length)) if length == bytes.len() => value,
            other => panic!("{bytes:?}: {other:?}"),
        }
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn a_command_is_an_array_of_texts() {
        let mut out = BytesMut::new();
        begin(&mut out, 2);
        word(&mut out, "GET");
        word(&mut out, "ключ");
        assert_eq!(&out[..], "*2\r\n$3\r\nGET\r\n$8\r\nключ\r\n".as_bytes());
    }

    #[test]
    fn every_type_of_redis_has_a_value() {
        let list = Value::List;
        for (bytes, value) in [
            ("+PONG\r\n", text("PONG")),
            (":-9223372036854775808\r\n", Value::Int(i64::MIN)),
            (":+5\r\n", Value::Int(5)),
            ("$0\r\n\r\n", text("")),
            ("$4\r\na\r\nb\r\n", text("a\r\nb")),
            ("$-1\r\n", Value::Nil),
            ("*-1\r\n", Value::Nil),
            ("_\r\n", Value::Nil),
            ("#t\r\n", Value::Int(1)),
            (",1.5\r\n", text("1.5")),
            ("*2\r\n:1\r\n*1\r\n-ERR x\r\n", list(vec![Value::Int(1), list(vec![text("ERR x")])])),
            ("%1\r\n+a\r\n:1\r\n", list(vec![text("a"), Value::Int(1)])),
            ("~1\r\n+a\r\n", list(vec![text("a")])),
        ] {
            assert_eq!(reply(bytes), value, "{bytes:?}");
        }
    }

    #[test]
    fn errors_and_pushes_are_told_apart_from_values() {
        let error = |text: &str| Frame::Reply(Err(text.to_owned()));
        assert_eq!(parsed(b"-NOSCRIPT none\r\n"), Some((error("NOSCRIPT none"), 16)));
        assert_eq!(parsed(b"!5\r\nERR x\r\n"), Some((error("ERR x"), 11)));
        let push = Frame::Push(vec![text("invalidate"), Value::Nil]);
        assert_eq!(parsed(b">2\r\n$10\r\ninvalidate\r\n_\r\n"), Some((push, 24)));
    }

    #[test]
    fn what_is_not_resp_is_refused_and_what_is_too_large_before_it_is_there() {
        let deep = "*1\r\n".repeat(MAX_DEPTH + 1);
        for (bytes, why) in [
            ("?\r\n", Malformed::Type(b'?')),
            (":\r\n", Malformed::Number),
            (":1x\r\n", Malformed::Number),
            (":9223372036854775808\r\n", Malformed::Number),
            ("+a\rb\r\n", Malformed::End),
            ("$1\r\nabc\r\n", Malformed::End),
            ("$-2\r\n", Malformed::TooLarge),
            ("$536870913\r\n", Malformed::TooLarge),
            ("*536870913\r\n", Malformed::TooLarge),
            (&deep, Malformed::TooLarge),
        ] {
            assert_eq!(parse(bytes.as_bytes()), Err(why), "{bytes:?}");
        }
    }

    /// What a server may send, as bytes.
    fn frames() -> impl Strategy<Value = Vec<u8>> {
        let line = "[ -~]{0,12}";
        let leaf = prop_oneof![
            line.prop_map(|text| format!("+{text}\r\n").into_bytes()),
            line.prop_map(|text| format!("-ERR {text}\r\n").into_bytes()),
            any::<i64>().prop_map(|number| format!(":{number}\r\n").into_bytes()),
            "[a-z\r\n]{0,20}".prop_map(|text| format!("${}\r\n{text}\r\n", text.len()).into_bytes()),
            Just(b"$-1\r\n".to_vec()),
            Just(b"_\r\n".to_vec()),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop::collection::vec(inner, 0..6).prop_map(|items| {
                let head = format!("*{}\r\n", items.len()).into_bytes();
                [head, items.concat()].concat()
            })
        })
    }

    proptest! {
        #[test]
        fn the_redis_crate_parses_the_same(bytes in frames()) {
            let (frame, length) = parsed(&bytes).unwrap();
            prop_assert_eq!(length, bytes.len());
            match redis::parse_redis_value(&bytes).unwrap() {
                redis::Value::ServerError(error) => {
                    prop_assert!(matches!(&frame, Frame::Reply(Err(text)) if text.starts_with(error.code())));
                }
                // Errors within an array are told as the redis crate shows them there.
                value if !bytes.windows(5).any(|five| five == b"-ERR ") => {
                    let value = match value {
                        redis::Value::Okay => Value::Text("OK".into()),
                        value => of_redis(value),
                    };
                    prop_assert_eq!(frame, Frame::Reply(Ok(value)));
                }
                _ => {}
            }
        }

        #[test]
        fn a_part_is_waited_for_and_what_follows_is_left(bytes in frames(), more in frames()) {
            for end in 0..bytes.len() {
                prop_assert_eq!(parse(&bytes[..end]), Ok(None));
            }
            let alone = parsed(&bytes);
            prop_assert_eq!(parsed(&[bytes, more].concat()), alone);
        }

        #[test]
        fn whatever_comes_it_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(Some((_, length))) = parse(&bytes) {
                prop_assert!(length > 0 && length <= bytes.len());
            }
        }

        /// Bytes that are nearly RESP get further.
        #[test]
        fn nor_for_what_looks_like_resp(bytes in "([-+:$*%~>_#,(!|=][-0-9]{0,3}[a-z]{0,3}\r?\n?){0,40}") {
            if let Ok(Some((_, length))) = parse(bytes.as_bytes()) {
                prop_assert!(length > 0 && length <= bytes.len());
            }
        }
    }
}
