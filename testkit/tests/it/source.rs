//! The library's script, put together as the library does it.

use std::sync::LazyLock;

use quorate::seam::Script;

/// The files, in the order of `src/lock/reentrant.rs`.
const FILES: [&str; 9] =
    ["lock", "acquire", "queue", "extend", "release", "withdraw", "transfer", "inspect", "run"];

/// The script that carries out all verbs.
pub(crate) static REENTRANT: LazyLock<Script> = LazyLock::new(|| {
    let read = |name: &str| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/lua/reentrant");
        std::fs::read_to_string(format!("{root}/{name}.lua")).unwrap()
    };
    let source: String = FILES.into_iter().map(read).collect();
    Script::new("reentrant", source.leak()) // it is wanted to the end
});
