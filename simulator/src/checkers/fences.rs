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
//! - The resource accepted no write with a token below one that it had accepted before.
//!
//! This must hold outside of the lock's assumptions too, when clients stand still and clocks jump.
//! Guards without a token are ignored.

use std::collections::BTreeMap;

use super::grouped::{grouped, holds_by_site};
use crate::history::{Attempt, History, Hold, Time, Violation, Write};

/// The property's name.
pub const NAME: &str = "fences";

/// Finds every token that was handed out again or fell, and every write with an old one that was
/// accepted.
pub fn check(history: &History) -> Vec<Violation> {
    let locks = holds_by_site(history);
    let writes = grouped(history.writes.iter().map(|write| (&write.lock, write)), |write| write.at);
    let mut found: Vec<_> = writes.values().flat_map(|writes| old_writes(writes)).collect();
    for holds in locks.values() {
        let fenced: Vec<_> =
            holds.iter().filter_map(|hold| Some(Fenced { hold, fence: hold.fence? })).collect();
        found.extend(repeated(&fenced, &history.attempts));
        found.extend(fallen(&fenced, &history.attempts));
    }
    found
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
        (&self.hold.owner, self.hold.shared)
    }

    /// Until when another guard of its owner shares its lease, and so its token.
    fn shares_until(&self) -> Time {
        self.hold.given_back.map_or(self.hold.deadline, |at| at.min(self.hold.deadline))
    }
}

/// Finds the tokens that were handed out again. The guards are in the order in which they were
/// handed out.
fn repeated(holds: &[Fenced<'_>], attempts: &[Attempt]) -> Vec<Violation> {
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

fn may_share(next: Fenced<'_>, before: Fenced<'_>, attempts: &[Attempt]) -> bool {
    (next.hold.shared && before.hold.shared) || re_enters(next, before, attempts)
}

fn re_enters(next: Fenced<'_>, before: Fenced<'_>, attempts: &[Attempt]) -> bool {
    let over = before.shares_until();
    let is_its_own = next.lease() == before.lease();
    let spans = |attempt: &Attempt| attempt.began <= over && is_on_its_way(attempt, next.hold);
    is_its_own && (next.hold.asked <= over || attempts.iter().any(spans))
}

/// Whether an acquire of the same client may have been granted before this guard was asked for, but
/// not returned a guard yet: then the new acquire shares its lease.
fn is_on_its_way(attempt: &Attempt, hold: &Hold) -> bool {
    (&attempt.names, attempt.shared, attempt.client) == (&hold.names, hold.shared, hold.client)
        && attempt.ended.is_none_or(|ended| ended > hold.asked)
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
fn fallen(holds: &[Fenced<'_>], attempts: &[Attempt]) -> Vec<Violation> {
    let (readers, writers): (Vec<&Fenced<'_>>, Vec<_>) = holds.iter().partition(|before| before.hold.shared);
    let mut earlier = writers.into_iter().peekable();
    let mut asked = holds.to_vec();
    let mut highest = None;
    let mut found = Vec::new();
    asked.sort_by_key(|next| next.hold.asked);
    for next in asked {
        while let Some(before) = earlier.next_if(|before| before.hold.granted < next.hold.asked) {
            if highest.is_none_or(|highest: &Fenced<'_>| before.fence > highest.fence) {
                highest = Some(before);
            }
        }
        let read = if next.hold.shared { None } else { highest_before(&readers, next, holds, attempts) };
        let highest = [highest, read].into_iter().flatten().max_by_key(|before| before.fence);
        found.extend(highest.filter(|highest| next.fence < highest.fence).map(|highest| fell(next, highest)));
    }
    found
}

/// The highest token of these readers, from before a writer's was asked for: who enters again has
/// one for longer, also where the caller of the acquire that brought it has no guard yet.
fn highest_before<'a, 'b>(
    readers: &[&'b Fenced<'a>],
    writer: Fenced<'a>,
    holds: &[Fenced<'a>],
    attempts: &[Attempt],
) -> Option<&'b Fenced<'a>> {
    if readers.is_empty() {
        return None;
    }
    let its = holds.iter().filter(|hold| hold.fence == writer.fence && hold.lease() == writer.lease());
    let on_their_way = attempts.iter().filter(|attempt| is_on_its_way(attempt, writer.hold));
    let asked = its.map(|hold| hold.hold.asked).chain(on_their_way.map(|attempt| attempt.began)).min()?;
    readers.iter().copied().filter(|before| before.hold.granted < asked).max_by_key(|before| before.fence)
}

fn fell(next: Fenced<'_>, highest: &Fenced<'_>) -> Violation {
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

/// Finds the writes that the resource should have refused.
fn old_writes(writes: &[&Write]) -> Vec<Violation> {
    let mut highest = None;
    let mut found = Vec::new();
    for write in writes.iter().filter(|write| write.accepted) {
        match highest {
            Some(before) if before > write.fence => found.push(old_write(write, before)),
            _ => highest = Some(write.fence),
        }
    }
    found
}

fn old_write(write: &Write, highest: u64) -> Violation {
    let Write { at, fence, .. } = *write;
    let less = highest - fence;
    let what = format!(
        "the resource accepted a write with token {fence}, {less} less than one that it accepted before"
    );
    Violation { property: NAME, what, at }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{attempt, given_back, history, hold, ms, over, permit, shared, words};
    use super::*;
    use crate::history::AttemptOutcome;

    fn fenced(fence: u64, hold: Hold) -> Hold {
        Hold { fence: Some(fence), ..hold }
    }

    fn found(holds: impl IntoIterator<Item = Hold>) -> Vec<Violation> {
        check(&history(holds))
    }

    fn write(at: u64, fence: u64, accepted: bool) -> Write {
        Write { lock: "l".into(), at: ms(at), fence, accepted }
    }

    fn writes(writes: &[Write]) -> Vec<Violation> {
        check(&History { writes: writes.to_vec(), ..history([]) })
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
        let found = |began, ended| {
            let attempts = vec![attempt(began, Some(ended), AttemptOutcome::Granted)];
            check(&History { attempts, ..history(holds.clone()) }).len()
        };
        assert_eq!((found(20, 70), found(55, 70), found(20, 55)), (0, 1, 1));
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
            let attempts = vec![attempt(began, Some(ended), AttemptOutcome::Failed)];
            check(&History { attempts, ..history(holds()) }).len()
        };
        assert_eq!(found(10, 300), 0);
        assert_eq!(found(10, 90), 1, "it ended before");
        assert_eq!(found(60, 300), 1, "it began after the one that reads");
    }

    #[test]
    fn the_resource_may_accept_what_is_as_new_and_refuse_what_is_old() {
        assert_eq!(
            writes(&[write(1, 5, true), write(2, 5, true), write(3, 4, false), write(4, 6, true)]),
            []
        );
        assert_eq!(writes(&[write(1, 9, false), write(2, 5, true)]), [], "what was refused does not count");
    }

    #[test]
    fn each_resource_is_looked_at_by_itself() {
        let elsewhere = Write { lock: "m".into(), ..write(2, 4, true) };
        assert_eq!(writes(&[write(1, 5, true), elsewhere]), []);
    }

    #[test]
    fn a_write_with_an_old_token_that_was_accepted_is_found() {
        let found = writes(&[write(3, 4, true), write(1, 6, true), write(2, 5, true)]);
        let whats = [
            "the resource accepted a write with token 5, 1 less than one that it accepted before",
            "the resource accepted a write with token 4, 2 less than one that it accepted before",
        ];
        assert_eq!(words(&found), whats);
        assert_eq!(found[1].at, ms(3));
    }
}
