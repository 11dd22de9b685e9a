//! `quorate-lab chaos --compose`: the masters are containers, where a Docker engine answers.

use std::path::Path;
use std::process::{Command, Stdio};

use quorate_testkit::compose_file;
use tempfile::TempDir;

use crate::output;

fn chaos(file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate-lab"));
    command.args(["chaos", "--compose"]).arg(file).stdin(Stdio::null());
    command
}

/// A shell's words to make a program of one line. While this process has a file open, others that
/// it starts cannot run it.
const MAKE: &str = r##"printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod +x "$1""##;

/// A folder with programs, each of which runs this line; it comes first on a command's path.
fn put_first(command: &mut Command, programs: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, line) in programs {
        let file = folder.path().join(name);
        let made = Command::new("sh").args(["-c", MAKE, "make"]).arg(file).arg(line).status();
        assert!(made.unwrap().success());
    }
    command.env("PATH", format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap()));
    folder
}

#[test]
fn what_is_missing_for_containers_is_named() {
    let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docker-compose.yml"));
    let mut command = chaos(file);
    let _programs = put_first(&mut command, &[("docker", "echo nobody is there >&2; exit 1")]);
    let (code, _, error) = output(&mut command);
    assert_eq!(code, 70);
    assert!(error.contains("no Docker engine answers: nobody is there"), "{error}");

    let mut command = chaos(file);
    let no_tool = [("docker", r#"[ "$1" = version ]"#), ("docker-compose", "exit 1")];
    let _programs = put_first(&mut command, &no_tool);
    let (code, _, error) = output(&mut command);
    assert_eq!(code, 70);
    assert!(error.contains("there is no compose tool"), "{error}");
}

#[test]
fn a_run_on_containers_tells_what_it_found_and_leaves_none() {
    let Some(file) = compose_file("quorate-lab chaos --compose") else { return };
    let mut command = chaos(&file);
    command.args(["--scenario", "failover", "--seed", "7", "--duration", "3s"]);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let project = format!("name=quorate-{}-", run.id());
    let ended = run.wait_with_output().unwrap();
    let text = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{text}{}", String::from_utf8(ended.stderr).unwrap());
    assert!(
        text.contains("Nothing was found") && text.contains(&format!("--compose {}", file.display())),
        "{text}"
    );
    let left =
        Command::new("docker").args(["ps", "--all", "--quiet", "--filter", &project]).output().unwrap();
    assert_eq!(String::from_utf8(left.stdout).unwrap(), "");
}
