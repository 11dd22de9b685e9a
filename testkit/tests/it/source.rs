//! The library's scripts that it does not tell of.

use std::sync::LazyLock;

use quorate::seam::Script;

/// The script of the handshake.
pub(crate) static HELLO: LazyLock<Script> = LazyLock::new(|| {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/lua/master/hello.lua");
    Script::new("hello", std::fs::read_to_string(file).unwrap().leak()) // it is wanted to the end
});
