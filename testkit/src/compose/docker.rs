//! The command of the Docker engine, and the compose tool that there is.

use std::process::Command;

use super::error::ComposeError;

/// How long, in seconds, the engine may take for one command.
const BOUND: &str = "60";

/// Under which names the compose tool may be there.
const TOOLS: [&[&str]; 2] = [&["docker", "compose"], &["docker-compose"]];

/// What `docker` says with these arguments, or what is wrong.
pub(super) fn docker(args: &[&str]) -> Result<String, String> {
    run("docker", args)
}

/// The compose tool, where an engine answers.
pub(super) fn tool() -> Result<&'static [&'static str], ComposeError> {
    docker(&["version", "--format", "{{.Server.Version}}"]).map_err(ComposeError::NoEngine)?;
    let runs = |tool: &&[&str]| run(tool[0], &[&tool[1..], &["version"]].concat()).is_ok();
    TOOLS.into_iter().find(runs).ok_or(ComposeError::NoTool)
}

fn run(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new("timeout").args([BOUND, program]).args(args).output();
    let output = output.map_err(|error| format!("timeout: {error}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Ok(printed.into_owned()),
        Some(124) => Err(format!("`{program} {}` was not done within {BOUND} s", args.join(" "))),
        _ => Err(complaint.trim().to_owned()),
    }
}
