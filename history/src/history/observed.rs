//! What was seen of the masters, and what was done to them and to clients.

use serde::{Deserialize, Serialize};

use super::call::Site;
use super::time::{Time, micros};

/// What a history is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The version of Quorate.
    pub version: String,
    /// What may go wrong.
    pub scenario: String,
    /// What decided which faults there are.
    pub seed: u64,
    /// For how long faults begin.
    #[serde(with = "micros")]
    pub duration: Time,
    /// What is locked by: `quorate`, `textbook`, ...
    pub subject: String,
    /// The kinds of locks, where the subject has several.
    pub kinds: Vec<String>,
    /// How many masters there are.
    pub masters: usize,
    /// Whether they are containers of a compose file.
    pub compose: bool,
    /// How many client processes there are.
    pub clients: usize,
    /// How long leases last.
    #[serde(with = "micros")]
    pub ttl: Time,
    /// How many leases clients hold all the time, at least: none but where the set changes.
    #[serde(default)]
    pub leases: usize,
}

/// A master that had no vote in an acquire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoVote {
    /// Which one.
    pub master: usize,
    /// Why not: `quarantine`, `forgot`, `clock`, `unreachable`, `no answer`, ...
    pub why: String,
}

/// A fault, and what it strikes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// Its number in the plan, if it is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// Of which family it is: `servers`, `network`, ...
    pub family: String,
    /// In words.
    pub what: String,
    /// The masters that have it.
    pub masters: Vec<usize>,
    /// The clients that have it; together with masters, those whose ways to them have it.
    pub clients: Vec<usize>,
}

/// A fault that struck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struck {
    /// Which one.
    pub fault: FaultRecord,
    /// From when.
    pub from: Time,
    /// When it had been healed; `None` if it was not.
    pub to: Option<Time>,
    /// The masters that were healed before that, and when.
    pub before: Vec<(usize, Time)>,
}

impl Struck {
    /// When this master was healed, if it was.
    pub fn until(&self, master: usize) -> Option<Time> {
        let before = self.before.iter().find(|(healed, _)| *healed == master);
        before.map(|(_, at)| *at).or(self.to)
    }
}

/// A change of the set of masters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What was changed, in words.
    pub what: String,
    /// From when.
    pub from: Time,
    /// When it had been made; `None` if it was not.
    pub to: Option<Time>,
}

/// A master that had no vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abstention {
    /// When an acquire returned that says so.
    pub at: Time,
    /// Which master, and why.
    pub of: NoVote,
}

/// A client with another list of masters has asked for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrangerAsked {
    /// When it knew what came of it.
    pub at: Time,
    /// Why it did not get it; `None` if it did.
    pub why: Option<String>,
}

/// A key that was seen on a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Which master.
    pub master: usize,
    /// Its name.
    pub key: String,
    /// How much longer it lives; `None` for one that never expires.
    pub ttl: Option<Time>,
    /// When it was seen.
    pub seen: Time,
}

/// An entry that was found on a master and counts, or the key of a lock that is another library's,
/// too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundEntry {
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
    /// The process of that owner, if it is known: a failed acquire leaves no hold that would say
    /// it.
    pub process: Option<String>,
    /// When it came to be, for this owner. One that is renewed for ever was written a moment ago
    /// all the time.
    pub since: Time,
    /// When it was last written.
    pub written: Time,
    /// How long it was to be kept, by the longest that was asked for since it came to be; `None`
    /// for a key that never expires.
    pub ttl: Option<Time>,
    /// Whether what last wrote it was executed late: after its sender had lost the connection, or
    /// twice.
    pub late: bool,
    /// When it was found.
    pub found: Time,
}

impl FoundEntry {
    /// What it keeps from others.
    pub fn site(&self) -> Site<'_> {
        Site { name: &self.name, permit: self.permit }
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
    pub left: Option<Time>,
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
    pub process: String,
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

/// A client's report to its callers that a master does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfReach {
    /// The client.
    pub process: String,
    /// The master's number.
    pub master: usize,
    /// When the oldest vote or ping was asked for that it owes an answer to.
    pub asked: Option<Time>,
    /// When it reported this.
    pub at: Time,
}
