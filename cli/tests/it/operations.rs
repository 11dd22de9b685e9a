//! docs/OPERATIONS.md: its commands, as they stand there.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use quorate_testkit::{Masters, RedisServer};

use crate::{output, quorate, start, wait_until, wait_until_released};

/// The commands below a heading, with other values in the lines that set the variables named.
fn commands(heading: &str, values: &[(&str, &str)]) -> String {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/OPERATIONS.md")).unwrap();
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).expect("the heading");
    let (_, block) = section.split_once("```sh\n").expect("commands");
    let (block, _) = block.split_once("```").unwrap();
    let mut lines: Vec<String> = block.lines().map(str::to_owned).collect();
    for (variable, value) in values {
        let line = lines.iter_mut().find(|line| line.starts_with(&format!("{variable}=")));
        *line.expect("the variable") = format!("{variable}=\"{value}\"");
    }
    lines.join("\n")
}

fn run(commands: &str, masters: &Masters) {
    let folder = Path::new(env!("CARGO_BIN_EXE_quorate")).parent().unwrap();
    let status = Command::new("bash")
        .args(["-euo", "pipefail", "-c", commands])
        .env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()))
        .env("QUORATE_MASTERS", masters.urls().join(","))
        .env("QUORATE_MAX_TTL", "1s")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.unwrap().success(), "{commands}");
}

fn entry(server: &RedisServer) -> Option<String> {
    server.command(&["HGET", "quorate:{l}", "x"])
}

#[test]
fn a_set_begins_and_begins_again_when_all_lost_their_keys() {
    let masters = Masters::start(3);
    let job = || {
        let args = ["run", "l", "-n", "--max-ttl", "1s", "--ttl", "1s", "--", "true"];
        output(quorate(&masters).args(args)).0
    };
    assert_eq!(job(), 81);
    run(&commands("Begin a set", &[]), &masters);
    assert_eq!(job(), 0);
    masters.iter().for_each(|server| server.command(&["FLUSHALL"]));
    assert_eq!(job(), 81);
    run(&commands("After all masters lost their keys", &[]), &masters);
    assert_eq!(job(), 0);
}

/// Every connection is closed on the way, so that a job that did not read the new password could
/// not renew its lease.
#[test]
fn the_masters_password_is_changed_while_a_job_runs() {
    let masters = start(3);
    let folder = tempfile::TempDir::new().unwrap();
    let (file, done) = (folder.path().join("password"), folder.path().join("done"));
    fs::write(&file, "the first").unwrap();
    for server in masters.iter() {
        let _: () = server.command(&["ACL", "SETUSER", "quorate", "on", ">the first", "~*", "&*", "+@all"]);
    }
    let port = |server: &RedisServer| server.port().to_string();
    let url = |server| format!("redis://quorate@127.0.0.1:{}?password_file={}", port(server), file.display());
    let urls: Vec<String> = masters.iter().map(url).collect();
    let job = format!("while ! [ -e {} ]; do sleep 0.02; done", done.display());
    let mut running = quorate(&masters)
        .env("QUORATE_MASTERS", urls.join(","))
        .args(["run", "l", "--ttl", "3s", "--timeout", "2s", "--", "sh", "-c", &job])
        .spawn()
        .unwrap();
    wait_until("the lock", || masters.iter().all(|server| entry(server).is_some()));

    let ports: Vec<String> = masters.iter().map(port).collect();
    let values = [("MASTERS", ports.join(" ")), ("FILE", file.display().to_string())];
    let values = values.each_ref().map(|(variable, value)| (*variable, value.as_str()));
    run(&commands("Change the masters' password", &values), &masters);
    let before: Vec<_> = masters.iter().map(entry).collect();
    for server in masters.iter() {
        let _: i64 = server.command(&["CLIENT", "KILL", "USER", "quorate"]);
        let refused = server.try_command::<()>(&["AUTH", "quorate", "the first"]);
        assert!(refused.is_err(), "the old password still counts");
    }
    wait_until("a renewal", || masters.iter().zip(&before).all(|(server, before)| entry(server) != *before));
    fs::write(&done, "").unwrap();
    assert!(running.wait().unwrap().success());
    wait_until_released(&masters);
}
