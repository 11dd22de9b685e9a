//! The floor's connection to one master.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use super::reply;
use crate::script;

const MOST_INPUT: usize = 64 * 1024;

/// A reply that a master owes.
#[derive(Clone, Copy)]
pub(super) struct Vote {
    pub(super) place: usize,
    /// Which of the worker's operations it is about.
    pub(super) operation: u64,
    pub(super) granted: bool,
}

pub(super) struct Link {
    stream: TcpStream,
    out: Vec<u8>,
    input: Vec<u8>,
    /// How much of the input is there.
    filled: usize,
    owed: VecDeque<Vote>,
}

impl Link {
    pub(super) fn connect(master: &str) -> Self {
        let stream = TcpStream::connect(master.strip_prefix("redis://").unwrap()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self { stream, out: Vec::new(), input: vec![0; MOST_INPUT], filled: 0, owed: VecDeque::new() }
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Whether every command was answered.
    pub(super) fn is_idle(&self) -> bool {
        self.owed.is_empty()
    }

    /// Sends a command, or leaves it to the next [`flush`](Self::flush) when others are under way.
    pub(super) fn send(&mut self, command: &[u8], vote: Vote) {
        self.out.extend_from_slice(command);
        let idle = self.is_idle();
        self.owed.push_back(vote);
        if idle {
            self.flush();
        }
    }

    /// Writes what there is to write, as far as the socket takes it.
    pub(super) fn flush(&mut self) {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(written) => drop(self.out.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("a master does not listen: {error}"),
            }
        }
    }

    /// Reads what there is to read, and adds the votes.
    pub(super) fn receive(&mut self, votes: &mut Vec<Vote>) {
        loop {
            let room = self.input.len() - self.filled;
            match self.stream.read(&mut self.input[self.filled..]) {
                Ok(read @ 1..) => {
                    self.filled += read;
                    self.read(votes);
                    if read < room {
                        return; // there was no more, and an event tells when there is
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                ended => panic!("a master hung up: {ended:?}"),
            }
        }
    }

    /// Takes whole replies off the input.
    fn read(&mut self, votes: &mut Vec<Vote>) {
        let mut at = 0;
        while let Some((length, word)) = reply::first(&self.input[at..self.filled]) {
            let vote = self.owed.pop_front().expect("a reply has its command");
            votes.push(Vote { granted: script::grants(word), ..vote });
            at += length;
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
    }
}
