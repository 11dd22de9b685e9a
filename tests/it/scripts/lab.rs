//! One server to try the scripts on, real or embedded, as a client sees it that has guards or none.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quorate::seam::Script;
use quorate_testkit::{EmbeddedServer, RedisServer, Resp, stays};
use redis::ConnectionLike;

use super::operation::Operation;
use super::said::Said;

/// The kinds of locks, by the places of their scripts.
pub(super) const REENTRANT: usize = 0;
pub(super) const MUTEX: usize = 1;
pub(super) const REDISSON: usize = 2;
pub(super) const ALL: usize = 3;
pub(super) const SEMAPHORE: usize = 4;
pub(super) const FAIR: usize = 5;
pub(super) const READ_WRITE: usize = 6;

/// The lock; of a semaphore, its first permit of two, where it is the key of an operation or a word of a command.
pub(super) const LOCK: &str = "lock:{k}";
pub(super) const RECORD: &str = "fence:{k}";
pub(super) const QUEUE: &str = "waiting:{k}";
pub(super) const MARKER: &str = "marker";
pub(super) const MARK: &str = "its-run-id|0|its terms";

/// When an embedded server starts (us since 1970).
const START: u64 = 1_700_000_000_123_456;

/// The scripts to try.
#[derive(Debug)]
pub(super) struct Scripts {
    /// Those of the kinds of locks.
    pub(super) kinds: Vec<Script>,
    pub(super) hello: Script,
    pub(super) fenced: Script,
}

/// A server, and what a client knows of it.
pub(super) struct Lab {
    server: Server,
    scripts: Arc<Scripts>,
    /// Which kind of lock it is about, by its place among the scripts.
    kind: usize,
    /// What calls begin with.
    head: RefCell<[String; 3]>,
    /// The token of the last grant.
    token: Cell<u64>,
    began: u64,
}

enum Server {
    Real(Box<Real>),
    Embedded(EmbeddedServer, Arc<AtomicU64>),
}

/// Scripts are run by one user, and all else by another one, who may always do it.
struct Real {
    server: RedisServer,
    user: RefCell<redis::Connection>,
    admin: RefCell<redis::Connection>,
}

impl Lab {
    /// With a real server.
    pub(super) fn real(scripts: Arc<Scripts>, kind: usize, has_guards: bool) -> Self {
        let server = RedisServer::start();
        let all = ["on", "nopass", "allkeys", "allchannels", "allcommands"];
        let _: () = server.command(&[&["ACL", "SETUSER", "admin"][..], &all].concat());
        let connect = |url: String| RefCell::new(redis::Client::open(url).unwrap().get_connection().unwrap());
        let admin = connect(server.url().replace("://", "://admin:any@"));
        let real = Real { user: connect(server.url()), admin, server };
        Self::new(Server::Real(Box::new(real)), scripts, kind, has_guards)
    }

    /// With a server whose clock goes as it is told.
    pub(super) fn embedded(scripts: Arc<Scripts>, kind: usize, has_guards: bool) -> Self {
        let time = Arc::new(AtomicU64::new(START));
        let its = time.clone();
        let server = EmbeddedServer::with_clock(0, Arc::new(move || its.load(Ordering::Relaxed)));
        Self::new(Server::Embedded(server, time), scripts, kind, has_guards)
    }

    fn new(server: Server, scripts: Arc<Scripts>, kind: usize, has_guards: bool) -> Self {
        let (head, token) = Default::default();
        let mut lab = Self { server, scripts, kind, head, token, began: 0 };
        lab.began = lab.now();
        if has_guards {
            lab.command(&["SET", MARKER, MARK]);
            lab.set_head([MARKER, MARK, "0"]);
        }
        lab
    }

    /// What calls begin with from here on.
    pub(super) fn set_head(&self, head: [&str; 3]) {
        *self.head.borrow_mut() = head.map(str::to_owned);
    }

    pub(super) fn has_guards(&self) -> bool {
        !self.head.borrow()[0].is_empty()
    }

    pub(super) fn kind(&self) -> usize {
        self.kind
    }

    /// Runs one operation.
    pub(super) fn run(&self, operation: Operation) -> Said {
        self.call(&[operation]).1.remove(0)
    }

    /// Runs operations in one call. Answers what time it is there, if that is told, and what each said.
    pub(super) fn call(&self, operations: &[Operation]) -> (Option<u64>, Vec<Said>) {
        let before = self.now();
        let (keys, args) = self.words(operations);
        let reply = self.eval(&keys, &args);
        let Resp::List(items) = reply else { panic!("{reply:?}") };
        assert_eq!(items.len(), operations.len() + 1, "{items:?}");
        let time = match items[0] {
            Resp::Nil => None,
            Resp::Int(time) => Some(u64::try_from(time).unwrap()),
            ref other => panic!("{other:?}"),
        };
        let is_now = |time| time == 0 || (before..=self.now()).contains(&time); // or nobody asked
        assert!(time.is_none_or(is_now), "{time:?}");
        let said: Vec<Said> = items[1..].iter().map(Said::read).collect();
        if let Some(Said::Token(token)) = said.iter().rfind(|said| matches!(said, Said::Token(_))) {
            self.token.set(*token);
        }
        (time, said)
    }

    /// The keys of operations, and the arguments without the head.
    pub(super) fn words(&self, operations: &[Operation]) -> (Vec<String>, Vec<String>) {
        let (proposal, token) = match self.has_guards() {
            true => (self.now().to_string(), self.token.get().to_string()),
            false => Default::default(),
        };
        let keys = operations.iter().flat_map(|operation| {
            let mut keys = operation.keys(self.kind);
            keys[0] = self.key(&keys[0]);
            keys
        });
        let args = operations.iter().flat_map(|operation| operation.args(self.kind, &proposal, &token));
        (keys.collect(), args.collect())
    }

    /// The key of a lock: of a semaphore, that of its first permit of two, unless it says itself which permit it is.
    fn key(&self, key: &str) -> String {
        let is_permit = self.kind == SEMAPHORE && !key.contains('/');
        if is_permit { format!("{key}:0/2") } else { key.to_owned() }
    }

    /// Runs the lock's script with these arguments behind the head.
    pub(super) fn eval(&self, keys: &[String], args: &[String]) -> Resp {
        let args = [&*self.head.borrow(), args].concat();
        self.evaluate(&self.scripts.kinds[self.kind], keys, &args)
    }

    /// Runs the script of the handshake.
    pub(super) fn greet(&self, args: &[String]) -> Resp {
        self.evaluate(&self.scripts.hello, &[], args)
    }

    /// Runs the script that guards a value.
    pub(super) fn set(&self, args: &[String]) -> Resp {
        self.evaluate(&self.scripts.fenced, &[LOCK.to_owned()], args)
    }

    fn evaluate(&self, script: &Script, keys: &[String], args: &[String]) -> Resp {
        match &self.server {
            Server::Embedded(server, _) => server.eval(script, &strs(keys), &strs(args)),
            Server::Real(real) => {
                let count = keys.len().to_string();
                ask(&real.user, &[&["EVAL", script.source(), &count][..], &strs(keys), &strs(args)].concat())
            }
        }
    }

    /// Carries out one command, about the lock's own key where that is named.
    pub(super) fn command(&self, words: &[&str]) -> Resp {
        let named = self.key(LOCK);
        let its = |word: &&'_ str| if *word == LOCK { named.clone() } else { (*word).to_owned() };
        let words: Vec<String> = words.iter().map(its).collect();
        self.plain(&strs(&words))
    }

    /// Carries out one command as it is.
    pub(super) fn plain(&self, words: &[&str]) -> Resp {
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

    /// What time it was there when this lab began.
    pub(super) fn began(&self) -> u64 {
        self.began
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

    /// The keys, but for those that stay.
    pub(super) fn locks(&self) -> Vec<String> {
        let Resp::List(keys) = self.command(&["KEYS", "*"]) else { panic!("it has no list of keys") };
        let named = |key: String| if key == self.key(LOCK) { LOCK.to_owned() } else { key };
        let keys = keys.iter().map(text).filter(|key| !stays(key)).map(named);
        keys.fold(Vec::new(), |mut all, key| {
            if !all.contains(&key) {
                all.push(key); // a permit goes with its semaphore
            }
            all
        })
    }

    /// The count of holds of an owner.
    pub(super) fn count(&self, owner: &str) -> Option<String> {
        if self.kind == MUTEX {
            let holder = optional(self.command(&["GET", LOCK]));
            return holder.filter(|holder| holder == owner).map(|_| "1".to_owned());
        }
        if self.kind == READ_WRITE {
            let hold = self.field(owner).or_else(|| self.field(&format!("w:{owner}")))?;
            return hold.split(',').next().map(str::to_owned);
        }
        let count = self.field(owner)?;
        let is_fair = self.kind == FAIR;
        Some(if is_fair { count.strip_suffix(" fair").unwrap().to_owned() } else { count })
    }

    /// A field of the lock.
    pub(super) fn field(&self, name: &str) -> Option<String> {
        optional(self.command(&["HGET", LOCK, name]))
    }

    /// The record beside the lock.
    pub(super) fn record(&self) -> Option<String> {
        optional(self.command(&["GET", RECORD]))
    }

    /// Those that wait for the lock.
    pub(super) fn queue(&self) -> Vec<String> {
        let Resp::List(tickets) = self.command(&["ZRANGE", QUEUE, "0", "-1"]) else { panic!("no queue") };
        tickets.iter().map(|ticket| text(ticket).replace("w:", "")).collect()
    }

    /// The server, where it is embedded.
    pub(super) fn within(&self) -> Option<&EmbeddedServer> {
        match &self.server {
            Server::Embedded(server, _) => Some(server),
            Server::Real(_) => None,
        }
    }

    /// The URL, where the server is real.
    pub(super) fn url(&self) -> Option<String> {
        match &self.server {
            Server::Embedded(..) => None,
            Server::Real(real) => Some(real.server.url()),
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

fn optional(reply: Resp) -> Option<String> {
    match reply {
        Resp::Nil => None,
        reply => Some(text(&reply)),
    }
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn ask(connection: &RefCell<redis::Connection>, words: &[&str]) -> Resp {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    connection.borrow_mut().req_command(&command).unwrap().into()
}
