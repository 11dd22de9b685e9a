//! Charts as SVG, to stand in an HTML page whose style sheet gives them their colours.

use std::fmt::Write;

use super::report::{OrderStatistic, Report};
use super::statistics::{Curve, LatencySummary};
use super::table::ms;
use crate::page::escaped;
use crate::page::scale::{Scale, grid, tick};

/// The size in the SVG's own units, and what is left around the plot.
const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 62.0;

/// How many colours there are for masters; further ones get the same colours, dashed.
const COLOURS: usize = 5;

/// The classes of the line of a master.
fn line_of(master: usize) -> String {
    format!("line m{} d{}", master % COLOURS, master / COLOURS)
}

/// For each latency, the share of the round trips, acquires and quorums that took no longer.
pub(crate) fn distributions(report: &Report) -> Option<String> {
    let lines = lines(report);
    let times = lines.iter().flat_map(|(_, _, curve)| curve.iter().map(|(time, _)| *time));
    let x = Scale::log(times, LEFT, WIDTH - RIGHT)?;
    let y = Scale::linear([1.0], HEIGHT - BOTTOM, TOP)?;
    let mut body = frame(&y, |share| format!("{:.0} %", share * 100.0), "share that took no longer");
    for (place, label) in x.ticks.iter().map(|value| (x.place(*value), tick(*value))) {
        let top = TOP;
        let bottom = HEIGHT - BOTTOM;
        let _ = write!(body, r#"<path class="grid" d="M{place:.1} {top}V{bottom}"/>"#);
        let _ = write!(body, r#"<text x="{place:.1}" y="{}" class="mid">{label}</text>"#, bottom + 20.0);
    }
    body += &x_title("ms (logarithmic)");
    for (_, class, curve) in &lines {
        let points =
            curve.iter().map(|(time, share)| format!("{:.1},{:.1}", x.place(*time), y.place(*share)));
        let points = points.collect::<Vec<_>>().join(" ");
        let _ = write!(body, r#"<polyline class="{class}" points="{points}"/>"#);
    }
    let what = "Distribution of latencies";
    let description = format!(
        "For each latency, the share of each master's round trips, of the acquires and of the order statistic that took no \
         longer. Medians: {}.",
        medians(report)
    );
    Some(figure("distributions", what, &description, &body, &legend(&lines)))
}

/// Every line with its name and classes: masters first, so that the others are drawn over them.
fn lines(report: &Report) -> Vec<(String, String, &Curve)> {
    let masters = report.masters.iter().enumerate();
    let mut lines: Vec<_> = masters
        .map(|(i, master)| (format!("round trip of {}", master.master), line_of(i), &master.curve))
        .collect();
    if let Some(all) = report.predicted() {
        let name = format!("order statistic: {} of {} have answered", all.quorum, all.masters);
        lines.push((name, "line order".to_owned(), &all.curve));
    }
    lines.push(("acquire, measured".to_owned(), "line acquire".to_owned(), &report.single.curve));
    lines.retain(|(_, _, curve)| !curve.is_empty());
    lines
}

fn medians(report: &Report) -> String {
    let masters =
        report.masters.iter().map(|master| format!("{} {} ms", master.master, ms(master.round_trip.p50)));
    let mut medians: Vec<_> = masters.collect();
    if let Some(all) = report.predicted() {
        medians.push(format!("order statistic {} ms", ms(all.fastest.p50)));
    }
    medians.push(format!("acquire {} ms", ms(report.single.acquire.p50)));
    medians.join(", ")
}

/// For each number of masters when a quorum of them had answered, and beside the last the measured
/// acquire.
pub(crate) fn quorums(report: &Report) -> Option<String> {
    let acquire = &report.single.acquire;
    // Not the ninetieth percentile of any masters: one master far away would leave no room for the
    // others.
    let of_n = report.order_statistics.iter().flat_map(|of| [of.fastest.p90.0, of.any.p50.0]);
    let y = Scale::linear(of_n.chain([acquire.p90.0]), HEIGHT - BOTTOM, TOP)?;
    let mut body = frame(&y, tick, "ms");
    let all = report.order_statistics.len();
    let slot = (WIDTH - LEFT - RIGHT) / all as f64;
    let aside = (slot / 2.5).min(16.0);
    for of in &report.order_statistics {
        let middle = LEFT + slot * (of.masters as f64 - 0.5);
        body += &under_axis(middle, of, all);
        let mark = |name: &str, side: f64, summary: &LatencySummary| {
            let what = match name {
                "measured" => "measured acquire".to_owned(),
                _ => format!("quorum of the {name} {}", of.masters),
            };
            marked(&y, middle + side, name, &what, summary)
        };
        if of.masters < all {
            body += &mark("fastest", -aside / 2.0, &of.fastest);
            body += &mark("any", aside / 2.0, &of.any);
        } else {
            body += &mark("fastest", -aside / 2.0, &of.fastest);
            body += &mark("measured", aside / 2.0, acquire);
        }
    }
    body += &x_title("masters");
    let what = "Quorum latency by number of masters";
    let of_n = report.order_statistics.iter().map(|of| format!("{}: {}", of.masters, ms(of.fastest.p50)));
    let description = format!(
        "Median time in ms until a quorum of the fastest n masters had answered, for each n: {}. An acquire on all \
         masters, measured: {}.",
        of_n.collect::<Vec<_>>().join(", "),
        ms(acquire.p50)
    );
    let mut keys = vec![("fastest", "quorum of the n fastest masters")];
    if all > 1 {
        keys.push(("any", "quorum of any n of the masters"));
    }
    keys.push(("measured", "acquire, measured"));
    Some(figure("quorums", what, &description, &body, &mark_legend(&keys)))
}

/// The number of masters, and how many of them are a quorum. An even number is paler: it survives
/// no more failures than the odd one below.
fn under_axis(x: f64, of: &OrderStatistic, all: usize) -> String {
    let class = if of.masters % 2 == 1 { "mid" } else { "mid pale" };
    let y = HEIGHT - BOTTOM + 20.0;
    let quorum = if all > 9 { of.quorum.to_string() } else { format!("k = {}", of.quorum) };
    format!(
        r#"<text x="{x:.1}" y="{y}" class="{class}">{}</text><text x="{x:.1}" y="{}" class="small {class}">{quorum}</text>"#,
        of.masters,
        y + 16.0
    )
}

/// A mark at the median and a line to the 90th percentile; with an arrow's head, if that is beyond
/// the axis.
fn marked(y: &Scale, x: f64, name: &str, what: &str, summary: &LatencySummary) -> String {
    if !summary.p50.0.is_finite() {
        return String::new();
    }
    let at = y.place(summary.p50.0);
    let (up, end) =
        if y.holds(summary.p90.0) { (y.place(summary.p90.0), "m-4 0h8") } else { (TOP, "m-4 6l4 -6l4 6") };
    let title = format!("{what}: median {} ms, 90 % {} ms", ms(summary.p50), ms(summary.p90));
    format!(
        r#"<g class="{name}"><title>{}</title><path class="range" d="M{x:.1} {at:.1}V{up:.1}{end}"/>{}</g>"#,
        escaped(&title),
        shape(name, x, at)
    )
}

/// A shape for each kind of mark, so that colour is not all that tells them apart.
fn shape(name: &str, x: f64, y: f64) -> String {
    match name {
        "measured" => format!(r#"<path class="mark" d="M{x:.1} {:.1}l6 6l-6 6l-6-6z"/>"#, y - 6.0),
        "any" => {
            format!(r#"<rect class="mark" x="{:.1}" y="{:.1}" width="8" height="8"/>"#, x - 4.0, y - 4.0)
        }
        _ => format!(r#"<circle class="mark" cx="{x:.1}" cy="{y:.1}" r="5"/>"#),
    }
}

/// The vertical axis with its grid, numbers and title.
fn frame(y: &Scale, number: impl Fn(f64) -> String, title: &str) -> String {
    let mut body = grid(y, LEFT..WIDTH - RIGHT, number);
    let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
    let _ =
        write!(body, r#"<text transform="translate(16 {middle}) rotate(-90)" class="mid">{title}</text>"#);
    body
}

fn x_title(title: &str) -> String {
    let x = (LEFT + WIDTH - RIGHT) / 2.0;
    let y = HEIGHT - 5.0;
    format!(r#"<text x="{x}" y="{y}" class="mid">{title}</text>"#)
}

fn legend(lines: &[(String, String, &Curve)]) -> String {
    let entry = |(name, class, _): &(String, String, &Curve)| {
        let key = format!(r#"<path class="{class}" d="M1 6H31"/>"#);
        format!(r#"<li><svg aria-hidden="true" viewBox="0 0 32 12">{key}</svg>{}</li>"#, escaped(name))
    };
    lines.iter().map(entry).collect()
}

fn mark_legend(keys: &[(&str, &str)]) -> String {
    let entry = |(name, text): &(&str, &str)| {
        let key = shape(name, 16.0, 6.0);
        format!(
            r#"<li><svg aria-hidden="true" viewBox="0 -1 32 14"><g class="{name}">{key}</g></svg>{text}</li>"#
        )
    };
    let range = r#"<li><svg aria-hidden="true" viewBox="0 -1 32 14"><path class="range" d="M16 13V1m-4 0h8"/></svg>from the median to 90 %; an arrow goes beyond the chart</li>"#;
    keys.iter().map(entry).collect::<String>() + range
}

fn figure(id: &str, title: &str, description: &str, body: &str, legend: &str) -> String {
    format!(
        r#"<figure><figcaption>{title}</figcaption>
<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{id}-title {id}-text"><title id="{id}-title">{title}</title><desc id="{id}-text">{}</desc>{body}</svg>
<ul class="legend">{legend}</ul></figure>
"#,
        escaped(description)
    )
}
