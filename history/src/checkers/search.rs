//! Whether calls that overlap could have been made one by one: the search of Wing and Gong, with
//! Lowe's memory of what was tried, within a bound.
//!
//! An order of the calls respects time if no call comes before one that had returned before it was
//! made. The search looks for such an order that a specification allows. It goes from sets of calls
//! that were put in order to sets of one more; the same set with the same state is looked at once,
//! whatever the order within.

use std::collections::BTreeSet;

use crate::history::Time;

/// A call, and when it took place: within these, both included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed<C> {
    pub(super) call: C,
    pub(super) from: Time,
    /// `Time::MAX` where it is not known to have returned.
    pub(super) to: Time,
}

/// What came of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// There is an order.
    Order,
    /// There is none. Of the calls that were left by an order that goes as far in time as any, the
    /// first that had returned: it would have had to be next. And how many are before it.
    None { most: usize, left: usize },
    /// The bound was reached.
    Nothing,
}

/// The calls that are in order, and the state after them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Prefix<S> {
    /// All before this one are.
    first: usize,
    /// And these behind it, in order of their numbers.
    others: Vec<usize>,
    state: S,
}

/// Looks for an order of calls, which are given in the order in which they were made, at `bound`
/// places at most. `step` is the specification: the state after a call, if it is allowed.
pub(super) fn search<C, S: Clone + Ord>(
    calls: &[Timed<C>],
    state: S,
    bound: usize,
    step: impl Fn(&S, &C) -> Option<S>,
) -> Found {
    let begin = Prefix { first: 0, others: Vec::new(), state };
    let mut seen = BTreeSet::from([begin.clone()]);
    let mut open = vec![begin];
    let mut most = 0;
    let mut left = 0;
    let mut furthest = Time::ZERO;
    while let Some(place) = open.pop() {
        if place.first == calls.len() {
            return Found::Order;
        }
        if seen.len() > bound {
            return Found::Nothing;
        }
        let candidates = next(calls, &place);
        // One of them has to be next, and no other may come later than what has returned first.
        let due = candidates.iter().copied().min_by_key(|call| calls[*call].to).unwrap_or(place.first);
        if calls[due].to >= furthest {
            (most, left, furthest) = (place.first + place.others.len(), due, calls[due].to);
        }
        for next in candidates.into_iter().rev() {
            let Some(state) = step(&place.state, &calls[next].call) else { continue };
            let place = place.with(next, state);
            if seen.insert(place.clone()) {
                open.push(place);
            }
        }
    }
    Found::None { most, left }
}

/// The calls that may come next: those that were made before any other that is left had returned.
fn next<C, S>(calls: &[Timed<C>], place: &Prefix<S>) -> Vec<usize> {
    let mut next = Vec::new();
    let mut returned = Time::MAX;
    for (number, call) in calls.iter().enumerate().skip(place.first) {
        if call.from > returned {
            break;
        }
        if place.others.binary_search(&number).is_err() {
            next.push(number);
            returned = returned.min(call.to);
        }
    }
    next
}

impl<S> Prefix<S> {
    /// The place after one more call.
    fn with(&self, call: usize, state: S) -> Self {
        let mut others = self.others.clone();
        if let Err(at) = others.binary_search(&call) {
            others.insert(at, call);
        }
        let mut first = self.first;
        let row = others.iter().take_while(|other| {
            let follows = **other == first;
            first += usize::from(follows);
            follows
        });
        let row = row.count();
        others.drain(..row);
        Self { first, others, state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::ms;

    /// A register: writes, and reads of what was written last.
    #[derive(Clone, Copy, Debug)]
    enum Register {
        Write(u8),
        Read(u8),
    }

    fn step(state: &u8, call: &Register) -> Option<u8> {
        match call {
            Register::Write(value) => Some(*value),
            Register::Read(value) => (value == state).then_some(*state),
        }
    }

    fn timed(call: Register, from: u64, to: u64) -> Timed<Register> {
        Timed { call, from: ms(from), to: ms(to) }
    }

    fn found(calls: &[Timed<Register>]) -> Found {
        search(calls, 0, 10_000, step)
    }

    #[test]
    fn calls_one_by_one_have_one_order() {
        let right = [timed(Register::Write(1), 0, 1), timed(Register::Read(1), 2, 3)];
        assert_eq!(found(&right), Found::Order);
        let wrong = [timed(Register::Write(1), 0, 1), timed(Register::Read(0), 2, 3)];
        assert_eq!(found(&wrong), Found::None { most: 1, left: 1 });
        assert_eq!(found(&[]), Found::Order);
    }

    #[test]
    fn of_what_is_left_the_one_is_named_that_returned_first() {
        let waits = timed(Register::Read(3), 2, 90);
        let wrong = [timed(Register::Write(1), 0, 1), waits, timed(Register::Read(7), 3, 4)];
        assert_eq!(found(&wrong), Found::None { most: 1, left: 2 });
    }

    #[test]
    fn calls_that_overlap_or_touch_may_have_either_order() {
        for from in [0, 1] {
            let calls = [timed(Register::Write(1), 0, 1), timed(Register::Read(0), from, 3)];
            assert_eq!(found(&calls), Found::Order);
        }
    }

    #[test]
    fn what_never_returned_may_come_at_any_time_later() {
        let late = [
            Timed { to: Time::MAX, ..timed(Register::Write(1), 0, 0) },
            timed(Register::Read(0), 5, 6),
            timed(Register::Read(1), 7, 8),
        ];
        assert_eq!(found(&late), Found::Order);
        let back = [late[0], timed(Register::Read(1), 5, 6), timed(Register::Read(0), 7, 8)];
        assert!(matches!(found(&back), Found::None { .. }));
    }

    #[test]
    fn a_search_that_takes_too_long_says_so() {
        let many = (0..20).map(|number| timed(Register::Write(number), 0, 100));
        let mut calls: Vec<_> = many.collect();
        calls.push(timed(Register::Read(99), 101, 102));
        assert_eq!(search(&calls, 0, 1_000, step), Found::Nothing);
    }

    /// Every order that respects time, tried one after the other.
    fn any_order(calls: &[Timed<Register>], left: &mut Vec<usize>, state: u8) -> bool {
        if left.is_empty() {
            return true;
        }
        (0..left.len()).any(|place| {
            let number = left[place];
            let in_time = left.iter().all(|other| calls[*other].to >= calls[number].from);
            let next = step(&state, &calls[number].call).filter(|_| in_time);
            next.is_some_and(|state| {
                left.remove(place);
                let found = any_order(calls, left, state);
                left.insert(place, number);
                found
            })
        })
    }

    #[test]
    fn it_finds_an_order_if_and_only_if_there_is_one() {
        let mut dice = fastrand::Rng::with_seed(1);
        let mut orders = 0;
        for _ in 0..2_000 {
            let mut one = || {
                let value = dice.u8(..3);
                let call = if dice.bool() { Register::Write(value) } else { Register::Read(value) };
                let from = dice.u64(..20);
                let call = timed(call, from, from + dice.u64(..8));
                if dice.u8(..10) == 0 { Timed { to: Time::MAX, ..call } } else { call }
            };
            let mut calls: Vec<_> = (0..6).map(|_| one()).collect();
            calls.sort_by_key(|call| call.from);
            let expected = any_order(&calls, &mut (0..6).collect(), 0);
            assert_eq!(found(&calls) == Found::Order, expected, "{calls:?}");
            orders += usize::from(expected);
        }
        assert!((200..1_800).contains(&orders), "{orders} of 2000 have an order");
    }
}
