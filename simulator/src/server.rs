//! One master: an embedded server with a clock of its own, which can stand still, die, and lose
//! what it knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate::seam::{Call, Script, SessionHeader, Value, Words};
use quorate_history::{Decree, FoundEntry, Name, Place, Time};
use quorate_testkit::{Dice, EmbeddedServer, Resp, Restart, Snapshot, trusting};

use crate::client::ClientNumber;
use crate::clocks::WallClock;
use crate::entries::{Entry, entries, field_of, owner_of, text};
use crate::plan::Plan;
use crate::world::World;

type Job = Box<dyn FnOnce() + Send>;

/// One master.
pub(crate) struct Server {
    pub(crate) number: usize,
    pub(crate) redis: EmbeddedServer,
    pub(crate) clock: Arc<WallClock>,
    world: Arc<World>,
    /// Whether its scripts refuse no vote.
    is_trusting: bool,
    state: Mutex<ServerState>,
}

struct ServerState {
    life: ServerLife,
    /// What arrived while it stood still.
    backlog: Vec<Job>,
    /// The tickets that were in a call which was executed late, or came back with older data.
    late_tickets: BTreeSet<String>,
    /// What it was last asked to keep, by the key and the field of its entry.
    written: BTreeMap<(String, String), Written>,
    restarts: u64,
    /// What it had when `remember` was last called.
    remembered: Option<Snapshot>,
    /// How far (us) its clock is ahead while it renews leases.
    strobe: i64,
    detour: Detour,
}

/// What there is besides the server behind an address that leads to two in turn.
#[derive(Default)]
struct Detour {
    /// The process and the keys of the other one, once there is one.
    other: Option<(String, Snapshot)>,
    leads_away: bool,
    /// The clients that have had a connection to the server since the address leads to it.
    known_to: BTreeSet<ClientNumber>,
    /// Those that may be the first to connect to it, because they know the one that was there
    /// before; and the stamp that its record has until one of them connects.
    first: BTreeSet<ClientNumber>,
    stamp: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerLife {
    Running,
    Still,
    Down,
}

/// How an entry came to be what it is, or the key of another library.
#[derive(Clone, Debug)]
struct Written {
    owner: String,
    since: Time,
    at: Time,
    kept: Duration,
    late: bool,
}

impl Server {
    pub(crate) fn new(world: Arc<World>, number: usize, clock: WallClock, plan: &Plan) -> Arc<Self> {
        let clock = Arc::new(clock);
        let its = clock.clone();
        let redis = EmbeddedServer::with_clock(number, Arc::new(move || its.micros()));
        let state = ServerState {
            life: ServerLife::Running,
            backlog: Vec::new(),
            late_tickets: BTreeSet::new(),
            written: BTreeMap::new(),
            restarts: 0,
            remembered: None,
            strobe: 0,
            detour: Detour::default(),
        };
        let is_trusting = plan.trusting;
        Arc::new(Self { number, redis, clock, world, is_trusting, state: Mutex::new(state) })
    }

    /// One that is of no set yet, and of which nobody knows what it may have forgotten.
    pub(crate) fn joiner(world: Arc<World>, number: usize, clock: WallClock, plan: &Plan) -> Arc<Self> {
        let server = Self::new(world, number, clock, plan);
        server.redis.restart(run_id(number, 0), Restart::Empty);
        server
    }

    /// What clients, and records, call it.
    pub(crate) fn name(&self) -> Arc<str> {
        format!("m{}", self.number).into()
    }

    /// A request arrives. `false` when nobody is there to take it.
    pub(crate) fn take(&self, request: impl FnOnce() + Send + 'static) -> bool {
        let mut state = self.state();
        match state.life {
            ServerLife::Running => {}
            ServerLife::Still => {
                state.backlog.push(Box::new(request));
                return true;
            }
            ServerLife::Down => return false,
        }
        drop(state); // it comes back here
        request();
        true
    }

    /// Runs operations of a connection with this header in one call. `late` tells that the sender
    /// may not know of it any more.
    pub(crate) fn run(
        &self,
        script: &'static Script,
        calls: &[Arc<Call>],
        header: &SessionHeader,
        late: bool,
    ) -> Result<Value, String> {
        let words: Vec<&Words> = calls.iter().map(|call| call.words_for(script)).collect();
        let script = if self.is_trusting { trusting(script) } else { script };
        let renews = words.iter().any(|words| words.args().next() == Some("extend"));
        let strobe = if renews { self.state().strobe } else { 0 };
        self.clock.step(strobe);
        let reply = self.redis.call(script, header, &words);
        self.clock.step(-strobe);
        if late {
            let words = words.iter().flat_map(|words| words.args()).filter(|word| word.contains(':'));
            self.state().late_tickets.extend(words.map(str::to_owned));
        }
        let items = reply.as_ref().ok().and_then(Value::list).unwrap_or_default();
        for (call, item) in calls.iter().zip(items.iter().skip(1)) {
            self.note(call, matches!(item, Value::Int(1..)), late);
            if let (Some("acquire"), Value::List(refusal)) = (call.words.args().next(), item) {
                self.note_refusal(call, refusal);
            }
        }
        reply
    }

    /// It has run an operation.
    fn note(&self, call: &Call, granted: bool, late: bool) {
        let args: Vec<&str> = call.words.args().collect();
        let [verb, _, _, slot, owner, ref rest @ ..] = args[..] else { return };
        for key in call.words.keys().step_by(KEYS_PER_NAME) {
            let place = (key.to_owned(), field_of(slot, owner));
            match (verb, rest) {
                ("acquire", [_, _, kept, ..])
                | ("extend", [_, _, _, kept, ..])
                | ("transfer", [_, _, kept, ..])
                    if granted =>
                {
                    self.note_write(place, owner, millis(kept), late);
                }
                ("release", ["0", ..]) => self.note_release(&place, owner),
                _ => {}
            }
        }
    }

    /// Records that an entry which is over by this clock refuses a caller: the caller may trust an
    /// earlier time.
    fn note_refusal(&self, call: &Call, refusal: &[Value]) {
        let ("held", Some(Value::Text(owner))) = (verb_of(refusal), refusal.get(1)) else { return };
        // The owner may have an entry of another grant, which is over, on another of the names.
        let token = refusal.get(4).and_then(Value::int);
        for key in call.words.keys().step_by(KEYS_PER_NAME) {
            let Some(KeySite::Name(name)) = site(key) else { continue };
            let all = entries(&self.redis, key);
            let is_told =
                |entry: &&Entry| *entry.owner == **owner && token == i64::try_from(entry.token).ok();
            let over = all.iter().filter(|entry| is_told(entry) && !entry.counts(self.clock.micros()));
            let found: Vec<_> = over.map(|entry| self.found_entry(key, name, entry)).collect();
            self.world.recorder.with(|history| history.refusals.extend(found));
        }
    }

    fn note_write(&self, place: (String, String), owner: &str, kept: Duration, late: bool) {
        let now = self.world.now();
        let mut state = self.state();
        let before = state.written.get(&place);
        let before = before.filter(|before| before.owner == owner && before.at + before.kept > now);
        let left = before.map_or(Duration::ZERO, |before| before.at + before.kept - now);
        let since = before.map_or(now, |before| before.since);
        let owner = owner.to_owned();
        let kept = kept.max(left);
        state.written.insert(place, Written { owner, since, at: now, kept, late });
    }

    /// Where it is there all the same, it is known whose it is, and since when.
    fn note_release(&self, place: &(String, String), owner: &str) {
        let (key, field) = place;
        let is_its_own = |written: &Written| written.owner == owner;
        let is_there = if field.is_empty() {
            self.left(key).is_some()
        } else {
            entries(&self.redis, key).iter().any(|entry| entry.field == *field && entry.owner == owner)
        };
        let mut state = self.state();
        if !is_there && state.written.get(place).is_some_and(is_its_own) {
            state.written.remove(place);
        }
    }

    /// It stands still.
    pub(crate) fn pause(&self) {
        let mut state = self.state();
        if state.life == ServerLife::Running {
            state.life = ServerLife::Still;
        }
    }

    /// It goes on, and does what it was asked meanwhile.
    pub(crate) fn resume(&self) {
        let backlog = {
            let mut state = self.state();
            if state.life != ServerLife::Still {
                return;
            }
            state.life = ServerLife::Running;
            std::mem::take(&mut state.backlog)
        };
        backlog.into_iter().for_each(|request| request());
    }

    /// It is killed. The caller has to break its connections.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.life = ServerLife::Down;
        state.backlog.clear();
    }

    /// It is started again, as another process, with its data or empty.
    pub(crate) fn start(&self, with: Restart) {
        let restarts = {
            let mut state = self.state();
            if state.life != ServerLife::Down {
                return;
            }
            state.life = ServerLife::Running;
            state.restarts += 1;
            state.restarts
        };
        let is_older = matches!(with, Restart::From(_));
        self.redis.restart(run_id(self.number, restarts), with);
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

    /// What it had when `remember` was last called.
    pub(crate) fn remembered(&self) -> Option<Snapshot> {
        self.state().remembered.take()
    }

    /// Goes back to that within its process. Whether it runs.
    pub(crate) fn relapse(&self) -> bool {
        let remembered = {
            let mut state = self.state();
            state.remembered.take().filter(|_| state.life != ServerLife::Down)
        };
        let Some(snapshot) = remembered else { return false };
        self.redis.restore(&snapshot);
        let tickets = self.tickets().into_iter().map(|(_, ticket)| ticket);
        self.state().late_tickets.extend(tickets);
        true
    }

    /// From now on its clock is so far (us) ahead while it renews leases.
    pub(crate) fn strobe_renewals(&self, by: i64) {
        self.state().strobe = by;
    }

    /// From now on its address leads to another server, which is empty at first, or to the first
    /// again. Whether it did not before. The caller has to break its connections.
    pub(crate) fn lead_away(&self, away: bool) -> bool {
        let here = (self.redis.run_id(), self.redis.snapshot());
        let mut state = self.state();
        let detour = &mut state.detour;
        if std::mem::replace(&mut detour.leads_away, away) == away {
            return false;
        }
        let (run_id, with) = match detour.other.replace(here) {
            Some((run_id, keys)) => (run_id, Restart::From(keys)),
            None => (run_id(self.number, u64::MAX), Restart::Empty),
        };
        detour.first = std::mem::take(&mut detour.known_to);
        state.backlog.clear();
        drop(state);
        self.redis.restart(run_id, with);
        self.state().detour.stamp = self.stamp();
        true
    }

    /// Whether a client may not connect yet: one that comes first, and does not know the server
    /// that was there before, cannot know that there was one.
    pub(crate) fn is_closed_to(&self, client: ClientNumber) -> bool {
        let detour = &self.state().detour;
        !detour.first.is_empty() && !detour.first.contains(&client) && detour.stamp == self.stamp()
    }

    /// A client has a connection to it.
    pub(crate) fn is_known_to(&self, client: ClientNumber) {
        self.state().detour.known_to.insert(client);
    }

    /// The stamp of its record, if it has one.
    fn stamp(&self) -> Option<String> {
        self.record("stamp")
    }

    /// A field of its record, if it has one.
    pub(crate) fn record(&self, field: &str) -> Option<String> {
        text(&self.redis.command(&["HGET", RECORD, field]))
    }

    /// How often its set had changed when it was told last.
    pub(crate) fn generation(&self) -> Option<u64> {
        self.record("generation")?.parse().ok()
    }

    /// The set that it is a member of, if it is one.
    pub(crate) fn set(&self) -> Option<String> {
        self.record("set").filter(|_| self.record("state").as_deref() == Some("member"))
    }

    /// Whether it accepted a change of its set, which it was not told to be decided.
    pub(crate) fn has_accepted(&self) -> bool {
        let decree = |field| text(&self.redis.command(&["HGET", DECREE, field]));
        let is_next = decree("generation").and_then(|text| text.parse().ok()) > self.generation();
        is_next && decree("value").is_some_and(|value| !value.is_empty())
    }

    /// Whether it has rejoined its set since it was started.
    pub(crate) fn has_rejoined(&self) -> bool {
        self.record("run_id") == Some(self.redis.run_id())
    }

    /// Which masters it takes for those of its set, if it is one of them, or was.
    pub(crate) fn decree(&self) -> Option<Decree> {
        let members = self.record("members").filter(|_| self.record("state").as_deref() != Some("candidate"));
        let members = members?.replace('\n', ", ");
        let set = self.record("set")?;
        let generation = self.generation()?;
        Some(Decree { set, generation, master: self.number, members, found: self.world.now() })
    }

    /// Somebody deletes keys of locks, as they come. A master that may evict them by itself is
    /// refused.
    pub(crate) fn evict(&self, dice: &Dice) {
        for key in self.redis.keys().into_iter().filter(|key| site(key).is_some() && dice.happens(700)) {
            self.redis.evict(&key);
        }
    }

    /// The entries that count now, and the keys of locks of other libraries.
    pub(crate) fn locks(&self) -> Vec<FoundEntry> {
        let mut found = Vec::new();
        for key in self.redis.keys() {
            match site(&key) {
                Some(KeySite::Name(name)) => {
                    let entries = entries(&self.redis, &key);
                    let counting = entries.iter().filter(|entry| entry.counts(self.clock.micros()));
                    found.extend(counting.map(|entry| self.found_entry(&key, name, entry)));
                }
                Some(KeySite::Shared(name)) => found.push(self.found_key(&key, name)),
                None => {}
            }
        }
        found
    }

    /// The names that it remembers.
    pub(crate) fn names(&self) -> Vec<Name> {
        let keys = self.redis.keys();
        let found = self.world.now();
        let names = keys.iter().filter_map(|key| match site(key) {
            Some(KeySite::Name(name)) => Some((key, name.to_owned())),
            _ => None,
        });
        let name = |(key, name): (&String, String)| {
            let is_held = !entries(&self.redis, key).is_empty();
            let left = self.time_left(key);
            Name { master: self.number, name, is_held, left, found }
        };
        names.map(name).collect()
    }

    /// The places in the queues of locks.
    pub(crate) fn places(&self) -> Vec<Place> {
        let tickets = self.tickets();
        let found = self.world.now();
        let state = self.state();
        let place = |(lock, ticket): (String, String)| {
            let late = state.late_tickets.contains(&ticket);
            let ticket = owner_of(&ticket).to_owned();
            Place { master: self.number, lock, ticket, process: String::new(), late, found }
        };
        tickets.into_iter().map(place).collect()
    }

    /// The tickets in the queues of locks, each with the lock.
    fn tickets(&self) -> Vec<(String, String)> {
        let mut tickets = Vec::new();
        for key in self.redis.keys() {
            let Some(queue) = key.strip_prefix(QUEUES) else { continue };
            let queue = queue.strip_prefix("shared:").unwrap_or(queue);
            let Some(lock) = queue.strip_prefix('{').and_then(|lock| lock.strip_suffix('}')) else {
                continue;
            };
            let Resp::List(members) = self.redis.command(&["ZRANGE", &key, "0", "-1"]) else { continue };
            tickets.extend(members.iter().filter_map(text).map(|ticket| (lock.to_owned(), ticket)));
        }
        tickets
    }

    /// The key of a lock of another library.
    fn found_key(&self, key: &str, name: &str) -> FoundEntry {
        let left = self.time_left(key);
        let found = self.found((key, ""), name, left.unwrap_or_default());
        FoundEntry { is_entry: false, ttl: left.and(found.ttl), ..found }
    }

    fn found_entry(&self, key: &str, name: &str, entry: &Entry) -> FoundEntry {
        let found = self.found((key, &entry.field), name, entry.left(self.clock.micros()));
        FoundEntry { owner: entry.owner.clone(), permit: entry.permit(), shared: entry.reads(), ..found }
    }

    /// What is at this place, as it was noted for that; what came back with older data, and has so
    /// much `left`, was written longer ago than is known.
    fn found(&self, (key, field): (&str, &str), name: &str, left: Duration) -> FoundEntry {
        let found = self.world.now();
        let state = self.state();
        let written = state.written.get(&(key.to_owned(), field.to_owned()));
        FoundEntry {
            master: self.number,
            name: name.to_owned(),
            permit: None,
            is_entry: true,
            shared: false,
            owner: written.map(|written| written.owner.clone()).unwrap_or_default(),
            process: None,
            since: written.map_or(found, |written| written.since),
            written: written.map_or(found, |written| written.at),
            ttl: Some(written.map_or(left, |written| written.kept)),
            late: written.is_some_and(|written| written.late),
            found,
        }
    }

    /// How long a key lives on; `None` where that is for ever.
    fn time_left(&self, key: &str) -> Option<Duration> {
        self.left(key).and_then(|left| u64::try_from(left).ok()).map(Duration::from_millis)
    }

    /// How long a key lives on, in milliseconds; less than nothing when it never expires, and
    /// `None` when it is gone.
    fn left(&self, key: &str) -> Option<i64> {
        match self.redis.command(&["PTTL", key]) {
            Resp::Int(left) => Some(left).filter(|left| *left != -2),
            _ => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The run id of the server of this number after so many restarts.
fn run_id(number: usize, restarts: u64) -> String {
    format!("{number:020x}{restarts:020x}")
}

/// What a reply begins with.
fn verb_of(reply: &[Value]) -> &str {
    match reply.first() {
        Some(Value::Text(word)) => word,
        _ => "",
    }
}

/// What a key of a lock is.
enum KeySite<'a> {
    /// The hash of this name.
    Name(&'a str),
    /// The key of a lock of another library, of this name.
    Shared(&'a str),
}

/// The key of the record.
const RECORD: &str = "quorate:master";

/// The key of what it promised and accepted.
const DECREE: &str = "quorate:decree";

/// What the keys of queues begin with.
const QUEUES: &str = "quorate:waiting:";

fn site(key: &str) -> Option<KeySite<'_>> {
    match key.strip_prefix("quorate:") {
        Some(own) => own.strip_prefix('{')?.strip_suffix('}').map(KeySite::Name),
        None => Some(KeySite::Shared(key)),
    }
}

/// How many keys an operation has for each of its names: the hash, and the queue.
pub(crate) const KEYS_PER_NAME: usize = 2;

fn millis(word: &str) -> Duration {
    Duration::from_millis(word.parse().unwrap_or(0))
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.number).finish()
    }
}
