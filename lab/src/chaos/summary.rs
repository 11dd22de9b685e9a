//! What a run showed, for programs and as text. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use quorate_chaos::checkers::{self, pace};
use quorate_chaos::figures::{self, Answers, Counts};
use quorate_chaos::history::{self, Call, History, Time};
use quorate_chaos::run::{Trial, TrialOutcome, Verdict};
use quorate_chaos::workload::Kind as Kinds;
use quorate_cli::exit::{self, Code};
use serde::Serialize;

use super::violations::{Violation, listed, others};
use crate::codes;

#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) version: &'static str,
    /// When it began, in UTC.
    pub(crate) ran_at: String,
    pub(crate) scenario: &'static str,
    pub(crate) seed: u64,
    /// What was put through it, and its kinds of locks where it has several.
    pub(crate) subject: &'static str,
    pub(crate) kind: Vec<String>,
    /// For how long faults begin.
    pub(crate) duration_ms: f64,
    pub(crate) masters: usize,
    /// Whether they are containers of a compose file.
    pub(crate) compose: bool,
    pub(crate) clients: usize,
    pub(crate) ttl_ms: f64,
    pub(crate) command: String,
    pub(crate) verdict: Found,
    /// Those that do not hold, each once.
    pub(crate) properties: Vec<&'static str>,
    /// Those that this run could have violated.
    pub(crate) checked: Vec<&'static str>,
    pub(crate) violations: Vec<Violation>,
    /// Locks for which the search for an order was given up.
    pub(crate) inconclusive: Vec<String>,
    pub(crate) faults: usize,
    pub(crate) kinds: BTreeMap<String, Kind>,
    /// The share of acquires that had an answer, be it that somebody else has the lock.
    pub(crate) availability: f64,
    pub(crate) acquire: Latency,
    /// The acquires that were ready to wait, while faults struck.
    pub(crate) waited: Waited,
    /// The longest time without a grant while a quorum of the masters was healthy; none if there
    /// never was one.
    pub(crate) longest_without_grant_ms: Option<f64>,
    /// For how long a quorum was healthy.
    pub(crate) healthy_ms: f64,
    pub(crate) storm_ms: f64,
    /// How long acquires took before the set changed, while it did, and after all changes; empty
    /// where it does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes: Vec<Stretch>,
    /// How many guards were held from before the first change until after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held_throughout: Option<usize>,
    /// Those properties that nothing happened in this run that they are about.
    #[serde(skip)]
    pub(crate) unchecked: Vec<&'static str>,
    /// What was put through it, in a sentence, where it is not Quorate's lock.
    #[serde(skip)]
    pub(crate) stranger: Option<&'static str>,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Found {
    Nothing,
    Violation,
    /// The locks do what they have to, but not fast enough while their set changes.
    TooSlow,
    Inconclusive,
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

/// A change of the set, and the acquires that were granted and were under way in it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Stretch {
    /// None for a time without a change.
    pub(crate) what: Option<String>,
    pub(crate) lasted_ms: f64,
    pub(crate) granted: usize,
    #[serde(flatten)]
    pub(crate) acquire: Latency,
    /// The longest in as long a time without a change; none for such a time itself.
    pub(crate) max_without_change_ms: Option<f64>,
}

/// How many were granted within their wait.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Waited {
    pub(crate) granted: usize,
    pub(crate) all: usize,
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
    pub(crate) fn new(trial: &Trial, outcome: &TrialOutcome, command: &[String], ran_at: Duration) -> Self {
        let TrialOutcome { history, verdict } = outcome;
        let storm = storm(history);
        let healthy = figures::healthy(history, &storm, trial.masters, trial.clients, recovery(trial.ttl));
        let longest = figures::longest_without_grant(history, &healthy);
        let counts = figures::by_kind(history);
        let waited = figures::waited(history, &storm);
        let mut checked = Vec::new();
        let mut unchecked = Vec::new();
        for (name, is_exercised) in checkers::exercised(history) {
            if is_exercised { checked.push(name) } else { unchecked.push(name) }
        }
        let violation = |found: &history::Violation| Violation {
            property: found.property,
            what: found.what.clone(),
            at_ms: found.at.as_secs_f64() * 1e3,
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            ran_at: humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + ran_at).to_string(),
            scenario: trial.scenario.name,
            seed: trial.seed,
            subject: trial.subject.name(),
            kind: trial.subject.kinds(),
            duration_ms: trial.length.as_secs_f64() * 1e3,
            masters: trial.masters,
            compose: history.run.as_ref().is_some_and(|run| run.compose),
            clients: trial.clients,
            ttl_ms: trial.ttl.as_secs_f64() * 1e3,
            command: command.join(" "),
            verdict: Found::of(verdict),
            properties: verdict.properties(),
            checked,
            unchecked,
            stranger: trial.subject.stranger(),
            violations: verdict.violations.iter().map(violation).collect(),
            inconclusive: verdict.inconclusive.iter().map(|(kind, name)| format!("{kind} {name}")).collect(),
            faults: history.faults.len(),
            availability: answers(&counts).availability(),
            kinds: counts.into_iter().map(|(kind, counts)| (kind, Kind::from(counts))).collect(),
            acquire: Latency::of(&figures::latencies(history)),
            waited: Waited { granted: waited.granted, all: waited.all },
            longest_without_grant_ms: longest.map(|time| millis(time.end - time.start)),
            healthy_ms: healthy.iter().map(|time| millis(time.end - time.start)).sum(),
            storm_ms: millis(storm.end - storm.start),
            held_throughout: (!history.changes.is_empty()).then(|| figures::held_throughout(history)),
            changes: figures::changes(history, trial.length).iter().map(Stretch::of).collect(),
        }
    }

    pub(crate) fn code(&self) -> Code {
        match self.verdict {
            Found::Nothing => exit::OK,
            Found::Violation => codes::VIOLATED,
            Found::TooSlow => codes::TOO_SLOW,
            Found::Inconclusive => codes::INCONCLUSIVE,
        }
    }

    /// The verdict in one line.
    pub(crate) fn headline(&self) -> String {
        match self.verdict {
            Found::Nothing if self.unchecked.is_empty() => {
                "Nothing was found: every property holds.".to_owned()
            }
            Found::Nothing => format!("Nothing was found: these hold: {}.", self.checked.join(", ")),
            Found::Violation => format!("Violated: {}.", self.properties.join(", ")),
            Found::TooSlow => {
                "Nothing was found, but acquires were too slow while the set of masters changed.".to_owned()
            }
            Found::Inconclusive => {
                let locks = self.inconclusive.join(", ");
                format!("Nothing was found, but the search for an order was given up for {locks}.")
            }
        }
    }

    /// What the headline does not say: that it is not Quorate's lock, and what could not be
    /// violated.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let stranger = self.stranger.map(|what| format!("This is not Quorate's lock. {what}"));
        let unchecked = (!self.unchecked.is_empty()).then(|| {
            format!(
                "Not tested, because the run had nothing to check them on: {}.",
                self.unchecked.join(", ")
            )
        });
        stranger.into_iter().chain(unchecked).collect()
    }

    /// What was put through what.
    pub(crate) fn run(&self) -> String {
        let kinds = match self.kind.len() {
            0 => String::new(),
            all if all == Kinds::ALL.len() => " (all kinds)".to_owned(),
            _ => format!(" ({})", self.kind.join(", ")),
        };
        format!(
            "lock: {}{kinds} · {} {} s · masters: {}{} · client processes: {} · TTL {} s",
            self.subject,
            if self.held_throughout.is_some() { "changes after" } else { "faults for" },
            self.duration_ms / 1e3,
            self.masters,
            if self.compose { " (containers)" } else { "" },
            self.clients,
            self.ttl_ms / 1e3
        )
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n", self.headline());
        self.remarks().iter().for_each(|remark| text += &format!("{remark}\n"));
        for Violation { property, what, at_ms } in listed(&self.violations) {
            let _ = writeln!(text, "  {property}, at {:.3} s: {what}", at_ms / 1e3);
        }
        if let Some(others) = others(&self.violations) {
            let _ = writeln!(text, "  {others}");
        }
        let _ = writeln!(text, "Scenario {}, seed {} · {}", self.scenario, self.seed, self.run());
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
        let [p50, p90, p99, max] = [p50_ms, p90_ms, p99_ms, max_ms].map(ms);
        let _ = writeln!(
            text,
            "Acquires that were granted took, waits included: p50 {p50}, p90 {p90}, p99 {p99}, max {max} ms"
        );
        let _ = writeln!(
            text,
            "Availability: {:.2} % of acquires had an answer; of those that were ready to wait, {} of {} were granted",
            self.availability * 100.0,
            self.waited.granted,
            self.waited.all
        );
        let _ = writeln!(
            text,
            "A quorum was healthy for {:.1} of {:.1} s; the longest time in it without a grant: {} ms",
            self.healthy_ms / 1e3,
            self.storm_ms / 1e3,
            ms(self.longest_without_grant_ms)
        );
        text += &self.changes_text();
        let _ = write!(text, "Again: {}", self.command);
        text
    }

    /// A line for each change of the set, between the times without one.
    fn changes_text(&self) -> String {
        let Some(held) = self.held_throughout else { return String::new() };
        let mut text = format!("{held} leases were held over all changes of the set\n");
        let before = self.changes.first().and_then(|before| before.acquire.p99_ms);
        for Stretch { what, lasted_ms, granted, acquire, max_without_change_ms } in &self.changes {
            let ratio = match (before, acquire.p99_ms) {
                (Some(before), Some(p99)) if what.is_some() && before > 0.0 => {
                    format!(" ({:.1} times as long)", p99 / before)
                }
                _ => String::new(),
            };
            let without =
                max_without_change_ms.map(|max| format!(" ({} in as long without a change)", ms(Some(max))));
            let _ = writeln!(
                text,
                "  {:<29} {:>4.1} s, {granted} acquires: p99 {}{ratio}, max {} ms{}",
                what.as_deref().unwrap_or("no change"),
                lasted_ms / 1e3,
                ms(acquire.p99_ms),
                ms(acquire.max_ms),
                without.unwrap_or_default()
            );
        }
        text
    }
}

impl Found {
    fn of(verdict: &Verdict) -> Self {
        match verdict.properties().as_slice() {
            [] | [pace::NAME] if !verdict.inconclusive.is_empty() => Self::Inconclusive,
            [] => Self::Nothing,
            [pace::NAME] => Self::TooSlow,
            [_, ..] => Self::Violation,
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

impl Stretch {
    fn of(stretch: &figures::Stretch) -> Self {
        Self {
            what: stretch.what.clone(),
            lasted_ms: millis(stretch.time.end - stretch.time.start),
            granted: stretch.latencies.len(),
            acquire: Latency::of(&stretch.latencies),
            max_without_change_ms: stretch.longest_without.map(millis),
        }
    }
}

impl Latency {
    fn of(times: &[Time]) -> Self {
        let of = |per_mille| figures::percentile(times, per_mille).map(millis);
        Self { p50_ms: of(500), p90_ms: of(900), p99_ms: of(990), max_ms: of(1_000) }
    }
}

fn answers(counts: &BTreeMap<String, Counts>) -> Answers {
    counts.values().fold(Answers::default(), |sum, counts| sum.plus(counts.answers))
}

/// From the first acquire to the calm.
pub(crate) fn storm(history: &History) -> std::ops::Range<Time> {
    let acquires = history.calls.iter().filter(|made| matches!(made.call, Call::Acquire { .. }));
    let begin = acquires.map(|made| made.invoked).min().unwrap_or_default();
    begin..history.calm.unwrap_or(history.end).max(begin)
}

/// How long a master may take to have a vote again: a second longer than its quarantine
/// (docs/PROTOCOL.md, section 3).
fn recovery(ttl: Duration) -> Duration {
    ttl + ttl / 100 + Duration::from_secs(5)
}

/// A time in milliseconds; none for what never came.
pub(crate) fn ms(time: Option<f64>) -> String {
    match time {
        None => "none".to_owned(),
        Some(time) if time >= 100.0 => format!("{time:.0}"),
        Some(time) => format!("{time:.1}"),
    }
}

pub(crate) fn millis(time: Time) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use quorate_chaos::history::Change;

    use super::super::sample;
    use super::*;

    fn of(verdict: Verdict) -> Summary {
        let outcome = TrialOutcome { verdict, ..sample::outcome() };
        Summary::new(&sample::trial(), &outcome, &["again".to_owned()], Duration::ZERO)
    }

    #[test]
    fn the_verdict_decides_the_exit_code() {
        let open = || vec![("mutex".to_owned(), "l".to_owned())];
        let violations = sample::outcome().verdict.violations;
        assert!(!violations.is_empty());
        let with = |violations, inconclusive| of(Verdict { violations, inconclusive });
        assert_eq!(with(vec![], vec![]).code(), exit::OK);
        assert_eq!(with(vec![], open()).code(), codes::INCONCLUSIVE);
        assert!(with(vec![], open()).headline().contains("mutex l"));
        let slow = history::Violation { property: pace::NAME, ..violations[0].clone() };
        assert_eq!(with(vec![slow.clone()], open()).code(), codes::INCONCLUSIVE);
        assert_eq!(with(vec![slow.clone()], vec![]).code(), codes::TOO_SLOW);
        let both = violations.iter().cloned().chain([slow]).collect();
        assert_eq!(with(both, vec![]).code(), codes::VIOLATED);
        assert_eq!(with(violations, open()).code(), codes::VIOLATED);
    }

    #[test]
    fn what_could_not_be_violated_is_not_said_to_hold() {
        let found = of(Verdict::default());
        assert_eq!(found.headline(), "Nothing was found: these hold: windows, linearizable.");
        let all = Summary { unchecked: vec![], stranger: None, ..found };
        assert_eq!(all.headline(), "Nothing was found: every property holds.");
        assert!(all.remarks().is_empty());
    }

    #[test]
    fn the_fields_of_the_run_are_in_the_json() {
        let json = serde_json::to_value(of(Verdict::default())).unwrap();
        assert_eq!((&json["subject"], &json["kind"]), (&"textbook".into(), &serde_json::json!([])));
        let numbers = ["duration_ms", "ttl_ms"].map(|key| json[key].as_f64().unwrap());
        let counts = ["masters", "clients"].map(|key| json[key].as_u64().unwrap());
        assert_eq!((numbers, counts, &json["compose"]), ([10_000.0, 2_000.0], [3, 2], &false.into()));
        assert_eq!(json["checked"], serde_json::json!(["windows", "linearizable"]));
        assert!(json.get("stranger").is_none() && json["waited"]["all"] == 0);
    }

    #[test]
    fn each_change_of_the_set_is_beside_the_time_without_one() {
        let sample = sample::outcome();
        let change = |what: &str, from| {
            let from = Time::from_secs(from);
            Change { what: what.to_owned(), from, to: Some(from + Time::from_secs(5)) }
        };
        let changes = vec![change("m3 joins", 1), change("m1 leaves", 8)];
        let outcome = TrialOutcome { history: History { changes, ..sample.history }, ..sample };
        let text = Summary::new(&sample::trial(), &outcome, &[], Duration::ZERO).text();
        for part in
            ["0 leases were held over all", "  no change ", "  m3 joins ", " 5.0 s, ", "changes after 10 s"]
        {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
    }

    #[test]
    fn the_text_has_every_part() {
        let text = of(sample::outcome().verdict).text();
        for part in [
            "Violated: ",
            "windows, at 1.510 s: client-1.1 ",
            "4 faults; 2 acquires granted, 1 refused because another has it, 1 without an answer; 1 guards lost",
            "p50 1.0, p90 10.0, p99 10.0, max 10.0 ms",
            "Availability: 75.00 % of acquires",
            "ready to wait, 0 of 0 were granted",
            "This is not Quorate's lock. Redlock as in the textbook, without Quorate's guards",
            "Not tested, because the run had nothing to check them on: fences, permits, store, ttl, liveness.",
            "Scenario inside, seed 7 · lock: textbook · faults for 10 s · masters: 3 · client processes: 2 · TTL 2 s",
            "Again: again",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
    }
}
