//! The library's scripts.

use std::sync::LazyLock;

use quorate::seam::{SCRIPTS, Script};

/// The scripts that carry out all verbs, one for each way to keep a lock.
pub(crate) static LOCKS: &[&Script] = SCRIPTS;

/// The script of the handshake.
pub(crate) static HELLO: LazyLock<Script> = LazyLock::new(|| {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/lua/master/hello.lua");
    Script::new("hello", std::fs::read_to_string(file).unwrap().leak()) // it is wanted to the end
});
