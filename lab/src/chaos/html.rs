//! The report as a page: the verdict, what happened when, and the figures. Pure.

use std::fmt::Write;
use std::ops::Range;

use quorate_chaos::figures::over_time;
use quorate_chaos::history::{History, Struck, Time};
use quorate_chaos::run::Trial;
use quorate_cli::page::{self, escaped, section, table, whole};

use super::charts;
use super::summary::{Found, Kind, Stretch, Summary, ms, storm};
use super::timeline::{COLOURS, Timeline};
use super::violations::{listed, others};
use super::votes::REASONS;

const STYLE: &str = include_str!("style.css");

/// How many parts of the run the charts show.
const SLOTS: usize = 40;

pub(crate) fn page(trial: &Trial, history: &History, summary: &Summary) -> String {
    let title = format!("Chaos: {}, scenario {}, seed {}", summary.subject, summary.scenario, summary.seed);
    let content = [
        facts(trial, summary),
        verdict(summary),
        tiles(summary),
        timelines(trial, history, summary),
        over(history),
        kinds(summary),
        faults(history),
        changes(summary),
        again(summary),
    ];
    page::page(&title, STYLE, &content.concat())
}

fn facts(trial: &Trial, summary: &Summary) -> String {
    let date = summary.ran_at.replace('T', " ").replace('Z', " UTC");
    format!(
        "<p class=\"facts\">{} · quorate {} · {}</p>\n<p class=\"facts\">{}: {}</p>\n",
        escaped(&date),
        summary.version,
        escaped(&summary.run()),
        summary.scenario,
        escaped(trial.scenario.about)
    )
}

fn verdict(summary: &Summary) -> String {
    let class = match summary.verdict {
        Found::Nothing => "good",
        Found::Violation => "bad",
        Found::TooSlow | Found::Inconclusive => "open",
    };
    let mut items: String = listed(&summary.violations)
        .iter()
        .map(|found| {
            let at = found.at_ms / 1e3;
            let what = escaped(&found.what);
            format!("<li><b>{}</b>, at {at:.3} s: {what}</li>\n", found.property)
        })
        .collect();
    if let Some(others) = others(&summary.violations) {
        let _ = writeln!(items, "<li>{others}</li>");
    }
    let remarks: String =
        summary.remarks().iter().map(|remark| format!("<p>{}</p>\n", escaped(remark))).collect();
    let list = if items.is_empty() { String::new() } else { format!("<ul>\n{items}</ul>\n") };
    format!(
        "<section class=\"verdict {class}\">\n<h2>{}</h2>\n{remarks}{list}</section>\n",
        escaped(&summary.headline())
    )
}

fn tiles(summary: &Summary) -> String {
    let granted: usize = summary.kinds.values().map(|kind| kind.granted).sum();
    let healthy = summary.healthy_ms / 1e3;
    let of_waited = format!("of {}", whole(summary.waited.all as f64));
    page::tiles(&[
        ("acquires granted".to_owned(), whole(granted as f64), ""),
        ("faults".to_owned(), summary.faults.to_string(), ""),
        ("acquires with an answer".to_owned(), format!("{:.1}", summary.availability * 100.0), "%"),
        ("granted, of those ready to wait".to_owned(), whole(summary.waited.granted as f64), &of_waited),
        ("acquire, median".to_owned(), ms(summary.acquire.p50_ms), "ms"),
        ("acquire, 99 %".to_owned(), ms(summary.acquire.p99_ms), "ms"),
        (
            format!("longest without a grant in the {healthy:.1}&nbsp;s with a healthy quorum"),
            ms(summary.longest_without_grant_ms),
            "ms",
        ),
    ])
}

fn timelines(trial: &Trial, history: &History, summary: &Summary) -> String {
    let draw = |id: &str, time: Range<Time>, description: &str| {
        Timeline { history, masters: trial.all_masters(), clients: trial.clients, time }.svg(id, description)
    };
    let mut sections = String::new();
    let mut legend = legend(trial.clients); // it is before the first picture
    if let Some(first) = summary.violations.first() {
        let at = Time::from_secs_f64(first.at_ms / 1e3);
        let around = trial.ttl * 3 / 2;
        let time = at.saturating_sub(around)..(at + around).min(history.end);
        let (svg, _) = draw("around", time, "The timeline around the first violation.");
        let text = format!(
            "Three TTLs around what violates {}, at {:.3} s. What is outlined in red was held by two.",
            first.property,
            first.at_ms / 1e3
        );
        sections += &section("Around the first violation", &text, &(std::mem::take(&mut legend) + &svg));
    }
    let description = format!(
        "{} faults on {} masters and {} clients, and who held which lock when. The tables below have the same in numbers.",
        summary.faults,
        trial.all_masters(),
        trial.clients
    );
    let (svg, left) = draw("run", Time::ZERO..history.end, &description);
    let others = if left > 0 {
        format!(" {left} further locks, which were held less often, have no lane.")
    } else {
        String::new()
    };
    let text = format!(
        "From the first call to the last look at the masters; the dashed line is when all was healed. A master's upper bar is the \
         server, the strip below it the network to it, and a tick below that an acquire in which it had no vote. A lock's bars are who held it, from the grant to the end that its holder \
         knows of, in the colour of the client; the strip below has a tick for each acquire that was refused or had no \
         answer.{others}"
    );
    sections + &section("What happened", &text, &(legend + &svg))
}

fn legend(clients: usize) -> String {
    let key = |class: &str, shape: &str, text: &str| {
        format!(
            r#"<li><svg aria-hidden="true" viewBox="0 0 32 14"><g class="{class}">{shape}</g></svg>{text}</li>"#
        )
    };
    let bar = |class: &str, text: &str| {
        let shape = format!(r#"<rect class="{class}" x="4" y="1" width="24" height="12"/>"#);
        key("", &shape, text)
    };
    let of_colour =
        |first: usize| (first..clients).step_by(COLOURS).map(|client| client.to_string()).collect::<Vec<_>>();
    let client = |first| bar(&format!("k{first}"), &format!("client {}", of_colour(first).join(", ")));
    let mut keys: String = (0..clients.min(COLOURS)).map(client).collect();
    for (class, text) in [
        ("up", "no fault"),
        ("f-servers", "process: killed, frozen"),
        ("f-network", "network"),
        ("f-keys", "keys or history lost"),
        ("f-clocks", "clock"),
        ("f-commands", "commands, limits, disk"),
        ("two", "held by two"),
    ] {
        keys += &bar(class, text);
    }
    keys +=
        &key("", r#"<path class="at f-keys" d="M16 0l5 7l-5 7l-5 -7z"/>"#, "a fault that is over at once");
    keys += &key("", r#"<path class="lost" d="M12 3l8 8m0 -8l-8 8"/>"#, "lease lost");
    keys += &key("", r#"<path class="refused" d="M16 3v8"/>"#, "acquire refused: another has it");
    keys += &key("", r#"<path class="unknown" d="M16 3v8"/>"#, "acquire without an answer");
    for (class, text) in REASONS {
        keys += &key("", &format!(r#"<path class="{class}" d="M16 2v10"/>"#), text);
    }
    format!("<ul class=\"legend\">{keys}</ul>\n")
}

fn over(history: &History) -> String {
    let slots = over_time(history, &storm(history), SLOTS);
    let charts: String = [charts::answers(&slots), charts::latency(&slots)].into_iter().flatten().collect();
    let text = "Until all was healed, by when acquires ended. That another has the lock is an answer: the lock works.";
    section("Availability over time", text, &format!("<div class=\"charts\">\n{charts}</div>\n"))
}

fn kinds(summary: &Summary) -> String {
    let heads = "<tr><th>locks</th><th>granted</th><th>refused</th><th>no answer</th><th>released</th><th>lost</th>\
                 <th>writes taken</th><th>writes refused</th></tr>";
    let row = |(name, kind): (&String, &Kind)| {
        let counts = [
            kind.granted,
            kind.refused,
            kind.unknown,
            kind.released,
            kind.lost,
            kind.writes_accepted,
            kind.writes_rejected,
        ];
        let cells: String = counts.iter().map(|count| format!("<td>{}</td>", whole(*count as f64))).collect();
        format!("<tr><th>{}</th>{cells}</tr>\n", escaped(name))
    };
    let text = "What came of acquires, of guards, and of writes to what they protect. A write is refused that comes with an older \
                fence than one before: its writer had lost the lock, and did not know.";
    section("Counts", text, &table(heads, &summary.kinds.iter().map(row).collect::<String>()))
}

fn faults(history: &History) -> String {
    let heads = "<tr><th>fault</th><th>from, s</th><th>to, s</th><th>masters</th><th>clients</th><th class=\"what\">what</th></tr>";
    let at = |time: Time| format!("{:.3}", time.as_secs_f64());
    let places = |places: &[usize]| places.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
    let row = |Struck { fault, from, to, .. }: &Struck| {
        format!(
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"what\">{}: {}</td></tr>\n",
            fault.number.map(|number| number.to_string()).unwrap_or_default(),
            at(*from),
            to.map(at).unwrap_or_default(),
            places(&fault.masters),
            places(&fault.clients),
            fault.family,
            escaped(&fault.what)
        )
    };
    let text = "Those of the network are on the ways from these clients to these masters.";
    section("Faults", text, &table(heads, &history.faults.iter().map(row).collect::<String>()))
}

/// Nothing where the set did not change.
fn changes(summary: &Summary) -> String {
    if summary.changes.is_empty() {
        return String::new();
    }
    let heads = "<tr><th class=\"what\">change of the set</th><th>lasted, s</th><th>granted</th><th>median, ms</th>\
                 <th>99 %, ms</th><th>longest, ms</th><th>longest in as long without a change, ms</th></tr>";
    let row = |Stretch { what, lasted_ms, granted, acquire, max_without_change_ms }: &Stretch| {
        format!(
            "<tr><td class=\"what\">{}</td><td>{:.1}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            escaped(what.as_deref().unwrap_or("none")),
            lasted_ms / 1e3,
            whole(*granted as f64),
            ms(acquire.p50_ms),
            ms(acquire.p99_ms),
            ms(acquire.max_ms),
            max_without_change_ms.map(|max| ms(Some(max))).unwrap_or_default()
        )
    };
    let held = summary.held_throughout.unwrap_or_default();
    let text = format!(
        "How long acquires took that were under way meanwhile, waits included. {held} leases were held over all changes."
    );
    section("Changes", &text, &table(heads, &summary.changes.iter().map(row).collect::<String>()))
}

fn again(summary: &Summary) -> String {
    let text = "The same faults at the same times. What happens in between is up to the machine.";
    let words: Vec<_> = summary.command.split(' ').map(str::to_owned).collect();
    section("Again", text, &page::command(&words))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::sample;
    use super::*;

    fn sample() -> String {
        let trial = sample::trial();
        let outcome = sample::outcome();
        let command = ["quorate".to_owned(), "chaos".to_owned()];
        let summary = Summary::new(&trial, &outcome, &command, Duration::from_secs(1_800_000_000));
        page(&trial, &outcome.history, &summary)
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = sample();
        for outside in ["http:", "https:", "<link", "<script", "<img", "@import", "url(", " src="] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn every_tag_that_is_opened_is_closed() {
        let page = sample();
        for tag in
            ["svg", "g", "desc", "table", "tr", "td", "section", "figure", "ul", "li", "div", "rect", "path"]
        {
            let mut opened = 0;
            let mut closed = page.matches(&format!("</{tag}>")).count();
            for inside in page.split(&format!("<{tag}")).skip(1).filter_map(|rest| rest.split('>').next()) {
                opened += usize::from(inside.is_empty() || inside.starts_with(' '));
                closed += usize::from(inside.starts_with(' ') && inside.ends_with('/'));
            }
            assert_eq!(opened, closed, "{tag}");
        }
    }

    #[test]
    fn there_is_one_legend_before_the_pictures() {
        let page = sample();
        assert_eq!(page.matches("lease lost").count(), 1);
        assert!(page.find("lease lost").unwrap() < page.find("<div class=\"scroll timeline\">").unwrap());
    }

    #[test]
    fn a_violation_is_on_top_and_has_a_picture_of_its_own() {
        let page = sample();
        assert!(page.find("Violated: ").unwrap() < page.find("What happened").unwrap());
        for part in [
            "windows",
            "Around the first violation",
            "class=\"two\"",
            "quorate</span>",
            "Chaos: textbook, scenario inside, seed 7",
            "<p>This is not Quorate&#39;s lock.",
            "faults for 10 s",
            "what violates windows, at 1.510 s",
            "longest without a grant in the 0.3&nbsp;s with a healthy quorum",
            "a fault that is over at once",
            "2027-01-15 08:00:00 UTC",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }
}
