//! Tests of the simulator: it is the same every time, it reaches what it is about, and what it
//! finds can be replayed.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

mod runs;
