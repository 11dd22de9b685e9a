//! Random numbers that a seed decides (SplitMix64).

/// A generator.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Whether it happens, with this chance in a thousandth.
    pub(crate) fn happens(&mut self, in_a_thousand: u64) -> bool {
        self.below(1000) < in_a_thousand
    }

    /// One of these.
    pub(crate) fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        let place = self.below(all.len().try_into().unwrap());
        all[usize::try_from(place).unwrap()].clone()
    }
}
