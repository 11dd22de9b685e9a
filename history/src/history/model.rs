//! Everything that the checkers look at.

use std::collections::BTreeMap;

use super::call::{Lock, Made, Share, Site};
use super::observed::{
    Abstention, Change, Decree, FoundEntry, Key, Name, OutOfReach, Place, Run, StrangerAsked, Struck,
};
use super::time::Time;
use crate::grouped::grouped;

/// What happened, each in the order in which it began. What only a simulation can see is empty for
/// real servers, and the other way round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Every call; of a simulation every acquire, and every write to the resource.
    pub calls: Vec<Made>,
    /// Every guard that was handed out.
    pub holds: Vec<Hold>,
    /// When processes stood still.
    pub pauses: Vec<Pause>,
    /// Since when everything is healed; never, if something still disturbs the run at its end.
    pub calm: Option<Time>,
    /// When it ended.
    pub end: Time,
    /// How long an acquire that began in the calm may take. It depends on how many wait, and for
    /// how long locks are held.
    pub bound: Time,

    // On real servers.
    /// What it is of, if it says so.
    pub run: Option<Run>,
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
    /// Since when nobody holds, waits for, or asks for anything any more.
    pub quiet: Option<Time>,

    // In a simulation.
    /// Processes that were not done with what they did, long after they should have been.
    pub stuck: Vec<Stuck>,
    /// When a client reported a master as unreachable over an open connection.
    pub out_of_reach: Vec<OutOfReach>,
    /// For how long a master may owe an answer without being unreachable.
    pub timeout: Time,
    /// What lay on the masters whenever somebody looked.
    pub entries: Vec<FoundEntry>,
    /// Entries that were over by their master's clock, and kept somebody out.
    pub refusals: Vec<FoundEntry>,
    /// What the masters remembered of names whenever somebody looked.
    pub names: Vec<Name>,
    /// For how long a master remembers a name that nobody has, at most.
    pub remembered: Time,
    /// What stood in the masters' queues when nobody waited any more.
    pub places: Vec<Place>,
    /// The processes whose list of masters cannot be that of the set.
    pub refused: Vec<String>,
    /// The longest TTL that anybody asked for: for so long what was left from before the calm may
    /// still be in the way.
    pub longest_ttl: Time,
    /// The lists of masters that masters had in their records, whenever somebody looked: each where
    /// it was found first.
    pub decrees: Vec<Decree>,
    /// Where the locks are granted in the order in which their waiters came: how much later
    /// somebody has to come to be behind.
    pub in_turn: Option<Time>,
}

/// A guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// What is held.
    pub lock: Lock,
    /// Which of a semaphore's permits it is, where that is known.
    pub permit: Option<u32>,
    /// Who holds it: guards of one owner may overlap.
    pub owner: String,
    /// Whose it is.
    pub process: String,
    /// When it was asked for.
    pub asked: Time,
    /// When its caller was handed it.
    pub granted: Time,
    /// The end of its lease, as it was last said.
    pub deadline: Time,
    /// When its holder began to give it back, or dropped it.
    pub given_back: Option<Time>,
    /// When its holder learned that it has been released. A simulation does not say.
    pub free: Option<Time>,
    /// When its holder learned that it is lost.
    pub lost: Option<Time>,
    /// Its fencing token, where the lock has one.
    pub fence: Option<u64>,
}

impl History {
    /// The guards of each lock, by its kind and one of its names, in the order in which they were
    /// handed out.
    pub fn holds_by_lock(&self) -> BTreeMap<(&str, &str), Vec<&Hold>> {
        let names = self.holds.iter().flat_map(|hold| hold.lock.names.iter().map(move |name| (hold, name)));
        grouped(names.map(|(hold, name)| ((&*hold.lock.kind, &**name), hold)), |hold| hold.granted)
    }

    /// The guards of each lock, or each permit, by its kind too, in the order in which they were
    /// handed out.
    pub(crate) fn holds_by_site(&self) -> BTreeMap<(&str, Site<'_>), Vec<&Hold>> {
        let sites = self.holds.iter().flat_map(|hold| hold.sites().map(move |site| (hold, site)));
        grouped(sites.map(|(hold, site)| ((&*hold.lock.kind, site), hold)), |hold| hold.granted)
    }
}

impl Hold {
    /// Until when its holder may believe that it has the lock: the first of `deadline`,
    /// `given_back` and `lost`.
    pub fn window_end(&self) -> Time {
        [self.given_back, self.lost].into_iter().flatten().fold(self.deadline, Time::min)
    }

    /// Whether others may hold the same at the same time: it is held to read.
    pub fn reads(&self) -> bool {
        self.lock.share == Share::Shared
    }

    /// Everything that it keeps from others: nothing, where it is a permit and nobody knows which.
    pub fn sites(&self) -> impl Iterator<Item = Site<'_>> {
        let is_known = self.permit.is_some() || !matches!(self.lock.share, Share::Permits(_));
        let names = self.lock.names.iter().filter(move |_| is_known);
        names.map(|name| Site { name, permit: self.permit })
    }
}

/// A process stood still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Which one.
    pub process: String,
    /// From when.
    pub from: Time,
    /// Until when, `Time::MAX` if that was not seen; `None` for one that was killed.
    pub to: Option<Time>,
}

/// A process waited for something that did not come, though nothing holds it up for so long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Which one.
    pub process: String,
    /// When that was noticed.
    pub at: Time,
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
