//! What came of acquires over time, and how long they took, as SVG. Pure.

use std::fmt::Write;

use quorate_chaos::figures::Slot;
use quorate_chaos::history::Time;
use quorate_cli::page::scale::{Scale, grid, tick};

use super::summary::millis;

const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;

/// How many acquires were granted, refused and not answered in each part of the run.
pub(crate) fn answers(slots: &[Slot]) -> Option<String> {
    let most = slots.iter().map(|slot| slot.answers.all() as f64);
    let y = Scale::linear(most, HEIGHT - BOTTOM, TOP)?;
    let mut body = frame(slots, &y, "acquires");
    for slot in slots {
        let (x, width) = place(slots, slot);
        let mut below = 0;
        for (class, count) in [
            ("granted", slot.answers.granted),
            ("held", slot.answers.refused),
            ("silent", slot.answers.unknown),
        ] {
            let bottom = y.place(f64::from(below));
            let top = y.place(f64::from(below) + count as f64);
            below += u32::try_from(count).unwrap_or(u32::MAX);
            if count > 0 {
                let _ = write!(
                    body,
                    r#"<rect class="{class}" x="{x:.1}" y="{top:.1}" width="{:.1}" height="{:.1}"><title>{class}: {count}</title></rect>"#,
                    (width - 1.0).max(0.5),
                    bottom - top
                );
            }
        }
    }
    let legend = [("granted", "granted"), ("held", "another has it"), ("silent", "no answer")];
    Some(figure("Results of acquires", &body, &legend))
}

/// Half of the granted acquires of each part took no longer, and none took longer.
pub(crate) fn latency(slots: &[Slot]) -> Option<String> {
    let times = slots.iter().flat_map(|slot| [slot.median(), slot.latencies.last().copied()]);
    let y = Scale::log(times.flatten().map(millis), HEIGHT - BOTTOM, TOP)?;
    let mut body = frame(slots, &y, "ms (logarithmic)");
    for (class, of) in [
        ("longest", (|slot| slot.latencies.last().copied()) as fn(&Slot) -> Option<Time>),
        ("median", Slot::median),
    ] {
        for slot in slots {
            let (x, width) = place(slots, slot);
            if let Some(at) = of(slot).map(|time| y.place(millis(time))) {
                let _ = write!(body, r#"<path class="{class}" d="M{x:.1} {at:.1}h{width:.1}"/>"#);
            }
        }
    }
    Some(figure(
        "How long granted acquires took, waits included",
        &body,
        &[("median", "half of them"), ("longest", "the longest")],
    ))
}

/// Where a part is, and how wide.
fn place(slots: &[Slot], slot: &Slot) -> (f64, f64) {
    let (start, end) = bounds(slots);
    let on = |at: Time| LEFT + (at.as_secs_f64() - start) / (end - start).max(1e-6) * (WIDTH - LEFT - RIGHT);
    (on(slot.time.start), on(slot.time.end) - on(slot.time.start))
}

/// In seconds.
fn bounds(slots: &[Slot]) -> (f64, f64) {
    let start = slots.first().map_or(Time::ZERO, |slot| slot.time.start);
    let end = slots.last().map_or(start, |slot| slot.time.end);
    (start.as_secs_f64(), end.as_secs_f64())
}

fn frame(slots: &[Slot], y: &Scale, title: &str) -> String {
    let mut body = grid(y, LEFT..WIDTH - RIGHT, tick);
    let (start, end) = bounds(slots);
    let length = end - start;
    let ticks = Scale::linear([length], 0.0, 1.0).map(|scale| scale.ticks).unwrap_or_default();
    for value in ticks.into_iter().filter(|value| *value <= length) {
        let x = LEFT + value / length.max(1e-6) * (WIDTH - LEFT - RIGHT);
        let label = tick(((value + start) * 10.0).round() / 10.0);
        let _ = write!(body, r#"<text x="{x:.1}" y="{}" class="mid">{label}</text>"#, HEIGHT - BOTTOM + 18.0);
    }
    let x = (LEFT + WIDTH - RIGHT) / 2.0;
    let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
    let _ = write!(body, r#"<text x="{x}" y="{}" class="mid">s</text>"#, HEIGHT - 6.0);
    let _ =
        write!(body, r#"<text transform="translate(14 {middle}) rotate(-90)" class="mid">{title}</text>"#);
    body
}

fn figure(title: &str, body: &str, legend: &[(&str, &str)]) -> String {
    let entry = |(class, text): &(&str, &str)| {
        let key = match *class {
            "median" | "longest" => format!(r#"<path class="{class}" d="M1 6H31"/>"#),
            _ => format!(r#"<rect class="{class}" x="8" y="0" width="16" height="12"/>"#),
        };
        format!(r#"<li><svg aria-hidden="true" viewBox="0 0 32 12">{key}</svg>{text}</li>"#)
    };
    let legend: String = legend.iter().map(entry).collect();
    format!(
        r#"<figure><figcaption>{title}</figcaption>
<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{title}</title>{body}</svg>
<ul class="legend">{legend}</ul></figure>
"#
    )
}
