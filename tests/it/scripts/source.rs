//! The scripts' files, and the scripts that are made of them.

use quorate::seam::Script;

use super::lab::Scripts;

/// One file below `scripts/lua`.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) text: String,
}

/// The files of the lock's script, in the order in which the library puts them together, then that of the handshake, and
/// that of a guarded value.
const NAMES: [&str; 13] = [
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
    "master/hello",
    "fenced/set",
];

/// All files, as they are.
pub(super) fn files() -> Vec<File> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/lua");
    let read = |name| File { name, text: std::fs::read_to_string(format!("{root}/{name}.lua")).unwrap() };
    NAMES.into_iter().map(read).collect()
}

/// The scripts of these files.
pub(super) fn assemble(files: &[File]) -> Scripts {
    let [reentrant @ .., hello, fenced] = files else { panic!("{files:?}") };
    let reentrant: String = reentrant.iter().map(|file| &*file.text).collect();
    // Scripts are made for ever.
    let script = |name, text: String| Script::new(name, text.leak());
    Scripts {
        reentrant: script("reentrant", reentrant),
        hello: script("hello", hello.text.clone()),
        fenced: script("fenced", fenced.text.clone()),
    }
}

/// The scripts as they are.
pub(super) fn scripts() -> Scripts {
    assemble(&files())
}
