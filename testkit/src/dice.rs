//! Dice: randomness that a seed decides.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;

/// Dice for one purpose. Those of two purposes, or of two seeds, have nothing to do with each
/// other.
#[derive(Debug)]
pub struct Dice(Mutex<Rng>);

impl Dice {
    /// The dice of a seed, for one purpose, of which there may be several.
    pub fn new(seed: u64, purpose: &str, number: u64) -> Self {
        // FNV-1a over everything: whatever differs, the dice do.
        let bytes = seed.to_le_bytes().into_iter().chain(purpose.bytes()).chain(number.to_le_bytes());
        let mixed = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Self(Mutex::new(Rng::with_seed(mixed)))
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Any number.
    pub fn number(&self) -> u64 {
        self.draw(|rng| rng.u64(..))
    }

    /// A number below `end`.
    pub fn below(&self, end: usize) -> usize {
        self.draw(|rng| rng.usize(..end))
    }

    /// Whether something happens that has this chance, in a thousandth.
    pub fn happens(&self, per_mille: u64) -> bool {
        self.draw(|rng| rng.u64(..1000)) < per_mille
    }

    /// A time between two, to the microsecond.
    pub fn time(&self, from: Duration, to: Duration) -> Duration {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.draw(|rng| rng.u64(micros(from)..=micros(to).max(micros(from)))))
    }

    /// The same in milliseconds.
    pub fn millis(&self, from: u64, to: u64) -> Duration {
        self.time(Duration::from_millis(from), Duration::from_millis(to))
    }

    /// A number between two.
    pub fn between(&self, from: i64, to: i64) -> i64 {
        self.draw(|rng| rng.i64(from..=to))
    }

    /// One of these.
    pub fn one_of<'a, T>(&self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_are_those_of_their_seed_purpose_and_number() {
        let draw = |seed, purpose, number| Dice::new(seed, purpose, number).number();
        assert_eq!(draw(1, "a", 1), draw(1, "a", 1));
        let others = [draw(1, "a", 1), draw(2, "a", 1), draw(1, "b", 1), draw(1, "a", 2)];
        assert!((0..4).all(|i| (0..i).all(|j| others[i] != others[j])), "{others:?}");
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let dice = Dice::new(1, "bounds", 0);
        let from = Duration::from_millis(2);
        let to = Duration::from_millis(3);
        for _ in 0..1_000 {
            assert!((from..=to).contains(&dice.time(from, to)) && dice.below(3) < 3);
            assert!((-2..=2).contains(&dice.between(-2, 2)) && [5, 6].contains(dice.one_of(&[5, 6])));
        }
        assert_eq!(dice.time(to, from), to);
        assert!(!dice.happens(0) && dice.happens(1_000));
    }
}
