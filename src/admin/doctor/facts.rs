//! What masters answered when they were examined, and who asked.

use std::sync::Arc;
use std::time::Duration;

use crate::set::{MasterRecord, Members, Terms};
use crate::time::Moment;
use crate::wire::{Failure, Info};

/// The client that examines masters, and the calls that it would make.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) terms: Terms,
    /// The prefix of its keys.
    pub(crate) prefix: Arc<str>,
    /// How many masters are needed.
    pub(crate) quorum: usize,
    /// The masters of its list that have left the set.
    pub(crate) left: Vec<Arc<str>>,
    /// How long a master may take to answer.
    pub(crate) timeout: Duration,
    /// How far (us) its wall clock is ahead of the clock that looks are measured with.
    pub(crate) wall_ahead: i64,
}

/// One master.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) master: Arc<str>,
    pub(crate) server: Result<Box<Server>, Unasked>,
}

/// Why a master did not answer the doctor.
#[derive(Clone, Debug)]
pub(crate) enum Unasked {
    /// It could not be connected to, or cannot be used.
    Failed(Failure),
    /// It did not answer within this time.
    Silent(Duration),
    /// It is not reached by a URL.
    NoServer,
}

/// What a server answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Server {
    pub(crate) info: Info,
    pub(crate) record: FoundRecord,
    /// The incarnation that knows what it promised, empty where none does, if it can be read.
    pub(crate) decree: Option<Arc<str>>,
    pub(crate) denied: Denied,
    /// Why it refuses what a client begins with: the handshake, or a call of a script.
    pub(crate) refuses_calls: Option<String>,
    /// Why it refuses all writes, if it does.
    pub(crate) refuses_writes: Option<String>,
    pub(crate) round_trips: Vec<Duration>,
    pub(crate) looks: Vec<ClockLook>,
}

impl Server {
    /// Its record, if it has one that can be read.
    pub(super) fn found(&self) -> Option<&MasterRecord> {
        match &self.record {
            FoundRecord::Read(record) => Some(record),
            FoundRecord::Absent | FoundRecord::Strange | FoundRecord::Unread(_) => None,
        }
    }

    /// The incarnation of its record; empty without one.
    pub(super) fn own_incarnation(&self) -> Arc<str> {
        self.found().map_or_else(|| "".into(), |record| record.incarnation.clone())
    }

    /// Whether what it promised is gone, and its record is there.
    pub(super) fn lost_decree(&self) -> bool {
        self.decree.as_ref().is_some_and(|decree| *decree != self.own_incarnation())
    }
}

impl Facts {
    /// The master's record, if it has one that can be read.
    fn record(&self) -> Option<&MasterRecord> {
        self.server.as_ref().ok()?.found()
    }
}

/// The record of the newest generation of the set that most of these masters are of, if that is not
/// its first.
fn newest(all: &[Facts]) -> Option<&MasterRecord> {
    let records = || all.iter().filter_map(Facts::record);
    let of_set = |set: &str| records().filter(|its| *its.set == *set).count();
    let most = records().max_by_key(|its| (of_set(&its.set), its.generation))?;
    let newest = records().filter(|its| its.set == most.set).max_by_key(|its| its.generation);
    newest.filter(|its| its.generation > 0)
}

/// The masters that have joined the set of these since their list was written.
pub(crate) fn joined(all: &[Facts]) -> Vec<Arc<str>> {
    let Some(newest) = newest(all) else { return Vec::new() };
    let is_its = |its: &&MasterRecord| its.set == newest.set;
    let is_shown = |id: u32| all.iter().filter_map(Facts::record).filter(is_its).any(|its| its.member == id);
    let is_new =
        |(id, name): &&(u32, Arc<str>)| !is_shown(*id) && all.iter().all(|facts| facts.master != *name);
    newest.members.iter().filter(is_new).map(|(_, name)| name.clone()).collect()
}

/// Those of these masters that are still of the set, and the names of the others.
pub(crate) fn without_those_that_left(all: Vec<Facts>) -> (Vec<Arc<str>>, Vec<Facts>) {
    let Some(newest) = newest(&all).cloned() else { return (Vec::new(), all) };
    let has_left = |facts: &Facts| {
        let is_named = |members: &Members| members.id_of(&facts.master).is_some();
        let is_other = match facts.record().filter(|its| its.set == newest.set) {
            Some(record) => !newest.members.has(record.member),
            None => newest.earlier.iter().any(is_named),
        };
        is_other && !is_named(&newest.members)
    };
    let (left, stay): (Vec<Facts>, Vec<Facts>) = all.into_iter().partition(has_left);
    (left.into_iter().map(|facts| facts.master).collect(), stay)
}

/// The master before this one in the list that is the same server, which has its one vote.
pub(super) fn twin_of(all: &[Facts], index: usize) -> Option<&Facts> {
    let run_id = run_id(&all[index])?;
    all[..index].iter().find(|other| self::run_id(other) == Some(run_id))
}

/// The server process that a master is.
pub(super) fn run_id(facts: &Facts) -> Option<&str> {
    facts.server.as_ref().ok()?.info.get("run_id")
}

/// What is at the record's key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum FoundRecord {
    /// There is none.
    #[default]
    Absent,
    Read(Box<MasterRecord>),
    /// A hash that is no record, or that of another version.
    Strange,
    /// The reason why it cannot be read.
    Unread(String),
}

/// What this user may not do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Denied {
    /// Commands, as `ACL SETUSER` names them.
    pub(crate) commands: Vec<&'static str>,
    /// Commands that the server does not know.
    pub(crate) unknown: Vec<&'static str>,
    /// The keys of locks.
    pub(crate) keys: bool,
    /// The channels of wake-ups.
    pub(crate) channels: bool,
}

/// It was `time` (us since 1970) on a server at some moment between these two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockLook {
    pub(crate) asked: Moment,
    pub(crate) answered: Moment,
    pub(crate) time: u64,
}
