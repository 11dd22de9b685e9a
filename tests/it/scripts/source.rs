//! All scripts, and the files that they are made of.

use quorate::fence;
use quorate::seam::{HELLO, RECORD, SCRIPTS, Script};

/// One file below `scripts/lua`.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) text: String,
}

/// The script of a guarded value.
pub(super) static FENCED: Script = Script::new("fenced", fence::SET);

/// Those of locks, those of the handshake, and that of a guarded value.
pub(super) fn scripts() -> impl Iterator<Item = &'static Script> {
    SCRIPTS.iter().copied().chain([&HELLO, &RECORD, &FENCED])
}

/// The script of a kind, or the hot one, by its name.
pub(super) fn script(name: &str) -> &'static Script {
    SCRIPTS.iter().find(|script| script.name() == name).unwrap()
}

/// The files of all scripts, as they are, each once.
pub(super) fn files() -> Vec<File> {
    let mut files: Vec<File> = Vec::new();
    for (name, text) in scripts().flat_map(Script::parts) {
        if files.iter().all(|file| file.name != name) {
            files.push(File { name, text: text.to_owned() });
        }
    }
    files
}
