//! What is wrong with connections now.

use std::time::Duration;

use super::toxic::{Toxic, ToxicId, Way};
use crate::dice::Dice;

/// The toxics of a proxy, and what was ordered once.
#[derive(Debug, Default)]
pub(super) struct Weather {
    toxics: Vec<(ToxicId, Way, Toxic)>,
    added: u64,
    /// How often all connections were to be reset, at the end of the way there and of the way back.
    pub(super) resets: Resets,
    /// How often what was on its way was to be delivered.
    pub(super) deliveries: u64,
}

/// How often connections were to be reset, at either end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Resets {
    there: u64,
    back: u64,
}

impl Weather {
    pub(super) fn add(&mut self, way: Way, toxic: Toxic) -> ToxicId {
        let id = ToxicId(self.added);
        self.added += 1;
        self.toxics.push((id, way, toxic));
        id
    }

    pub(super) fn remove(&mut self, toxic: ToxicId) -> bool {
        let before = self.toxics.len();
        self.toxics.retain(|(id, ..)| *id != toxic);
        self.toxics.len() < before
    }

    pub(super) fn clear(&mut self) {
        self.toxics.clear();
    }

    fn on(&self, way: Way) -> impl Iterator<Item = Toxic> {
        self.toxics.iter().filter(move |(_, its, _)| its.covers(way)).map(|(.., toxic)| *toxic)
    }

    /// How much later something arrives; `None` where nothing is late.
    pub(super) fn delay(&self, way: Way, dice: &Dice) -> Option<Duration> {
        let delays = self.on(way).filter_map(|toxic| match toxic {
            Toxic::Latency { delay, jitter } if jitter.is_zero() => Some(delay),
            Toxic::Latency { delay, jitter } => Some(delay + dice.time(Duration::ZERO, jitter)),
            _ => None,
        });
        delays.reduce(|sum, delay| sum + delay)
    }

    /// The narrowest place, in bytes a second.
    pub(super) fn bandwidth(&self, way: Way) -> Option<u64> {
        let rates = self.on(way).filter_map(|toxic| match toxic {
            Toxic::Bandwidth { bytes_per_second } => Some(bytes_per_second.max(1)),
            _ => None,
        });
        rates.min()
    }

    pub(super) fn is_hole(&self, way: Way) -> bool {
        self.on(way).any(|toxic| toxic == Toxic::Blackhole)
    }

    /// How much later the end of a connection is passed on.
    pub(super) fn slow_close(&self, way: Way) -> Option<Duration> {
        let delays = self.on(way).filter_map(|toxic| match toxic {
            Toxic::SlowClose { delay } => Some(delay),
            _ => None,
        });
        delays.reduce(|sum, delay| sum + delay)
    }

    /// Whether it is not passed on at all.
    pub(super) fn is_half_open(&self, way: Way) -> bool {
        self.on(way).any(|toxic| matches!(toxic, Toxic::HalfOpen | Toxic::Blackhole))
    }

    pub(super) fn reset(&mut self, way: Way) {
        self.resets.there += u64::from(way.covers(Way::There));
        self.resets.back += u64::from(way.covers(Way::Back));
    }

    /// At which end to reset a connection that has been there since `before`.
    pub(super) fn reset_since(&self, before: Resets) -> Option<Way> {
        let ever = |way| self.on(way).any(|toxic| toxic == Toxic::Reset);
        let there = ever(Way::There) || self.resets.there > before.there;
        let back = ever(Way::Back) || self.resets.back > before.back;
        match (there, back) {
            (true, true) => Some(Way::Both),
            (true, false) => Some(Way::There),
            (false, true) => Some(Way::Back),
            (false, false) => None,
        }
    }

    /// Whether what arrives now is cut.
    pub(super) fn cuts(&self, way: Way, dice: &Dice) -> bool {
        let mut chances = self.on(way).filter_map(|toxic| match toxic {
            Toxic::Cut { per_mille } => Some(per_mille),
            _ => None,
        });
        chances.any(|chance| dice.happens(chance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    fn latency(delay: u64, jitter: u64) -> Toxic {
        Toxic::Latency { delay: ms(delay), jitter: ms(jitter) }
    }

    #[test]
    fn toxics_add_up_on_their_way_until_they_are_removed() {
        let mut weather = Weather::default();
        let dice = Dice::new(1, "there", 0);
        assert_eq!(weather.delay(Way::There, &dice), None);
        let first = weather.add(Way::Both, latency(10, 0));
        weather.add(Way::There, latency(5, 0));
        assert_eq!(weather.delay(Way::There, &dice), Some(ms(15)));
        assert_eq!(weather.delay(Way::Back, &dice), Some(ms(10)));
        assert!(weather.remove(first) && !weather.remove(first));
        assert_eq!(weather.delay(Way::There, &dice), Some(ms(5)));
        assert_eq!(weather.delay(Way::Back, &dice), None);
        weather.clear();
        assert_eq!(weather.delay(Way::There, &dice), None);
    }

    #[test]
    fn the_narrowest_place_counts() {
        let mut weather = Weather::default();
        for bytes_per_second in [5, 3, 9] {
            weather.add(Way::Back, Toxic::Bandwidth { bytes_per_second });
        }
        assert_eq!((weather.bandwidth(Way::Back), weather.bandwidth(Way::There)), (Some(3), None));
        weather.add(Way::There, Toxic::Bandwidth { bytes_per_second: 0 });
        assert_eq!(weather.bandwidth(Way::There), Some(1));
    }

    #[test]
    fn a_hole_keeps_the_end_of_a_connection_too() {
        let mut weather = Weather::default();
        weather.add(Way::There, Toxic::Blackhole);
        weather.add(Way::Back, Toxic::HalfOpen);
        assert!(weather.is_half_open(Way::There) && weather.is_half_open(Way::Back));
        assert!(weather.is_hole(Way::There) && !weather.is_hole(Way::Back));
    }

    #[test]
    fn one_seed_draws_the_same() {
        let draws = |seed| {
            let mut weather = Weather::default();
            let dice = Dice::new(seed, "there", 3);
            weather.add(Way::There, latency(1, 50));
            weather.add(Way::There, Toxic::Cut { per_mille: 500 });
            let draw = |_| (weather.delay(Way::There, &dice), weather.cuts(Way::There, &dice));
            (0..50).map(draw).collect::<Vec<_>>()
        };
        let first = draws(7);
        assert_eq!(first, draws(7));
        assert_ne!(first, draws(8));
        assert!(first.iter().all(|(delay, _)| (ms(1)..=ms(51)).contains(&delay.unwrap())));
        assert!(first.iter().any(|(_, cut)| *cut) && first.iter().any(|(_, cut)| !*cut));
    }
}
