//! No key outlives its TTL: what a client that died has left is gone by itself.
//!
//! A key that is found must have been written no longer ago than its TTL, a hundredth of it for a master's slow clock,
//! and 2 ms because Redis counts in whole milliseconds and expires a key up to one late. A key without a TTL is one
//! that nobody ever removes, and a violation wherever it is found.
//!
//! The same goes for the entry of a permit in its semaphore's key, which would keep others from asking for it, and for that of
//! each that reads or writes in the lock's, which keeps others away for as long as it counts.
//!
//! Each key is told once, when it is first found so.

use std::collections::BTreeSet;

use crate::history::{History, Key, Time, Violation};

/// The property's name.
pub const NAME: &str = "ttl";

/// What a TTL may be longer than it says, beside a hundredth.
const SLACK: Time = Time::from_millis(2);

/// Finds every key that has outlived its TTL, or has none.
pub fn check(history: &History) -> Vec<Violation> {
    let mut keys: Vec<_> = history.keys.iter().collect();
    keys.sort_by_key(|key| key.found);
    let mut told = BTreeSet::new();
    let found = keys.into_iter().filter_map(|key| Some((key, outlived(key)?)));
    let first =
        found.filter(|(key, _)| told.insert((key.master, key.site(), key.is_entry, key.shared, &key.owner)));
    first.map(|(key, how)| violation(key, &how)).collect()
}

/// How a key violates it.
fn outlived(key: &Key) -> Option<String> {
    let Some(ttl) = key.ttl else { return Some("never expires".to_owned()) };
    let over = key.found.checked_sub(key.written + ttl + ttl / 100 + SLACK)?;
    (!over.is_zero()).then(|| format!("with a TTL of {ttl:?} was to be gone {over:?} before, drift included"))
}

fn violation(key: &Key, how: &str) -> Violation {
    let Key { master, written, .. } = key;
    let what = format!("{key}, written to master {master} at {written:?}, {how}");
    Violation { property: NAME, what, at: key.found }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{history, key, ms, words};
    use super::*;

    fn found(keys: impl IntoIterator<Item = Key>) -> Vec<Violation> {
        check(&History { keys: keys.into_iter().collect(), ..history([]) })
    }

    #[test]
    fn a_key_may_live_for_its_ttl_and_the_drift() {
        assert_eq!(found([key("a", 1_000, 1_000), key("a", 1_000, 11_102)]), []);
    }

    #[test]
    fn a_key_that_lives_longer_is_found() {
        let found = found([key("a", 1_000, 11_103)]);
        let what = "the key of a on lock l, written to master 0 at 1s, with a TTL of 10s was to be gone 1ms before, \
                    drift included";
        assert_eq!(words(&found), [what]);
        assert_eq!(found[0].at, ms(11_103));
    }

    #[test]
    fn a_key_that_never_expires_is_found_at_once() {
        let found = found([Key { ttl: None, ..key("a", 1_000, 1_001) }]);
        assert_eq!(words(&found), ["the key of a on lock l, written to master 0 at 1s, never expires"]);
    }

    #[test]
    fn an_entry_may_live_no_longer() {
        let entry = |found| Key { permit: Some(2), is_entry: true, ..key("a", 1_000, found) };
        assert_eq!(found([entry(11_102)]), []);
        let found = found([entry(11_103)]);
        assert!(
            words(&found)[0].starts_with("the entry of a on lock l:2, written to master 0 at 1s, with a TTL")
        );
    }

    #[test]
    fn one_that_reads_is_not_kept_by_another_that_goes_on() {
        let entry = |owner, written| Key { is_entry: true, shared: true, ..key(owner, written, 20_000) };
        let found = found([entry("a", 1_000), entry("b", 19_000)]);
        let what = "the entry of a on lock l, to read, written to master 0 at 1s, with a TTL of 10s was to be gone 8.898s \
                    before, drift included";
        assert_eq!(words(&found), [what]);
    }

    #[test]
    fn a_key_is_told_once_when_it_is_first_found() {
        let elsewhere = Key { master: 1, ..key("a", 0, 30_000) };
        let found = found([key("a", 0, 20_000), elsewhere, key("a", 0, 15_000), key("b", 0, 40_000)]);
        assert_eq!(
            found.iter().map(|found| found.at).collect::<Vec<_>>(),
            [ms(15_000), ms(30_000), ms(40_000)]
        );
    }
}
