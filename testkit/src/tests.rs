//! The test kit's own tests.

use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Masters, RedisServer, shim};

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
