//! The library's scripts, put together as the library does it.

use std::sync::LazyLock;

use quorate::seam::Script;

/// The files, in the order of `src/lock/reentrant.rs`.
const FILES: [&str; 11] = [
    "common/head",
    "common/fence",
    "reentrant/lock",
    "reentrant/acquire",
    "reentrant/queue",
    "reentrant/extend",
    "reentrant/release",
    "reentrant/withdraw",
    "reentrant/transfer",
    "reentrant/inspect",
    "reentrant/run",
];

/// The script that carries out all verbs.
pub(crate) static REENTRANT: LazyLock<Script> = LazyLock::new(|| script("reentrant", &FILES));

/// The script of the handshake.
pub(crate) static HELLO: LazyLock<Script> = LazyLock::new(|| script("hello", &["master/hello"]));

fn script(name: &'static str, files: &[&str]) -> Script {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/lua");
    let read = |file: &&str| std::fs::read_to_string(format!("{root}/{file}.lua")).unwrap();
    let source: String = files.iter().map(read).collect();
    Script::new(name, source.leak()) // it is wanted to the end
}
