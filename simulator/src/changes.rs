//! What goes wrong where the set of masters changes: who adds, removes or replaces one,
//! and when, and what happens meanwhile.

use std::time::Duration;

use quorate_history::Time;
use quorate_testkit::Dice;

use crate::faults::{Fault, Kind, Scope, What, ordinary_fault};
use crate::member_change::{MemberChange, Replacement};
use crate::size::{CLIENTS, JOINERS, LONGER, MASTERS};

/// How long a process that changes the set waits for masters.
pub(crate) const WAIT: Duration = Duration::from_secs(10);

/// For how long changes and faults begin: a change takes two quarantines at most.
pub(crate) const STORM: Duration = Duration::from_secs(45);

/// The fewest and the most changes that somebody begins, in one run.
const CHANGES: (usize, usize) = (5, 14);

/// Of how many a change makes the set at least and at most, if all before it were made.
const MEMBERS: (usize, usize) = (3, 7);

/// How many messages a process may send before it is killed: more than a change takes.
pub(crate) const MESSAGES: usize = 150;

/// How long after the end of one quarantine, at most, the next master restarts empty.
const NEXT_LOSS: Duration = Duration::from_secs(8);

/// How long masters are down, and nothing gets through, at most, where that is long.
pub(crate) const LONG: Duration = Duration::from_secs(12);

/// How many processes change the set in a run.
pub(crate) fn changers(dice: &Dice) -> usize {
    CHANGES.0 + dice.below(CHANGES.1 - CHANGES.0 + 1)
}

/// The faults of a run with so many of them.
pub(crate) fn faults(dice: &Dice, ttl: Duration, changers: usize) -> Vec<Fault> {
    let scope = Scope { clients: CLIENTS + changers, masters: MASTERS + JOINERS, storm: STORM };
    let ordinary = *dice.one_of(&[0, 10, 30, 60]);
    let mut faults: Vec<Fault> =
        (0..ordinary).map(|number| ordinary_fault(dice, number, ttl, scope)).collect();
    for fault in faults.iter_mut().filter(|_| dice.happens(200)) {
        fault.until = fault.at + dice.time(Duration::ZERO, LONG);
    }
    let mut add = |at, until, what| faults.push(Fault { number: faults.len(), at, until, what });
    for _ in 0..dice.below(3) {
        let at = dice.time(Duration::ZERO, STORM);
        let master = dice.below(MASTERS + JOINERS);
        add(at, at + dice.time(LONG / 4, LONG * 2), What::Restart { master });
    }
    for (at, until, master) in losses(dice, quarantine(ttl)) {
        let masters = vec![master];
        add(at, until, What::Excluded { kind: Kind::RestartEmpty, masters, by: 0 });
    }
    for (number, (at, change)) in changes(dice, changers).into_iter().enumerate() {
        add(at, at, What::Change { client: CLIENTS + number, change });
    }
    faults
}

/// When masters restart empty, one after the other, and which.
fn losses(dice: &Dice, quarantine: Duration) -> Vec<(Time, Time, usize)> {
    let mut losses = Vec::new();
    let mut at = dice.time(Duration::ZERO, NEXT_LOSS);
    let is_wanted = dice.happens(750);
    while at < STORM && is_wanted {
        let lasts = if dice.happens(700) { dice.millis(5, 200) } else { dice.time(Duration::ZERO, LONG) };
        losses.push((at, at + lasts, dice.below(MASTERS + JOINERS)));
        at += lasts + quarantine + dice.time(Duration::ZERO, NEXT_LOSS);
    }
    losses
}

/// So many changes, some of them two at once. Most make sense if all those before were made.
fn changes(dice: &Dice, count: usize) -> Vec<(Time, MemberChange)> {
    let mut members: Vec<usize> = (0..MASTERS).collect();
    let mut at = Duration::ZERO;
    let change = |_| {
        at += if dice.happens(400) { dice.millis(0, 500) } else { dice.time(Duration::ZERO, STORM / 6) };
        let what = if dice.happens(100) { any(dice) } else { sensible(dice, &members) };
        members.retain(|member| Some(*member) != what.leaves);
        members.extend(what.joins.filter(|joins| !members.contains(joins)));
        let dies_after = dice.happens(400).then(|| 1 + dice.below(MESSAGES) as u64);
        (at, MemberChange { what, dies_after })
    };
    (0..count).map(change).collect()
}

/// One that may change nothing.
fn any(dice: &Dice) -> Replacement {
    let some = |_: ()| Some(dice.below(MASTERS + JOINERS));
    match dice.below(3) {
        0 => Replacement { joins: some(()), leaves: None },
        1 => Replacement { joins: None, leaves: some(()) },
        _ => Replacement { joins: some(()), leaves: some(()) },
    }
}

fn sensible(dice: &Dice, members: &[usize]) -> Replacement {
    let others: Vec<usize> = (0..MASTERS + JOINERS).filter(|master| !members.contains(master)).collect();
    let one_of = |masters: &[usize]| (!masters.is_empty()).then(|| *dice.one_of(masters));
    match (one_of(&others), one_of(members), dice.below(10)) {
        (joins, leaves, 0..=2) if members.len() < MEMBERS.1 || leaves.is_none() => {
            Replacement { joins, leaves: None }
        }
        (joins, leaves, 3..=5) if members.len() > MEMBERS.0 || joins.is_none() => {
            Replacement { joins: None, leaves }
        }
        (joins, leaves, _) => Replacement { joins, leaves },
    }
}

/// For how long a master that may have forgotten something has no vote (docs/PROTOCOL.md).
pub(crate) fn quarantine(ttl: Duration) -> Duration {
    ttl * LONGER + ttl * LONGER / 100 + Duration::from_secs(4)
}
