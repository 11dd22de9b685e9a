//! From values to places on a chart, with round numbers on the axis: pure.

use std::ops::Range;

/// A linear or logarithmic axis, with a tick at each end.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    log: bool,
    /// The values that it shows.
    pub ticks: Vec<f64>,
    from: f64,
    to: f64,
}

impl Scale {
    /// A logarithmic axis that holds these values, which are above zero, from one place to another.
    pub fn log(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let (least, most) = bounds(values.into_iter().filter(|value| *value > 0.0))?;
        let steps = |kept: &[f64]| {
            let decades = (least.log10().floor() as i32 - 1)..=(most.log10().ceil() as i32);
            let all = decades.flat_map(|decade| kept.iter().map(move |step| step * 10f64.powi(decade)));
            around(all.collect(), least, most)
        };
        let fine = steps(&[1.0, 2.0, 5.0]);
        let ticks = if fine.len() <= 9 { fine } else { steps(&[1.0]) };
        Some(Self { log: true, ticks, from, to })
    }

    /// A linear axis from zero that holds these values, from one place to another.
    pub fn linear(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let (_, most) = bounds(values)?;
        let most = most.max(1e-3);
        let rough = most / 5.0;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade).into_iter().find(|step| *step >= rough)?;
        let count = (most / step).ceil() as usize;
        Some(Self { log: false, ticks: (0..=count).map(|i| i as f64 * step).collect(), from, to })
    }

    /// Whether a value is on the axis.
    pub fn holds(&self, value: f64) -> bool {
        self.ticks.first().is_some_and(|least| value >= *least)
            && self.ticks.last().is_some_and(|most| value <= *most)
    }

    /// Where a value is; at the nearer end if it is outside.
    pub fn place(&self, value: f64) -> f64 {
        let on = |value: f64| if self.log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        let (Some(least), Some(most)) = (self.ticks.first(), self.ticks.last()) else { return self.from };
        let share = (on(value) - on(*least)) / (on(*most) - on(*least));
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }
}

/// The least and the most of what is finite.
fn bounds(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.into_iter().filter(|value| value.is_finite());
    finite.fold(None, |bounds, value| match bounds {
        None => Some((value, value)),
        Some((least, most)) => Some((value.min(least), value.max(most))),
    })
}

/// Of rising ticks, those from the last that is not above `least` to the first that is above
/// `most`.
fn around(ticks: Vec<f64>, least: f64, most: f64) -> Vec<f64> {
    let first = ticks.iter().rposition(|tick| *tick <= least).unwrap_or(0);
    let last = ticks.iter().position(|tick| *tick > most).unwrap_or(ticks.len() - 1);
    ticks[first..=last].to_vec()
}

/// The lines of a vertical axis across a chart, and their numbers beside it.
pub fn grid(y: &Scale, x: Range<f64>, number: impl Fn(f64) -> String) -> String {
    let start = x.start;
    let end = x.end;
    let beside = x.start - 8.0;
    let line = |value: &f64| {
        let place = y.place(*value);
        let label = number(*value);
        let text = format!(r#"<text x="{beside}" y="{:.1}" class="end">{label}</text>"#, place + 4.5);
        format!(r#"<path class="grid" d="M{start} {place:.1}H{end}"/>{text}"#)
    };
    y.ticks.iter().map(line).collect()
}

/// A tick's number, without zeros that say nothing.
pub fn tick(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ticks(scale: Option<Scale>) -> Vec<String> {
        scale.unwrap().ticks.into_iter().map(tick).collect()
    }

    #[test]
    fn ticks_are_round_numbers_around_the_values() {
        assert_eq!(ticks(Scale::log([0.07, 0.9], 0.0, 1.0)), ["0.05", "0.1", "0.2", "0.5", "1"]);
        assert_eq!(ticks(Scale::log([0.07, 90.0], 0.0, 1.0)), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(ticks(Scale::linear([0.3, 0.83], 0.0, 1.0)), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(ticks(Scale::linear([41.0], 0.0, 1.0)), ["0", "10", "20", "30", "40", "50"]);
    }

    #[test]
    fn what_never_came_is_not_on_the_axis() {
        assert_eq!(Scale::log([f64::INFINITY], 0.0, 1.0), None);
        assert_eq!(Scale::linear([], 0.0, 1.0), None);
        assert_eq!(ticks(Scale::linear([1.0, f64::INFINITY], 0.0, 1.0)).last().unwrap(), "1");
    }

    #[test]
    fn the_ends_are_where_they_were_asked_for() {
        let scale = Scale::log([1.0, 99.0], 50.0, 450.0).unwrap();
        assert_eq!([1.0, 10.0, 100.0, 1e9].map(|value| scale.place(value)), [50.0, 250.0, 450.0, 450.0]);
        assert!(scale.holds(100.0) && !scale.holds(101.0) && !scale.holds(f64::INFINITY));
        let down = Scale::linear([10.0], 300.0, 20.0).unwrap();
        assert_eq!([0.0, 5.0, 10.0].map(|value| down.place(value)), [300.0, 160.0, 20.0]);
    }

    proptest! {
        #[test]
        fn every_value_has_a_place_and_few_ticks(values in proptest::collection::vec(1e-4f64..1e5, 1..20)) {
            for scale in [Scale::log(values.clone(), 0.0, 1.0), Scale::linear(values.clone(), 0.0, 1.0)] {
                let scale = scale.unwrap();
                prop_assert!((2..=12).contains(&scale.ticks.len()), "{:?}", scale.ticks);
                for value in &values {
                    prop_assert!(*value >= scale.ticks[0] && value <= scale.ticks.last().unwrap());
                }
            }
        }
    }
}
