//! The timeline as SVG: a lane for each master, client and lock. Pure.

use std::fmt::Write;
use std::ops::Range;

use quorate_chaos::history::{Call, FaultRecord, History, Hold, Outcome, Struck, Time};
use quorate_chaos::run::client_of;
use quorate_cli::page::escaped;
use quorate_cli::page::scale::{Scale, tick};

use super::lanes::{Lane, lanes};
use super::votes;

/// The size in the SVG's own units.
const WIDTH: f64 = 1080.0;
const LEFT: f64 = 132.0;
const RIGHT: f64 = 16.0;
/// What the axis takes below the lanes.
const AXIS: f64 = 26.0;

const BAR: f64 = 14.0;
const ROW: f64 = 11.0;
/// The strip below a bar: of a master its network, of a lock what was refused.
const STRIP: f64 = 6.0;
const GAP: f64 = 5.0;

/// How many colours there are for clients; further ones begin anew.
pub(crate) const COLOURS: usize = 8;

/// What is narrower can not be seen.
const LEAST: f64 = 1.0;

/// What is narrower is drawn as what is over at once.
const BRIEF: f64 = 6.0;

/// About how wide a letter is in a bar.
const LETTER: f64 = 6.2;

/// What is drawn of a run.
#[derive(Debug)]
pub(crate) struct Timeline<'a> {
    pub(crate) history: &'a History,
    pub(crate) masters: usize,
    pub(crate) clients: usize,
    /// From when to when it is drawn.
    pub(crate) time: Range<Time>,
}

impl Timeline<'_> {
    /// The picture, and how many locks have no lane. `id` tells it from others of the page.
    pub(crate) fn svg(&self, id: &str, description: &str) -> (String, usize) {
        let (lanes, left) = lanes(self.history, &self.time);
        let mut picture = Picture { timeline: self, body: String::new(), y: 4.0 };
        (0..self.masters).for_each(|master| picture.master(master));
        picture.y += GAP;
        (0..self.clients).for_each(|client| picture.client(client));
        picture.y += GAP;
        lanes.iter().for_each(|lane| picture.lock(lane));
        let bottom = picture.y;
        let body = picture.body;
        let svg = format!(
            "<div class=\"scroll timeline\"><svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-labelledby=\"{id}\">\
             <desc id=\"{id}\">{}</desc>{}{body}{}</svg></div>\n",
            bottom + AXIS,
            escaped(description),
            self.axis(bottom),
            self.calm(bottom)
        );
        (svg, left)
    }

    fn x(&self, at: Time) -> f64 {
        let start = self.time.start.as_secs_f64();
        let length = (self.time.end.as_secs_f64() - start).max(1e-6);
        let share = (at.as_secs_f64() - start) / length;
        LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    /// Where a time begins and how wide it is; none where it is not within what is drawn.
    fn span(&self, from: Time, to: Time) -> Option<(f64, f64)> {
        if to < self.time.start || from > self.time.end {
            return None;
        }
        let x = self.x(from);
        Some((x, (self.x(to) - x).max(LEAST)))
    }

    fn axis(&self, bottom: f64) -> String {
        let start = self.time.start.as_secs_f64();
        let end = self.time.end.as_secs_f64();
        let mut axis = String::new();
        let steps = Scale::linear([end - start], 0.0, 1.0).map(|scale| scale.ticks).unwrap_or_default();
        let step = steps.get(1).copied().unwrap_or(1.0);
        let first = (start / step).ceil() as u64;
        let last = (end / step).floor() as u64;
        for value in (first..=last).map(|number| number as f64 * step) {
            let x = self.x(Time::from_secs_f64(value));
            let y = bottom + 16.0;
            let label = tick(value);
            let _ = write!(axis, r#"<path class="grid" d="M{x:.1} 0V{bottom:.0}"/>"#);
            let _ = write!(axis, r#"<text x="{x:.1}" y="{y:.0}" class="small mid">{label} s</text>"#);
        }
        axis
    }

    fn calm(&self, bottom: f64) -> String {
        let calm = self.history.calm.filter(|calm| self.time.contains(calm)).map(|calm| self.x(calm));
        let line = |x| {
            format!(r#"<path class="calm" d="M{x:.1} 0V{bottom:.0}"><title>all is healed</title></path>"#)
        };
        calm.map(line).unwrap_or_default()
    }
}

struct Picture<'a> {
    timeline: &'a Timeline<'a>,
    body: String,
    /// Where the next lane begins.
    y: f64,
}

impl Picture<'_> {
    fn master(&mut self, master: usize) {
        self.label(&format!("master {master}"), BAR);
        self.bar("up", self.y, BAR);
        self.bar("up net", self.y + BAR, STRIP);
        let faults = &self.timeline.history.faults;
        for struck in faults.iter().filter(|struck| struck.fault.masters.contains(&master)) {
            self.fault(struck, struck.until(master));
        }
        let timeline = self.timeline;
        let at = (self.y + BAR + STRIP + 1.0, STRIP);
        let x = |at| timeline.span(at, at).map(|(x, _)| x);
        self.body += &votes::ticks(&timeline.history.abstentions, master, x, at);
        self.y += BAR + 2.0 * STRIP + GAP;
    }

    fn client(&mut self, client: usize) {
        self.label(&format!("client {client}"), BAR);
        self.bar(&format!("k{}", client % COLOURS), self.y, BAR);
        let faults = &self.timeline.history.faults;
        let of_process = |fault: &FaultRecord| fault.masters.is_empty() && fault.clients.contains(&client);
        for struck in faults.iter().filter(|struck| of_process(&struck.fault)) {
            self.fault(struck, struck.to);
        }
        self.y += BAR + GAP;
    }

    fn lock(&mut self, lane: &Lane<'_>) {
        let height = lane.rows.len() as f64 * ROW;
        self.label(lane.name, height);
        for (place, row) in lane.rows.iter().enumerate() {
            let mut drawn = 0.0; // what would be drawn over what is there already is left out
            for hold in row {
                self.hold(hold, self.y + place as f64 * ROW, &mut drawn);
            }
        }
        for both in &lane.overlaps {
            let Some((x, width)) = self.timeline.span(both.start, both.end) else { continue };
            let y = self.y - 1.5;
            let height = height + 1.0;
            let width = width.max(3.0);
            let _ = write!(
                self.body,
                r#"<rect class="two" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"><title>held by two</title></rect>"#
            );
        }
        self.answers(lane, self.y + height);
        self.y += height + STRIP + GAP;
    }

    fn hold(&mut self, hold: &Hold, y: f64, drawn: &mut f64) {
        let Some((x, width)) = self.timeline.span(hold.granted, hold.window_end()) else { return };
        if x + width < *drawn + LEAST / 2.0 {
            return;
        }
        *drawn = x + width;
        let colour = client_of(&hold.process).unwrap_or_default() % COLOURS;
        let height = ROW - 2.0;
        let title = escaped(&in_words(hold));
        let _ = write!(
            self.body,
            r#"<rect class="k{colour}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height}"><title>{title}</title></rect>"#
        );
        if let Some((x, _)) = hold.lost.and_then(|lost| self.timeline.span(lost, lost)) {
            let x = x - 4.0;
            let y = y + 0.5;
            let _ = write!(
                self.body,
                r#"<path class="lost" d="M{x:.1} {y:.1}l8 8m0 -8l-8 8"><title>lost</title></path>"#
            );
        }
    }

    /// What was asked for in vain, below who had it.
    fn answers(&mut self, lane: &Lane<'_>, y: f64) {
        let mut refused = String::new();
        let mut unknown = String::new();
        let mut last_refused = 0.0;
        let mut last_unknown = 0.0;
        for made in &self.timeline.history.calls {
            let (Call::Acquire { lock, .. }, Some(at)) = (&made.call, made.returned) else { continue };
            if lock.kind != lane.kind || !lock.names.iter().any(|name| name == lane.name) {
                continue;
            }
            let Some((x, _)) = self.timeline.span(at, at) else { continue };
            let (path, last) = match made.outcome {
                Outcome::Failed { .. } => (&mut refused, &mut last_refused),
                Outcome::Unknown { .. } => (&mut unknown, &mut last_unknown),
                _ => continue,
            };
            if x >= *last + LEAST {
                *last = x;
                let _ = write!(path, "M{x:.1} {y:.1}v{STRIP}");
            }
        }
        for (class, path) in [("refused", refused), ("unknown", unknown)] {
            if !path.is_empty() {
                let _ = write!(self.body, r#"<path class="{class}" d="{path}"/>"#);
            }
        }
    }

    /// What was not healed lasts to the end.
    fn fault(&mut self, struck: &Struck, to: Option<Time>) {
        let FaultRecord { family, what, .. } = &struck.fault;
        let to = to.unwrap_or(self.timeline.time.end);
        let Some((x, width)) = self.timeline.span(struck.from, to) else { return };
        let (y, height) = match &**family {
            "network" => (self.y + BAR, STRIP),
            _ => (self.y, BAR),
        };
        let title = escaped(what);
        if width <= BRIEF {
            let middle = y + height / 2.0;
            let _ = write!(
                self.body,
                r#"<path class="at f-{family}" d="M{x:.1} {:.1}l5 {half:.1}l-5 {half:.1}l-5 -{half:.1}z"><title>{title}</title></path>"#,
                middle - height / 2.0,
                half = height / 2.0
            );
            return;
        }
        let _ = write!(
            self.body,
            r#"<rect class="f-{family}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height}"><title>{title}</title></rect>"#
        );
        if family != "network" && what.chars().count() as f64 * LETTER + 8.0 <= width {
            let x = x + 4.0;
            let y = y + BAR - 3.5;
            let _ = write!(self.body, r#"<text x="{x:.1}" y="{y:.1}" class="in">{title}</text>"#);
        }
    }

    fn label(&mut self, text: &str, height: f64) {
        let x = LEFT - 8.0;
        let y = self.y + height / 2.0 + 4.0;
        let _ = write!(self.body, r#"<text x="{x}" y="{y:.1}" class="small end">{}</text>"#, escaped(text));
    }

    fn bar(&mut self, class: &str, y: f64, height: f64) {
        let width = WIDTH - LEFT - RIGHT;
        let _ = write!(
            self.body,
            r#"<rect class="{class}" x="{LEFT}" y="{y:.1}" width="{width}" height="{height}"/>"#
        );
    }
}

fn in_words(hold: &Hold) -> String {
    let fence = hold.fence.map(|fence| format!(", fence {fence}")).unwrap_or_default();
    let from = hold.granted.as_secs_f64();
    let to = hold.window_end().as_secs_f64();
    format!("{} ({}), {from:.3} to {to:.3} s{fence}", hold.process, hold.owner)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn drawn(seconds: Range<u64>) -> String {
        let time = Time::from_secs(seconds.start)..Time::from_secs(seconds.end);
        let outcome = sample::outcome();
        let timeline = Timeline { history: &outcome.history, masters: 3, clients: 2, time };
        timeline.svg("t", "what").0
    }

    #[test]
    fn every_lane_and_what_happened_in_it_is_there() {
        let svg = drawn(1..11);
        for part in ["master 2", "client 1", ">l<", "f-servers", "f-network", "at f-keys", "f-clients"] {
            assert!(svg.contains(part), "{part}");
        }
        for (part, count) in [
            ("class=\"v-forgot\"", 1),
            ("class=\"two\"", 1),
            ("class=\"lost\"", 1),
            ("class=\"refused\"", 1),
            ("class=\"unknown\"", 1),
        ] {
            assert_eq!(svg.matches(part).count(), count, "{part}");
        }
        assert!(svg.contains("kill &lt;it&gt;") && !svg.contains("<it>"));
        assert!(svg.contains("class=\"calm\""));
    }

    #[test]
    fn a_fault_of_several_masters_lasts_on_each_until_that_one_is_healed() {
        let mut history = sample::outcome().history;
        let all = sample::struck("disks", &[0, 1], &[], 2_000_000, 8_000_000);
        history.faults = vec![Struck { before: vec![(0, Time::from_secs(4))], ..all }];
        let timeline =
            Timeline { history: &history, masters: 2, clients: 2, time: Time::ZERO..Time::from_secs(10) };
        let svg = timeline.svg("t", "what").0;
        let bars: Vec<_> = svg.split("class=\"f-disks\"").skip(1).collect();
        assert_eq!(bars.len(), 2);
        assert!(bars[0].contains("width=\"186.4\"") && bars[1].contains("width=\"559.2\""), "{bars:?}");
    }

    #[test]
    fn what_is_not_within_its_time_is_not_drawn() {
        let svg = drawn(5..6);
        for part in ["f-servers", "class=\"two\"", ">l<", "class=\"calm\""] {
            assert!(!svg.contains(part), "{part}");
        }
    }
}
