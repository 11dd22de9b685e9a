//! A history, as the checkers look at it.

use std::collections::BTreeMap;

use super::line::{Call, FaultRecord, Lock, Micros, NoVote, Outcome, Run, Share};

/// Everything that the checkers look at, each in the order in which it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// What it is of, if it says so.
    pub run: Option<Run>,
    /// Every call.
    pub calls: Vec<Made>,
    /// Every guard that was handed out.
    pub holds: Vec<Hold>,
    /// When processes stood still.
    pub pauses: Vec<Pause>,
    /// What was seen on the masters.
    pub keys: Vec<Key>,
    /// When masters had no vote, by their answers to clients.
    pub abstentions: Vec<Abstention>,
    /// When a client with another list of masters asked for a lock.
    pub strangers: Vec<StrangerAsked>,
    /// The faults.
    pub faults: Vec<Struck>,
    /// The changes of the set of masters, one after the other.
    pub changes: Vec<Change>,
    /// Since when everything is healed.
    pub calm: Option<Micros>,
    /// Since when nobody holds, waits for, or asks for anything any more.
    pub quiet: Option<Micros>,
    /// The time of the last line.
    pub end: Micros,
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Who made it.
    pub process: String,
    /// Its number in its process.
    pub number: u64,
    /// What it was.
    pub call: Call,
    /// When it was made.
    pub invoked: Micros,
    /// When it returned, if it did.
    pub returned: Option<Micros>,
    /// What it said.
    pub outcome: Outcome,
}

/// A guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// What is held.
    pub lock: Lock,
    /// Who holds it: guards of one owner may overlap.
    pub owner: String,
    /// Whose it is.
    pub process: String,
    /// When it was asked for.
    pub asked: Micros,
    /// When its caller was handed it.
    pub granted: Micros,
    /// The end of its lease, as it was last said.
    pub deadline: Micros,
    /// When its holder began to give it back.
    pub given_back: Option<Micros>,
    /// When its holder learned that it has been released.
    pub free: Option<Micros>,
    /// When its holder learned that it is lost.
    pub lost: Option<Micros>,
    /// Its fencing token, where the lock has one.
    pub fence: Option<u64>,
    /// Which of a semaphore's permits it is, where that is known.
    pub permit: Option<u32>,
}

impl History {
    /// The guards of each lock, by its kind and one of its names, in the order in which they were
    /// handed out.
    pub fn holds_by_lock(&self) -> BTreeMap<(&str, &str), Vec<&Hold>> {
        let mut locks: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for hold in &self.holds {
            for name in &hold.lock.names {
                locks.entry((&*hold.lock.kind, &**name)).or_default().push(hold);
            }
        }
        for holds in locks.values_mut() {
            holds.sort_by_key(|hold| hold.granted);
        }
        locks
    }
}

impl Hold {
    /// Until when its holder may believe that it has the lock: the first of `deadline`,
    /// `given_back` and `lost`.
    pub fn window_end(&self) -> Micros {
        [self.given_back, self.lost].into_iter().flatten().fold(self.deadline, Micros::min)
    }

    /// Whether nobody else may hold what this guard holds: an exclusive lock, or one permit of a
    /// semaphore.
    pub(crate) fn is_exclusive(&self) -> bool {
        match self.lock.share {
            Share::Exclusive => true,
            Share::Permits(_) => self.permit.is_some(),
            Share::Shared => false,
        }
    }
}

/// A process stood still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Which one.
    pub process: String,
    /// From when.
    pub from: Micros,
    /// Until when; `None` for one that was killed.
    pub to: Option<Micros>,
}

/// A fault that struck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struck {
    /// Which one.
    pub fault: FaultRecord,
    /// From when.
    pub from: Micros,
    /// When it had been healed; `None` if it was not.
    pub to: Option<Micros>,
    /// The masters that were healed before that, and when.
    pub before: Vec<(usize, Micros)>,
}

impl Struck {
    /// When this master was healed, if it was.
    pub fn until(&self, master: usize) -> Option<Micros> {
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
    pub from: Micros,
    /// When it had been made; `None` if it was not.
    pub to: Option<Micros>,
}

/// A master that had no vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abstention {
    /// When an acquire returned that says so.
    pub at: Micros,
    /// Which master, and why.
    pub of: NoVote,
}

/// A client with another list of masters has asked for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrangerAsked {
    /// When it knew what came of it.
    pub at: Micros,
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
    pub ttl: Option<Micros>,
    /// When it was seen.
    pub seen: Micros,
}
