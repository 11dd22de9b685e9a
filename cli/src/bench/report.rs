//! What a measurement found, for programs, for the table and for the page. Times are in
//! milliseconds. docs/COMMAND.md describes the JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::measure::{Measured, Tally};
use super::plan::Plan;
use super::rounds::quorum;
use super::statistics::{Curve, LatencySummary, curve, summary};
use crate::words::{joined, quoted};

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) version: &'static str,
    /// When it began, in UTC.
    pub(crate) measured_at: String,
    /// Why it ended early, if it did.
    pub(crate) stopped: Option<String>,
    /// How to measure that again; users and passwords are left out.
    #[serde(serialize_with = "as_line")]
    pub(crate) command: Vec<String>,
    pub(crate) duration_ms: u64,
    pub(crate) ttl_ms: u64,
    pub(crate) quorum: usize,
    pub(crate) masters: Vec<MeasuredMaster>,
    /// One lock after the other.
    pub(crate) single: Cycles,
    /// For each number of these masters, when a quorum of them had answered.
    pub(crate) order_statistics: Vec<OrderStatistic>,
    /// The measured acquire's median to that of the order statistic of all masters.
    pub(crate) acquire_to_order_statistic: Option<f64>,
    pub(crate) throughput: Vec<Level>,
}

#[derive(Debug, Serialize)]
pub(crate) struct MeasuredMaster {
    pub(crate) master: String,
    pub(crate) answered: u64,
    pub(crate) unanswered: u64,
    /// Why it did not answer, the last time.
    pub(crate) detail: Option<String>,
    /// Where it answered.
    pub(crate) round_trip: LatencySummary,
    /// Of all rounds, so it ends below 1 where it did not always answer.
    #[serde(skip)]
    pub(crate) curve: Curve,
}

#[derive(Debug, Serialize)]
pub(crate) struct Cycles {
    pub(crate) acquire: LatencySummary,
    pub(crate) release: LatencySummary,
    /// By kind of failure.
    pub(crate) failed_acquires: BTreeMap<&'static str, u64>,
    pub(crate) failed_releases: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    pub(crate) curve: Curve,
}

#[derive(Debug, Serialize)]
pub(crate) struct OrderStatistic {
    pub(crate) masters: usize,
    pub(crate) quorum: usize,
    /// With the masters that have the shortest median round trips.
    pub(crate) fastest: LatencySummary,
    /// With any of the masters: over every choice of this number.
    pub(crate) any: LatencySummary,
    #[serde(skip)]
    pub(crate) curve: Curve,
}

#[derive(Debug, Serialize)]
pub(crate) struct Level {
    pub(crate) concurrency: usize,
    pub(crate) duration_ms: u64,
    pub(crate) cycles_per_second: f64,
    #[serde(flatten)]
    pub(crate) cycles: Cycles,
}

/// What the measurement itself does not know.
#[derive(Debug)]
pub(crate) struct Setting {
    /// The wall clock, as the time since the Unix epoch.
    pub(crate) began: Duration,
    pub(crate) stopped: Option<String>,
    /// Options of the command line, besides the masters and what is in the plan.
    pub(crate) options: Vec<String>,
}

impl Report {
    pub(crate) fn new(plan: &Plan, setting: Setting, measured: &Measured) -> Self {
        let names: Vec<_> = measured.masters.iter().map(|seen| seen.master.as_str()).collect();
        let order_statistics = order_statistics(measured);
        let single = Cycles::new(&measured.single);
        let predicted = order_statistics.last().map(|all| all.fastest.p50.0);
        let ratio = predicted.map(|predicted| single.acquire.p50.0 / predicted);
        let began = std::time::SystemTime::UNIX_EPOCH + setting.began;
        Self {
            version: env!("CARGO_PKG_VERSION"),
            measured_at: humantime::format_rfc3339_seconds(began).to_string(),
            stopped: setting.stopped,
            command: command(&names, plan, &setting.options),
            duration_ms: whole_ms(plan.duration),
            ttl_ms: whole_ms(plan.ttl),
            quorum: quorum(names.len()),
            masters: masters(measured),
            single,
            order_statistics,
            acquire_to_order_statistic: ratio
                .filter(|ratio| ratio.is_finite())
                .map(|ratio| (ratio * 100.0).round() / 100.0),
            throughput: measured
                .levels
                .iter()
                .map(|(locks, tally)| Level::new(*locks, &tally.lock()))
                .collect(),
        }
    }

    pub(crate) fn masters_in_words(&self) -> String {
        match self.masters.len() {
            1 => "1 master".to_owned(),
            count => format!("{count} masters"),
        }
    }

    /// When a quorum of all the masters had answered.
    pub(crate) fn predicted(&self) -> Option<&OrderStatistic> {
        self.order_statistics.last()
    }

    /// The measured acquire beside it, in words.
    pub(crate) fn comparison(&self) -> String {
        let (Some(all), Some(ratio)) = (self.predicted(), self.acquire_to_order_statistic) else {
            return "No quorum answered in half of the rounds, so there is nothing to compare with."
                .to_owned();
        };
        let what = match all.quorum {
            1 => "the master's round trip alone".to_owned(),
            k => format!("the round trip to the master that completes a quorum, {k} of {}", all.masters),
        };
        format!("Measured: an acquire takes {ratio:.2} times as long as {what} (medians).")
    }
}

impl Cycles {
    fn new(tally: &Tally) -> Self {
        Self {
            acquire: summary(&tally.acquire),
            release: summary(&tally.release),
            failed_acquires: tally.failed_acquires.clone(),
            failed_releases: tally.failed_releases.clone(),
            curve: curve(&tally.acquire),
        }
    }

    /// Every failure, by kind and number.
    pub(crate) fn failures(&self) -> Vec<String> {
        let of = |what: &str, by_kind: &BTreeMap<&'static str, u64>| -> Vec<String> {
            by_kind.iter().map(|(kind, count)| format!("{count} {what}, {kind}")).collect()
        };
        let mut failures = of("acquire", &self.failed_acquires);
        failures.extend(of("release", &self.failed_releases));
        failures
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed_acquires.values().chain(self.failed_releases.values()).sum()
    }
}

impl Level {
    fn new(concurrency: usize, tally: &Tally) -> Self {
        let seconds = tally.took().as_secs_f64();
        let rate = if seconds > 0.0 { tally.acquire.len() as f64 / seconds } else { 0.0 };
        let duration_ms = whole_ms(tally.took());
        let cycles_per_second = (rate * 10.0).round() / 10.0;
        Self { concurrency, duration_ms, cycles_per_second, cycles: Cycles::new(tally) }
    }
}

fn masters(measured: &Measured) -> Vec<MeasuredMaster> {
    let master = |(i, seen): (usize, &super::measure::Seen)| {
        let times = measured.rounds.of(i);
        MeasuredMaster {
            master: seen.master.clone(),
            answered: seen.answered,
            unanswered: seen.unanswered,
            detail: seen.detail.clone(),
            round_trip: times.answered().summary(),
            curve: times.curve(),
        }
    };
    measured.masters.iter().enumerate().map(master).collect()
}

fn order_statistics(measured: &Measured) -> Vec<OrderStatistic> {
    let fastest = measured.rounds.fastest();
    let of = |n: usize| {
        let times = measured.rounds.quorum_of(&fastest[..n]);
        OrderStatistic {
            masters: n,
            quorum: quorum(n),
            fastest: times.summary(),
            any: measured.rounds.quorum_of_any(n).summary(),
            curve: times.curve(),
        }
    };
    (1..=fastest.len()).map(of).collect()
}

/// The words of the command line that measures this again, as a shell takes them.
fn command(masters: &[&str], plan: &Plan, options: &[String]) -> Vec<String> {
    let locks: Vec<_> = plan.concurrency.iter().map(usize::to_string).collect();
    let mut words = vec!["quorate".to_owned(), "bench".to_owned()];
    for master in masters {
        words.extend(["--master".to_owned(), (*master).to_owned()]);
    }
    words.extend(["--duration".to_owned(), joined(plan.duration)]);
    words.extend(["--concurrency".to_owned(), locks.join(",")]);
    words.extend(["--ttl".to_owned(), joined(plan.ttl)]);
    words.extend(options.iter().cloned());
    words.iter().map(|word| quoted(word)).collect()
}

fn as_line<S: Serializer>(words: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&words.join(" "))
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_can_be_typed_again() {
        let duration = Duration::from_secs(90);
        let ttl = Duration::from_secs(10);
        let plan = Plan::new(duration, vec![1, 16], ttl).unwrap();
        let options = ["--prefix".to_owned(), "it's mine".to_owned()];
        assert_eq!(
            command(&["redis://10.0.0.1:6379", "unix:///run/a b?db=1"], &plan, &options).join(" "),
            "quorate bench --master redis://10.0.0.1:6379 --master 'unix:///run/a b?db=1' --duration 1m30s \
             --concurrency 1,16 --ttl 10s --prefix 'it'\\''s mine'"
        );
    }
}
