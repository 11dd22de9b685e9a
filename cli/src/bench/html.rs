//! The report as a page. Pure.

use std::fmt::Write;

use super::chart;
use super::report::{Level, Report};
use super::statistics::LatencySummary;
use super::table::{answered, failures, ms};
use crate::page::{self, escaped, section, table, whole};

pub(crate) fn page(report: &Report) -> String {
    let title = format!("Quorum latency of {}", report.masters_in_words());
    let charts: String =
        [chart::distributions(report), chart::quorums(report)].into_iter().flatten().collect();
    let content = format!(
        "{}{}{}<section>\n<h2>One lock after the other</h2>\n<p>{} {}</p>\n<div class=\"charts\">\n{charts}</div>\n</section>\n{}{}{}{}",
        facts(report),
        tiles(report),
        notes(report),
        escaped(&report.comparison()),
        explanation(report),
        quorums(report),
        throughput(report),
        round_trips(report),
        again(report)
    );
    page::page(&title, "", &content)
}

fn facts(report: &Report) -> String {
    let Report { version, measured_at, quorum, ttl_ms, duration_ms, .. } = report;
    let date = measured_at.replace('T', " ").replace('Z', " UTC");
    format!(
        "<p class=\"facts\">{} · quorate {version} · a quorum is {quorum} of {} · TTL {}&nbsp;s · measured for {}&nbsp;s</p>\n",
        escaped(&date),
        report.masters.len(),
        *ttl_ms as f64 / 1e3,
        *duration_ms as f64 / 1e3
    )
}

fn tiles(report: &Report) -> String {
    let most = report.throughput.iter().max_by(|a, b| a.cycles_per_second.total_cmp(&b.cycles_per_second));
    let mut tiles = vec![
        ("acquire, median".to_owned(), ms(report.single.acquire.p50), "ms"),
        ("acquire, 99 %".to_owned(), ms(report.single.acquire.p99), "ms"),
        ("release, median".to_owned(), ms(report.single.release.p50), "ms"),
    ];
    if let Some(most) = most {
        let what = format!("locks, {} at a time", most.concurrency);
        tiles.push((what, whole(most.cycles_per_second), "a second"));
    }
    page::tiles(&tiles)
}

/// Whether it ended early, and what failed.
fn notes(report: &Report) -> String {
    let stopped = report.stopped.iter().map(|why| format!("Not measured to its end: {why}"));
    let notes: Vec<_> = stopped.chain(failures(report)).collect();
    if notes.is_empty() {
        return String::new();
    }
    let items: String = notes.iter().map(|note| format!("<li>{}</li>\n", escaped(note))).collect();
    format!("<section class=\"notes\">\n<h2>What was amiss</h2>\n<ul>\n{items}</ul>\n</section>\n")
}

fn explanation(report: &Report) -> &'static str {
    match report.masters.len() {
        1 => {
            "What is beyond the round trip is the grant itself, which a master has to write, and the client."
        }
        _ => {
            "A quorum of n masters is there when the k-th of them has answered, k = n / 2 + 1: the k-th shortest of a \
             round's round trips, its k-th order statistic, is about the least that an acquire can take. What is beyond it \
             is the grant itself, which a master has to write, and the client."
        }
    }
}

fn quorums(report: &Report) -> String {
    let heads = "<tr><th rowspan=\"2\">masters (n)</th><th rowspan=\"2\">quorum (k)</th><th colspan=\"3\">the n fastest, ms</th>\
                 <th colspan=\"3\">any n, ms</th></tr>\n<tr><th>50 %</th><th>90 %</th><th>99 %</th><th>50 %</th><th>90 %</th><th>99 %</th></tr>";
    let mut rows = String::new();
    for of in &report.order_statistics {
        let class = if of.masters % 2 == 1 { "" } else { " class=\"pale\"" };
        let times: String = [of.fastest, of.any].iter().map(|of| cells(of, false)).collect();
        let _ = writeln!(rows, "<tr{class}><th>{}</th><td>{}</td>{times}</tr>", of.masters, of.quorum);
    }
    let acquire = &report.single.acquire;
    let span = "<th colspan=\"2\">acquire, measured</th>";
    let _ = writeln!(
        rows,
        "<tr class=\"sum\">{span}{}<td colspan=\"3\">{} acquires</td></tr>",
        cells(acquire, false),
        whole(acquire.count as f64)
    );
    let text = "When a quorum of n of these masters had answered. The n fastest are those with the shortest median \
                round trips; any n is over every choice of n. An even number needs one answer more than the odd number below it, \
                and survives no more failures.";
    section("How many masters", text, &table(heads, &rows))
}

fn throughput(report: &Report) -> String {
    if report.throughput.is_empty() {
        return String::new();
    }
    let heads = "<tr><th rowspan=\"2\">at a time</th><th rowspan=\"2\">a second</th><th colspan=\"5\">acquire, ms</th>\
                 <th colspan=\"5\">release, ms</th><th rowspan=\"2\">failed</th></tr>\n<tr><th>50 %</th><th>90 %</th><th>99 %</th>\
                 <th>99.9 %</th><th>max</th><th>50 %</th><th>90 %</th><th>99 %</th><th>99.9 %</th><th>max</th></tr>";
    let row = |level: &Level| {
        let Level { concurrency, cycles_per_second, cycles, .. } = level;
        let times: String = [cycles.acquire, cycles.release].iter().map(|of| cells(of, true)).collect();
        let rate = whole(*cycles_per_second);
        format!("<tr><th>{concurrency}</th><td>{rate}</td>{times}<td>{}</td></tr>\n", cycles.failed())
    };
    let text = "Each row is one concurrency: that many locks at a time, each with a new name, acquired and released in a loop by one client.";
    section("How many locks", text, &table(heads, &report.throughput.iter().map(row).collect::<String>()))
}

fn round_trips(report: &Report) -> String {
    let heads = "<tr><th>master</th><th>answers</th><th>50 %, ms</th><th>90 %</th><th>99 %</th><th>99.9 %</th><th>max</th></tr>";
    let mut rows = String::new();
    for master in &report.masters {
        let _ = writeln!(
            rows,
            "<tr><th>{}</th><td>{}</td>{}</tr>",
            escaped(&master.master),
            answered(master.answered, master.unanswered),
            cells(&master.round_trip, true)
        );
    }
    let text = "How long each master took to say who has a lock, asked together with the others; of the rounds that it answered.";
    section("Round trips", text, &table(heads, &rows))
}

fn again(report: &Report) -> String {
    let text = "Users and passwords are left out; give them in QUORATE_MASTERS.";
    section("Again", text, &page::command(&report.command))
}

fn cells(summary: &LatencySummary, to_max: bool) -> String {
    let times = [summary.p50, summary.p90, summary.p99, summary.p999, summary.max];
    let shown = &times[..if to_max { 5 } else { 3 }];
    shown.iter().map(|time| format!("<td>{}</td>", ms(*time))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn what_means_something_in_html_is_escaped() {
        let page = page(&sample::report());
        assert!(page.contains("6379/&lt;1&gt;") && !page.contains("6379/<1>"), "a master's name");
        assert!(page.contains("(&quot;gone&quot; &amp; lost)"), "why it did not answer");
        assert!(!page.contains("<script"), "the command line");
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = page(&sample::report());
        for outside in ["http:", "https:", "<link", "<script", "<img", "@import", "url(", " src="] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn every_tag_that_is_opened_is_closed() {
        let page = page(&sample::report());
        for tag in
            ["svg", "g", "title", "desc", "table", "tr", "section", "figure", "span", "ul", "li", "div", "dl"]
        {
            let opened =
                page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn both_charts_and_all_numbers_are_there() {
        let page = page(&sample::report());
        assert_eq!(page.matches("role=\"img\"").count(), 2);
        assert_eq!(
            page.matches("<polyline").count(),
            3 + 2,
            "three masters, the order statistic, the acquire"
        );
        for part in ["2027-01-15 08:00:00 UTC", "2 of 3 have answered", "What was amiss", "3 of 4", "28.00"] {
            assert!(page.contains(part), "{part}");
        }
    }
}
