//! `quorate doctor`: what is wrong with the masters, and how to fix it.

use std::time::Duration;

use quorate::doctor::{Examined, Finding, Report, Severity};
use serde::Serialize;

use crate::args::DoctorArgs;
use crate::exit::{self, Code, Failure};
use crate::say::{self, out};

/// The report, for programs. Durations are in milliseconds. docs/COMMAND.md describes it.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    /// ok, warn or fail: the worst of all findings.
    severity: String,
    quorum: usize,
    /// How many masters have a vote now.
    can_vote: usize,
    masters: Vec<ExaminedMaster<'a>>,
    together: Vec<ShownFinding<'a>>,
}

#[derive(Debug, Serialize)]
struct ExaminedMaster<'a> {
    master: &'a str,
    /// When it has a vote: 0 for now; `null` if something has to be fixed first.
    votes_in_ms: Option<u64>,
    round_trip_ms: Option<f64>,
    /// Its clock, ahead of the median of all, or of this host's where too few answered.
    clock_ahead_ms: Option<i64>,
    findings: Vec<ShownFinding<'a>>,
}

#[derive(Debug, Serialize)]
struct ShownFinding<'a> {
    severity: String,
    about: &'a str,
    what: &'a str,
    fix: Option<&'a str>,
}

pub(crate) async fn doctor(args: DoctorArgs) -> Result<Code, Failure> {
    let report = args.masters.builder()?.examine().await?;
    if args.json {
        say::json(&Shown::from(&report))?;
    } else {
        out!("{report}");
    }
    Ok(match report.severity() {
        _ if !report.has_quorum() => exit::NO_QUORUM,
        Severity::Ok => exit::OK,
        _ => exit::UNWELL,
    })
}

impl<'a> From<&'a Report> for Shown<'a> {
    fn from(report: &'a Report) -> Self {
        Self {
            severity: report.severity().to_string(),
            quorum: report.quorum,
            can_vote: report.can_vote(),
            masters: report.masters.iter().map(ExaminedMaster::from).collect(),
            together: report.together.iter().map(ShownFinding::from).collect(),
        }
    }
}

impl<'a> From<&'a Examined> for ExaminedMaster<'a> {
    fn from(examined: &'a Examined) -> Self {
        let whole = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            master: &examined.master,
            votes_in_ms: examined.votes_in.map(whole),
            round_trip_ms: examined.round_trip.map(|time| (time.as_secs_f64() * 1e6).round() / 1e3),
            clock_ahead_ms: examined.clock_ahead,
            findings: examined.findings.iter().map(ShownFinding::from).collect(),
        }
    }
}

impl<'a> From<&'a Finding> for ShownFinding<'a> {
    fn from(Finding { severity, about, what, fix, .. }: &'a Finding) -> Self {
        Self { severity: severity.to_string(), about, what, fix: fix.as_deref() }
    }
}
