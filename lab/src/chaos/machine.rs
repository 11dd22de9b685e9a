//! What a run takes of the machine.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use quorate_testkit::RedisServer;

use quorate_cli::exit::{self, Failure};

/// A program that has to be there: its name, what it is, and what has it on Debian.
const PROGRAMS: [(&str, &str, &str); 2] =
    [("redis-server", "redis-server", "redis-server"), ("cc", "a C compiler, cc", "gcc libc6-dev")];

/// Finds out whether servers can be started at all: it tells what is wrong if not.
pub(super) fn check() -> Result<(), Failure> {
    let missing: Vec<_> = PROGRAMS.into_iter().filter(|(program, ..)| !is_there(program)).collect();
    if !missing.is_empty() {
        let list = |part: fn(&(&str, &'static str, &'static str)) -> &'static str, between| {
            missing.iter().map(part).collect::<Vec<_>>().join(between)
        };
        let what = list(|(_, what, _)| what, ", and ");
        let packages = list(|(.., package)| package, " ");
        let why = format!(
            "quorate-lab chaos needs {what}: not found on the PATH; on Debian: apt-get install {packages}"
        );
        return Err(Failure::new(exit::FAILED, why));
    }
    let started = RedisServer::try_start_with_clock(&[]);
    started.map(drop).map_err(|error| Failure::new(exit::FAILED, error.to_string()))
}

fn is_there(program: &str) -> bool {
    let runs = |file: &Path| {
        file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| runs(&folder.join(program))))
}
