//! One server to try a script on, real or embedded.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quorate::seam::Script;
use quorate_testkit::{EmbeddedServer, RedisServer, Resp};
use redis::ConnectionLike;

/// The key of a guarded value.
pub(super) const VALUE: &str = "value";
/// The key of the master's record.
pub(super) const RECORD: &str = "master";

/// When an embedded server starts (us since 1970).
const START: u64 = 1_700_000_000_123_456;

/// A server, and the script to try there.
pub(super) struct Lab<'a> {
    server: Server,
    script: &'a Script,
    began: u64,
}

enum Server {
    Real(Box<Real>),
    Embedded(EmbeddedServer, Arc<AtomicU64>),
}

/// Scripts are run by one user, and all else by another one, who may always do it.
struct Real {
    user: RefCell<redis::Connection>,
    admin: RefCell<redis::Connection>,
    _server: RedisServer,
}

impl<'a> Lab<'a> {
    /// With a real server.
    pub(super) fn real(script: &'a Script) -> Self {
        let server = RedisServer::start();
        let all = ["on", "nopass", "allkeys", "allchannels", "allcommands"];
        let _: () = server.command(&[&["ACL", "SETUSER", "admin"][..], &all].concat());
        let connect = |url: String| RefCell::new(redis::Client::open(url).unwrap().get_connection().unwrap());
        let admin = connect(server.url().replace("://", "://admin:any@"));
        let real = Real { user: connect(server.url()), admin, _server: server };
        Self::new(Server::Real(Box::new(real)), script)
    }

    /// With a server whose clock goes as it is told.
    pub(super) fn embedded(script: &'a Script) -> Self {
        let time = Arc::new(AtomicU64::new(START));
        let its = time.clone();
        let server = EmbeddedServer::with_clock(0, Arc::new(move || its.load(Ordering::Relaxed)));
        Self::new(Server::Embedded(server, time), script)
    }

    fn new(server: Server, script: &'a Script) -> Self {
        let lab = Self { server, script, began: 0 };
        Self { began: lab.now(), ..lab }
    }

    /// Runs the script.
    pub(super) fn eval(&self, keys: &[&str], args: &[String]) -> Resp {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        match &self.server {
            Server::Embedded(server, _) => server.eval(self.script, keys, &args),
            Server::Real(real) => {
                let count = keys.len().to_string();
                ask(&real.user, &[&["EVAL", self.script.source(), &count][..], keys, &args].concat())
            }
        }
    }

    /// Carries out one command.
    pub(super) fn command(&self, words: &[&str]) -> Resp {
        match &self.server {
            Server::Embedded(server, _) => server.command(words),
            Server::Real(real) => ask(&real.admin, words),
        }
    }

    /// What time it is there (us since 1970).
    pub(super) fn now(&self) -> u64 {
        match &self.server {
            Server::Embedded(_, time) => time.load(Ordering::Relaxed),
            Server::Real(_) => {
                let Resp::List(parts) = self.command(&["TIME"]) else { panic!("it tells no time") };
                let part = |i: usize| text(&parts[i]).parse::<u64>().unwrap();
                part(0) * 1_000_000 + part(1)
            }
        }
    }

    /// Lets so many microseconds pass there, at least. A real server's clock is waited for.
    pub(super) fn pass(&self, micros: u64) {
        match &self.server {
            Server::Embedded(_, time) => drop(time.fetch_add(micros, Ordering::Relaxed)),
            Server::Real(_) => {
                let end = self.now() + micros;
                while self.now() < end {}
            }
        }
    }

    /// Checks that a key lives for so long (ms), counted from a moment since this lab began.
    pub(super) fn assert_lives(&self, key: &str, millis: u64) {
        let Resp::Int(left) = self.command(&["PTTL", key]) else { panic!("{key}") };
        let (left, passed) = (left.try_into().unwrap_or(0u64), (self.now() - self.began) / 1000);
        let least = millis.saturating_sub(passed + u64::from(matches!(self.server, Server::Real(_))));
        assert!((least..=millis).contains(&left), "{key} lives for {left} ms, not for {millis}");
    }

    /// A field of the guarded value.
    pub(super) fn field(&self, name: &str) -> Option<String> {
        match self.command(&["HGET", VALUE, name]) {
            Resp::Nil => None,
            reply => Some(text(&reply)),
        }
    }

    /// The server, where it is embedded.
    pub(super) fn within(&self) -> Option<&EmbeddedServer> {
        match &self.server {
            Server::Embedded(server, _) => Some(server),
            Server::Real(_) => None,
        }
    }
}

pub(super) fn text(reply: &Resp) -> String {
    match reply {
        Resp::Bulk(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        Resp::Int(number) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

fn ask(connection: &RefCell<redis::Connection>, words: &[&str]) -> Resp {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    connection.borrow_mut().req_command(&command).unwrap().into()
}
