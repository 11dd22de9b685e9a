//! What goes wrong where sets are lost, and begin again: all masters restart at once, or half of
//! them empty, while one adds a master and takes it away, and somebody is away meanwhile.

use std::time::Duration;

use quorate_history::Time;
use quorate_testkit::Dice;

use crate::changes::{LONG, MESSAGES, STORM, quarantine};
use crate::faults::{Fault, Kind, Scope, What, ordinary_fault};
use crate::member_change::{MemberChange, Replacement};
use crate::size::{CLIENTS, JOINERS, MASTERS};

/// How long a set takes to begin: where the clocks are wrong at first, its quarantine begins anew.
pub(crate) const BEGINS: Duration = Duration::from_secs(12);

/// How far ahead (us) all clocks may be while a set begins.
const HOURS: i64 = 3_600_000_000;

/// The fewest and the most changes that somebody begins, in one run.
const CHANGES: (usize, usize) = (0, 4);

/// All masters that there are.
const ALL: usize = MASTERS + JOINERS;

/// How many processes change the set in a run.
pub(crate) fn changers(dice: &Dice) -> usize {
    CHANGES.0 + dice.below(CHANGES.1 - CHANGES.0 + 1)
}

/// The faults of a run with so many of them, of masters that may have been used or not.
pub(crate) fn faults(dice: &Dice, ttl: Duration, changers: usize, are_used: bool) -> Vec<Fault> {
    let scope = Scope { clients: CLIENTS + changers, masters: ALL, storm: STORM };
    let ordinary = *dice.one_of(&[0, 0, 8, 20]);
    let mut faults: Vec<Fault> =
        (0..ordinary).map(|number| ordinary_fault(dice, number, ttl, scope)).collect();
    let mut add = |at, until, what| faults.push(Fault { number: faults.len(), at, until, what });
    let mut at = dice.time(LONG, LONG * 3);
    let mut changes_at = vec![dice.millis(0, 2_000), dice.time(LONG / 2, LONG)];
    for _ in 0..1 + dice.below(3) {
        lose(dice, at, &mut add);
        if dice.happens(700) {
            let one = dice.below(scope.clients);
            let clients = if dice.happens(500) { one..one + 1 } else { 0..CLIENTS };
            let from = at.saturating_sub(dice.time(Duration::ZERO, LONG / 2));
            let until = at + quarantine(ttl) + dice.time(Duration::ZERO, LONG * 2);
            clients.for_each(|client| go_away(dice, client, (from, until), &mut add));
        }
        at += quarantine(ttl);
        changes_at.extend([at, at].map(|at| at + dice.time(Duration::ZERO, LONG)));
        at += dice.time(LONG, LONG * 3);
    }
    let joins = MASTERS + dice.below(JOINERS);
    for (number, at) in changes_at.into_iter().take(changers).enumerate() {
        let is_member = number % 2 == 1;
        let what = Replacement {
            joins: Some(joins).filter(|_| !is_member),
            leaves: Some(joins).filter(|_| is_member),
        };
        let dies_after = dice.happens(300).then(|| 1 + dice.below(MESSAGES) as u64);
        let change = MemberChange { what, dies_after };
        add(at, at, What::Change { client: CLIENTS + number, change });
    }
    for fault in &mut faults {
        fault.at += BEGINS;
        fault.until += BEGINS;
    }
    if are_used && dice.happens(500) {
        let by = HOURS * (1 + dice.below(9) as i64);
        let what = What::Excluded { kind: Kind::ClockStrobe, masters: (0..ALL).collect(), by };
        let until = dice.millis(300, 2_000);
        faults.push(Fault { number: faults.len(), at: Duration::ZERO, until, what });
    }
    faults
}

/// All masters restart at once, and none or some of them empty, or some alone.
fn lose(dice: &Dice, at: Time, add: &mut impl FnMut(Time, Time, What)) {
    let first = dice.below(MASTERS);
    let most = MASTERS / 2 + 1 + dice.below(MASTERS / 2 + 1);
    let empty = *dice.one_of(&[0, 0, 1, most, most, most]);
    let restart = empty <= 1 || dice.happens(500);
    let lasts = || if dice.happens(800) { dice.millis(5, 200) } else { dice.time(Duration::ZERO, LONG) };
    for master in 0..ALL {
        if (master + MASTERS - first) % MASTERS < empty && master < MASTERS {
            let masters = vec![master];
            add(at, at + lasts(), What::Excluded { kind: Kind::RestartEmpty, masters, by: 0 });
        } else if restart {
            add(at, at + lasts(), What::Restart { master });
        }
    }
}

/// A client stands still, or reaches nobody: it is back when the set has begun again.
fn go_away(dice: &Dice, client: usize, (from, until): (Time, Time), add: &mut impl FnMut(Time, Time, What)) {
    if dice.happens(500) {
        return add(from, until, What::Pause { client });
    }
    for master in 0..ALL {
        add(from, until, What::Cut { client, master, there: true, back: true });
    }
}
