//! Which guards are drawn in which row, and where two had one lock. Pure.

use std::ops::Range;

use quorate_chaos::history::{History, Hold, Share, Time};

/// The most locks that have a lane: the busiest.
const LANES: usize = 14;

/// The most rows of a lane: readers, permits, and those that should not be there.
const ROWS: usize = 3;

/// A lock, and who had it when.
#[derive(Debug)]
pub(crate) struct Lane<'a> {
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
    pub(crate) rows: Vec<Vec<&'a Hold>>,
    /// When two had it that exclude each other.
    pub(crate) overlaps: Vec<Range<Time>>,
}

/// The lanes of the busiest locks within this time, by their names, and how many locks have none.
pub(crate) fn lanes<'a>(history: &'a History, time: &Range<Time>) -> (Vec<Lane<'a>>, usize) {
    let mut locks = history.holds_by_lock();
    locks.values_mut().for_each(|holds| holds.retain(|hold| is_within(hold, time)));
    locks.retain(|_, holds| !holds.is_empty());
    let mut lanes: Vec<_> = locks.into_iter().map(|((kind, name), holds)| lane(kind, name, holds)).collect();
    let busy = |lane: &Lane<'_>| (lane.overlaps.len(), lane.rows.iter().map(Vec::len).sum::<usize>());
    lanes.sort_by_key(|lane| std::cmp::Reverse(busy(lane)));
    let left = lanes.len().saturating_sub(LANES);
    lanes.truncate(LANES);
    lanes.sort_by_key(|lane| (lane.kind, lane.name));
    (lanes, left)
}

fn is_within(hold: &Hold, time: &Range<Time>) -> bool {
    hold.granted < time.end && hold.window_end() > time.start
}

/// Holds are sorted by when they were granted.
fn lane<'a>(kind: &'a str, name: &'a str, holds: Vec<&'a Hold>) -> Lane<'a> {
    let overlaps = overlaps(&holds);
    let mut rows: Vec<Vec<&Hold>> = Vec::new();
    for hold in holds {
        let is_free = |row: &Vec<&Hold>| row.last().is_none_or(|last| last.window_end() <= hold.granted);
        match rows.iter().position(is_free) {
            Some(row) => rows[row].push(hold),
            None if rows.len() < ROWS => rows.push(vec![hold]),
            None => rows[ROWS - 1].push(hold),
        }
    }
    Lane { kind, name, rows, overlaps }
}

/// Holds are sorted by when they were granted.
fn overlaps(holds: &[&Hold]) -> Vec<Range<Time>> {
    let mut overlaps = Vec::new();
    for (place, first) in holds.iter().enumerate() {
        let end = first.window_end();
        let meanwhile = holds[place + 1..].iter().take_while(|second| second.granted < end);
        for second in meanwhile.filter(|second| exclude(first, second)) {
            let both = second.granted..end.min(second.window_end());
            if !both.is_empty() {
                overlaps.push(both);
            }
        }
    }
    overlaps
}

/// Whether these two may not have their lock at the same time.
fn exclude(one: &Hold, other: &Hold) -> bool {
    let together = match (one.lock.share, other.lock.share) {
        (Share::Shared, Share::Shared) => true,
        (Share::Permits(_), Share::Permits(_)) => one.permit.is_none() || one.permit != other.permit,
        _ => false,
    };
    !together && one.owner != other.owner
}

#[cfg(test)]
mod tests {
    use super::super::sample::{hold, lock, micros};
    use super::*;

    fn of(holds: Vec<Hold>) -> History {
        History { holds, ..History::default() }
    }

    #[test]
    fn who_comes_after_the_other_has_the_same_row() {
        let history = of(vec![hold("a", 10, 20), hold("b", 20, 30), hold("c", 25, 40)]);
        let (lanes, left) = lanes(&history, &(micros(0)..micros(100)));
        let rows: Vec<_> = lanes[0].rows.iter().map(Vec::len).collect();
        assert_eq!((rows, left, lanes.len()), (vec![2, 1], 0, 1));
        assert_eq!(lanes[0].overlaps, [micros(25)..micros(30)]);
    }

    #[test]
    fn those_that_may_be_together_do_not_overlap() {
        let share = |share, permit| {
            let of = |owner, from| Hold {
                lock: quorate_chaos::history::Lock { share, ..lock("l") },
                permit,
                ..hold(owner, from, 50)
            };
            lanes(&of_both(of("a", 10), of("b", 20)), &(micros(0)..micros(100))).0[0].overlaps.len()
        };
        fn of_both(one: Hold, other: Hold) -> History {
            of(vec![one, other])
        }
        assert_eq!(share(Share::Shared, None), 0);
        assert_eq!([share(Share::Permits(2), None), share(Share::Permits(2), Some(1))], [0, 1]);
        assert_eq!(share(Share::Exclusive, None), 1);
    }

    #[test]
    fn the_busiest_are_shown_and_what_is_elsewhere_is_not() {
        let named =
            |number: usize, from| Hold { lock: lock(&format!("l{number:02}")), ..hold("a", from, from + 5) };
        let mut holds: Vec<_> = (0..20).map(|number| named(number, 10)).collect();
        holds.push(named(19, 30));
        let history = of(holds);
        let (shown, left) = lanes(&history, &(micros(0)..micros(100)));
        assert_eq!((shown.len(), left, shown.last().unwrap().name), (LANES, 6, "l19"));
        assert_eq!(lanes(&history, &(micros(20)..micros(100))).0.len(), 1);
    }
}
