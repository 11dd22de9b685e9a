//! What happened in a run, as the checkers see it. Every time is true time, which no client and no
//! master knows.

use std::fmt;
use std::time::Duration;

/// True time: how long after the beginning of the run.
pub type Time = Duration;

/// A client's number. One that was killed never comes back.
pub type ClientNumber = usize;

/// Everything that the checkers look at.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Every guard that was handed out, in that order.
    pub holds: Vec<Hold>,
    /// Every acquire.
    pub attempts: Vec<Attempt>,
    /// When clients stood still.
    pub pauses: Vec<Pause>,
    /// Clients that were not done with what they did, long after they should have been.
    pub stuck: Vec<Stuck>,
    /// When a client reported a master as unreachable over an open connection.
    pub out_of_reach: Vec<OutOfReach>,
    /// What lay on the masters whenever somebody looked.
    pub keys: Vec<Key>,
    /// Entries that were over by their master's clock, and kept somebody out.
    pub refusals: Vec<Key>,
    /// What the masters remembered of names whenever somebody looked.
    pub names: Vec<Name>,
    /// For how long a master remembers a name that nobody has, at most.
    pub remembered: Duration,
    /// What stood in the masters' queues when nobody waited any more.
    pub places: Vec<Place>,
    /// Since when nothing has disturbed the run any more; never, if something still does at its
    /// end.
    pub calm: Option<Time>,
    /// When the run ended.
    pub end: Time,
    /// What reached the resource that the lock protects.
    pub writes: Vec<Write>,
    /// How many permits each lock has, where they are semaphores.
    pub permits: Option<u32>,
    /// The clients whose list of masters cannot be that of the set.
    pub refused: Vec<ClientNumber>,
    /// The longest TTL that anybody asked for: for so long what was left from before the calm may
    /// still be in the way.
    pub longest_ttl: Duration,
    /// How long an acquire that began in the calm may take. It hangs on how many wait, and for how
    /// long locks are held.
    pub bound: Duration,
    /// How often the set of masters was changed.
    pub changes: u64,
    /// The lists of masters that masters had in their records, whenever somebody looked: each where
    /// it was found first.
    pub decrees: Vec<Decree>,
    /// Where the locks are granted in the order in which their waiters came: how much later
    /// somebody has to come to be behind.
    pub in_turn: Option<Duration>,
}

/// What one owner has at a time: a lock, by its name, or one permit of the semaphore of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site<'a> {
    /// The name.
    pub name: &'a str,
    /// The permit's number.
    pub permit: Option<u32>,
}

impl fmt::Display for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.permit.map_or(Ok(()), |permit| write!(f, ":{permit}"))
    }
}

/// One guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The names that it is about: one, or those of a lock over several.
    pub names: Vec<String>,
    /// Which permit it is, of a semaphore.
    pub permit: Option<u32>,
    /// Whether it is held to read, as others may at the same time.
    pub shared: bool,
    /// Who holds it: guards of one owner may overlap.
    pub owner: String,
    /// Whose it is.
    pub client: ClientNumber,
    /// When the acquire began, and when its caller was handed the guard.
    pub asked: Time,
    /// See `asked`.
    pub granted: Time,
    /// The end of the lease, as the guard said when it was last asked.
    pub deadline: Time,
    /// When its holder began to give it back, or dropped it.
    pub given_back: Option<Time>,
    /// When its holder learned that it is lost.
    pub lost: Option<Time>,
    /// Its fencing token, where the lock has one.
    pub fence: Option<u64>,
}

impl Hold {
    /// Until when its holder may believe that it has the lock: the first of `deadline`,
    /// `given_back` and `lost`.
    pub fn window_end(&self) -> Time {
        [self.given_back, self.lost].into_iter().flatten().fold(self.deadline, Time::min)
    }

    /// Everything that it keeps from others.
    pub fn sites(&self) -> impl Iterator<Item = Site<'_>> {
        self.names.iter().map(|name| Site { name, permit: self.permit })
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sites: Vec<_> = self.sites().map(|site| site.to_string()).collect();
        let how = if self.shared { ", to read" } else { "" };
        write!(f, "client {} ({} on lock {}{how})", self.client, self.owner, sites.join("+"))
    }
}

/// A client's report to its callers that a master does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfReach {
    /// The client.
    pub client: ClientNumber,
    /// The master's number.
    pub master: usize,
    /// When the oldest vote or ping was asked for that it owes an answer to.
    pub asked: Option<Time>,
    /// When it reported this.
    pub at: Time,
}

/// One acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The names that it asks for: one, or several at once.
    pub names: Vec<String>,
    /// Whether it asks to read.
    pub shared: bool,
    /// Who asked.
    pub client: ClientNumber,
    /// When.
    pub began: Time,
    /// When its caller got the result, or gave it up; `None` if neither had happened at the end, or
    /// its client was killed.
    pub ended: Option<Time>,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// How long it was ready to wait.
    pub wait: Duration,
}

/// How an acquire ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// With a guard.
    Granted,
    /// With an error.
    Failed,
    /// Its caller dropped it.
    Cancelled,
    /// Its client was killed.
    Killed,
    /// Not yet.
    Pending,
}

/// A client stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Which one.
    pub client: ClientNumber,
    /// From when.
    pub from: Time,
    /// Until when. A client that was killed stands still for ever: `Time::MAX`.
    pub to: Time,
}

/// A client waited for something that did not come, though nothing holds it up for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Which one.
    pub client: ClientNumber,
    /// When that was noticed.
    pub at: Time,
}

/// An entry that was found on a master and counts, or the key of a lock that is another library's,
/// too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Which master.
    pub master: usize,
    /// The lock's name.
    pub name: String,
    /// Which permit it is about, of a semaphore.
    pub permit: Option<u32>,
    /// Whether it is an entry.
    pub is_entry: bool,
    /// Whether it is that of one that reads.
    pub shared: bool,
    /// The owner that the key names.
    pub owner: String,
    /// The client of that owner, if it is known: a failed acquire leaves no hold that would say it.
    pub client: Option<ClientNumber>,
    /// When it came to be, for this owner. One that is renewed for ever was written a moment ago
    /// all the time.
    pub since: Time,
    /// When it was last written.
    pub written: Time,
    /// How long it was to be kept, by the longest that was asked for since it came to be; `None`
    /// for a key that never expires.
    pub ttl: Option<Duration>,
    /// Whether what last wrote it was executed late: after its sender had lost the connection, or
    /// twice.
    pub late: bool,
    /// When it was found.
    pub found: Time,
}

impl Key {
    /// What it keeps from others.
    pub fn site(&self) -> Site<'_> {
        Site { name: &self.name, permit: self.permit }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_entry { "entry" } else { "key" };
        let how = if self.shared { ", to read" } else { "" };
        write!(f, "the {what} of {} on lock {}{how}", self.owner, self.site())
    }
}

/// A name that a master remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Which master.
    pub master: usize,
    /// The name.
    pub name: String,
    /// Whether somebody has an entry there, which may be over.
    pub is_held: bool,
    /// For how long it is remembered if nothing is written any more; `None` for one that is never
    /// forgotten.
    pub left: Option<Duration>,
    /// When it was found.
    pub found: Time,
}

/// A place in a lock's queue on a master, where nobody waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which master.
    pub master: usize,
    /// The lock's name.
    pub lock: String,
    /// The ticket that stands there.
    pub ticket: String,
    /// Whose it is.
    pub client: ClientNumber,
    /// Whether it was ever asked for, or given up, by a call that was executed late.
    pub late: bool,
    /// When it was found.
    pub found: Time,
}

/// The masters of the set in one of its generations, as a master has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decree {
    /// The set's id.
    pub set: String,
    /// The generation.
    pub generation: u64,
    /// Which master has it.
    pub master: usize,
    /// Their names.
    pub members: String,
    /// When it was found.
    pub found: Time,
}

/// A write to the resource that the lock protects, with the token of its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The lock, or the permit, that protects it.
    pub lock: String,
    /// When it reached the resource.
    pub at: Time,
    /// The writer's token.
    pub fence: u64,
    /// Whether the resource took it.
    pub accepted: bool,
}

/// Something that must never happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The property's name, which is that of its checker's file.
    pub property: &'static str,
    /// What happened, for a person: who, when, and by how much.
    pub what: String,
    /// When it was certain.
    pub at: Time,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}: {}", self.property, self.at, self.what)
    }
}
