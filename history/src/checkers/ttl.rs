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
//! Each of these is reported once, when it is first found so.
//!
//! On real servers the keys are seen that lock something, and how long each lives on: no longer
//! than the longest TTL that was asked for. And when nobody holds or asks for anything any more,
//! everything is free after that time, a hundredth of it for a master's slow clock, 2 ms as above,
//! and what a short lease adds for clocks that step (docs/PROTOCOL.md, section 1). The observer
//! says which keys lock something, by which it records: records and queues do not, nor does what a
//! master remembers of a name that nobody holds. That has to expire all the same.

use std::collections::BTreeSet;

use crate::history::{Call, FoundEntry, History, Key, Name, Time, Violation};

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

/// How far a clock can step without being noticed. What a lease does not give away of it, a tenth
/// of its TTL at most, it is kept for longer.
const UNSEEN: Time = Time::from_millis(500);

/// For how long something is locked at most by who asked for this TTL.
pub fn longest(ttl: Time) -> Time {
    let kept = ttl + UNSEEN.saturating_sub(ttl / 10);
    kept + kept / 100 + SLACK
}

/// Finds every entry that counts after its end, every key that has outlived its TTL, and every name
/// that is kept for nothing.
pub fn check(history: &History) -> Vec<Violation> {
    entries(history).into_iter().chain(names(history)).chain(keys(history)).collect()
}

/// Of entries on simulated masters.
fn entries(history: &History) -> Vec<Violation> {
    let counting =
        history.entries.iter().map(|entry| (entry, if entry.is_entry { AHEAD + SLACK } else { SLACK }));
    let refusals = history.refusals.iter().map(|entry| (entry, AHEAD + OLDEST + SLACK));
    let mut entries: Vec<_> = counting.chain(refusals).collect();
    entries.sort_by_key(|(entry, _)| entry.found);
    let mut reported = BTreeSet::new();
    let found = entries.into_iter().filter_map(|(entry, slack)| Some((entry, outlived(entry, slack)?)));
    let first = found.filter(|(entry, _)| {
        reported.insert((entry.master, entry.site(), entry.is_entry, entry.shared, &entry.owner))
    });
    let violation = |(entry, how): (&FoundEntry, String)| {
        let FoundEntry { master, written, found, .. } = entry;
        let what = format!("{entry}, written to master {master} at {written:?}, {how}");
        Violation { property: NAME, what, at: *found }
    };
    first.map(violation).collect()
}

/// Of names on simulated masters.
fn names(history: &History) -> Vec<Violation> {
    let mut reported = BTreeSet::new();
    let found = history.names.iter().filter_map(|name| Some((name, remembered(name, history.remembered)?)));
    let first = found.filter(|(name, _)| reported.insert((name.master, &name.name)));
    let violation = |(name, how): (&Name, String)| {
        let what = format!("lock {} {how} on master {}", name.name, name.master);
        Violation { property: NAME, what, at: name.found }
    };
    first.map(violation).collect()
}

/// Of keys on real servers.
fn keys(history: &History) -> Vec<Violation> {
    let ttls = history.calls.iter().filter_map(|made| match made.call {
        Call::Acquire { ttl, .. } | Call::Extend { ttl, .. } => Some(ttl),
        Call::Release { .. } | Call::Write { .. } => None,
    });
    let most = longest(ttls.max().unwrap_or_default());
    let over = history.quiet.map(|quiet| quiet + most);
    let violation = |key: &Key| {
        let what = format!("the key {} on master {} {}", key.key, key.master, wrong(key, most, over)?);
        Some(Violation { property: NAME, what, at: key.seen })
    };
    history.keys.iter().filter_map(violation).collect()
}

/// How a key violates it.
fn wrong(key: &Key, most: Time, over: Option<Time>) -> Option<String> {
    match key.ttl {
        None => Some("never expires".to_owned()),
        Some(ttl) if ttl > most => Some(format!("lives {:?} longer than any that was asked for", ttl - most)),
        Some(_) => {
            let late = key.seen.checked_sub(over?).filter(|late| !late.is_zero())?;
            Some(format!("was to be gone {late:?} before, drift included"))
        }
    }
}

/// How an entry violates it.
fn outlived(entry: &FoundEntry, slack: Time) -> Option<String> {
    let Some(ttl) = entry.ttl else { return Some("never expires".to_owned()) };
    let over = entry.found.checked_sub(entry.written + ttl + ttl / 100 + slack)?;
    let how = if entry.is_entry { "counts" } else { "is there" };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquires::Ending::Pending;
    use crate::made_up::{attempt, entry, history, ms, words};

    fn found(entries: impl IntoIterator<Item = FoundEntry>) -> Vec<Violation> {
        check(&History { entries: entries.into_iter().collect(), ..history([]) })
    }

    #[test]
    fn a_key_may_live_for_its_ttl_and_the_drift() {
        assert_eq!(found([entry("a", 1_000, 1_000), entry("a", 1_000, 11_102)]), []);
    }

    #[test]
    fn a_key_that_lives_longer_is_found() {
        let found = found([entry("a", 1_000, 11_103)]);
        let what = "the key of a on lock l, written to master 0 at 1s, with a TTL of 10s is there 1ms after its end, \
                    drift included";
        assert_eq!(words(&found), [what]);
        assert_eq!(found[0].at, ms(11_103));
    }

    #[test]
    fn a_key_that_never_expires_is_found_at_once() {
        let found = found([FoundEntry { ttl: None, ..entry("a", 1_000, 1_001) }]);
        assert_eq!(words(&found), ["the key of a on lock l, written to master 0 at 1s, never expires"]);
    }

    #[test]
    fn an_entry_may_count_for_as_long_as_the_clocks_may_be_apart_besides() {
        let permit = |found| FoundEntry { permit: Some(2), is_entry: true, ..entry("a", 1_000, found) };
        assert_eq!(found([permit(11_602)]), []);
        let found = found([permit(11_603)]);
        let what = "the entry of a on lock l:2, written to master 0 at 1s, with a TTL of 10s counts 1ms after its end, \
                    drift included";
        assert_eq!(words(&found), [what]);
    }

    #[test]
    fn an_entry_keeps_nobody_out_when_it_is_over_by_all_clocks() {
        let refused = |found| FoundEntry { is_entry: true, ..entry("a", 1_000, found) };
        let found = |at| check(&History { refusals: vec![refused(at)], ..history([]) });
        assert_eq!(found(13_602), []);
        assert_eq!(found(13_603).len(), 1);
    }

    #[test]
    fn one_that_reads_is_not_kept_by_another_that_goes_on() {
        let reads =
            |owner, written| FoundEntry { is_entry: true, shared: true, ..entry(owner, written, 20_000) };
        let found = found([reads("a", 1_000), reads("b", 19_000)]);
        let what = "the entry of a on lock l, to read, written to master 0 at 1s, with a TTL of 10s counts 8.398s after \
                    its end, drift included";
        assert_eq!(words(&found), [what]);
    }

    #[test]
    fn a_key_is_told_once_when_it_is_first_found() {
        let elsewhere = FoundEntry { master: 1, ..entry("a", 0, 30_000) };
        let found = found([entry("a", 0, 20_000), elsewhere, entry("a", 0, 15_000), entry("b", 0, 40_000)]);
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

    /// What is found of a key on a real server, where the longest TTL was 10 s, and nobody asked
    /// any more from 5 s on.
    fn seen(ttl: Option<u64>, seen: u64) -> Vec<Violation> {
        let calls = vec![attempt(0, None, Pending)];
        let keys = vec![Key { master: 3, key: "quorate:{l}".to_owned(), ttl: ttl.map(ms), seen: ms(seen) }];
        check(&History { calls, keys, quiet: Some(ms(5_000)), ..history([]) })
    }

    #[test]
    fn a_key_may_live_for_the_longest_ttl_and_the_drift() {
        assert_eq!(seen(Some(10_102), 15_102), []);
    }

    #[test]
    fn a_key_that_is_there_when_everything_should_be_gone_is_found() {
        let found = seen(Some(1), 15_103);
        assert_eq!(
            words(&found),
            ["the key quorate:{l} on master 3 was to be gone 1ms before, drift included"]
        );
        assert_eq!(found[0].at, ms(15_103));
    }

    #[test]
    fn a_key_that_never_expires_or_lives_too_long_is_found_at_any_time() {
        assert_eq!(words(&seen(None, 1)), ["the key quorate:{l} on master 3 never expires"]);
        let what = "the key quorate:{l} on master 3 lives 1ms longer than any that was asked for";
        assert_eq!(words(&seen(Some(10_103), 1)), [what]);
    }

    #[test]
    fn while_somebody_asks_keys_come_and_go() {
        let key = Key { master: 0, key: "k".to_owned(), ttl: Some(ms(1)), seen: ms(90_000) };
        assert_eq!(check(&History { keys: vec![key], ..history([]) }), []);
    }
}
