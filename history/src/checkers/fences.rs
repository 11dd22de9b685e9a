//! Fencing tokens work: a holder has a greater one than all holders before it, so that the resource
//! that the lock protects can tell a late write from a current one.
//!
//! - The tokens of one lock, or of one permit, are unique, except for guards of one owner that
//!   re-entered: it asked while a guard with that token was neither given back nor over, or was on
//!   its way from one to the next in another acquire of the same client.
//! - They rise in real time: the token of a guard is greater than that of every guard that had been
//!   handed out before this one was asked for. Those that were asked for meanwhile may have either
//!   order. So may those of readers, and they may be the same: they are above those of the writers
//!   before, and below those of the writers after.
//!
//! This must hold outside of the lock's assumptions too, when clients stand still and clocks jump.
//! Guards without a token are ignored. What the resource does with tokens is
//! [`store`](super::store)'s.

use std::collections::BTreeMap;

use crate::acquires::{Acquire, acquires};
use crate::history::{History, Hold, Lock, Time, Violation};

/// The property's name.
pub const NAME: &str = "fences";

/// Finds every token that was handed out again or fell.
pub fn check(history: &History) -> Vec<Violation> {
    let attempts = Attempts::of(history);
    let mut found = Vec::new();
    for holds in history.holds_by_site().values() {
        let fenced: Vec<_> =
            holds.iter().filter_map(|hold| Some(Fenced { hold, fence: hold.fence? })).collect();
        found.extend(repeated(&fenced, &attempts));
        found.extend(fallen(&fenced, &attempts));
    }
    found
}

/// Of each process and lock, when each acquire began, in that order, and when the last of those up
/// to it ended.
struct Attempts<'a>(BTreeMap<(&'a str, &'a Lock), Vec<(Time, Time)>>);

impl<'a> Attempts<'a> {
    fn of(history: &'a History) -> Self {
        let mut acquires = acquires(history);
        acquires.sort_by_key(|acquire| acquire.began);
        let mut attempts: BTreeMap<_, Vec<(Time, Time)>> = BTreeMap::new();
        for Acquire { process, lock, began, ended, .. } in acquires {
            let its = attempts.entry((process, lock)).or_default();
            let before = its.last().map_or(Time::ZERO, |(_, last)| *last);
            its.push((began, before.max(ended.unwrap_or(Time::MAX))));
        }
        Self(attempts)
    }

    /// When the first acquire began that may have been granted before this guard was asked for, but
    /// had not returned a guard yet: then the guard shares its lease.
    fn on_the_way(&self, hold: &Hold) -> Option<Time> {
        let its = self.0.get(&(&*hold.process, &hold.lock))?;
        let over = its.partition_point(|(_, last)| *last <= hold.asked);
        its.get(over).map(|(began, _)| *began)
    }
}

/// A guard with a token.
#[derive(Clone, Copy)]
struct Fenced<'a> {
    hold: &'a Hold,
    fence: u64,
}

impl Fenced<'_> {
    /// Which owner's lease it is of: to read it has another.
    fn lease(&self) -> (&str, bool) {
        (&self.hold.owner, self.hold.reads())
    }

    /// Until when another guard of its owner shares its lease, and so its token.
    fn shares_until(&self) -> Time {
        self.hold.given_back.map_or(self.hold.deadline, |at| at.min(self.hold.deadline))
    }
}

/// Finds the tokens that were handed out again. The guards are in the order in which they were
/// handed out.
fn repeated(holds: &[Fenced<'_>], attempts: &Attempts<'_>) -> Vec<Violation> {
    let mut last = BTreeMap::<u64, Fenced<'_>>::new();
    let mut found = Vec::new();
    for &next in holds {
        let before = last.get(&next.fence).copied();
        found.extend(
            before.filter(|before| !may_share(next, *before, attempts)).map(|before| again(next, before)),
        );
        if before.is_none_or(|before| before.shares_until() <= next.shares_until()) {
            last.insert(next.fence, next);
        }
    }
    found
}

fn may_share(next: Fenced<'_>, before: Fenced<'_>, attempts: &Attempts<'_>) -> bool {
    (next.hold.reads() && before.hold.reads()) || re_enters(next, before, attempts)
}

fn re_enters(next: Fenced<'_>, before: Fenced<'_>, attempts: &Attempts<'_>) -> bool {
    let over = before.shares_until();
    let is_its_own = next.lease() == before.lease();
    let spans = || attempts.on_the_way(next.hold).is_some_and(|began| began <= over);
    is_its_own && (next.hold.asked <= over || spans())
}

fn again(next: Fenced<'_>, before: Fenced<'_>) -> Violation {
    let Fenced { hold, fence } = next;
    let at = next.hold.granted;
    let what = format!(
        "{hold} was handed token {fence}, which {} had been handed at {:?}",
        before.hold, before.hold.granted
    );
    Violation { property: NAME, what, at }
}

/// Finds the tokens that are less than one from before they were asked for. The guards are in the
/// order in which they were handed out.
fn fallen(holds: &[Fenced<'_>], attempts: &Attempts<'_>) -> Vec<Violation> {
    let readers = Highest::of(holds.iter().filter(|before| before.hold.reads()));
    let writers = Highest::of(holds.iter().filter(|before| !before.hold.reads()));
    let mut first: BTreeMap<_, Time> = BTreeMap::new();
    for Fenced { hold, fence } in holds {
        let asked = first.entry((fence, &hold.owner, hold.reads())).or_insert(hold.asked);
        *asked = hold.asked.min(*asked);
    }
    let mut asked = holds.to_vec();
    asked.sort_by_key(|next| next.hold.asked);
    let found = asked.into_iter().filter_map(|next| {
        let Fenced { hold, fence } = next;
        let read = || {
            // Who enters again has its token for longer, also where the caller of the acquire that
            // brought it has no guard yet.
            let asked = first.get(&(&fence, &hold.owner, false)).copied();
            readers.before(asked.into_iter().chain(attempts.on_the_way(hold)).min()?)
        };
        let read = if hold.reads() { None } else { read() };
        let highest = writers.before(hold.asked).into_iter().chain(read).max_by_key(|before| before.fence)?;
        (fence < highest.fence).then(|| fell(next, highest))
    });
    found.collect()
}

/// Of guards, the one with the highest token so far, in the order in which they were handed out.
struct Highest<'a>(Vec<(Time, Fenced<'a>)>);

impl<'a> Highest<'a> {
    fn of<'b>(holds: impl Iterator<Item = &'b Fenced<'a>>) -> Self
    where
        'a: 'b,
    {
        let mut highest: Vec<(Time, Fenced<'a>)> = Vec::new();
        for next in holds {
            if highest.last().is_none_or(|(_, before)| next.fence > before.fence) {
                highest.push((next.hold.granted, *next));
            }
        }
        Self(highest)
    }

    /// The highest that had been handed out before this.
    fn before(&self, at: Time) -> Option<Fenced<'a>> {
        let before = self.0.partition_point(|(granted, _)| *granted < at);
        self.0[..before].last().map(|(_, highest)| *highest)
    }
}

fn fell(next: Fenced<'_>, highest: Fenced<'_>) -> Violation {
    let Fenced { hold, fence } = next;
    let before = highest.hold;
    let what = format!(
        "{hold} asked at {:?} and was handed token {fence}, {} less than {before} had been handed at {:?}",
        hold.asked,
        highest.fence - fence,
        before.granted
    );
    Violation { property: NAME, what, at: hold.granted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquires::Ending;
    use crate::made_up::{attempt, fenced, given_back, history, hold, ms, over, permit, shared, words};

    fn found(holds: impl IntoIterator<Item = Hold>) -> Vec<Violation> {
        check(&history(holds))
    }

    #[test]
    fn tokens_that_rise_are_well() {
        let unfenced = hold("x", 150, 200);
        assert_eq!(found([fenced(1, hold("a", 10, 100)), unfenced, fenced(9, hold("b", 200, 300))]), []);
    }

    #[test]
    fn a_token_that_falls_is_found() {
        let found = found([fenced(9, hold("a", 10, 100)), fenced(7, hold("b", 200, 300))]);
        let what = "client 0 (b on lock l) asked at 199ms and was handed token 7, 2 less than client 0 (a on lock l) had \
                    been handed at 10ms";
        assert_eq!(words(&found), [what]);
        assert_eq!(found[0].at, ms(200));
    }

    #[test]
    fn it_is_held_against_the_highest_before() {
        let holds =
            [fenced(9, hold("a", 10, 20)), fenced(5, hold("b", 30, 40)), fenced(8, hold("c", 50, 60))];
        assert_eq!(found(holds).len(), 2);
    }

    #[test]
    fn those_that_asked_meanwhile_may_have_either_order() {
        let asked = |asked, hold| Hold { asked: ms(asked), ..hold };
        let first = || fenced(9, hold("a", 100, 150));
        assert_eq!(found([first(), asked(100, fenced(7, hold("b", 200, 300)))]), []);
        assert_eq!(found([first(), asked(101, fenced(7, hold("b", 200, 300)))]).len(), 1);
        let overtaken =
            [asked(300, fenced(10, hold("c", 350, 380))), asked(100, fenced(5, hold("d", 400, 500)))];
        assert_eq!(found([first()].into_iter().chain(overtaken)), []);
        let latecomers = [asked(0, fenced(1, hold("c", 400, 500))), asked(0, fenced(2, hold("d", 300, 350)))];
        assert_eq!(found(latecomers.into_iter().chain([first()])), []);
    }

    #[test]
    fn a_token_of_two_owners_is_found() {
        let found = found([fenced(9, hold("a", 10, 100)), fenced(9, hold("b", 50, 300))]);
        let what =
            "client 0 (b on lock l) was handed token 9, which client 0 (a on lock l) had been handed at 10ms";
        assert_eq!(words(&found), [what]);
    }

    #[test]
    fn guards_of_an_owner_that_re_enters_may_share_a_token() {
        let nested = [fenced(9, hold("a", 10, 100)), fenced(9, given_back("a", 50, 300, 90))];
        assert_eq!(found(nested.clone()), []);
        assert_eq!(
            found(nested.into_iter().chain([fenced(9, hold("a", 101, 300))])),
            [],
            "asked at the deadline"
        );
        let one_by_one = [10, 50, 90].map(|at| fenced(9, given_back("a", at, 300, at + 40)));
        assert_eq!(found(one_by_one), [], "asked while the one before was there");
    }

    #[test]
    fn a_guard_on_its_way_keeps_the_token() {
        let holds = [fenced(9, given_back("a", 10, 300, 50)), fenced(9, hold("a", 60, 300))];
        assert_eq!(found(holds.clone()).len(), 1);
        let found = |acquires: &[(u64, u64)]| {
            let acquire = |(began, ended): &(u64, u64)| attempt(*began, Some(*ended), Ending::Granted);
            let calls = acquires.iter().map(acquire).collect();
            check(&History { calls, ..history(holds.clone()) }).len()
        };
        assert_eq!([found(&[(20, 70)]), found(&[(55, 70)]), found(&[(20, 55)])], [0, 1, 1]);
        assert_eq!([found(&[(1, 5), (20, 70)]), found(&[(20, 70), (30, 40)])], [0, 0], "beside others");
        assert_eq!(found(&[(20, 55), (52, 70)]), 1, "one too early, and one too late");
    }

    #[test]
    fn an_owner_that_comes_back_needs_another_token() {
        assert_eq!(found([fenced(9, hold("a", 10, 100)), fenced(9, hold("a", 102, 300))]).len(), 1, "over");
        let given_back = given_back("a", 10, 300, 50);
        assert_eq!(found([fenced(9, given_back), fenced(9, hold("a", 52, 300))]).len(), 1, "given back");
    }

    #[test]
    fn an_owner_that_re_enters_gets_no_lower_token() {
        assert_eq!(found([fenced(9, hold("a", 10, 100)), fenced(8, hold("a", 50, 100))]).len(), 1);
    }

    #[test]
    fn each_lock_has_its_own_tokens() {
        let elsewhere = over(&["m"], hold("b", 200, 300));
        assert_eq!(found([fenced(9, hold("a", 10, 100)), fenced(9, elsewhere.clone())]), []);
        assert_eq!(found([fenced(9, hold("a", 10, 100)), fenced(7, elsewhere)]), []);
    }

    #[test]
    fn each_permit_has_its_own_tokens() {
        let next = |number| permit(number, fenced(7, hold("b", 200, 300)));
        let first = || permit(0, fenced(9, hold("a", 10, 100)));
        assert_eq!(found([first(), next(1)]), []);
        assert_eq!(found([first(), next(0)]).len(), 1);
    }

    #[test]
    fn the_token_of_a_lock_over_several_names_is_above_the_last_of_each() {
        let both = |fence| over(&["l", "m"], fenced(fence, hold("b", 200, 300)));
        let before = || [fenced(5, hold("a", 10, 100)), over(&["m"], fenced(9, hold("c", 10, 100)))];
        assert_eq!(found(before().into_iter().chain([both(10)])), []);
        assert_eq!(found(before().into_iter().chain([both(7)])).len(), 1);
        assert_eq!(found([both(10), fenced(9, hold("a", 400, 500))]).len(), 1);
    }

    #[test]
    fn the_tokens_of_readers_are_between_those_of_writers_and_in_any_order() {
        let reads = |owner, fence, from| shared(fenced(fence, given_back(owner, from, 900, from + 10)));
        let writes = |owner, fence, from| fenced(fence, given_back(owner, from, 900, from + 10));
        let readers = || [writes("a", 5, 10), reads("b", 9, 50), reads("c", 7, 100)];
        assert_eq!(found(readers()), []);
        assert_eq!(found(readers().into_iter().chain([writes("d", 10, 200)])), []);
        let below = found(readers().into_iter().chain([writes("d", 8, 200)]));
        let what = "client 0 (d on lock l) asked at 199ms and was handed token 8, 1 less than client 0 (b on lock l, to read) \
                    had been handed at 50ms";
        assert_eq!(words(&below), [what]);
        assert_eq!(found(readers().into_iter().chain([reads("d", 4, 200)])).len(), 1, "below a writer's");
        assert_eq!(found(readers().into_iter().chain([reads("d", 9, 200)])), [], "as another reader has");
        assert_eq!(found(readers().into_iter().chain([reads("d", 5, 200)])).len(), 1, "as the writer had");
        assert_eq!(found(readers().into_iter().chain([writes("d", 9, 200)])).len(), 1, "as a reader had");
    }

    #[test]
    fn a_writer_that_enters_again_has_a_token_from_before_it_read() {
        let reads = |fence| shared(fenced(fence, hold("a", 50, 900)));
        let again = |fence| fenced(fence, hold("a", 100, 900));
        let writes = || fenced(5, hold("a", 10, 900));
        assert_eq!(found([writes(), reads(6), again(5)]), []);
        assert_eq!(found([writes(), reads(5)]).len(), 1, "it reads with another");
        assert_eq!(found([writes(), reads(4)]).len(), 1, "a lower one");
        assert_eq!(found([reads(6), again(5)]).len(), 1, "it is the first time");
    }

    #[test]
    fn so_has_one_that_enters_what_an_acquire_brought_that_has_not_handed_it_out() {
        let holds = || [shared(fenced(6, hold("a", 50, 900))), fenced(5, hold("a", 100, 900))];
        let found = |began, ended| {
            let calls = vec![attempt(began, Some(ended), Ending::Failed)];
            check(&History { calls, ..history(holds()) }).len()
        };
        assert_eq!(found(10, 300), 0);
        assert_eq!(found(10, 90), 1, "it ended before");
        assert_eq!(found(60, 300), 1, "it began after the one that reads");
    }
}
