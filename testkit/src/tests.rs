//! The test kit's own tests.

use std::ffi::OsString;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use crate::process::BOUND;
use crate::{Masters, RedisServer, eventually_blocking, shim};

/// Where a process finds the file to write when it is ready.
const READY: &str = "QUORATE_TESTKIT_READY";

/// One test here takes ports that others have just left.
static PORTS: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_failed_start_shows_the_servers_log() {
    let _alone = alone();
    let error = RedisServer::try_start(&["--no-such-option", "x"]).unwrap_err().to_string();
    assert!(error.contains("no-such-option"), "{error}");
}

#[test]
fn a_missing_compiler_is_named() {
    let error = shim::compile("no-such-cc").unwrap_err();
    assert!(error.contains("a C compiler") && error.contains("no-such-cc"), "{error}");
    let error = shim::compile("false").unwrap_err();
    assert!(error.contains("a C compiler"), "{error}");
}

/// Each time the next ports are taken before the server starts, so its first tries fail.
#[test]
fn a_port_that_is_taken_is_not_an_error() {
    let _alone = alone();
    for _ in 0..5 {
        let taken = RedisServer::start().port();
        let _listeners: Vec<_> = (1..=3).map(|i| TcpListener::bind(("127.0.0.1", taken + i))).collect();
        let servers = Masters::start(4);
        let ports: std::collections::HashSet<u16> = servers.iter().map(RedisServer::port).collect();
        assert_eq!(ports.len(), 4);
    }
}

#[test]
fn a_server_is_frozen_thawed_killed_and_restarted_empty() {
    let _alone = alone();
    let mut server = RedisServer::start();
    let _: () = server.command(&["SET", "k", "v"]);
    server.freeze();
    server.freeze();
    server.thaw();
    assert_eq!(server.keys(), ["k"]);
    server.kill();
    server.kill();
    assert!(TcpStream::connect(server.address()).is_err());
    server.restart();
    assert!(server.keys().is_empty());
    server.freeze();
    server.restart(); // frozen or not
    assert!(server.keys().is_empty());
}

/// No test by itself: the process that the next one kills.
#[test]
#[ignore = "it is for another test"]
fn a_process_with_a_server_that_stands_still() {
    let Some(ready) = std::env::var_os(READY) else { return };
    let server = RedisServer::start_with_clock(&[]);
    server.freeze();
    fs::write(ready, server.port().to_string()).unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn whatever_ends_the_process_its_servers_end_and_leave_nothing() {
    let folder = TempDir::new().unwrap();
    let ready = folder.path().join("ready");
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--ignored", "--exact", "tests::a_process_with_a_server_that_stands_still"]);
    let mut process = process.env(READY, &ready).env("TMPDIR", folder.path()).spawn().unwrap();
    let port: u16 =
        eventually_blocking(BOUND, || fs::read_to_string(&ready).map_err(drop)?.parse().map_err(drop));
    assert!(
        TcpStream::connect(("127.0.0.1", port)).is_ok(),
        "it stands still, and the system answers for it"
    );
    process.kill().unwrap();
    process.wait().unwrap();
    eventually_blocking(BOUND, || match TcpStream::connect(("127.0.0.1", port)) {
        Ok(_) => Err("the server to end"),
        Err(_) => Ok(()),
    });
    eventually_blocking(BOUND, || match names_in(folder.path()) {
        names if names == ["ready"] => Ok(()),
        names => Err(names),
    });
}

fn names_in(folder: &Path) -> Vec<OsString> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn a_dropped_server_is_gone_frozen_or_not() {
    let _alone = alone();
    for freeze in [false, true] {
        let server = RedisServer::start();
        let address = server.address();
        if freeze {
            server.freeze();
        }
        drop(server);
        assert!(TcpStream::connect(address).is_err());
    }
}
