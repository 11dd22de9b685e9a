//! A server's clock that is wrong while certain commands run.

use super::toxic::Way;
use crate::clock::ServerClock;

/// A clock that is wrong from when a command with this word is passed on until the next reply.
#[derive(Clone, Debug)]
pub struct Strobe {
    /// The word, as it is on the wire.
    pub word: &'static str,
    /// Mostly that of the server behind the proxy.
    pub clock: ServerClock,
    /// How far it is off then: ahead, or behind if it is below 0.
    pub millis: i64,
}

impl Strobe {
    pub(super) fn passes(&self, way: Way, bytes: &[u8]) {
        if way == Way::Back {
            self.clock.set_offset(0);
        } else if bytes.windows(self.word.len()).any(|word| word == self.word.as_bytes()) {
            self.clock.set_offset(self.millis);
        }
    }
}
