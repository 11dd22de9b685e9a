//! The repository's own compose file, for tests that need a Docker engine and are left out where
//! there is none.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's compose file, where its containers can be started. Otherwise what a test would
/// show is [skipped].
pub fn compose_file(what: &str) -> Option<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let needed = Command::new(root.join("scripts/need-compose.sh")).output();
    match needed {
        Ok(output) if output.status.success() => return Some(root.join("docker-compose.yml")),
        Ok(output) => skipped(what, String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => skipped(what, &error.to_string()),
    }
    None
}

/// Says that a test cannot show this here, on a line that `scripts/test.sh` counts. What a test
/// prints is not seen unless it fails; this is.
pub fn skipped(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "\nskipped: {what}: {why}");
}
