//! The bytes of one connection.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::AsyncWrite;
use tokio_util::io::{poll_read_buf, poll_write_buf};

use super::dial::Stream;
use super::pending::Pending;
use super::state::Message;
use crate::set::SessionHeader;
use crate::wire::resp::{self, Frame, Parser};

#[cfg(test)]
mod tests;

/// How many bytes one read has room for. A reply to 64 operations has some two thousand bytes.
const READ: usize = 8 * 1024;

/// How many bytes may wait for a full socket. Calls that are not packed yet can still be given up.
const WAITING: usize = 64 * 1024;

/// A connection that is set up.
pub(super) struct Transport {
    stream: Box<dyn Stream>,
    /// What stands at the head of every call.
    header: SessionHeader,
    parser: Parser,
    input: BytesMut,
    output: BytesMut,
    /// Whether the stream may have buffered what was written, as TLS does while its socket is full.
    may_buffer: bool,
}

impl Transport {
    pub(super) fn new(stream: Box<dyn Stream>, header: SessionHeader) -> Self {
        Self {
            stream,
            header,
            parser: Parser::default(),
            input: BytesMut::new(),
            output: BytesMut::new(),
            may_buffer: false,
        }
    }

    /// From now on this stands at the head of every call.
    pub(super) fn set_header(&mut self, header: SessionHeader) {
        self.header = header;
    }

    /// Reads what has arrived into `frames`. An error is how the connection broke.
    pub(super) fn read(&mut self, context: &mut Context<'_>, frames: &mut Vec<Frame>) -> Result<(), String> {
        loop {
            self.input.reserve(READ);
            match poll_read_buf(Pin::new(&mut self.stream), context, &mut self.input) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err("the connection broke".to_owned()),
                Poll::Ready(Ok(_)) => self.parse(frames)?,
                Poll::Ready(Err(error)) => return Err(error.to_string()),
            }
        }
    }

    fn parse(&mut self, frames: &mut Vec<Frame>) -> Result<(), String> {
        let malformed = |why| format!("it does not speak RESP: {why:?}");
        while let Some(frame) = self.parser.parse(&mut self.input).map_err(malformed)? {
            frames.push(frame);
        }
        Ok(())
    }

    /// Whether another message can be packed.
    pub(super) fn has_room(&self) -> bool {
        self.output.len() < WAITING
    }

    /// Packs a message, to be written with the next [`write`](Self::write).
    pub(super) fn pack(&mut self, message: Message<'_>) {
        let out = &mut self.output;
        let (script, with_source, calls) = match message {
            Message::Ping => return resp::command(out, &["PING"]),
            Message::Look => return resp::command(out, &["INFO", "memory"]),
            Message::Ask(words) => return resp::command(out, words),
            Message::Evaluate { script, with_source, calls } => (script, with_source, calls),
        };
        let words = || calls.iter().map(|pending: &Pending| pending.words());
        let keys: usize = words().map(|words| words.keys().len()).sum();
        let args: usize = words().map(|words| words.args().len()).sum();
        resp::begin(out, 3 + keys + self.header.args().len() + args);
        resp::word(out, if with_source { "EVAL" } else { "EVALSHA" });
        resp::word(out, if with_source { script.source() } else { script.sha1() });
        resp::word(out, itoa::Buffer::new().format(keys));
        words().for_each(|words| out.extend_from_slice(words.packed_keys().as_bytes()));
        out.extend_from_slice(self.header.packed_args().as_bytes());
        words().for_each(|words| out.extend_from_slice(words.packed_args().as_bytes()));
    }

    /// Writes what was packed, as far as the socket takes it. An error is how the connection broke.
    pub(super) fn write(&mut self, context: &mut Context<'_>) -> Result<(), String> {
        while !self.output.is_empty() {
            match poll_write_buf(Pin::new(&mut self.stream), context, &mut self.output) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err("the connection broke".to_owned()),
                Poll::Ready(Ok(_)) => self.may_buffer = true,
                Poll::Ready(Err(error)) => return Err(error.to_string()),
            }
        }
        if self.may_buffer {
            match Pin::new(&mut self.stream).poll_flush(context) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.may_buffer = false,
                Poll::Ready(Err(error)) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}
