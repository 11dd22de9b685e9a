//! What was done with an exclusive lock is what could have been done with one fenced mutex, one
//! after the other.
//!
//! The mutex is reentrant, and free at first. It is acquired where it is free, with a token greater
//! than every one before, or by its holder once more, with the holder's token; and each guard ends
//! once.
//!
//! - An acquire took place between being made and being granted. One that was not granted, or of
//!   which nobody knows, is left out: if it took place, it ended as well, and the rest is possible
//!   without it.
//! - A guard ended after its window, `[granted, end)`, and by the time at which its release
//!   returned, if it did: leases end by themselves, at a moment that nobody knows.
//!
//! That is more than [`windows`](super::windows) and [`fences`](super::fences)
//! together, which look at two guards at a time, and takes a
//! search, which is given up after a while.

use std::collections::BTreeMap;

use super::search::{Found, Timed, search};
use crate::history::{History, Hold, Time, Violation};

/// The property's name.
pub const NAME: &str = "linearizable";

/// How many places a search looks at, where nothing else is said. They take some hundred bytes
/// each.
pub const BOUND: usize = 1_000_000;

/// What a search says of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linearizability {
    /// There is an order.
    Linearizable,
    /// There is none.
    Violated(Violation),
    /// There was no end to the search within its bound.
    Inconclusive,
}

/// The verdict for each exclusive lock, by its kind and name, and for each permit that is known.
pub fn check(history: &History, bound: usize) -> BTreeMap<(String, String), Linearizability> {
    let mut verdicts = BTreeMap::new();
    for ((kind, site), mut holds) in history.holds_by_site() {
        holds.retain(|hold| !hold.reads());
        if !holds.is_empty() {
            verdicts.insert((kind.to_owned(), site.to_string()), verdict(&holds, bound));
        }
    }
    verdicts
}

/// What is done with the mutex.
#[derive(Clone, Copy, Debug)]
struct Step<'a> {
    hold: &'a Hold,
    begins: bool,
}

/// Who holds the mutex, with how many guards; and the last token.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Mutex<'a> {
    holder: Option<(&'a str, Option<u64>, u32)>,
    last: Option<u64>,
}

impl<'a> Mutex<'a> {
    fn after(&self, step: &Step<'a>) -> Option<Self> {
        let Hold { owner, fence, .. } = step.hold;
        let last = fence.or(self.last);
        let holder = match (self.holder, step.begins) {
            (None, true) if fence.is_none_or(|fence| self.last.is_none_or(|last| fence > last)) => {
                Some((&**owner, *fence, 1))
            }
            (Some((holder, token, guards)), true) if holder == owner && token == *fence => {
                Some((holder, token, guards + 1))
            }
            (Some((holder, token, guards)), false) if holder == owner && token == *fence => {
                (guards > 1).then_some((holder, token, guards - 1))
            }
            _ => return None,
        };
        Some(Self { holder, last })
    }
}

fn verdict(holds: &[&Hold], bound: usize) -> Linearizability {
    let mut steps: Vec<_> = holds.iter().flat_map(|hold| [begin(hold), end(hold)]).collect();
    steps.sort_by_key(|step| step.from);
    match search(&steps, Mutex::default(), bound, Mutex::after) {
        Found::Order => Linearizability::Linearizable,
        Found::Nothing => Linearizability::Inconclusive,
        Found::None { most, left } => Linearizability::Violated(violation(&steps, most, left)),
    }
}

fn begin(hold: &Hold) -> Timed<Step<'_>> {
    Timed { call: Step { hold, begins: true }, from: hold.asked, to: hold.granted }
}

fn end(hold: &Hold) -> Timed<Step<'_>> {
    let from = hold.window_end().max(hold.asked);
    let to = hold.free.map_or(Time::MAX, |free| free.max(from));
    Timed { call: Step { hold, begins: false }, from, to }
}

/// The step that has no place in any order: a grant, since a holder can always release.
fn violation(steps: &[Timed<Step<'_>>], most: usize, due: usize) -> Violation {
    let hold = steps[due].call.hold;
    let others = steps.iter().map(|step| step.call.hold).filter(|other| other.owner != hold.owner);
    let holds = |other: &&Hold| (other.granted..other.window_end()).contains(&hold.granted);
    let why = match (others.filter(holds).max_by_key(|other| other.window_end()), hold.fence) {
        (Some(rival), _) => {
            let to = rival.window_end();
            let early = to - hold.granted;
            format!("while {rival} held it, from {:?} to {to:?}: {early:?} too early", rival.granted)
        }
        (None, Some(fence)) => format!("with token {fence}"),
        (None, None) => "without a token".to_owned(),
    };
    let what = format!(
        "{hold} was granted it {why}; one fenced mutex has no order for that, {most} of {} steps before it",
        steps.len()
    );
    Violation { property: NAME, what, at: hold.granted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{fenced, given_back, history, hold, lost, ms, over, permit, shared};

    fn is_linearizable(holds: impl IntoIterator<Item = Hold>) -> bool {
        let verdicts = check(&history(holds), BOUND);
        assert!(!verdicts.values().any(|verdict| *verdict == Linearizability::Inconclusive));
        verdicts.values().all(|verdict| *verdict == Linearizability::Linearizable)
    }

    /// Held from `granted` until it was given back, at `until`, with a token.
    fn held(owner: &str, granted: u64, until: u64, fence: u64) -> Hold {
        fenced(fence, given_back(owner, granted, until + 1_000, until))
    }

    #[test]
    fn one_after_the_other_with_rising_tokens_is_well() {
        assert!(is_linearizable([held("a", 10, 20, 1), held("b", 30, 40, 2), held("a", 50, 60, 7)]));
        assert!(is_linearizable([]));
    }

    #[test]
    fn guards_that_overlap_are_found() {
        assert!(is_linearizable([held("a", 10, 20, 1), held("b", 20, 40, 2)]), "they touch");
        assert!(!is_linearizable([held("a", 10, 20, 1), held("b", 19, 40, 2)]));
    }

    #[test]
    fn a_lease_ends_by_itself_at_any_time_after_its_window() {
        let left = |deadline| fenced(1, hold("a", 10, deadline));
        assert!(is_linearizable([left(100), held("b", 500, 600, 2)]));
        assert!(!is_linearizable([left(100), held("b", 99, 600, 2)]));
        let lost = fenced(1, lost("a", 10, 100, 50));
        assert!(is_linearizable([lost, held("b", 60, 80, 2)]));
    }

    #[test]
    fn a_grant_that_was_written_down_when_its_lease_was_over_is_no_grant_then() {
        // Its process stood still from 20 to 200, and another had the lock from 150 on.
        let late = |deadline: u64| Hold { asked: ms(10), ..fenced(1, lost("a", 200, deadline, 201)) };
        let next = || held("b", 150, 300, 2);
        assert!(is_linearizable([late(120), next()]));
        assert!(is_linearizable([late(0), next()]), "it was lost, and does not know any more when it ended");
        assert!(!is_linearizable([late(200), next()]));
    }

    #[test]
    fn a_release_that_nobody_heard_of_may_come_late() {
        let unheard = Hold { free: None, ..held("a", 10, 20, 1) };
        assert!(is_linearizable([unheard, held("b", 500, 600, 2)]));
    }

    #[test]
    fn tokens_that_do_not_rise_are_found() {
        for fence in [1, 2] {
            assert!(!is_linearizable([held("a", 10, 20, 2), held("b", 30, 40, fence)]), "{fence}");
        }
        let without = Hold { fence: None, ..held("b", 30, 40, 0) };
        assert!(is_linearizable([held("a", 10, 20, 2), without, held("c", 50, 60, 3)]));
    }

    #[test]
    fn a_token_between_two_others_needs_its_place() {
        let long = |asked: u64| Hold { asked: ms(asked), ..held("c", 50, 60, 2) };
        assert!(!is_linearizable([held("a", 10, 20, 1), held("b", 30, 40, 3), long(5)]));
        // Every two of these are well, and all together they are not: c's token says that it was
        // between a and b.
        let holds = [held("a", 10, 20, 1), held("b", 30, 40, 3), long(25)];
        assert_eq!(super::super::check_only(&history(holds.clone()), &super::super::SAFETY), []);
        assert!(!is_linearizable(holds));
    }

    #[test]
    fn an_owner_that_re_enters_keeps_its_token() {
        let inner = |fence| held("a", 20, 30, fence);
        assert!(is_linearizable([held("a", 10, 40, 1), inner(1), held("b", 50, 60, 2)]));
        assert!(!is_linearizable([held("a", 10, 40, 1), inner(2)]), "another token");
        assert!(!is_linearizable([held("a", 10, 40, 1), held("b", 20, 30, 1)]), "another owner");
        assert!(!is_linearizable([held("a", 10, 20, 1), held("a", 30, 40, 1)]), "it had ended");
        assert!(
            !is_linearizable([held("a", 10, 40, 1), inner(1), held("b", 35, 60, 2)]),
            "one guard is left"
        );
    }

    #[test]
    fn each_lock_has_a_verdict_and_readers_are_left_out() {
        let elsewhere = over(&["m"], held("b", 15, 30, 1));
        let reader = shared(held("c", 12, 18, 1));
        let verdicts =
            check(&history([held("a", 10, 20, 1), held("d", 15, 30, 2), elsewhere, reader]), BOUND);
        let bad: Vec<_> =
            verdicts.iter().filter(|(_, verdict)| **verdict != Linearizability::Linearizable).collect();
        let [((kind, name), Linearizability::Violated(violation))] = bad[..] else { panic!("{verdicts:?}") };
        assert_eq!((&**kind, &**name, verdicts.len()), ("lock", "l", 2));
        let what = "client 0 (d on lock l) was granted it while client 0 (a on lock l) held it, from 10ms to 20ms: 5ms \
                    too early; one fenced mutex has no order for that, 1 of 4 steps before it";
        assert_eq!((&*violation.what, violation.at), (what, ms(15)));
    }

    #[test]
    fn whoever_waited_for_longest_is_not_blamed_for_what_another_did() {
        let waited = Hold { asked: ms(1), ..held("c", 50, 60, 3) };
        let verdicts = check(&history([held("a", 10, 20, 1), held("b", 15, 30, 2), waited]), BOUND);
        let found: Vec<_> = verdicts.into_values().collect();
        let [Linearizability::Violated(violation)] = &found[..] else { panic!("{found:?}") };
        assert!(
            violation.what.starts_with("client 0 (b on lock l) was granted it while client 0 (a on"),
            "{violation}"
        );
        assert_eq!(violation.at, ms(15), "when it returned");
    }

    #[test]
    fn of_two_that_asked_together_the_later_grant_is_the_wrong_one() {
        let both =
            || [Hold { asked: ms(4), ..held("a", 10, 30, 1) }, Hold { asked: ms(5), ..held("b", 25, 40, 2) }];
        for [one, other] in [both(), {
            let [a, b] = both();
            [b, a]
        }] {
            let verdicts =
                check(&history([Hold { fence: None, ..one }, Hold { fence: None, ..other }]), BOUND);
            let shown = format!("{verdicts:?}");
            assert!(
                shown
                    .contains("\"client 0 (b on lock l) was granted it while client 0 (a on lock l) held it"),
                "{shown}"
            );
        }
    }

    #[test]
    fn tokens_that_fit_no_order_are_told() {
        let verdicts = check(&history([held("a", 10, 20, 2), held("b", 30, 40, 1)]), BOUND);
        let shown = format!("{verdicts:?}");
        assert!(
            shown.contains(
                "client 0 (b on lock l) was granted it with token 1; one fenced mutex has no order"
            ),
            "{shown}"
        );
    }

    #[test]
    fn each_permit_has_a_verdict() {
        let held = |number, granted, fence| permit(number, held(&format!("o{granted}"), granted, 100, fence));
        assert!(is_linearizable([held(0, 10, 5), held(1, 20, 5)]));
        assert!(!is_linearizable([held(0, 10, 5), held(1, 20, 5), held(1, 30, 6)]));
    }

    #[test]
    fn a_search_that_takes_too_long_is_no_verdict() {
        let holds =
            (0..5).map(|number: u64| held(&format!("o{number}"), 10 + 20 * number, 20 + 20 * number, number));
        let verdicts = check(&history(holds), 3);
        assert_eq!(verdicts.into_values().collect::<Vec<_>>(), [Linearizability::Inconclusive]);
    }
}
