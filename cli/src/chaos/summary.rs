//! What a run showed, for programs and as text. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use quorate_chaos::figures::{self, Answers, Counts};
use quorate_chaos::history::{Call, History, Micros};
use quorate_chaos::run::{Outcome, Trial, Verdict};
use serde::Serialize;

use crate::exit::{self, Code};

/// How many violations are told one by one.
pub(crate) const TOLD: usize = 8;

#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) version: &'static str,
    /// When it began, in UTC.
    pub(crate) ran_at: String,
    pub(crate) scenario: &'static str,
    pub(crate) seed: u64,
    pub(crate) command: String,
    pub(crate) verdict: Found,
    /// Those that do not hold, each once.
    pub(crate) properties: Vec<&'static str>,
    pub(crate) violations: Vec<Violation>,
    /// Locks for which the search for an order was given up.
    pub(crate) inconclusive: Vec<String>,
    pub(crate) faults: usize,
    pub(crate) kinds: BTreeMap<String, Kind>,
    /// The share of acquires that had an answer, be it that somebody else has the lock.
    pub(crate) availability: f64,
    pub(crate) acquire: Latency,
    /// The longest time without a grant while a quorum of the masters was healthy; none if there never was one.
    pub(crate) longest_without_grant_ms: Option<f64>,
    /// For how long a quorum was healthy.
    pub(crate) healthy_ms: f64,
    pub(crate) storm_ms: f64,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Found {
    Nothing,
    Violation,
    Inconclusive,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Violation {
    pub(crate) property: &'static str,
    pub(crate) what: String,
    /// From the beginning of the history.
    pub(crate) at_ms: f64,
}

/// What came of the calls about locks of one kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Kind {
    pub(crate) granted: usize,
    pub(crate) refused: usize,
    pub(crate) unknown: usize,
    pub(crate) released: usize,
    pub(crate) lost: usize,
    pub(crate) writes_accepted: usize,
    pub(crate) writes_rejected: usize,
}

/// How long acquires took that were granted, waits included.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p90_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) max_ms: Option<f64>,
}

impl Summary {
    pub(crate) fn new(trial: &Trial, outcome: &Outcome, command: &[String], ran_at: Duration) -> Self {
        let Outcome { history, verdict } = outcome;
        let storm = storm(history);
        let healthy = figures::healthy(history, &storm, trial.masters, trial.clients, recovery(trial.ttl));
        let longest = figures::longest_without_grant(history, &healthy);
        let counts = figures::by_kind(history);
        let violation = |found: &quorate_chaos::checkers::Violation| Violation {
            property: found.property,
            what: found.what.clone(),
            at_ms: found.at.as_secs_f64() * 1e3,
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            ran_at: humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + ran_at).to_string(),
            scenario: trial.scenario.name,
            seed: trial.seed,
            command: command.join(" "),
            verdict: Found::of(verdict),
            properties: verdict.properties(),
            violations: verdict.violations.iter().map(violation).collect(),
            inconclusive: verdict.inconclusive.iter().map(|(kind, name)| format!("{kind} {name}")).collect(),
            faults: history.faults.len(),
            availability: answers(&counts).availability(),
            kinds: counts.into_iter().map(|(kind, counts)| (kind, Kind::from(counts))).collect(),
            acquire: Latency::of(&figures::latencies(history)),
            longest_without_grant_ms: longest.map(|time| millis(time.end - time.start)),
            healthy_ms: healthy.iter().map(|time| millis(time.end - time.start)).sum(),
            storm_ms: millis(storm.end - storm.start),
        }
    }

    pub(crate) fn code(&self) -> Code {
        match self.verdict {
            Found::Nothing => exit::OK,
            Found::Violation => exit::VIOLATED,
            Found::Inconclusive => exit::INCONCLUSIVE,
        }
    }

    /// The verdict in one line.
    pub(crate) fn headline(&self) -> String {
        match self.verdict {
            Found::Nothing => "Nothing was found: every property holds.".to_owned(),
            Found::Violation => format!("Violated: {}.", self.properties.join(", ")),
            Found::Inconclusive => {
                let locks = self.inconclusive.join(", ");
                format!("Nothing was found, but the search for an order was given up for {locks}.")
            }
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n", self.headline());
        for Violation { property, what, at_ms } in self.violations.iter().take(TOLD) {
            let _ = writeln!(text, "  {property}, at {:.3} s: {what}", at_ms / 1e3);
        }
        if self.violations.len() > TOLD {
            let _ = writeln!(text, "  and {} more", self.violations.len() - TOLD);
        }
        let sum = |of: fn(&Kind) -> usize| self.kinds.values().map(of).sum::<usize>();
        let _ = writeln!(
            text,
            "{} faults; {} acquires granted, {} refused because another has it, {} without an answer; {} guards lost",
            self.faults,
            sum(|kind| kind.granted),
            sum(|kind| kind.refused),
            sum(|kind| kind.unknown),
            sum(|kind| kind.lost)
        );
        let _ = writeln!(
            text,
            "{} writes taken by the store, {} refused there for an old fence",
            sum(|kind| kind.writes_accepted),
            sum(|kind| kind.writes_rejected)
        );
        let Latency { p50_ms, p90_ms, p99_ms, max_ms } = self.acquire;
        let _ = writeln!(
            text,
            "Acquires that were granted took, waits included, ms: half {}, 90 % {}, 99 % {}, all {}",
            ms(p50_ms),
            ms(p90_ms),
            ms(p99_ms),
            ms(max_ms)
        );
        let _ = writeln!(
            text,
            "Availability: {:.2} % of acquires had an answer. A quorum was healthy for {:.1} of {:.1} s; the longest time in \
             it without a grant: {} ms",
            self.availability * 100.0,
            self.healthy_ms / 1e3,
            self.storm_ms / 1e3,
            ms(self.longest_without_grant_ms)
        );
        let _ = write!(text, "Again: {}", self.command);
        text
    }
}

impl Found {
    fn of(verdict: &Verdict) -> Self {
        match (verdict.violations.is_empty(), verdict.inconclusive.is_empty()) {
            (false, _) => Self::Violation,
            (true, false) => Self::Inconclusive,
            (true, true) => Self::Nothing,
        }
    }
}

impl From<Counts> for Kind {
    fn from(counts: Counts) -> Self {
        let Counts { answers, released, lost, accepted, rejected } = counts;
        let Answers { granted, refused, unknown } = answers;
        Self {
            granted,
            refused,
            unknown,
            released,
            lost,
            writes_accepted: accepted,
            writes_rejected: rejected,
        }
    }
}

impl Latency {
    fn of(times: &[Micros]) -> Self {
        let of = |per_mille| figures::percentile(times, per_mille).map(millis);
        Self { p50_ms: of(500), p90_ms: of(900), p99_ms: of(990), max_ms: of(1_000) }
    }
}

fn answers(counts: &BTreeMap<String, Counts>) -> Answers {
    counts.values().fold(Answers::default(), |sum, counts| sum.plus(counts.answers))
}

/// From the first acquire to the calm.
pub(crate) fn storm(history: &History) -> std::ops::Range<Micros> {
    let acquires = history.calls.iter().filter(|made| matches!(made.call, Call::Acquire { .. }));
    let begin = acquires.map(|made| made.invoked).min().unwrap_or_default();
    begin..history.calm.unwrap_or(history.end).max(begin)
}

/// How long a master may take to have a vote again: a little longer than its quarantine.
fn recovery(ttl: Duration) -> Duration {
    ttl + Duration::from_secs(1)
}

/// A time in milliseconds; none for what never came.
pub(crate) fn ms(time: Option<f64>) -> String {
    match time {
        None => "none".to_owned(),
        Some(time) if time >= 100.0 => format!("{time:.0}"),
        Some(time) => format!("{time:.1}"),
    }
}

pub(crate) fn millis(time: Micros) -> f64 {
    time as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn of(verdict: Verdict) -> Summary {
        let outcome = Outcome { verdict, ..sample::outcome() };
        Summary::new(&sample::trial(), &outcome, &["again".to_owned()], Duration::ZERO)
    }

    #[test]
    fn the_verdict_decides_the_exit_code() {
        let open = || vec![("mutex".to_owned(), "l".to_owned())];
        let violations = sample::outcome().verdict.violations;
        assert!(!violations.is_empty());
        let with = |violations, inconclusive| of(Verdict { violations, inconclusive });
        assert_eq!(with(vec![], vec![]).code(), exit::OK);
        assert_eq!(with(vec![], open()).code(), exit::INCONCLUSIVE);
        assert!(with(vec![], open()).headline().contains("mutex l"));
        assert_eq!(with(violations, open()).code(), exit::VIOLATED);
    }

    #[test]
    fn the_text_has_every_part() {
        let text = of(sample::outcome().verdict).text();
        for part in [
            "Violated: ",
            "windows, at 1.510 s: client-1.1 ",
            "4 faults; 2 acquires granted, 1 refused because another has it, 1 without an answer; 1 guards lost",
            "half 1.0, 90 % 10.0",
            "Availability: 75.00 % of acquires",
            "Again: again",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
    }
}
