//! One master: an embedded server with a clock of its own, which can stand still, die, and lose what it knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate::seam::{Call, Failure, Passport, Value, Words};
use quorate_testkit::{EmbeddedServer, Resp, Restart, Snapshot, stays};

use crate::clocks::WallClock;
use crate::dice::Dice;
use crate::history::{Key, Place, Time};
use crate::world::World;

type Request = Box<dyn FnOnce() + Send>;

/// One master.
pub(crate) struct Server {
    pub(crate) number: usize,
    pub(crate) redis: EmbeddedServer,
    pub(crate) clock: Arc<WallClock>,
    world: Arc<World>,
    state: Mutex<State>,
}

struct State {
    life: Life,
    /// What arrived while it stood still.
    backlog: Vec<Request>,
    /// The tickets that were in a call which was executed late, or came back with older data.
    late_tickets: BTreeSet<String>,
    /// What it was last asked to keep, by the lock's key.
    written: BTreeMap<String, Written>,
    restarts: u64,
    /// What it had when it was last told to remember.
    remembered: Option<Snapshot>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Running,
    Still,
    Down,
}

/// How a lock's key came to be what it is.
#[derive(Clone, Debug)]
struct Written {
    owner: String,
    since: Time,
    at: Time,
    ttl: Duration,
    late: bool,
}

impl Server {
    pub(crate) fn new(world: Arc<World>, number: usize, clock: WallClock) -> Arc<Self> {
        let clock = Arc::new(clock);
        let its = clock.clone();
        let redis = EmbeddedServer::with_clock(number, Arc::new(move || its.micros()));
        let state = State {
            life: Life::Running,
            backlog: Vec::new(),
            late_tickets: BTreeSet::new(),
            written: BTreeMap::new(),
            restarts: 0,
            remembered: None,
        };
        Arc::new(Self { number, redis, clock, world, state: Mutex::new(state) })
    }

    /// A request arrives. `false` when nobody is there to take it.
    pub(crate) fn take(&self, request: impl FnOnce() + Send + 'static) -> bool {
        let mut state = self.state();
        match state.life {
            Life::Running => {}
            Life::Still => {
                state.backlog.push(Box::new(request));
                return true;
            }
            Life::Down => return false,
        }
        drop(state); // it comes back here
        request();
        true
    }

    /// Runs one operation of a connection with this passport, and tells the time, where it knows it. `late` tells that the
    /// sender may not know of it any more.
    pub(crate) fn run(
        &self,
        call: &Call,
        passport: &Passport,
        late: bool,
    ) -> (Option<u64>, Result<Value, Failure>) {
        let (time, mut answers) = self.redis.run(call.script, passport, &[&call.words]);
        let answer = answers.pop().unwrap_or(Ok(Value::Nil));
        if late {
            let words = call.words.args().filter(|word| word.contains(':')).map(str::to_owned);
            self.state().late_tickets.extend(words);
        }
        if matches!(answer, Ok(Value::Int(1..))) {
            self.note_write(&call.words, late);
        }
        (time, answer)
    }

    /// It has granted what these words ask for.
    fn note_write(&self, words: &Words, late: bool) {
        let Some(key) = words.keys().next() else { return };
        let args: Vec<&str> = words.args().collect();
        let now = self.world.now();
        let mut state = self.state();
        match args[..] {
            ["acquire" | "queue" | "extend" | "transfer", owner, _, ttl, ..] => {
                let ttl = Duration::from_millis(ttl.parse().unwrap_or(0));
                let before = state
                    .written
                    .get(key)
                    .filter(|before| before.owner == owner && before.at + before.ttl > now);
                let left = before.map_or(Duration::ZERO, |before| before.at + before.ttl - now);
                let (since, ttl) = (before.map_or(now, |before| before.since), ttl.max(left));
                let written = Written { owner: owner.to_owned(), since, at: now, ttl, late };
                state.written.insert(key.to_owned(), written);
            }
            // Where the key is there all the same, it is known whose it is, and since when.
            ["release" | "withdraw", _, "0", ..] if self.left(key).is_none() => {
                drop(state.written.remove(key));
            }
            _ => {}
        }
    }

    /// It stands still.
    pub(crate) fn pause(&self) {
        let mut state = self.state();
        if state.life == Life::Running {
            state.life = Life::Still;
        }
    }

    /// It goes on, and does what it was asked meanwhile.
    pub(crate) fn resume(&self) {
        let backlog = {
            let mut state = self.state();
            if state.life != Life::Still {
                return;
            }
            state.life = Life::Running;
            std::mem::take(&mut state.backlog)
        };
        backlog.into_iter().for_each(|request| request());
    }

    /// It is killed. Its connections have to be broken by whoever has them.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.life = Life::Down;
        state.backlog.clear();
    }

    /// It is started again, as another process, with its data or empty.
    pub(crate) fn start(&self, with: Restart) {
        let restarts = {
            let mut state = self.state();
            if state.life != Life::Down {
                return;
            }
            state.life = Life::Running;
            state.restarts += 1;
            state.restarts
        };
        let is_older = matches!(with, Restart::From(_));
        self.redis.restart(format!("{:020x}{restarts:020x}", self.number), with);
        if is_older {
            let tickets = self.tickets().into_iter().map(|(_, ticket)| ticket);
            self.state().late_tickets.extend(tickets);
        }
    }

    /// It remembers what it has.
    pub(crate) fn remember(&self) {
        let snapshot = self.redis.snapshot();
        self.state().remembered = Some(snapshot);
    }

    /// What it had when it was last told to remember.
    pub(crate) fn remembered(&self) -> Restart {
        self.state().remembered.take().map_or(Restart::Whole, Restart::From)
    }

    /// It wants memory, and evicts keys, as they come; or somebody deletes them. Not those that stay when a lock is free: a
    /// master that may evict them is refused.
    pub(crate) fn evict(&self, dice: &Dice) {
        for key in self.redis.keys().into_iter().filter(|key| !stays(key) && dice.happens(700)) {
            self.redis.evict(&key);
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state().life != Life::Down
    }

    /// The locks that it holds now.
    pub(crate) fn locks(&self) -> Vec<Key> {
        let keys = self.redis.keys();
        let state = self.state();
        let locks = keys.iter().filter_map(|key| key.strip_prefix("quorate:{")?.strip_suffix('}'));
        locks.map(|lock| self.lock(&state, lock)).collect()
    }

    /// The places in the queues of locks.
    pub(crate) fn places(&self) -> Vec<Place> {
        let (tickets, found) = (self.tickets(), self.world.now());
        let state = self.state();
        let place = |(lock, ticket): (String, String)| {
            let late = state.late_tickets.contains(&ticket);
            Place { master: self.number, lock, ticket, client: 0, late, found }
        };
        tickets.into_iter().map(place).collect()
    }

    /// The tickets in the queues of locks, each with the lock.
    fn tickets(&self) -> Vec<(String, String)> {
        let mut tickets = Vec::new();
        for key in self.redis.keys() {
            let Some(lock) = key.strip_prefix("quorate:waiting:{").and_then(|key| key.strip_suffix('}'))
            else {
                continue;
            };
            let Resp::List(members) = self.redis.command(&["ZRANGE", &key, "0", "-1"]) else { continue };
            tickets.extend(members.into_iter().filter_map(|member| match member {
                Resp::Bulk(ticket) => Some((lock.to_owned(), String::from_utf8_lossy(&ticket).into_owned())),
                _ => None,
            }));
        }
        tickets
    }

    fn lock(&self, state: &State, lock: &str) -> Key {
        let key = format!("quorate:{{{lock}}}");
        let found = self.world.now();
        let written = state.written.get(&key);
        // What came back with older data was written longer ago than is known.
        let left = self.left(&key).and_then(|left| u64::try_from(left).ok()).map(Duration::from_millis);
        Key {
            master: self.number,
            lock: lock.to_owned(),
            owner: written.map(|written| written.owner.clone()).unwrap_or_default(),
            client: None,
            since: written.map_or(found, |written| written.since),
            written: written.map_or(found, |written| written.at),
            ttl: left.map(|left| written.map_or(left, |written| written.ttl)),
            late: written.is_some_and(|written| written.late),
            found,
        }
    }

    /// How long a key lives on, in milliseconds; less than nothing when it never expires, and `None` when it is gone.
    fn left(&self, key: &str) -> Option<i64> {
        match self.redis.command(&["PTTL", key]) {
            Resp::Int(left) => Some(left).filter(|left| *left != -2),
            _ => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.number).finish()
    }
}
