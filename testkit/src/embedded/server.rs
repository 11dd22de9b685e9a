//! A Redis server within the process.

use std::fmt;
use std::sync::{Arc, Mutex};

use quorate::seam::{Failure, Hello, Script, SessionHeader, Subscriber, Value, Words};

use super::lua;
use super::resp::Resp;
use super::state::{Mail, State, Subscription, lock};
use super::store::{Keyspace, Settings};
use super::wall_clock::{WallClock, system_time};

/// A server: its keys, its clock, and its subscribers. Clones are the same server.
#[derive(Clone)]
pub struct EmbeddedServer {
    number: usize,
    clock: WallClock,
    state: Arc<Mutex<State>>,
}

/// All keys of a server at one moment, and until when they live.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot(Keyspace);

/// What a server has when it is back.
#[derive(Clone, Debug, PartialEq)]
pub enum Restart {
    /// Nothing: it persisted nothing.
    Empty,
    /// What it had.
    Whole,
    /// What it had when this was taken: it persists now and then.
    From(Snapshot),
}

impl EmbeddedServer {
    /// An empty server, with the machine's wall clock. Its number is its name.
    pub fn new(number: usize) -> Self {
        Self::with_clock(number, Arc::new(system_time))
    }

    /// An empty server with a wall clock of its own, which may be wrong and may jump.
    pub fn with_clock(number: usize, clock: WallClock) -> Self {
        let state = Arc::new(Mutex::new(State::new(format!("{number:040x}"), clock())));
        Self { number, clock, state }
    }

    /// Its number.
    pub fn number(&self) -> usize {
        self.number
    }

    /// What names the process; another one after every restart.
    pub fn run_id(&self) -> String {
        lock(&self.state).store.run_id.clone()
    }

    /// How often it became another than it was, by a restart or with older keys: what clients were
    /// told before is not known any more.
    pub(super) fn lives(&self) -> u64 {
        lock(&self.state).lives
    }

    /// Whether it has all that it ever had: it neither restarted, nor lost a key but by its TTL.
    pub fn is_whole(&self) -> bool {
        lock(&self.state).is_whole
    }

    /// Carries out operations of one script in one call, as a connection does: the script gets the
    /// keys of all, and its header and the arguments of all, and replies with the time and one
    /// item for each.
    ///
    /// # Errors
    ///
    /// The text of an error reply.
    pub fn call(&self, script: &Script, header: &SessionHeader, calls: &[&Words]) -> Result<Value, String> {
        let keys = calls.iter().flat_map(|words| words.keys());
        let args = header.args().chain(calls.iter().flat_map(|words| words.args()));
        match self.evaluate(script, keys, args) {
            Resp::Error(text) => Err(text),
            reply => Ok(value(reply)),
        }
    }

    /// The same for one operation: the time, where the server gives it because it knows the
    /// header, and the answer.
    pub fn run(
        &self,
        script: &Script,
        header: &SessionHeader,
        words: &Words,
    ) -> (Option<u64>, Result<Value, Failure>) {
        match self.call(script, header, &[words]) {
            Err(text) => (None, Err(Failure::from_error_reply(&text))),
            Ok(Value::List(mut items)) if items.len() == 2 => {
                let answer = items.pop().expect("there are two");
                let time = items.pop().and_then(|time| time.int()).and_then(|time| time.try_into().ok());
                (time, Ok(answer))
            }
            Ok(strange) => (None, Ok(strange)),
        }
    }

    /// Asks the question of a handshake.
    pub fn greet(&self, hello: &Hello) -> Result<Value, Failure> {
        match self.evaluate(hello.script, hello.words.keys(), hello.words.args()) {
            Resp::Error(text) => Err(Failure::from_error_reply(&text)),
            reply => Ok(value(reply)),
        }
    }

    /// Runs a script with these keys and arguments, and gives its reply as it is (`EVAL`).
    pub fn eval(&self, script: &Script, keys: &[&str], args: &[&str]) -> Resp {
        self.evaluate(script, keys.iter().copied(), args.iter().copied())
    }

    /// Carries out one command.
    pub fn command(&self, words: &[&str]) -> Resp {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.with(|state| state.store.execute((self.clock)(), &words))
    }

    /// All its keys.
    pub fn keys(&self) -> Vec<String> {
        let horizon = self.horizon();
        let mut state = lock(&self.state);
        state.store.keyspace.keys(horizon).map(|key| String::from_utf8_lossy(key).into_owned()).collect()
    }

    /// Those that [are in use](crate::in_use).
    pub fn keys_in_use(&self) -> Vec<String> {
        let fields = |key: &str| match self.command(&["HGETALL", key]) {
            Resp::List(words) => Some(words.into_iter().map(shown).collect()),
            _ => None,
        };
        crate::in_use(self.keys(), (self.clock)(), fields)
    }

    /// Deletes all keys (`FLUSHALL`).
    pub fn wipe(&self) {
        lock(&self.state).is_whole = false;
        self.command(&["FLUSHALL"]);
    }

    /// Loses one key, as a server does that is short of memory. Whether it was there.
    pub fn evict(&self, key: &str) -> bool {
        lock(&self.state).is_whole = false;
        self.command(&["DEL", key]) == Resp::Int(1)
    }

    /// All keys as they are now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(lock(&self.state).store.keyspace.clone())
    }

    /// Goes back to what it had, as a server does that becomes a replica of an older copy of itself
    /// and a master again. Its process is the same, and who listens goes on listening.
    pub fn restore(&self, snapshot: &Snapshot) {
        let mut state = lock(&self.state);
        (state.store.keyspace, state.is_whole) = (snapshot.0.clone(), false);
        state.store.promotions += 1;
        state.lives += 1;
    }

    /// Starts it again, with another run id and the default settings. Its subscribers are
    /// disconnected.
    pub fn restart(&self, run_id: impl Into<String>, with: Restart) {
        let mut state = lock(&self.state);
        let started = (self.clock)();
        (state.store.run_id, state.store.started, state.is_whole) = (run_id.into(), started, false);
        (state.store.settings, state.store.promotions) = (Settings::default(), 0);
        state.lives += 1;
        match with {
            Restart::Empty => state.store.keyspace = Keyspace::default(),
            Restart::Whole => {}
            Restart::From(snapshot) => state.store.keyspace = snapshot.0,
        }
        let mail = state.hang_up();
        drop(state);
        mail.deliver();
    }

    /// Listens on a channel for as long as the subscription lives, or until the server restarts.
    ///
    /// `ear` is called on the thread that publishes, once its command is done; where several
    /// threads publish, messages may overtake each other.
    pub fn subscribe(&self, channel: &str, ear: Subscriber) -> Subscription {
        lock(&self.state).subscribe(Arc::downgrade(&self.state), channel, ear)
    }

    /// The wall clock, in milliseconds.
    fn horizon(&self) -> i64 {
        i64::try_from((self.clock)() / 1000).expect("a clock does not show the end of time")
    }

    fn evaluate<'a>(
        &self,
        script: &Script,
        keys: impl Iterator<Item = &'a str>,
        args: impl Iterator<Item = &'a str>,
    ) -> Resp {
        self.with(|state| lua::run(script, keys, args, &mut state.store, &self.clock))
    }

    /// Does something to the server, and tells those who listen what was published, with the
    /// server's lock let go.
    fn with(&self, change: impl FnOnce(&mut State) -> Resp) -> Resp {
        let mut state = lock(&self.state);
        let reply = change(&mut state);
        let mail: Mail = state.mail();
        drop(state);
        mail.deliver();
        reply
    }
}

impl fmt::Debug for EmbeddedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedServer").field("number", &self.number).finish_non_exhaustive()
    }
}

fn shown(reply: Resp) -> String {
    match reply {
        Resp::Bulk(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => format!("{other:?}"),
    }
}

fn value(reply: Resp) -> Value {
    match reply {
        Resp::Nil => Value::Nil,
        Resp::Int(number) => Value::Int(number),
        Resp::Bulk(bytes) => Value::Text(String::from_utf8_lossy(&bytes).into()),
        Resp::Status(text) | Resp::Error(text) => Value::Text(text.into()),
        Resp::List(items) => Value::List(items.into_iter().map(value).collect()),
    }
}
