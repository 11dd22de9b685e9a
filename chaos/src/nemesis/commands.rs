//! What an administrator does to masters, or another client.

use std::fmt;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use quorate_testkit::eventually_blocking;

use super::wound::Wound;
use crate::arena::Arena;
use crate::master::Master;

/// How long a script may take to run, or to end.
const BOUND: Duration = Duration::from_secs(20);

/// For how long clients are paused if nothing heals it.
const PAUSE: &str = "60000";

/// A script that has not written, so that it can be killed.
const ENDLESS: &[u8] = b"EVAL \"while true do end\" 0\r\n";

/// After how many milliseconds of a script others get BUSY.
const THRESHOLD: &str = "lua-time-limit";

/// A command that disturbs a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commands {
    /// It forgets all scripts (SCRIPT FLUSH).
    ScriptFlush,
    /// It closes all connections of clients (CLIENT KILL), those that only listen too.
    ClientKill,
    /// It does nothing that may write, nor expires keys, and answers nothing to those who want that
    /// (CLIENT PAUSE), for a minute at most.
    ClientPause,
    /// A script runs and does not end: all others get BUSY.
    BusyScript,
}

impl Commands {
    pub(super) fn strike(self, arena: &mut Arena, masters: &[usize]) -> Wound {
        let servers = || masters.iter().map(|master| &arena.masters[*master]);
        match self {
            Self::ScriptFlush => servers().for_each(|server| server.command(&["SCRIPT", "FLUSH"])),
            Self::ClientKill => servers().for_each(|server| {
                for kind in ["normal", "pubsub"] {
                    let _: i64 = server.command(&["CLIENT", "KILL", "TYPE", kind]);
                }
            }),
            Self::ClientPause => {
                servers().for_each(|server| server.command(&["CLIENT", "PAUSE", PAUSE, "WRITE"]));
                return Wound::of_each(masters, |arena, master| {
                    arena.masters[master].command(&["CLIENT", "UNPAUSE"])
                });
            }
            Self::BusyScript => {
                let scripts: Vec<_> = servers().map(keep_busy).collect();
                let masters = masters.to_vec();
                return Wound::new(move |arena| {
                    for (master, script) in masters.into_iter().zip(scripts) {
                        script.end(&arena.masters[master]);
                    }
                });
            }
        }
        Wound::none()
    }
}

/// A script that runs, and what has to be set as it was.
struct Script {
    _connection: TcpStream,
    threshold: String,
}

/// Returns when all others get BUSY.
fn keep_busy(server: &Master) -> Script {
    let mut before: Vec<String> = server.command(&["CONFIG", "GET", THRESHOLD]);
    let threshold = before.pop().expect("it has a threshold");
    let _: () = server.command(&["CONFIG", "SET", THRESHOLD, "1"]);
    let mut connection = TcpStream::connect(server.address()).expect("a connection");
    connection.write_all(ENDLESS).expect("it takes a command");
    eventually_blocking(BOUND, || if is_busy(server) { Ok(()) } else { Err("the script does not run") });
    Script { _connection: connection, threshold }
}

impl Script {
    fn end(self, server: &Master) {
        eventually_blocking(BOUND, || {
            let killed = server.try_command::<()>(&["SCRIPT", "KILL"]);
            if is_busy(server) { Err(killed) } else { Ok(()) }
        });
        server.command(&["CONFIG", "SET", THRESHOLD, &self.threshold])
    }
}

fn is_busy(server: &Master) -> bool {
    server.try_command::<()>(&["PING"]).is_err_and(|error| error.code() == Some("BUSY"))
}

impl fmt::Display for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ScriptFlush => "SCRIPT FLUSH",
            Self::ClientKill => "CLIENT KILL",
            Self::ClientPause => "CLIENT PAUSE",
            Self::BusyScript => "busy script",
        })
    }
}
