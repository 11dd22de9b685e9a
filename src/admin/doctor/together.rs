//! Whether masters fit together and are a quorum: pure.

use std::time::Duration;

use super::alone::{self, median, secs};
use super::facts::{ClockLook, Facts, Visitor, run_id, twin_of};
use super::records::{self, Records};
use super::report::{Examined, Finding, Report, Severity};
use crate::time::BAND;

/// A clock that is off by more than this (us) is worth a warning, though the vote counts.
const SLOPPY: i64 = BAND.as_micros() as i64 / 2;

/// How far (us) this host's clock may be off: by more, waiters lose their fair place in the queue.
const WAITER: i64 = 500_000;

/// What all that follows from.
pub(crate) fn judge(all: &[Facts], visitor: &Visitor) -> Report {
    let clocks = Times::new(all, visitor);
    let records = Records::new(all, visitor);
    let examine = |(index, facts): (usize, &Facts)| {
        let mut findings = alone::look(facts, visitor);
        let mut votes_in = Some(Duration::ZERO);
        if let Some((finding, wait)) = records.look(index, facts, visitor) {
            findings.push(finding);
            votes_in = wait;
        }
        findings.extend(twin(all, index));
        findings.extend(clocks.finding(index));
        let fails = findings.iter().any(|finding| finding.severity == Severity::Fail);
        Examined {
            master: facts.master.clone(),
            findings,
            votes_in: votes_in.filter(|_| !fails),
            round_trip: facts.server.as_ref().ok().and_then(|server| median(&server.round_trips)),
            clock_ahead: clocks.ahead(index).map(|(ahead, _)| ahead / 1000),
        }
    };
    let masters: Vec<_> = all.iter().enumerate().map(examine).collect();
    let mut together = Vec::new();
    together.extend(processes(all));
    together.extend(clocks.host());
    together.extend(records::set(all, visitor));
    let mut report = Report { masters, together, quorum: visitor.quorum };
    let verdict = verdict(&report);
    report.together.push(verdict);
    report
}

/// A master that is the same server as one listed before it.
fn twin(all: &[Facts], index: usize) -> Option<Finding> {
    let other = twin_of(all, index)?;
    let what = format!("it is the same server as {}, which has its one vote already", other.master);
    Some(Finding::fail("processes", what, "list every server once, and as many of them as have a vote"))
}

fn processes(all: &[Facts]) -> Option<Finding> {
    let mut seen: Vec<_> = all.iter().filter_map(run_id).collect();
    let answered = seen.len();
    seen.sort_unstable();
    seen.dedup();
    let what = match (answered, seen.len()) {
        (0, _) => return None,
        (1, _) => "one server process answered".to_owned(),
        (answered, count) if count == answered => format!("{count} different server processes answered"),
        (answered, count) => {
            let what = format!("{answered} masters are only {count} server processes");
            return Some(Finding::warn("processes", what, "list every server once"));
        }
    };
    Some(Finding::ok("processes", what))
}

/// How far (us) each clock is ahead of the local clock, and the error of that estimate.
struct Times {
    known: Vec<Option<(i64, i64)>>,
    host: i64,
    /// The median; `None` where a majority was not seen.
    median: Option<i64>,
}

impl Times {
    fn new(all: &[Facts], visitor: &Visitor) -> Self {
        let known: Vec<_> = all.iter().map(|facts| estimate(&facts.server.as_ref().ok()?.looks)).collect();
        let mut sorted: Vec<_> = known.iter().flatten().map(|(ahead, _)| *ahead).collect();
        sorted.sort_unstable();
        let count = sorted.len();
        let median = (count * 2 > known.len()).then(|| {
            let one = sorted[(count - 1) / 2];
            let other = sorted[count / 2];
            one + (other - one) / 2
        });
        Self { known, host: visitor.wall_ahead, median }
    }

    /// How far (us) a master's clock is ahead of the median, or of this host's where there is none.
    fn ahead(&self, index: usize) -> Option<(i64, i64)> {
        let (ahead, slack) = self.known[index]?;
        Some((ahead - self.median.unwrap_or(self.host), slack))
    }

    fn finding(&self, index: usize) -> Option<Finding> {
        const ABOUT: &str = "clock";
        let (ahead, slack) = self.ahead(index)?;
        let off = seconds(ahead);
        let host = seconds(self.known[index]?.0 - self.host);
        let what = match self.median {
            Some(_) => format!("{off} from the median, {host} from this host's"),
            None => format!("{off} from this host's; too few answered for a median"),
        };
        let sure = ahead.abs() - slack;
        let fix = "keep all hosts' clocks by NTP, and see why this one is off";
        Some(match (sure > BAND.as_micros() as i64, sure > SLOPPY) {
            (true, _) if self.median.is_some() => Finding::fail(ABOUT, what, fix),
            (_, true) => Finding::warn(ABOUT, what, fix),
            _ => Finding::ok(ABOUT, what),
        })
    }

    fn host(&self) -> Option<Finding> {
        const ABOUT: &str = "clocks";
        let ahead = self.host - self.median?;
        let what = format!("this host's is {} from the masters' median", seconds(ahead));
        if ahead.abs() <= WAITER {
            return Some(Finding::ok(ABOUT, what));
        }
        let what = format!("{what}: those that wait here have no fair place in the queue");
        Some(Finding::warn(ABOUT, what, "keep this host's clock by NTP"))
    }
}

/// The estimate from all looks at a clock; from the last one if they contradict each other.
fn estimate(looks: &[ClockLook]) -> Option<(i64, i64)> {
    let bounds = |look: &ClockLook| {
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        let at = |moment: crate::time::Moment| micros(moment.since(crate::time::Moment::default()));
        let time = i64::try_from(look.time).unwrap_or(i64::MAX);
        (time.saturating_sub(at(look.answered)), time.saturating_sub(at(look.asked)))
    };
    let last = bounds(looks.last()?);
    let met = looks
        .iter()
        .map(bounds)
        .fold((i64::MIN, i64::MAX), |(low, high), (from, to)| (low.max(from), high.min(to)));
    let (low, high) = if met.0 <= met.1 { met } else { last };
    Some((low + (high - low) / 2, (high - low) / 2))
}

/// Whether they are a quorum.
fn verdict(report: &Report) -> Finding {
    const ABOUT: &str = "quorum";
    let can = report.can_vote();
    let all = report.masters.len();
    let quorum = report.quorum;
    let what = format!("{can} of {all} masters can vote, and a quorum is {quorum}");
    if can == all {
        return Finding::ok(ABOUT, what);
    }
    if can >= quorum {
        let more = match can - quorum {
            0 => "no other may fail".to_owned(),
            spare => format!("{spare} more may fail"),
        };
        return Finding::warn(ABOUT, format!("{what}: {more}"), "see to the others");
    }
    let mut ends: Vec<_> = report.masters.iter().filter_map(|examined| examined.votes_in).collect();
    ends.sort_unstable();
    match ends.get(quorum - 1) {
        Some(left) => {
            let fix = "wait, or fix what is found of the masters";
            Finding::fail(ABOUT, format!("{what}: no lock can be had for {}", secs(*left)), fix)
        }
        None => {
            Finding::fail(ABOUT, format!("{what}: no lock can be had"), "fix what is found of the masters")
        }
    }
}

fn seconds(micros: i64) -> String {
    let millis = micros / 1000; // so that there is no -0.000
    format!("{:+.3} s", millis as f64 / 1e3)
}
