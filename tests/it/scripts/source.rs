//! The scripts' files, and the scripts that are made of them.

use quorate::seam::{SCRIPTS, Script};

use super::lab::Scripts;

/// One file below `scripts/lua`.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) text: String,
}

/// The files that make a script by themselves: that of the handshake, and that of a guarded value.
const ALONE: [&str; 2] = ["master/hello", "fenced/set"];

/// All files, as they are, each once.
pub(super) fn files() -> Vec<File> {
    let mut files: Vec<File> = Vec::new();
    for (name, text) in SCRIPTS.iter().flat_map(|script| script.parts()) {
        if files.iter().all(|file| file.name != name) {
            files.push(File { name, text: text.to_owned() });
        }
    }
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/lua");
    let read = |name| File { name, text: std::fs::read_to_string(format!("{root}/{name}.lua")).unwrap() };
    files.extend(ALONE.map(read));
    files
}

/// The scripts of these files.
pub(super) fn assemble(files: &[File]) -> Scripts {
    let text = |name: &str| &*files.iter().find(|file| file.name == name).unwrap().text;
    // Scripts are made for ever.
    let script = |name, text: String| Script::new(name, text.leak());
    let [hello, fenced] = ALONE.map(|name| script(name, text(name).to_owned()));
    let kinds =
        SCRIPTS.iter().map(|kind| script(kind.name(), kind.source_of(|(name, _)| text(name)))).collect();
    Scripts { kinds, hello, fenced }
}

/// The scripts as they are.
pub(super) fn scripts() -> Scripts {
    assemble(&files())
}
