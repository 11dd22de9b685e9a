//! The masters' records: the set of each master, and when it has a vote. The rules that
//! clients go by decide that ([`Set`]); this feeds them, and words what they come to. Pure.

use std::time::Duration;

use super::alone::secs;
use super::facts::{Facts, FoundRecord, Server, Visitor, twin_of};
use super::report::Finding;
use crate::random::{Random, SystemRandom};
use crate::set::{
    AcceptorWrite, Event, FreshIds, MasterRecord, MemberState, Reading, RecordWrite, Set, Verdict,
};
use crate::vote::Refusal;
use crate::wire::{MasterIndex, PROTOCOL};

const ABOUT: &str = "record";

/// What a client that connects now comes to with each master.
pub(super) struct Records {
    masters: Vec<Option<Foretold>>,
    /// When all candidates are ready; `None` where a master stands in the way.
    begins_in: Option<Duration>,
    /// Whether most masters are members: then a candidate waits for no other.
    goes_on: bool,
}

/// The outcome with one master, after all writes of the handshake.
struct Foretold {
    reading: Reading,
    /// What is written first that costs the vote for a while.
    anew: Option<RecordWrite>,
    verdict: Verdict,
}

impl Records {
    pub(super) fn new(all: &[Facts], visitor: &Visitor) -> Self {
        let names = all.iter().map(|facts| facts.master.clone()).collect();
        let mut set = Set::new(names, visitor.terms.clone());
        let mut masters: Vec<_> = (0..all.len()).map(|index| first_look(all, index)).collect();
        // First not all are known, and then it matters what was written on others.
        for _ in 0..3 {
            for (index, (foretold, facts)) in set.listed().iter().zip(masters.iter_mut().zip(all)) {
                if let (Some(foretold), Ok(_)) = (foretold, &facts.server) {
                    foretold.shake_hands(&mut set, index, visitor);
                }
            }
        }
        let ready_in: Option<Vec<_>> = masters.iter().map(|master| master.as_ref()?.ready_in()).collect();
        let records = masters.iter().flatten().filter_map(|foretold| foretold.reading.record.as_ref());
        let members = records.filter(|record| record.state == MemberState::Member).count();
        Self {
            begins_in: ready_in.and_then(|each| each.into_iter().max()),
            goes_on: members > all.len() / 2,
            masters,
        }
    }

    /// What there is to say of one master's record, and when it has a vote; nothing where another
    /// finding tells why it has none.
    pub(super) fn look(
        &self,
        index: usize,
        facts: &Facts,
        visitor: &Visitor,
    ) -> Option<(Finding, Option<Duration>)> {
        let server = facts.server.as_ref().ok()?;
        if let Some(finding) = unusable(server, visitor) {
            return Some((finding, None));
        }
        let foretold = self.masters[index].as_ref()?;
        let found = server.found();
        let wait = foretold.wait();
        let begins_in = if self.goes_on { wait } else { self.begins_in };
        Some(match (&foretold.verdict, &foretold.anew) {
            (Verdict::Refuse(reason, why), _) => (refused(*reason, why, found, visitor), None),
            (_, Some(change)) => (forgot(found, server, change), wait),
            (Verdict::Wait(why), None) if found.is_some() => (begin(why, begins_in), begins_in),
            (Verdict::Wait(why), None) => {
                (Finding::warn(ABOUT, why, "run quorate init: it waits for that"), None)
            }
            (Verdict::AwaitPeers(why), None) if self.know_no_set() => {
                (Finding::warn(ABOUT, why, ALL_ANSWER), None)
            }
            (Verdict::AwaitPeers(why), None) => (
                Finding::fail(
                    ABOUT,
                    why,
                    "see to it that all masters answer, or, where one is gone for good, run quorate members recover",
                ),
                None,
            ),
            (Verdict::Vote | Verdict::Write(_), None) => (vote(found, wait.unwrap_or_default()), wait),
        })
    }

    /// Whether no master that answered has a record.
    fn know_no_set(&self) -> bool {
        self.masters.iter().flatten().all(|foretold| foretold.reading.record.is_none())
    }
}

/// What to do where no master that answered has a record, and others did not answer.
const ALL_ANSWER: &str = "see to it that all masters answer: one may know the set; if one is gone for good, begin with \
                          the others: quorate init";

/// The answer of a master to a handshake. `None` if a client refuses the master before that: it is
/// no master, or it has its vote under another name.
fn first_look(all: &[Facts], index: usize) -> Option<Foretold> {
    let server = all[index].server.as_ref().ok()?;
    let info = |field| server.info.get(field);
    let is_known = matches!(server.record, FoundRecord::Absent | FoundRecord::Read(_));
    if !is_known || info("role") != Some("master") || twin_of(all, index).is_some() {
        return None;
    }
    let time = server.looks.last()?.time;
    let reading = Reading {
        time,
        latest: time,
        run_id: info("run_id")?.into(),
        replid2: info("master_replid2").unwrap_or_default().into(),
        acceptor: server.decree.clone().unwrap_or_else(|| server.own_incarnation()),
        record: server.found().cloned(),
    };
    Some(Foretold { reading, anew: None, verdict: Verdict::Wait(String::new()) })
}

impl Foretold {
    /// A handshake, until it writes no more.
    fn shake_hands(&mut self, set: &mut Set, master: MasterIndex, visitor: &Visitor) {
        // It writes three times at most, and asks once for the promises of the others.
        for _ in 0..5 {
            let reading = self.reading.clone();
            let now = reading.time;
            let ids = FreshIds::draw(|| SystemRandom.fresh_u64());
            let hello = Event::Hello { master, reading, is_new: visitor.terms.all_new, ids };
            self.verdict = set.handle(now, hello).verdict.expect("every hello has a verdict");
            if all_promise(set) {
                continue;
            }
            let Verdict::Write(change) = &self.verdict else { return };
            self.reading.record = Some(change.written(self.reading.time));
            if change.acceptor != AcceptorWrite::Unchanged {
                self.reading.acceptor = change.record.incarnation.clone();
            }
            if change.costs_the_vote() && self.anew.is_none() {
                self.anew = Some((**change).clone());
            }
        }
    }

    /// When candidates that wait for it may go on: a member keeps nobody waiting.
    fn ready_in(&self) -> Option<Duration> {
        if self.verdict == Verdict::Vote { Some(Duration::ZERO) } else { self.wait() }
    }

    /// For how long the master has no vote; `None` where that has no end yet.
    fn wait(&self) -> Option<Duration> {
        let record = self.reading.record.as_ref().filter(|_| !matches!(self.verdict, Verdict::Refuse(..)))?;
        let lost_state = record.run_id != self.reading.run_id || self.reading.acceptor != record.incarnation;
        if lost_state && matches!(self.verdict, Verdict::Wait(_)) {
            return None; // a candidate
        }
        Some(Duration::from_micros(record.quarantine.saturating_sub(self.reading.time)))
    }
}

/// Takes it that every master with a record promises, if another one waits for that. False if none
/// waits.
fn all_promise(set: &mut Set) -> bool {
    let Some(proposal) = set.handle(0, Event::Propose { draw: 0 }).ask else { return false };
    for master in proposal.masters.iter().filter(|index| set.record_of(*index).is_some()).collect::<Vec<_>>()
    {
        set.handle(0, Event::Promised { master, ballot: proposal.ballot, accepted: None });
    }
    true
}

/// What is at the key of the record and is none.
fn unusable(server: &Server, visitor: &Visitor) -> Option<Finding> {
    let key = &visitor.terms.record;
    match &server.record {
        FoundRecord::Unread(why) if why.starts_with("WRONGTYPE") => Some(Finding::fail(
            ABOUT,
            format!("the key {key} is no record, but something else"),
            format!("find out what wrote it, and when nobody uses it: DEL {key}"),
        )),
        FoundRecord::Strange => Some(Finding::fail(
            ABOUT,
            format!("the key {key} is no record that this version can read"),
            format!("use the version that wrote it, or when nobody uses it: DEL {key}"),
        )),
        FoundRecord::Unread(_) | FoundRecord::Absent | FoundRecord::Read(_) => None,
    }
}

fn vote(found: Option<&MasterRecord>, wait: Duration) -> Finding {
    let Some(record) = found else {
        return Finding::ok(ABOUT, "it has none yet, and takes the first client's");
    };
    if record.state == MemberState::Candidate {
        let what = "candidate: the next clients make it a member";
        return Finding::warn(ABOUT, what, "have a client connect, or run quorate init");
    }
    // Its place among them: the number of one that joined later is drawn.
    let place = record.members.iter().take_while(|(id, _)| *id != record.member).count() + 1;
    let which = format!("member {place} of {}", record.members.len());
    if wait.is_zero() {
        return Finding::ok(ABOUT, format!("{which}: it remembers what it granted"));
    }
    let what = format!("{which}: it may have forgotten what it granted, and has no vote for {}", secs(wait));
    Finding::warn(ABOUT, what, "wait: that ends by itself")
}

/// A member that is written anew.
fn forgot(found: Option<&MasterRecord>, server: &Server, change: &RecordWrite) -> Finding {
    let has_restarted = |record: &MasterRecord| server.info.get("run_id") != Some(&*record.run_id);
    let what = match found {
        None => "it lost its record, and gets it back",
        Some(record) if record.set != change.record.set => {
            "somebody began another set with it, and its own takes it back"
        }
        Some(record) if has_restarted(record) => "it restarted",
        Some(record) if record.incarnation == change.record.incarnation => {
            "a wrong clock wrote its quarantine, which begins anew"
        }
        Some(_) if server.lost_decree() => "it lost what it promised about the next change of its set",
        Some(_) => "it took over the keys of another server, as its replica",
    };
    let wait = secs(change.quarantine.unwrap_or_default());
    let what = format!("{what}: it has no vote for {wait} from when a client connects");
    Finding::warn(ABOUT, what, "have a client connect, or run quorate init")
}

fn begin(why: &str, begins_in: Option<Duration>) -> Finding {
    let what = match begins_in {
        Some(time) => format!("candidate: its set begins in {}", secs(time)),
        None => format!("candidate: {why}"),
    };
    Finding::warn(ABOUT, what, "run quorate init: it waits for that")
}

/// A client with these settings is refused, or with any.
fn refused(reason: Refusal, why: &str, found: Option<&MasterRecord>, visitor: &Visitor) -> Finding {
    if let (Refusal::OtherTerms, Some(record)) = (reason, found) {
        return Finding::fail(ABOUT, why, same_terms(record, visitor));
    }
    // Most say what to do behind the last colon. Two masters that are the same member do not.
    let copied = "one of them has a copy of the other's keys: take it off the list, or FLUSHALL there";
    let (what, fix) = why.rsplit_once(": ").unwrap_or((why, copied));
    Finding::fail(ABOUT, what, fix)
}

/// What to change for the terms of the set.
fn same_terms(record: &MasterRecord, visitor: &Visitor) -> String {
    let terms = &record.terms;
    let mut changes = Vec::new();
    if &*terms.protocol != PROTOCOL {
        changes.push("the version of the other clients".to_owned());
    }
    if u128::from(terms.max_ttl) != visitor.terms.max_ttl.as_millis() {
        changes.push(format!("--max-ttl {}ms", terms.max_ttl));
    }
    format!("use {}, as they do", changes.join(" and "))
}

/// The sets of the masters. `None` if no master answered.
pub(super) fn set(all: &[Facts], visitor: &Visitor) -> Option<Finding> {
    const ABOUT: &str = "set";
    let answered = all.iter().filter_map(|facts| facts.server.as_ref().ok());
    let known = answered.filter(|server| matches!(server.record, FoundRecord::Absent | FoundRecord::Read(_)));
    let known: Vec<_> = known.map(|server| server.found()).collect();
    let mut sets: Vec<_> = known.iter().flatten().collect();
    sets.sort_by_key(|record| (&record.set, std::cmp::Reverse(record.generation)));
    sets.dedup_by_key(|record| &record.set);
    match &sets[..] {
        [] if known.is_empty() || visitor.terms.all_new => None,
        [] => {
            let begin = "begin it once, with all masters up: quorate init";
            let fix = if known.len() == all.len() { begin } else { ALL_ANSWER };
            Some(Finding::fail(ABOUT, "no master that answered has a record of a set", fix))
        }
        [record] => {
            let MasterRecord { set, terms, members, .. } = record;
            let count = members.len();
            let has_name = |facts: &Facts| members.id_of(&facts.master).is_some();
            let names = if all.iter().all(has_name) { "" } else { &*format!(" ({})", members.names()) };
            let what = format!("{set}: {count} masters{names}, {terms}");
            Some(match visitor.left.join(", ") {
                left if left.is_empty() => Finding::ok(ABOUT, what),
                left => Finding::warn(
                    ABOUT,
                    format!("{what}; not of it any more: {left}"),
                    "give clients the list as it is",
                ),
            })
        }
        _ => {
            let each = sets.iter().map(|record| format!("{} of {}", record.set, record.members.names()));
            let what = format!("they are of several sets: {}", each.collect::<Vec<_>>().join("; "));
            Some(Finding::fail(ABOUT, what, "name the masters of one set"))
        }
    }
}
