//! What it costs to pack a message and to parse its reply: the redis crate's own functions,
//! `redis-protocol`, and those that the library has by hand.

use std::hint::black_box;
use std::io::{self, Read};
use std::time::Instant;

use bytes::BytesMut;
use quorate::seam::Value;
use redis_protocol::resp3::decode::complete::decode;
use redis_protocol::resp3::encode::complete::extend_encode_borrowed;
use redis_protocol::resp3::types::{BorrowedFrame, OwnedFrame};

use crate::Scale;
use crate::figures::Row;
use crate::measure::middle;

#[path = "../src/master/resp.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a part of the library")]
mod resp;

struct Codec {
    name: &'static str,
    pack: fn(&[String]) -> Vec<u8>,
    parse: fn(&[u8]),
}

const CODECS: [Codec; 3] = [
    Codec { name: "redis crate", pack: pack_by_redis, parse: parse_by_redis },
    Codec { name: "redis-protocol", pack: pack_by_protocol, parse: parse_by_protocol },
    Codec { name: "by hand", pack: pack_by_hand, parse: parse_by_hand },
];

/// How often each codec has its turn.
const BLOCKS: usize = 15;

/// With one operation in a message, as an uncontended lock has, and with as many as fit in one.
pub(crate) fn run(scale: Scale) -> Vec<Row> {
    [1, 64].into_iter().flat_map(|operations| messages_of(operations, scale)).collect()
}

fn messages_of(operations: usize, scale: Scale) -> Vec<Row> {
    let messages = scale.of(100_000, 100) / operations;
    let (words, reply) = (words(operations), reply(operations));
    let nanoseconds = |work: &dyn Fn()| {
        let began = Instant::now();
        (0..messages).for_each(|_| work());
        began.elapsed().as_nanos() as f64 / (messages * operations) as f64
    };
    let mut times = CODECS.map(|_| (Vec::new(), Vec::new()));
    for _ in 0..scale.of(BLOCKS, 1) {
        for (codec, (packing, parsing)) in CODECS.iter().zip(&mut times) {
            packing.push(nanoseconds(&|| drop(black_box((codec.pack)(black_box(&words))))));
            parsing.push(nanoseconds(&|| (codec.parse)(black_box(&reply))));
        }
    }
    let row = |(codec, (packing, parsing)): (&Codec, (Vec<f64>, Vec<f64>))| {
        let row = Row::new(operations, codec.name, 1, 1).with("pack_ns", middle(packing.into_iter()));
        row.with("parse_ns", middle(parsing.into_iter()))
    };
    CODECS.iter().zip(times).map(row).collect()
}

/// A message of acquires, as the link packs it.
fn words(operations: usize) -> Vec<String> {
    let mut words = vec!["EVALSHA".to_owned(), "0".repeat(40), (2 * operations).to_string()];
    for i in 0..operations {
        words.extend([format!("quorate:{{order-{i:06}}}"), format!("quorate:waiting:{{order-{i:06}}}")]);
    }
    let header = ["2", "9f1c5f0a7b3d4e55", "", "1790000000000000"];
    words.extend(header.map(str::to_owned));
    for i in 0..operations {
        let owner = format!("9f1c5f0a-7b3d-4e55-8a11-0c7d5e9b2f46:{i}");
        let args = ["acquire", "1", "6", "lock", &owner, "5", "1790000000000000", "10101", "web1"];
        words.extend(args.map(str::to_owned));
    }
    words
}

/// What a master replies: the time, and that each was granted, with its token and what is known of
/// the queue.
fn reply(operations: usize) -> Vec<u8> {
    let mut reply = format!("*{}\r\n:1790000000000000\r\n", operations + 1);
    reply.extend(
        (0..operations)
            .map(|i| format!("*4\r\n$7\r\ngranted\r\n:{}\r\n:0\r\n$0\r\n\r\n", 1_790_000_000_000_000 + i)),
    );
    reply.into_bytes()
}

fn pack_by_redis(words: &[String]) -> Vec<u8> {
    let mut command = redis::Cmd::with_capacity(words.len(), words.iter().map(String::len).sum());
    words.iter().for_each(|word| {
        command.arg(word);
    });
    command.get_packed_command()
}

fn pack_by_protocol(words: &[String]) -> Vec<u8> {
    let words = words.iter().map(String::as_bytes);
    let frames: Vec<_> = words.map(|data| BorrowedFrame::BlobString { data, attributes: None }).collect();
    let mut out = BytesMut::new();
    extend_encode_borrowed(&mut out, &BorrowedFrame::Array { data: &frames, attributes: None }, false)
        .unwrap();
    out.into()
}

fn pack_by_hand(words: &[String]) -> Vec<u8> {
    let mut out = BytesMut::new();
    resp::begin(&mut out, words.len());
    words.iter().for_each(|word| resp::word(&mut out, word));
    out.into()
}

/// It reads until there is no more, as a socket does.
struct Socket<'a>(&'a [u8]);

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.0.read(into)
    }
}

fn parse_by_redis(reply: &[u8]) {
    let value = redis::Parser::new().parse_value(Socket(reply)).unwrap();
    black_box(of_redis(value));
}

fn of_redis(value: redis::Value) -> Value {
    match value {
        redis::Value::Nil => Value::Nil,
        redis::Value::Int(number) => Value::Int(number),
        redis::Value::BulkString(bytes) => Value::Text(String::from_utf8_lossy(&bytes).into()),
        redis::Value::Array(items) => Value::List(items.into_iter().map(of_redis).collect()),
        other => panic!("{other:?}"),
    }
}

fn parse_by_protocol(reply: &[u8]) {
    let (frame, length) = decode(reply).unwrap().unwrap();
    assert_eq!(length, reply.len());
    black_box(of_protocol(frame));
}

fn of_protocol(frame: OwnedFrame) -> Value {
    match frame {
        OwnedFrame::Null => Value::Nil,
        OwnedFrame::Number { data, .. } => Value::Int(data),
        OwnedFrame::BlobString { data, .. } => Value::Text(String::from_utf8_lossy(&data).into()),
        OwnedFrame::Array { data, .. } => Value::List(data.into_iter().map(of_protocol).collect()),
        other => panic!("{other:?}"),
    }
}

fn parse_by_hand(reply: &[u8]) {
    let mut input = BytesMut::from(reply);
    black_box(resp::Parser::default().parse(&mut input).unwrap().unwrap());
}
