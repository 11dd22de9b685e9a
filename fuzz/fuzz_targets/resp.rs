//! Whatever a master sends is parsed without a panic, and in whatever pieces it comes, it is the
//! same.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use quorate::seam::Value;

#[path = "../../src/wire/resp.rs"]
#[allow(dead_code)]
mod resp;

use resp::{Frame, Malformed, Parser};

fn frames(pieces: &[&[u8]]) -> (Vec<Frame>, Option<Malformed>) {
    let (mut parser, mut input, mut frames) = (Parser::default(), BytesMut::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match parser.parse(&mut input) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(why) => return (frames, Some(why)),
            }
        }
    }
    (frames, None)
}

fuzz_target!(|bytes: &[u8]| {
    let Some(([high, low], bytes)) = bytes.split_first_chunk() else { return };
    let split = usize::from(u16::from_be_bytes([*high, *low]));
    let (first, second) = bytes.split_at(split.min(bytes.len()));
    assert_eq!(frames(&[bytes]), frames(&[first, second]));
});
