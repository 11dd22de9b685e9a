//! Nothing is locked for longer than its TTL, or for ever: what a client that died has left ends by
//! itself.
//!
//! What locks something has an end, which is no further away than the longest TTL that was asked
//! for. And when nobody holds or asks for anything any more, everything is free after that time, a
//! hundredth of it for a master's slow clock, 2 ms because Redis counts in whole milliseconds and
//! expires a key up to one late, and what a short lease adds for clocks that step
//! (docs/PROTOCOL.md, section 1). The observer says which keys lock something, by which it records:
//! records and queues do not, nor does what a master remembers of a name that nobody holds. That
//! has to expire all the same.

use std::time::Duration;

use quorate_simulator::history::Violation;

use super::words::{long, time};
use crate::history::{Call, History, Key, Micros, micros};

/// The property's name.
pub const NAME: &str = "ttl";

/// What a TTL may be longer than it says, beside a hundredth.
const SLACK: Duration = Duration::from_millis(2);

/// How far a clock can step without being noticed. What a lease does not give away of it, a tenth
/// of its TTL at most, it is kept for longer.
const UNSEEN: Duration = Duration::from_millis(500);

/// For how long something is locked at most by who asked for this TTL.
pub(crate) fn longest(ttl: Duration) -> Duration {
    let kept = ttl + UNSEEN.saturating_sub(ttl / 10);
    kept + kept / 100 + SLACK
}

/// Finds every key that has outlived its TTL, or has none, each time that it was seen so.
pub fn check(history: &History) -> Vec<Violation> {
    let ttls = history.calls.iter().filter_map(|made| match made.call {
        Call::Acquire { ttl, .. } | Call::Extend { ttl, .. } => Some(ttl),
        Call::Release { .. } | Call::Write { .. } => None,
    });
    let most = micros(longest(Duration::from_micros(ttls.max().unwrap_or_default())));
    let over = history.quiet.map(|quiet| quiet + most);
    history.keys.iter().filter_map(|key| Some(violation(key, &wrong(key, most, over)?))).collect()
}

fn wrong(key: &Key, most: Micros, over: Option<Micros>) -> Option<String> {
    match key.ttl {
        None => Some("never expires".to_owned()),
        Some(ttl) if ttl > most => {
            Some(format!("lives {} longer than any that was asked for", long(ttl - most)))
        }
        Some(_) => {
            let late = key.seen.checked_sub(over?).filter(|late| *late > 0)?;
            Some(format!("was to be gone {} before, drift included", long(late)))
        }
    }
}

fn violation(key: &Key, wrong: &str) -> Violation {
    let what = format!("the key {} on master {} {wrong}", key.key, key.master);
    Violation { property: NAME, what, at: time(key.seen) }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{end, exclusive, words};
    use super::*;
    use crate::history::{Made, Outcome};

    /// What is found of a key, where the longest TTL was 10 s, and nobody asked any more from 5 s
    /// on.
    fn found(ttl: Option<u64>, seen: u64) -> Vec<Violation> {
        let call = Call::Acquire { lock: exclusive("l"), ttl: 10_000_000, wait: 0 };
        let process = "p".to_owned();
        let outcome = Outcome::Unknown { why: String::new() };
        let made = Made { process, number: 0, call, invoked: 0, returned: None, outcome };
        let key = Key {
            master: 3,
            key: "quorate:{l}".to_owned(),
            ttl: ttl.map(|ttl| ttl * 1_000),
            seen: seen * 1_000,
        };
        check(&History { calls: vec![made], keys: vec![key], quiet: Some(5_000_000), ..end(100_000) })
    }

    #[test]
    fn a_key_may_live_for_the_longest_ttl_and_the_drift() {
        assert_eq!(found(Some(10_102), 15_102), []);
    }

    #[test]
    fn a_key_that_is_there_when_everything_should_be_gone_is_found() {
        let found = found(Some(1), 15_103);
        assert_eq!(
            words(&found),
            ["the key quorate:{l} on master 3 was to be gone 1.0 ms before, drift included"]
        );
        assert_eq!(found[0].at, time(15_103_000));
    }

    #[test]
    fn a_key_that_never_expires_or_lives_too_long_is_found_at_any_time() {
        assert_eq!(words(&found(None, 1)), ["the key quorate:{l} on master 3 never expires"]);
        let what = "the key quorate:{l} on master 3 lives 1.0 ms longer than any that was asked for";
        assert_eq!(words(&found(Some(10_103), 1)), [what]);
    }

    #[test]
    fn while_somebody_asks_keys_come_and_go() {
        let key = Key { master: 0, key: "k".to_owned(), ttl: Some(1), seen: 90_000_000 };
        assert_eq!(check(&History { keys: vec![key], ..end(100_000) }), []);
    }
}
