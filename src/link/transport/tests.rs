//! The bytes of a connection; and RESP, which benches include by itself.

use proptest::prelude::*;

use std::io;
use std::sync::{Arc, Mutex};
use std::task::Waker;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use super::super::asks::value as of_redis;
use super::*;
use crate::wire::Value;
use crate::wire::resp::{Frame, MAX_DEPTH, MAX_LINE, Malformed, Parser, begin, word};

/// The first frame, and how long it is.
fn parse(bytes: &[u8]) -> Result<Option<(Frame, usize)>, Malformed> {
    let mut input = BytesMut::from(bytes);
    let frame = Parser::default().parse(&mut input)?;
    Ok(frame.map(|frame| (frame, bytes.len() - input.len())))
}

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
        ("=8\r\ntxt:a: b\r\n", text("a: b")),
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
    let endless = format!("+{}", "a".repeat(MAX_LINE + 1));
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
        (&endless, Malformed::TooLarge),
        (&format!("{endless}\r\n"), Malformed::TooLarge),
        (">0\r\n", Malformed::Number), // it would be taken for a reply
        (">-1\r\n", Malformed::Number),
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
    fn pieces_are_waited_for_and_what_follows_is_left(bytes in frames(), more in frames()) {
        let mut parser = Parser::default();
        let mut input = BytesMut::new();
        for byte in &bytes[..bytes.len() - 1] {
            input.extend_from_slice(&[*byte]);
            prop_assert_eq!(parser.parse(&mut input), Ok(None));
        }
        input.extend_from_slice(&bytes[bytes.len() - 1..]);
        input.extend_from_slice(&more);
        let frame = parser.parse(&mut input).unwrap();
        prop_assert_eq!(&input[..], &more[..]);
        prop_assert_eq!(frame, parsed(&bytes).map(|(frame, _)| frame));
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

/// A stream that keeps what is written until it is flushed, as TLS does, and cannot be flushed for
/// a while.
#[derive(Clone, Default)]
struct Keeping(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    written: Vec<u8>,
    sent: Vec<u8>,
    is_full: bool,
}

impl AsyncRead for Keeping {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Keeping {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().unwrap().written.extend(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut kept = self.0.lock().unwrap();
        if kept.is_full {
            return Poll::Pending;
        }
        let written = std::mem::take(&mut kept.written);
        kept.sent.extend(written);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn what_a_stream_keeps_is_flushed_when_it_can_be_though_nothing_more_is_written() {
    let stream = Keeping::default();
    stream.0.lock().unwrap().is_full = true;
    let mut transport = Transport::new(Box::new(stream.clone()), SessionHeader::default());
    let mut context = Context::from_waker(Waker::noop());
    transport.pack(Message::Ping);
    transport.write(&mut context).unwrap();
    assert!(stream.0.lock().unwrap().sent.is_empty());
    stream.0.lock().unwrap().is_full = false;
    transport.write(&mut context).unwrap();
    assert_eq!(stream.0.lock().unwrap().sent, b"*1\r\n$4\r\nPING\r\n");
}

#[tokio::test]
async fn a_message_is_written_in_the_pieces_that_the_stream_takes() {
    let (near, mut far) = tokio::io::duplex(16);
    let mut transport = Transport::new(Box::new(near), SessionHeader::default());
    (0..10).for_each(|_| transport.pack(Message::Ping));
    let writing = std::future::poll_fn(|context| {
        transport.write(context).unwrap();
        if transport.output.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    });
    let mut received = vec![0; 140];
    let (_, read) = tokio::join!(writing, far.read_exact(&mut received));
    assert_eq!((read.unwrap(), received), (140, b"*1\r\n$4\r\nPING\r\n".repeat(10)));
    drop(far);
    let mut frames = Vec::new();
    let broke = std::future::poll_fn(|context| Poll::Ready(transport.read(context, &mut frames))).await;
    assert_eq!((broke, frames), (Err("the connection broke".to_owned()), vec![]));
}
