//! One master: an embedded server with a clock of its own, which can stand still, die, and lose what it knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate::seam::{Call, Failure, Passport, Value};
use quorate_testkit::{Dice, EmbeddedServer, Resp, Restart, Snapshot, stays};

use crate::clocks::WallClock;
use crate::history::{Key, Place, Time};
use crate::holders::{Holder, holders, owner_of, place_of};
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
    /// For how long a permit counts as taken.
    kept: Duration,
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
        self.note(call, matches!(answer, Ok(Value::Int(1..))), late);
        (time, answer)
    }

    /// It has run an operation.
    fn note(&self, call: &Call, granted: bool, late: bool) {
        let mut args: Vec<&str> = call.words.args().collect();
        let is_about_several = is_about_several(call);
        if is_about_several {
            args.remove(1); // how many names there are
        }
        let per_name = if is_about_several { 3 } else { call.words.keys().len().max(1) };
        let has_holders = call.script.name() == "rw";
        for key in call.words.keys().step_by(per_name) {
            let place = |owner| if has_holders { place_of(key, owner) } else { key.to_owned() };
            match args[..] {
                ["acquire" | "queue" | "extend" | "transfer", owner, _, ttl, _, _, kept, ..] if granted => {
                    self.note_write(&place(owner), owner, [ttl, kept].map(millis), late);
                }
                ["release" | "withdraw", owner, "0", ..] if has_holders => {
                    self.note_leave(key, owner, &place(owner))
                }
                ["release" | "withdraw", _, "0", ..] => self.note_release(key),
                _ => {}
            }
        }
    }

    fn note_write(&self, key: &str, owner: &str, [ttl, kept]: [Duration; 2], late: bool) {
        let (now, mut state) = (self.world.now(), self.state());
        let before = state.written.get(key);
        let before = before.filter(|before| before.owner == owner && before.at + before.ttl > now);
        let left = before.map_or(Duration::ZERO, |before| before.at + before.ttl - now);
        let (since, beyond) = (before.map_or(now, |before| before.since), left.saturating_sub(ttl));
        let (owner, ttl, kept) = (owner.to_owned(), ttl + beyond, kept + beyond);
        state.written.insert(key.to_owned(), Written { owner, since, at: now, ttl, kept, late });
    }

    /// A holder of a read-write lock has left, unless it is there still.
    fn note_leave(&self, key: &str, owner: &str, place: &str) {
        if !holders(&self.redis, key).iter().any(|holder| holder.field == owner) {
            self.state().written.remove(place);
        }
    }

    /// Where the key is there all the same, or the permit's entry, it is known whose it is, and since when.
    fn note_release(&self, key: &str) {
        if self.left(key).is_none() && !self.has_entry(key) {
            drop(self.state().written.remove(key));
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

    /// The locks that it holds now, the permits that count as taken, and whoever reads or writes.
    pub(crate) fn locks(&self) -> Vec<Key> {
        let mut found = Vec::new();
        for key in self.redis.keys() {
            let Some((name, permit)) = site(&key) else { continue };
            let holders = holders(&self.redis, &key);
            if !holders.is_empty() {
                let counting = holders.iter().filter(|holder| holder.counts(&holders, self.clock.micros()));
                found.extend(counting.map(|holder| self.found_holder(&key, holder, name)));
                continue;
            }
            found.push(self.found(&key, name, permit));
            let taken = self.entries(&key).into_iter().filter_map(|member| {
                let (number, _) = member.split_once('/')?;
                Some((format!("{key}:{member}"), number.parse().ok()))
            });
            found.extend(taken.map(|(key, permit)| self.found_entry(&key, name, permit)));
        }
        found
    }

    /// The members of a semaphore's key that count as taken.
    fn entries(&self, key: &str) -> Vec<String> {
        let now = self.clock.micros();
        // At another key there is a lock.
        let Resp::List(all) = self.redis.command(&["ZRANGE", key, "0", "-1", "WITHSCORES"]) else {
            return Vec::new();
        };
        let counts = |entry: &&[Resp]| text(&entry[1]).and_then(|ends| ends.parse().ok()) >= Some(now);
        all.chunks_exact(2).filter(counts).filter_map(|entry| text(&entry[0])).collect()
    }

    /// Whether the permit at `key` counts as taken.
    fn has_entry(&self, key: &str) -> bool {
        let Some((semaphore, member)) = key.rsplit_once(':') else { return false };
        member.contains('/') && self.entries(semaphore).iter().any(|entry| entry == member)
    }

    /// The places in the queues of locks.
    pub(crate) fn places(&self) -> Vec<Place> {
        let (tickets, found) = (self.tickets(), self.world.now());
        let state = self.state();
        let place = |(lock, ticket): (String, String)| {
            let late = state.late_tickets.contains(&ticket);
            let ticket = owner_of(&ticket).to_owned();
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
            tickets.extend(members.iter().filter_map(text).map(|ticket| (lock.to_owned(), ticket)));
        }
        tickets
    }

    fn found(&self, key: &str, name: &str, permit: Option<u32>) -> Key {
        self.found_at(key, key, name, permit)
    }

    /// What is at `key`, as it was noted for this place.
    fn found_at(&self, place: &str, key: &str, name: &str, permit: Option<u32>) -> Key {
        let (found, state) = (self.world.now(), self.state());
        let written = state.written.get(place);
        // What came back with older data was written longer ago than is known.
        let left = self.left(key).and_then(|left| u64::try_from(left).ok()).map(Duration::from_millis);
        Key {
            master: self.number,
            name: name.to_owned(),
            permit,
            is_entry: false,
            shared: false,
            owner: written.map(|written| written.owner.clone()).unwrap_or_default(),
            client: None,
            since: written.map_or(found, |written| written.since),
            written: written.map_or(found, |written| written.at),
            ttl: left.map(|left| written.map_or(left, |written| written.ttl)),
            late: written.is_some_and(|written| written.late),
            found,
        }
    }

    /// The entry of the permit at `key`.
    fn found_entry(&self, key: &str, name: &str, permit: Option<u32>) -> Key {
        let kept = self.state().written.get(key).map_or(Duration::ZERO, |written| written.kept);
        Key { is_entry: true, ttl: Some(kept), ..self.found(key, name, permit) }
    }

    /// The entry of one that reads, or writes.
    fn found_holder(&self, key: &str, holder: &Holder, name: &str) -> Key {
        let (owner, shared) = (owner_of(&holder.field).to_owned(), holder.reads());
        Key { is_entry: true, shared, owner, ..self.found_at(&place_of(key, &holder.field), key, name, None) }
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

/// What a lock's key is about: the name, and the permit where it is that of one.
fn site(key: &str) -> Option<(&str, Option<u32>)> {
    let Some(own) = key.strip_prefix("quorate:") else { return Some((key, None)) }; // shared with other libraries
    let (name, rest) = own.strip_prefix('{')?.split_once('}')?;
    if rest.is_empty() {
        return Some((name, None));
    }
    let (number, _) = rest.strip_prefix(':')?.split_once('/')?;
    Some((name, number.parse().ok()))
}

/// Whether an operation is about several names at once: then it says how many, and has three keys for each.
pub(crate) fn is_about_several(call: &Call) -> bool {
    call.script.name() == "all"
}

fn millis(word: &str) -> Duration {
    Duration::from_millis(word.parse().unwrap_or(0))
}

pub(crate) fn text(reply: &Resp) -> Option<String> {
    match reply {
        Resp::Bulk(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.number).finish()
    }
}
