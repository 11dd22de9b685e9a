//! Embedded servers beside real ones: what they answer, and what they keep. Real ones: their
//! clocks, how they lose keys, and the proxies before them.

#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(clippy::disallowed_methods, reason = "these tests say how long they took")]

mod clock;
mod commands;
mod dice;
mod differential;
mod disk;
mod ears;
mod embedded;
mod hello;
mod lua;
mod moments;
mod operations;
mod pair;
mod price;
mod proxy;
mod wipe;

use quorate::seam::{SCRIPTS, Script};

/// The script of the usual lock.
fn exclusive() -> &'static Script {
    SCRIPTS.iter().find(|script| script.name() == "exclusive").unwrap()
}
