//! In the calm, no key stays on a master without a purpose: a release, a waiter that gives up and
//! an operation dropped half-way are cleaned up, and not left to the TTL.
//!
//! A key may be there while its owner has the lock, which is until the last of the guards that it
//! got by then was released, reported lost or over; and for [`UNDER_WAY`] after that, and after the
//! key was written, for what is being acquired and released. Nothing is looked at before
//! [`SETTLING`] after the beginning of the calm. There are two excuses: its client was killed, or
//! stood still until [`UNDER_WAY`] ago; and what wrote it was executed late, which no client can
//! know of. Then it is left to its TTL, which [`ttl`](super::ttl) looks after.
//!
//! Nor does anybody stand in a lock's queue once nobody waits, with the same excuses. A queue lives
//! much longer than a TTL, so this is about places from the storm as well.
//!
//! A key is an entry that counts here, or a key that is another library's, too.
//!
//! Each key is reported once, when it is first found so. The client is the one that the key names,
//! or else the one that got a guard of the same owner.

use std::collections::{BTreeMap, BTreeSet};

use super::stillness::Stillness;
use crate::history::{FoundEntry, History, Hold, Place, Site, Time, Violation};

/// The property's name.
pub const NAME: &str = "left_behind";

/// How long the calm must have lasted. A clean-up that found its master out of reach is repeated
/// after a second at most (`RETRY` in `engine/clean_up.rs`) and answered within a time-out, 250 ms;
/// the rest is for connections and subscriptions to come back.
pub const SETTLING: Time = Time::from_secs(2);

/// How long an acquire, or a release, may be under way on a master that answers: two time-outs,
/// because an acquire may have to wait for the votes before it is taken back.
pub const UNDER_WAY: Time = Time::from_millis(500);

/// Finds every key that should have been cleaned up.
pub fn check(history: &History) -> Vec<Violation> {
    let Some(settled) = history.calm.map(|calm| calm + SETTLING) else { return Vec::new() };
    let owners = Owners::of(history);
    let still = Stillness::of(history);
    let mut keys: Vec<_> = history.entries.iter().filter(|key| key.found > settled && !key.late).collect();
    keys.sort_by_key(|key| key.found);
    let mut reported = BTreeSet::new();
    let found = keys.into_iter().filter_map(|key| {
        let process = key.process.as_deref().or_else(|| owners.process(key));
        let goes_on = process.and_then(|process| still.last(process, key.found)).map(|span| span.to);
        let wanted = [Some(key.since), owners.wanted(key), goes_on].into_iter().flatten().max()?;
        let is_left = key.found > wanted.saturating_add(UNDER_WAY);
        let is_new =
            is_left && reported.insert((key.master, key.site(), key.is_entry, key.shared, &key.owner));
        is_new.then(|| violation(key, process, wanted))
    });
    let places = history.places.iter().filter(|place| !place.late);
    let places = places
        .filter(|place| still.last(&place.process, place.found).is_none_or(|span| span.to < place.found));
    found.chain(places.map(place_violation)).collect()
}

fn place_violation(place: &Place) -> Violation {
    let Place { master, lock, ticket, process, found, .. } = place;
    let what = format!(
        "{ticket}, of {process}, still stood in the queue of lock {lock} on master {master}, where nobody waits"
    );
    Violation { property: NAME, what, at: *found }
}

fn violation(key: &FoundEntry, process: Option<&str>, wanted: Time) -> Violation {
    let FoundEntry { master, found, .. } = key;
    let whose = process.unwrap_or("an unknown client");
    let long = *found - wanted;
    let what = format!("{key}, of {whose}, still lay on master {master} {long:?} after it was last wanted");
    Violation { property: NAME, what, at: *found }
}

/// What the owners of locks were handed.
struct Owners<'a>(BTreeMap<(Site<'a>, bool, &'a str), Vec<Wanted<'a>>>);

/// From a guard's grant on: until when it, or one before it, wants the key.
struct Wanted<'a> {
    hold: &'a Hold,
    until: Time,
}

impl<'a> Owners<'a> {
    fn of(history: &'a History) -> Self {
        let mut holds: Vec<_> = history.holds.iter().collect();
        holds.sort_by_key(|hold| hold.granted);
        let mut owners: BTreeMap<_, Vec<Wanted<'_>>> = BTreeMap::new();
        for hold in holds {
            for site in hold.sites() {
                let wishes = owners.entry((site, hold.reads(), &*hold.owner)).or_default();
                let before = wishes.last().map_or(Time::ZERO, |wish| wish.until);
                wishes.push(Wanted { hold, until: before.max(hold.window_end()) });
            }
        }
        Self(owners)
    }

    /// Until when a key was wanted, as far as was known when it was found.
    fn wanted(&self, key: &'a FoundEntry) -> Option<Time> {
        let wishes = self.wishes(key);
        let made = wishes.partition_point(|wish| wish.hold.granted <= key.found);
        wishes[..made].last().map(|wish| wish.until)
    }

    fn process(&self, key: &'a FoundEntry) -> Option<&'a str> {
        self.wishes(key).first().map(|wish| &*wish.hold.process)
    }

    fn wishes(&self, key: &'a FoundEntry) -> &[Wanted<'a>] {
        self.0.get(&(key.site(), key.shared, &*key.owner)).map_or(&[], |wishes| wishes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Pause;
    use crate::made_up::{
        client, entry, given_back, history, hold, kill, lost, ms, over, pause, permit, words,
    };

    fn found(holds: &[Hold], pauses: &[Pause], keys: &[FoundEntry]) -> Vec<Violation> {
        let pauses = pauses.to_vec();
        let entries = keys.to_vec();
        check(&History { pauses, entries, ..history(holds.to_vec()) })
    }

    #[test]
    fn a_place_where_nobody_waits_is_found_unless_its_client_was_killed_or_the_call_was_late() {
        let place = |number, late| {
            let lock = "l".to_owned();
            let ticket = format!("c{number}:7");
            Place { master: 2, lock, ticket, process: client(number), late, found: ms(20_000) }
        };
        let places = vec![place(1, false), place(0, false), place(1, true)];
        let found = check(&History { places, pauses: vec![kill(5_000)], ..history([]) });
        let what = "c1:7, of client 1, still stood in the queue of lock l on master 2, where nobody waits";
        assert_eq!(words(&found), [what]);
    }

    #[test]
    fn the_key_of_a_hold_may_lie_there_and_a_moment_longer() {
        for ended in
            [hold("a", 4_000, 9_000), given_back("a", 4_000, 20_000, 9_000), lost("a", 4_000, 20_000, 9_000)]
        {
            let still_there = [entry("a", 4_000, 8_000), entry("a", 8_500, 9_500)];
            assert_eq!(found(std::slice::from_ref(&ended), &[], &still_there), []);
            assert_eq!(found(&[ended], &[], &[entry("a", 4_000, 9_501)]).len(), 1);
        }
    }

    #[test]
    fn the_key_of_an_acquire_may_lie_there_for_a_moment() {
        assert_eq!(found(&[], &[], &[entry("a", 4_000, 4_500)]), []);
        let what = "the key of a on lock l, of an unknown client, still lay on master 0 501ms after it was last wanted";
        assert_eq!(words(&found(&[], &[], &[entry("a", 4_000, 4_501)])), [what]);
    }

    #[test]
    fn a_key_that_is_renewed_for_ever_is_found() {
        let renewed = FoundEntry { since: ms(4_000), ..entry("a", 9_990, 10_000) };
        let found = found(&[given_back("a", 4_000, 20_000, 5_000)], &[], &[renewed]);
        let what = "the key of a on lock l, of client 0, still lay on master 0 5s after it was last wanted";
        assert_eq!(words(&found), [what]);
    }

    #[test]
    fn one_guard_that_is_left_wants_the_key() {
        let holds = [hold("a", 4_000, 30_000), given_back("a", 5_000, 30_000, 6_000)];
        assert_eq!(found(&holds, &[], &[entry("a", 4_000, 20_000)]), []);
    }

    #[test]
    fn a_guard_of_another_owner_or_lock_or_of_later_does_not_want_it() {
        let elsewhere = over(&["m", "n"], hold("a", 4_000, 30_000));
        let permit = permit(0, hold("a", 4_000, 30_000));
        for other in [hold("b", 4_000, 30_000), elsewhere, permit, hold("a", 20_001, 30_000)] {
            assert_eq!(found(&[other], &[], &[entry("a", 4_000, 20_000)]).len(), 1);
        }
    }

    #[test]
    fn a_lock_over_several_names_wants_the_key_of_each() {
        let both = || over(&["l", "m"], given_back("a", 4_000, 30_000, 8_000));
        let keys =
            |found| ["l", "m", "n"].map(|name| FoundEntry { name: name.into(), ..entry("a", 4_000, found) });
        assert_eq!(found(&[both()], &[], &keys(8_500)[..2]), []);
        assert_eq!(found(&[both()], &[], &keys(8_501)[..2]).len(), 2, "each by itself");
        assert_eq!(found(&[both()], &[], &keys(5_000)[2..]).len(), 1, "it is not about that name");
    }

    #[test]
    fn a_permit_wants_its_key_and_its_entry() {
        let its = || permit(2, given_back("a", 4_000, 30_000, 8_000));
        let left = |found| {
            let key = FoundEntry { permit: Some(2), ..entry("a", 4_000, found) };
            [FoundEntry { is_entry: true, ..key.clone() }, key]
        };
        assert_eq!(found(&[its()], &[], &left(8_500)), []);
        let found = found(&[its()], &[], &left(9_000));
        assert_eq!(found.len(), 2);
        let what =
            "the entry of a on lock l:2, of client 0, still lay on master 0 1s after it was last wanted";
        assert_eq!(words(&found)[0], what);
    }

    #[test]
    fn what_an_owner_reads_and_what_it_writes_are_two_things() {
        let writes = || given_back("a", 4_000, 30_000, 8_000);
        let of = |shared, found| FoundEntry { is_entry: true, shared, ..entry("a", 4_000, found) };
        let both = |at| [of(false, at), of(true, at)];
        let reads = || crate::made_up::shared(given_back("a", 5_000, 30_000, 9_000));
        assert_eq!(found(&[writes(), reads()], &[], &both(8_500)), []);
        let what =
            "the entry of a on lock l, of client 0, still lay on master 0 501ms after it was last wanted";
        assert_eq!(words(&found(&[writes(), reads()], &[], &both(8_501))), [what]);
        assert_eq!(found(&[writes(), reads()], &[], &both(9_501)).len(), 2);
        let what = "the entry of a on lock l, to read, of client 0, still lay on master 0 1s after it was last wanted";
        assert_eq!(words(&found(&[reads()], &[], &[of(true, 10_000)])), [what]);
    }

    #[test]
    fn nothing_is_looked_at_before_it_has_settled() {
        assert_eq!(found(&[], &[], &[entry("a", 0, 3_000)]), []);
        assert_eq!(found(&[], &[], &[entry("a", 0, 3_001)]).len(), 1);
        let restless = History { calm: None, entries: vec![entry("a", 0, 90_000)], ..history([]) };
        assert_eq!(check(&restless), []);
    }

    #[test]
    fn what_was_executed_late_is_excused() {
        assert_eq!(found(&[], &[], &[FoundEntry { late: true, ..entry("a", 4_000, 9_000) }]), []);
    }

    #[test]
    fn whoever_was_killed_or_stood_still_is_excused() {
        let known = || FoundEntry { process: Some(client(0)), ..entry("a", 4_000, 9_000) };
        let given_back = || given_back("a", 4_000, 9_000, 5_000);
        for excuse in [kill(4_500), pause(4_500, 10_000), pause(4_500, 8_500)].map(|excuse| [excuse]) {
            assert_eq!(found(&[], &excuse, &[known()]), []);
            assert_eq!(found(&[given_back()], &excuse, &[entry("a", 4_000, 9_000)]), [], "known by its hold");
        }
        for excuse in [kill(9_001), pause(4_500, 8_499), Pause { process: client(1), ..kill(4_500) }] {
            assert_eq!(found(&[], &[excuse], &[known()]).len(), 1);
        }
        assert_eq!(
            found(&[], &[kill(4_500)], &[entry("a", 4_000, 9_000)]).len(),
            1,
            "nobody knows whose it is"
        );
    }

    #[test]
    fn a_key_is_told_once() {
        let elsewhere = FoundEntry { master: 1, ..entry("a", 4_000, 9_000) };
        let found = found(&[], &[], &[entry("a", 4_000, 9_000), entry("a", 4_000, 8_000), elsewhere]);
        assert_eq!(found.iter().map(|found| found.at).collect::<Vec<_>>(), [ms(8_000), ms(9_000)]);
    }
}
