//! The randomness seam: the only place that draws random numbers.

use std::fmt;

/// Where client identities and jitter come from.
pub trait Random: fmt::Debug + Send + Sync + 'static {
    /// Sixty-four random bits.
    fn next_u64(&self) -> u64;

    /// Sixty-four random bits that no copy of this process draws as well. A machine that is forked,
    /// or restored from a snapshot twice, has the same generators in both copies. So these come
    /// from the operating system each time, and only a simulator replaces them.
    fn fresh_u64(&self) -> u64 {
        use rand::TryRng;
        rand::rngs::SysRng.try_next_u64().unwrap_or_else(|_| self.next_u64())
    }
}

/// A cryptographically secure generator, seeded by the operating system: two clients never draw the
/// same identity.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    #[allow(clippy::disallowed_methods, reason = "this is the seam")]
    fn next_u64(&self) -> u64 {
        use rand::Rng;
        rand::rng().next_u64()
    }
}
