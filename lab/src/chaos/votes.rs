//! When a master had no vote, and why, as ticks. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use quorate_chaos::history::{Abstention, Time};

/// Ticks that are nearer to each other than this look like one.
const LEAST: f64 = 1.0;

/// The reasons that are drawn alike: the class of their ticks, and what the legend says.
pub(super) const REASONS: [(&str, &str); 4] = [
    ("v-forgot", "no vote: in quarantine, or it forgot"),
    ("v-clock", "no vote: its clock"),
    ("v-silent", "no vote: out of reach, or no answer"),
    ("v-other", "no vote: it cannot serve"),
];

/// How ticks of this reason are drawn.
fn class(why: &str) -> &'static str {
    let [(forgot, _), (clock, _), (silent, _), (other, _)] = REASONS;
    match why {
        "quarantine" | "forgot" => forgot,
        "clock" => clock,
        "unreachable" | "no answer" => silent,
        _ => other,
    }
}

/// Those of one master, as high as this from `y` on. `x` is where a time is, if it is drawn.
pub(super) fn ticks(
    abstentions: &[Abstention],
    master: usize,
    x: impl Fn(Time) -> Option<f64>,
    (y, height): (f64, f64),
) -> String {
    let mut reasons: BTreeMap<&str, (String, f64)> = BTreeMap::new();
    for Abstention { at, of } in abstentions.iter().filter(|one| one.of.master == master) {
        let Some(x) = x(*at) else { continue };
        let (path, last) = reasons.entry(&of.why).or_default();
        if path.is_empty() || x >= *last + LEAST {
            *last = x;
            let _ = write!(path, "M{x:.1} {y:.1}v{height}");
        }
    }
    let path = |(why, (path, _)): (&str, (String, f64))| {
        let class = class(why);
        let why = quorate_cli::page::escaped(why);
        format!(r#"<path class="{class}" d="{path}"><title>no vote: {why}</title></path>"#)
    };
    reasons.into_iter().map(path).collect()
}

#[cfg(test)]
mod tests {
    use quorate_chaos::history::NoVote;

    use super::super::sample::micros;
    use super::*;

    #[test]
    fn each_reason_has_its_ticks_and_those_that_are_too_near_are_left_out() {
        let one =
            |at, master, why: &str| Abstention { at: micros(at), of: NoVote { master, why: why.to_owned() } };
        let all = [
            one(10, 0, "quarantine"),
            one(10, 1, "clock"),
            one(10, 0, "no answer"),
            one(10, 0, "quarantine"),
            one(12, 0, "quarantine"),
            one(99, 0, "quarantine"),
        ];
        let drawn = ticks(&all, 0, |at| (at < micros(50)).then_some(at.as_secs_f64() * 1e6), (5.0, 6.0));
        let silent = r#"<path class="v-silent" d="M10.0 5.0v6"><title>no vote: no answer</title></path>"#;
        let forgot =
            r#"<path class="v-forgot" d="M10.0 5.0v6M12.0 5.0v6"><title>no vote: quarantine</title></path>"#;
        assert_eq!(drawn, format!("{silent}{forgot}"));
    }
}
