//! The report as text.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::report::{Cycles, Report};
use super::statistics::{LatencySummary, Ms};

/// Everything, as tables under headings.
pub(crate) fn text(report: &Report) -> String {
    let failures = failures(report);
    let mut parts = vec![
        format!("Round trips of {}, in ms; a quorum is {}\n", report.masters_in_words(), report.quorum)
            + &round_trips(report),
        format!("One lock after the other, in ms\n{}", single(&report.single)),
        format!(
            "When a quorum of n of these masters has answered, in ms: of the fastest by median, and of any\n{}\n{}",
            order_statistics(report),
            report.comparison()
        ),
    ];
    if !report.throughput.is_empty() {
        parts.push(format!("Locks acquired and released, in ms\n{}", throughput(report)));
    }
    if !failures.is_empty() {
        parts.push(format!("Failures\n{}", failures.join("\n")));
    }
    parts.join("\n\n")
}

/// A time in milliseconds with about three digits.
pub(crate) fn ms(Ms(time): Ms) -> String {
    match time {
        time if !time.is_finite() => "-".to_owned(),
        time if time < 10.0 => format!("{time:.3}"),
        time if time < 100.0 => format!("{time:.2}"),
        time => format!("{time:.1}"),
    }
}

/// Which master did not answer, and what failed: a line each.
pub(crate) fn failures(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for master in report.masters.iter().filter(|master| master.unanswered > 0) {
        let all = master.answered + master.unanswered;
        let why = master.detail.as_deref().unwrap_or("no answer");
        lines.push(format!(
            "{} did not answer in {} of {all} rounds; the last time: {why}",
            master.master, master.unanswered
        ));
    }
    let single = report.single.failures().into_iter().map(|failure| format!("one at a time: {failure}"));
    lines.extend(single);
    for level in &report.throughput {
        let failures = level.cycles.failures().into_iter();
        lines.extend(failures.map(|failure| format!("{} at a time: {failure}", level.concurrency)));
    }
    lines
}

fn round_trips(report: &Report) -> String {
    let mut table = table(&["MASTER", "ANSWERED", "P50", "P90", "P99", "P99.9", "MAX"]);
    for master in &report.masters {
        let mut row = vec![master.master.clone(), answered(master.answered, master.unanswered)];
        row.extend(times(&master.round_trip));
        table.add_row(row);
    }
    finish(table, 1)
}

/// The columns of P50 to MAX.
fn times(summary: &LatencySummary) -> [String; 5] {
    let LatencySummary { p50, p90, p99, p999, max, .. } = *summary;
    [p50, p90, p99, p999, max].map(ms)
}

/// How often a master answered.
pub(crate) fn answered(answered: u64, unanswered: u64) -> String {
    match unanswered {
        0 => answered.to_string(),
        _ => format!("{answered} of {}", answered + unanswered),
    }
}

fn single(cycles: &Cycles) -> String {
    let mut table = table(&["", "COUNT", "P50", "P90", "P99", "P99.9", "MAX"]);
    for (what, summary) in [("acquire", cycles.acquire), ("release", cycles.release)] {
        let mut row = vec![what.to_owned(), summary.count.to_string()];
        row.extend(times(&summary));
        table.add_row(row);
    }
    finish(table, 1)
}

fn order_statistics(report: &Report) -> String {
    let heads = ["MASTERS", "QUORUM", "FASTEST P50", "P90", "P99", "ANY P50", "P90", "P99"];
    let mut table = table(&heads);
    for of in &report.order_statistics {
        let mut row = vec![of.masters.to_string(), of.quorum.to_string()];
        row.extend([of.fastest, of.any].iter().flat_map(|of| [of.p50, of.p90, of.p99].map(ms)));
        table.add_row(row);
    }
    finish(table, 0)
}

fn throughput(report: &Report) -> String {
    let heads = [
        "AT A TIME",
        "PER SECOND",
        "ACQUIRE P50",
        "P90",
        "P99",
        "P99.9",
        "MAX",
        "RELEASE P50",
        "P90",
        "P99",
        "P99.9",
        "MAX",
        "FAILED",
    ];
    let mut table = table(&heads);
    for level in &report.throughput {
        let mut row = vec![level.concurrency.to_string(), format!("{:.0}", level.cycles_per_second)];
        let Cycles { acquire, release, .. } = &level.cycles;
        row.extend([acquire, release].into_iter().flat_map(times));
        row.push(level.cycles.failed().to_string());
        table.add_row(row);
    }
    finish(table, 0)
}

fn table(heads: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(heads.iter().copied());
    table
}

/// As text; columns after the first `names` contain numbers, aligned to the right.
fn finish(mut table: Table, names: usize) -> String {
    for column in table.column_iter_mut().skip(names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn times_have_about_three_digits() {
        let shown = [0.0853, 9.5, 12.345, 250.04, f64::INFINITY].map(|time| ms(Ms(time)));
        assert_eq!(shown, ["0.085", "9.500", "12.35", "250.0", "-"]);
    }

    #[test]
    fn the_text_has_every_part() {
        let text = text(&sample::report());
        for part in [
            "Round trips of 3 masters, in ms; a quorum is 2",
            "redis://10.0.0.1:6379",
            "acquire",
            "FASTEST P50",
            "PER SECOND",
            "Failures",
            "redis://10.0.0.3:6379/<1> did not answer in 1 of 4 rounds; the last time: unreachable (\"gone\" & lost)",
            "16 at a time: 1 acquire, no quorum",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
    }
}
