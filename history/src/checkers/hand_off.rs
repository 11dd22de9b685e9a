//! In the calm, a lock is not left free while somebody waits for it: its release wakes the next
//! waiter.
//!
//! A lock is free while it is in nobody's window (as [`windows`](super::windows) has it), a
//! semaphore while not all of its permits are, and what is asked for over several names while all
//! of them are. It may be free for [`HAND_OFF`] at a time, as long as an acquire waits that began
//! before it was free and is ready to wait.
//!
//! A waiting reader is blocked only by a writer, or by a waiting writer that may be older: one that
//! came before it, or [`UNCERTAIN`] later at most. When that writer goes away, it counts as a
//! release.
//!
//! When that time begins depends on what freed it:
//! - It was given back by somebody who had it, when the calm had lasted for [`SETTLING`] and a
//!   [longest TTL](History::longest_ttl), so that nothing from before was in the way any more: at
//!   that moment.
//! - Anything else (its lease ran out, or was lost; its holder was killed, or gave it back before;
//!   nobody ever had it): one longest TTL later. Nobody is called then, a master may have been
//!   written to later than the rest, and those in the queue look when the TTLs are over, and a
//!   quarter later for each dead one that is ahead of them.
//!
//! So a calm must last for two longest TTLs and [`SETTLING`] before a lock counts that nobody gives
//! back.
//!
//! An acquire of a client that was killed, or that stood still in the calm, does not count.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::left_behind::SETTLING;
use super::stillness::Stillness;
use crate::acquires::{Acquire, acquires};
use crate::grouped::grouped;
use crate::history::{History, Hold, Lock, Share, Time, Violation};

/// The property's name.
pub const NAME: &str = "hand_off";

/// How long a lock may be free though it is wanted: two time-outs of 250 ms, for a master that has
/// stopped answering and for the round of the woken waiter. Polling, at 100 ms, is quicker; only a
/// lost wake-up takes longer.
pub const HAND_OFF: Time = Time::from_millis(500);

/// How far clients' clocks may be apart, by which waiters are in order, without a master noticing;
/// and masters' clocks.
pub const UNCERTAIN: Time = Time::from_secs(1);

/// Finds every time for which a lock was free too long.
pub fn check(history: &History) -> Vec<Violation> {
    let Some(calm) = history.calm else { return Vec::new() };
    let quiet = calm + SETTLING + history.longest_ttl;
    let still = Stillness::of(history);
    let all = acquires(history);
    let mut found = Vec::new();
    for (lock, waiters) in waiters(&all, &still, calm, history.end) {
        let room = if let Share::Permits(permits) = lock.share { permits as usize } else { 1 };
        let season = Season { quiet, ttl: history.longest_ttl, room };
        let free = season.free(&lock.names, &in_the_way(history, lock), history.end);
        if lock.share != Share::Shared {
            found.extend(idle(&free, &waiters));
            continue;
        }
        let is_writer =
            |acquire: &&Acquire<'_>| acquire.lock.share != Share::Shared && acquire.lock.names == lock.names;
        let writers: Vec<_> = all.iter().filter(is_writer).collect();
        for reader in waiters {
            found.extend(idle(&season.without(&free, &writers, reader, &still), &[reader]));
        }
    }
    found
}

/// The holds of any of these names, by when they began; but not those that were handed out too
/// late, nor those that leave others to read.
fn in_the_way<'a>(history: &'a History, lock: &Lock) -> Vec<&'a Hold> {
    let holds = history.holds.iter();
    let holds = holds.filter(|hold| hold.lock.names.iter().any(|name| lock.names.contains(name)));
    let holds = holds.filter(|hold| !(lock.share == Share::Shared && hold.reads()));
    let mut holds: Vec<_> = holds.filter(|hold| hold.granted < hold.window_end()).collect();
    holds.sort_by_key(|hold| hold.granted);
    holds
}

/// The acquires that count, by what they ask for and by when they began.
fn waiters<'a>(
    acquires: &'a [Acquire<'a>],
    still: &Stillness<'_>,
    calm: Time,
    end: Time,
) -> BTreeMap<&'a Lock, Vec<&'a Acquire<'a>>> {
    let count =
        |acquire: &&Acquire<'_>| !acquire.wait.is_zero() && !still.touches(acquire.process, calm, end);
    let waiters = acquires.iter().filter(count).map(|acquire| (acquire.lock, acquire));
    grouped(waiters, |acquire| acquire.began)
}

/// A time for which a lock was free, without what is allowed beforehand.
#[derive(Clone, Copy)]
struct Free {
    from: Time,
    to: Time,
}

/// The calm.
struct Season {
    /// Since when nothing from before it is in the way.
    quiet: Time,
    ttl: Time,
    /// How many may have a lock at a time.
    room: usize,
}

impl Season {
    /// When a lock is free that was held like this. The holds are in the order of their beginnings.
    fn free(&self, names: &[String], holds: &[&Hold], end: Time) -> Vec<Free> {
        let mut inside = Vec::new();
        let mut from = self.quiet + self.ttl;
        let mut free = Vec::new();
        for hold in holds {
            self.leave(names, &mut inside, hold.granted, &mut from);
            inside.push(*hold);
            if inside.len() == self.room {
                free.push(Free { from, to: hold.granted });
            }
        }
        self.leave(names, &mut inside, Time::MAX, &mut from);
        free.push(Free { from, to: end });
        // Readers leave one by one: the lock is free when the last of them counts as gone.
        for free in &mut free {
            let gone = holds.iter().filter(|hold| hold.reads() && hold.window_end() <= free.from);
            free.from = gone.map(|hold| self.freed_by(hold)).fold(free.from, Time::max);
        }
        free.retain(|free| free.from < free.to);
        free
    }

    /// Takes out those whose windows end by `now`, and notes since when there is room for others. A
    /// hold of some of the names says nothing of the others, which may be free later.
    fn leave(&self, names: &[String], inside: &mut Vec<&Hold>, now: Time, from: &mut Time) {
        inside.sort_by_key(|hold| hold.window_end());
        let over = inside.partition_point(|hold| hold.window_end() <= now);
        let mut left = inside.len();
        for hold in inside.drain(..over) {
            match left.cmp(&self.room) {
                Ordering::Greater => {}
                Ordering::Equal if names.iter().all(|name| hold.lock.names.contains(name)) => {
                    *from = self.freed_by(hold);
                }
                Ordering::Equal => *from = self.freed_by(hold).max(*from),
                Ordering::Less => *from = self.freed_by(hold).min(*from),
            }
            left -= 1;
        }
    }

    /// What is left of these times for one that waits to read, without those for which it may have
    /// waited behind a writer.
    fn without(
        &self,
        free: &[Free],
        writers: &[&Acquire<'_>],
        reader: &Acquire<'_>,
        still: &Stillness<'_>,
    ) -> Vec<Free> {
        let mut left = free.to_vec();
        for writer in writers.iter().filter(|writer| writer.began <= reader.began + UNCERTAIN) {
            let from = writer.began;
            let to = self.gone(writer, still);
            let parts = left.into_iter().flat_map(|Free { from: begin, to: end }| {
                let before = Free { from: begin, to: end.min(from) };
                let after = Free { from: begin.max(to), to: end };
                [before, after]
            });
            left = parts.filter(|free| free.from < free.to).collect();
        }
        left
    }

    /// From when on nobody waits behind this writer any more.
    fn gone(&self, writer: &Acquire<'_>, still: &Stillness<'_>) -> Time {
        match writer.ended {
            Some(end) => self.passed_on(end, true),
            None => {
                let died = still.last(writer.process, Time::MAX).filter(|span| span.to == Time::MAX);
                died.map_or(Time::MAX, |died| self.passed_on(died.from, false))
            }
        }
    }

    /// From when on somebody else should have it.
    fn freed_by(&self, hold: &Hold) -> Time {
        let end = hold.window_end();
        self.passed_on(end, hold.given_back == Some(end))
    }

    /// The same for what ended at `end`, with a wake-up for the next waiter or without.
    fn passed_on(&self, end: Time, is_told: bool) -> Time {
        if is_told && end >= self.quiet { end } else { end.max(self.quiet).saturating_add(self.ttl) }
    }
}

/// Finds where somebody waited too long. Both are in the order of their beginnings.
fn idle(free: &[Free], waiters: &[&Acquire<'_>]) -> Vec<Violation> {
    let mut waiters = waiters.iter().copied().peekable();
    let mut last = None;
    let mut found = Vec::new();
    for free in free {
        while let Some(waiter) = waiters.next_if(|waiter| waiter.began < free.from) {
            if last.is_none_or(|last| gone(waiter) > gone(last)) {
                last = Some(waiter);
            }
        }
        found.extend(last.and_then(|waiter| violation(*free, waiter)));
    }
    found
}

/// When an acquire did not wait any more.
fn gone(waiter: &Acquire<'_>) -> Time {
    waiter.ended.unwrap_or(Time::MAX)
}

fn violation(free: Free, waiter: &Acquire<'_>) -> Option<Violation> {
    let Free { from, to } = free;
    let Acquire { lock, process, began, .. } = waiter;
    let how = if lock.share == Share::Shared { " to read" } else { "" };
    let idle = to.min(gone(waiter)).saturating_sub(from);
    let what = format!(
        "{lock} was left free for {idle:?} from {from:?} on, while {process} waited for it{how} since {began:?}"
    );
    (idle > HAND_OFF).then_some(Violation { property: NAME, what, at: from + HAND_OFF })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquires::Ending::{Cancelled, Granted, Pending};
    use crate::history::{Made, Pause};
    use crate::made_up::{
        asking, attempt, by, client, exclusive, given_back, history, hold, kill, lost, ms, over, patient_for,
        pause, permits, several, shared, words,
    };

    // It is calm from 1 s, quiet from 13 s, and what is not a hand-off counts from 23 s at the
    // earliest.

    fn found(holds: &[Hold], calls: &[Made], pauses: &[Pause]) -> Vec<Violation> {
        let calls = calls.to_vec();
        let pauses = pauses.to_vec();
        check(&History { calls, pauses, ..history(holds.to_vec()) })
    }

    /// The lock is freed like this while somebody waits, and the waiter has it at that moment.
    fn taken(freed: Hold, at: u64) -> usize {
        let waiter = attempt(5_000, Some(at), Granted);
        found(&[freed, given_back("b", at, 99_999, 99_000)], &[waiter], &[]).len()
    }

    fn handed() -> Hold {
        given_back("a", 4_000, 40_000, 30_000)
    }

    #[test]
    fn a_lock_that_is_given_back_is_taken_within_the_bound() {
        assert_eq!(taken(handed(), 30_500), 0);
        assert_eq!(taken(handed(), 30_501), 1);
    }

    #[test]
    fn it_says_who_waited_when_and_for_how_long() {
        let found = found(&[handed()], &[attempt(5_000, Some(30_700), Cancelled)], &[]);
        let what = "lock l was left free for 700ms from 30s on, while client 0 waited for it since 5s";
        assert_eq!(words(&found), [what]);
        assert_eq!(found[0].at, ms(30_500));
    }

    #[test]
    fn one_that_ran_out_or_was_lost_may_take_a_ttl_more() {
        for freed in [hold("a", 4_000, 30_000), lost("a", 4_000, 35_000, 30_000)] {
            assert_eq!(taken(freed.clone(), 40_500), 0);
            assert_eq!(taken(freed, 40_501), 1);
        }
    }

    #[test]
    fn so_may_one_that_was_given_back_before_it_was_quiet_or_never_held() {
        let early = given_back("a", 4_000, 40_000, 12_999);
        assert_eq!((taken(early.clone(), 23_500), taken(early, 23_501)), (0, 1));
        let quiet = given_back("a", 4_000, 40_000, 13_000);
        assert_eq!((taken(quiet.clone(), 13_500), taken(quiet, 13_501)), (0, 1));
        let waiter = |ended| attempt(500, Some(ended), Cancelled);
        assert_eq!(found(&[], &[waiter(23_500)], &[]), []);
        assert_eq!(found(&[], &[waiter(23_501)], &[]).len(), 1, "it waited in vain since before the calm");
    }

    #[test]
    fn a_lock_may_be_free_when_nobody_waits() {
        assert_eq!(found(&[handed()], &[], &[]), []);
        assert_eq!(found(&[handed()], &[attempt(5_000, Some(30_500), Cancelled)], &[]), [], "went away");
        assert_eq!(found(&[handed()], &[attempt(30_000, None, Pending)], &[]), [], "came later");
        let elsewhere = asking(&exclusive("m"), attempt(29_999, Some(30_501), Cancelled));
        assert_eq!(found(&[handed()], &[elsewhere], &[]), [], "for another lock");
        assert_eq!(found(&[handed()], &[attempt(29_999, None, Pending)], &[]).len(), 1, "waits to the end");
    }

    #[test]
    fn whoever_waits_longest_tells() {
        let waiters = [attempt(5_000, None, Pending), attempt(6_000, Some(30_100), Cancelled)];
        assert_eq!(found(&[handed()], &waiters, &[]).len(), 1);
    }

    #[test]
    fn a_lock_that_its_owner_has_re_entered_is_not_free() {
        let outer = given_back("a", 4_000, 90_000, 80_000);
        let inner = given_back("a", 5_000, 90_000, 30_000);
        let waiter = || attempt(6_000, Some(80_400), Granted);
        assert_eq!(found(&[outer.clone(), inner.clone()], &[waiter()], &[]), []);
        assert_eq!(found(&[inner, outer], &[waiter()], &[]), []);
    }

    #[test]
    fn a_guard_that_was_handed_out_too_late_held_nothing() {
        let waiter = attempt(5_000, Some(31_000), Granted);
        assert_eq!(found(&[handed(), hold("b", 30_300, 30_300)], &[waiter], &[]).len(), 1);
    }

    /// The same with semaphores of two permits.
    fn found_of_two(holds: &[Hold], waiter: Made) -> usize {
        found(holds, &[asking(&permits(2), waiter)], &[]).len()
    }

    #[test]
    fn a_semaphore_is_free_while_one_permit_is() {
        let waits = |until| attempt(6_000, Some(until), Cancelled);
        let kept = || given_back("b", 5_000, 90_000, 80_000);
        assert_eq!((found_of_two(&[handed(), kept()], waits(30_500))), 0);
        assert_eq!((found_of_two(&[handed(), kept()], waits(30_501))), 1, "one is kept, and one is free");
        let next = given_back("c", 30_400, 90_000, 70_000);
        assert_eq!(found_of_two(&[handed(), kept(), next.clone()], waits(70_500)), 0, "somebody took it");
        assert_eq!(found_of_two(&[handed(), kept(), next], waits(70_501)), 1);
        let early = given_back("d", 4_000, 40_000, 12_000);
        assert_eq!(found_of_two(&[early.clone(), kept()], waits(22_000)), 0, "given back in the storm");
        assert_eq!(found_of_two(&[early, handed(), kept()], waits(30_501)), 1, "and the other one later");
    }

    #[test]
    fn several_names_are_free_while_all_of_them_are() {
        let elsewhere = |until| over(&["m", "n"], given_back("b", 5_000, 90_000, until));
        let waits = |until| asking(&several(&["l", "m"]), attempt(6_000, Some(until), Cancelled));
        assert_eq!(found(&[handed(), elsewhere(35_000)], &[waits(35_500)], &[]), []);
        let found = found(&[handed(), elsewhere(35_000)], &[waits(35_501)], &[]);
        let what = "lock l+m was left free for 501ms from 35s on, while client 0 waited for it since 6s";
        assert_eq!(words(&found), [what]);
    }

    fn to_read(waiter: Made) -> Made {
        asking(&shared(handed()).lock, waiter)
    }

    #[test]
    fn a_lock_that_is_read_is_free_for_those_who_read() {
        let reads = || shared(given_back("b", 5_000, 99_000, 90_000));
        let waits = |until| to_read(attempt(6_000, Some(until), Cancelled));
        assert_eq!(found(&[handed(), reads()], &[waits(30_500)], &[]), []);
        assert_eq!(found(&[handed(), reads()], &[waits(30_501)], &[]).len(), 1);
        assert_eq!(found(&[reads()], &[waits(23_501)], &[]).len(), 1, "nobody ever wrote");
        let writes = attempt(6_000, Some(90_500), Cancelled);
        assert_eq!(found(&[handed(), reads()], &[writes], &[]), [], "who wants to write waits for all");
    }

    #[test]
    fn whoever_waits_to_write_gets_it_when_the_last_reader_is_gone() {
        let reads = |owner, until| shared(given_back(owner, 5_000, 90_000, until));
        let waits = |until| attempt(6_000, Some(until), Cancelled);
        let both = || [reads("a", 35_000), reads("b", 30_000)];
        assert_eq!(found(&both(), &[waits(35_500)], &[]), []);
        assert_eq!(found(&both(), &[waits(35_501)], &[]).len(), 1);
        let dead = || [shared(hold("a", 5_000, 29_000)), reads("b", 30_000)];
        assert_eq!(found(&dead(), &[waits(39_500)], &[]), [], "a TTL after the other one was over");
        assert_eq!(found(&dead(), &[waits(39_501)], &[]).len(), 1);
    }

    #[test]
    fn who_gives_back_one_name_frees_no_other() {
        let holds =
            [over(&["m"], hold("a", 4_000, 30_000)), over(&["l"], given_back("b", 31_000, 90_000, 32_000))];
        let waits = |until| asking(&several(&["l", "m"]), attempt(5_000, Some(until), Cancelled));
        assert_eq!(found(&holds, &[waits(40_500)], &[]), [], "a TTL after the first was over");
        assert_eq!(found(&holds, &[waits(40_501)], &[]).len(), 1);
    }

    #[test]
    fn whoever_waits_to_read_may_wait_behind_a_writer_that_is_not_younger() {
        let reads = || shared(given_back("b", 5_000, 99_900, 99_600));
        let reader = |until| to_read(attempt(26_000, Some(until), Cancelled));
        let writer = |began, until| by(1, attempt(began, Some(until), Cancelled));
        for began in [25_000, 27_000] {
            let found = |until| found(&[reads()], &[writer(began, 40_000), reader(until)], &[]);
            assert_eq!((found(40_500).len(), found(40_501).len()), (0, 1), "it goes away");
        }
        let waits = by(1, attempt(25_000, None, Pending));
        assert_eq!(found(&[reads()], &[waits.clone(), reader(80_000)], &[]), []);
        let dies = Pause { process: client(1), ..kill(40_000) };
        let pauses = &[dies];
        let found = |until| found(&[reads()], &[waits.clone(), reader(until)], pauses).len();
        assert_eq!((found(50_500), found(50_501)), (0, 1), "it dies, and is found out");
    }

    #[test]
    fn a_younger_writer_is_in_no_readers_way() {
        let reader = to_read(attempt(26_000, Some(40_501), Cancelled));
        let writer = |began| by(1, attempt(began, None, Pending));
        let holds = [given_back("a", 4_000, 99_000, 40_000), shared(given_back("b", 40_000, 99_900, 99_600))];
        let found = |began| found(&holds, &[writer(began), reader.clone()], &[]);
        assert_eq!(found(27_000), []);
        let what =
            "lock l was left free for 501ms from 40s on, while client 0 waited for it to read since 26s";
        assert_eq!(words(&found(27_001)), [what]);
    }

    #[test]
    fn each_time_counts_by_itself() {
        let holds =
            [handed(), given_back("b", 30_400, 50_000, 31_000), given_back("c", 31_501, 50_000, 40_000)];
        let found = found(&holds, &[attempt(5_000, Some(40_500), Cancelled)], &[]);
        assert_eq!(found.iter().map(|found| found.at).collect::<Vec<_>>(), [ms(31_500)]);
    }

    #[test]
    fn whoever_does_not_wait_does_not_count() {
        let pending = || attempt(5_000, None, Pending);
        assert_eq!(found(&[handed()], &[patient_for(0, pending())], &[]), []);
        assert_eq!(found(&[handed()], &[pending()], &[kill(500)]), []);
        assert_eq!(found(&[handed()], &[pending()], &[pause(500, 1_001)]), []);
        assert_eq!(found(&[handed()], &[pending()], &[pause(500, 1_000)]).len(), 1, "before the calm");
        assert_eq!(found(&[handed()], &[pending()], &[Pause { process: client(1), ..kill(500) }]).len(), 1);
    }

    #[test]
    fn nothing_is_looked_at_where_it_never_was_calm() {
        let calls = vec![attempt(5_000, None, Pending)];
        assert_eq!(check(&History { calls, calm: None, ..history([handed()]) }), []);
    }
}
