//! What goes wrong where one change of the set is cut short by a disaster: what happens to the
//! process that makes it, who changes the set soon after, and when.

use std::time::Duration;

use quorate_testkit::Dice;

use crate::changes::quarantine;
use crate::disaster::Disaster;
use crate::faults::{Fault, Scope, What, ordinary_fault};
use crate::member_change::{MemberChange, Replacement};
use crate::size::{CLIENTS, JOINERS, MASTERS};

/// For how long ordinary faults begin.
const STORM: Duration = Duration::from_secs(20);

/// How many processes change the set in a run: the first one is cut short.
pub(crate) const CHANGERS: usize = 5;

/// How long after the first one decides the second one begins, at most, and the others.
const AT_ONCE: Duration = Duration::from_millis(1_500);
const SOON: Duration = Duration::from_secs(5);

/// The faults of a run. Whoever recovers the set says that masters which do not answer are gone for
/// good, so none of these stands still, and clients are away for less than a quarantine.
pub(crate) fn faults(dice: &Dice, ttl: Duration) -> Vec<Fault> {
    let scope = Scope { clients: CLIENTS, masters: MASTERS + JOINERS, storm: STORM };
    let ordinary = *dice.one_of(&[0, 0, 10, 30]);
    let mut faults: Vec<Fault> =
        (0..ordinary).map(|number| ordinary_fault(dice, number, ttl, scope)).collect();
    faults.retain(|fault| !matches!(fault.what, What::Freeze { .. } | What::Restart { .. }));
    faults.iter_mut().enumerate().for_each(|(number, fault)| fault.number = number);
    let mut add = |at, until, what| faults.push(Fault { number: faults.len(), at, until, what });
    let at = dice.millis(500, 2_000);
    let adds = dice.happens(300);
    let decides = if adds { at + quarantine(ttl) } else { at };
    let disaster = if dice.happens(500) { Disaster::Loss } else { Disaster::RollingRestart };
    add(at, decides + quarantine(ttl) * 4, What::Disaster { client: CLIENTS, disaster });
    for number in 0..CHANGERS {
        let joins = Some(MASTERS + dice.below(JOINERS));
        let leaves = Some(dice.below(MASTERS));
        let what = match (number, dice.happens(500)) {
            (0, _) if adds => Replacement { joins, leaves: None },
            (0 | 1, _) => Replacement { joins: None, leaves },
            (_, true) => Replacement { joins, leaves },
            (_, false) => Replacement { joins, leaves: None },
        };
        let at = match number {
            0 => at,
            1 => decides + dice.time(Duration::ZERO, AT_ONCE),
            _ => decides + dice.time(Duration::ZERO, SOON),
        };
        let change = MemberChange { what, dies_after: None };
        add(at, at, What::Change { client: CLIENTS + number, change });
    }
    faults
}
