//! No entry counts after its end: a dead client's entry blocks nobody when its TTL is over.
//!
//! The age of an entry that counts on its master is at most the time that it was to be kept, a
//! hundredth of that for a slow clock, and `AHEAD`, because its end is counted from the later of
//! two clocks. It blocks callers for at most `OLDEST` longer, because a caller may trust an earlier
//! time. The same goes for the key of another library, which ends by itself, 2 ms late at most,
//! because Redis counts in whole milliseconds and expires a key up to one late. A key without a TTL
//! is never removed, and always a violation.
//!
//! A master forgets every name without entries, over or not, after the time for which it is
//! [remembered](crate::history::History::remembered). That is checked by the TTL of its key,
//! because a run is shorter.
//!
//! Each is reported once, when it is first found so.

use std::collections::BTreeSet;

use crate::history::{History, Key, Name, Time, Violation};

/// The property's name.
pub const NAME: &str = "ttl";

/// What a TTL may be longer than it says, beside a hundredth.
const SLACK: Time = Time::from_millis(2);

/// How far the time that a client trusts may be ahead of a master's: `NEWEST` in `call.lua`.
const AHEAD: Time = Time::from_millis(500);

/// How long ago the time may be that a client trusts which is refused: `OLDEST` in `call.lua`.
const OLDEST: Time = Time::from_secs(2);

/// How long a name with an entry is kept, which is longer than any run: `KEPT_HELD` in `call.lua`,
/// minus the run itself.
const HELD: Time = Time::from_secs(29 * 24 * 3_600);

/// Finds every entry that counts after its end, every key that has outlived its TTL, and every name
/// that is kept for nothing.
pub fn check(history: &History) -> Vec<Violation> {
    let keys = history.keys.iter().map(|key| (key, if key.is_entry { AHEAD + SLACK } else { SLACK }));
    let refusals = history.refusals.iter().map(|key| (key, AHEAD + OLDEST + SLACK));
    let mut keys: Vec<_> = keys.chain(refusals).collect();
    keys.sort_by_key(|(key, _)| key.found);
    let mut reported = BTreeSet::new();
    let found = keys.into_iter().filter_map(|(key, slack)| Some((key, outlived(key, slack)?)));
    let first = found
        .filter(|(key, _)| reported.insert((key.master, key.site(), key.is_entry, key.shared, &key.owner)));
    let keys = first.map(|(key, how)| violation(key, &how));
    let mut reported = BTreeSet::new();
    let names = history.names.iter().filter_map(|name| Some((name, remembered(name, history.remembered)?)));
    let names = names.filter(|(name, _)| reported.insert((name.master, &name.name)));
    keys.chain(names.map(|(name, how)| name_violation(name, &how))).collect()
}

/// How a key violates it.
fn outlived(key: &Key, slack: Time) -> Option<String> {
    let Some(ttl) = key.ttl else { return Some("never expires".to_owned()) };
    let over = key.found.checked_sub(key.written + ttl + ttl / 100 + slack)?;
    let how = if key.is_entry { "counts" } else { "is there" };
    (!over.is_zero()).then(|| format!("with a TTL of {ttl:?} {how} {over:?} after its end, drift included"))
}

/// How a name violates it.
fn remembered(name: &Name, at_most: Time) -> Option<String> {
    let Some(left) = name.left else { return Some("is never forgotten".to_owned()) };
    if name.is_held {
        return (left < HELD).then(|| format!("goes away in {left:?} though somebody has it"));
    }
    (left > at_most).then(|| format!("is remembered for {left:?} though nobody has it, and not {at_most:?}"))
}

fn violation(key: &Key, how: &str) -> Violation {
    let Key { master, written, .. } = key;
    let what = format!("{key}, written to master {master} at {written:?}, {how}");
    Violation { property: NAME, what, at: key.found }
}

fn name_violation(name: &Name, how: &str) -> Violation {
    let what = format!("lock {} {how} on master {}", name.name, name.master);
    Violation { property: NAME, what, at: name.found }
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
        let what = "the key of a on lock l, written to master 0 at 1s, with a TTL of 10s is there 1ms after its end, \
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
    fn an_entry_may_count_for_as_long_as_the_clocks_may_be_apart_besides() {
        let entry = |found| Key { permit: Some(2), is_entry: true, ..key("a", 1_000, found) };
        assert_eq!(found([entry(11_602)]), []);
        let found = found([entry(11_603)]);
        let what = "the entry of a on lock l:2, written to master 0 at 1s, with a TTL of 10s counts 1ms after its end, \
                    drift included";
        assert_eq!(words(&found), [what]);
    }

    #[test]
    fn an_entry_keeps_nobody_out_when_it_is_over_by_all_clocks() {
        let refused = |found| Key { is_entry: true, ..key("a", 1_000, found) };
        let found = |at| check(&History { refusals: vec![refused(at)], ..history([]) });
        assert_eq!(found(13_602), []);
        assert_eq!(found(13_603).len(), 1);
    }

    #[test]
    fn one_that_reads_is_not_kept_by_another_that_goes_on() {
        let entry = |owner, written| Key { is_entry: true, shared: true, ..key(owner, written, 20_000) };
        let found = found([entry("a", 1_000), entry("b", 19_000)]);
        let what = "the entry of a on lock l, to read, written to master 0 at 1s, with a TTL of 10s counts 8.398s after \
                    its end, drift included";
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

    #[test]
    fn a_name_that_nobody_has_is_forgotten() {
        let found = |is_held, left: Option<u64>| {
            let name = Name { master: 2, name: "l".into(), is_held, left: left.map(ms), found: ms(9_000) };
            let found = check(&History { names: vec![name; 2], remembered: ms(70_000), ..history([]) });
            found.into_iter().map(|found| found.what).collect::<Vec<_>>()
        };
        assert!(found(false, Some(70_000)).is_empty() && found(true, Some(29 * 24 * 3_600_000)).is_empty());
        let what = "lock l is remembered for 70.001s though nobody has it, and not 70s on master 2";
        assert_eq!(found(false, Some(70_001)), [what]);
        assert_eq!(found(true, Some(69_000)), ["lock l goes away in 69s though somebody has it on master 2"]);
        assert_eq!(found(true, None), ["lock l is never forgotten on master 2"]);
    }
}
