//! A client that knows the time vaguely, by answers that came late or long ago. Some clocks are off
//! as far as what it takes for the time, and it reaches few others, so that it needs their votes.
//! They are put right while it has locks.

use std::time::Duration;

use quorate_testkit::Dice;

use crate::faults::{Fault, Kind, What};
use crate::plan::{Ask, End, Plan, Task};
use crate::size::{ACTORS, CLIENTS, LOCKS, LONGER_RUN, MASTERS};

/// How far (us) clocks are from the middle of what late or old answers leave open, at most.
const OFF: i64 = 150_000;

/// How much too fast or slow the clock of a client is that does nothing for long: less than the
/// hundredth that leases leave for it.
const RATE: i64 = 9_000;

/// How long before it asks again others come.
const OTHERS: Duration = Duration::from_secs(1);

/// How long a question takes to be sent, and at most, to be answered.
const SENT: Duration = Duration::from_millis(1);
const ANSWERED: Duration = Duration::from_millis(50);

/// Adds that to a plan. The client begins, or asks again, when the set has long begun.
pub(crate) fn strike(plan: &mut Plan, dice: &Dice) {
    let (client, first) = (dice.below(CLIENTS), dice.below(MASTERS));
    let idles = dice.happens(400);
    let from = if idles {
        dice.time(Duration::from_secs(60), Duration::from_secs(110))
    } else {
        dice.millis(300, 1_500)
    };
    let late = if idles { Duration::ZERO } else { dice.millis(1_000, 2_400) };
    let is_behind = dice.happens(700);
    hold_back(plan, client, from, idles);
    if idles {
        plan.clients[client].0 = if is_behind { -RATE } else { RATE };
        plan.masters.iter_mut().for_each(|(rate, _)| *rate /= LONGER_RUN);
    }
    let error = if idles { from * RATE.unsigned_abs() as u32 / 1_000_000 } else { late / 2 };
    let error = i64::try_from(error.as_micros()).unwrap_or(0);
    let by = if is_behind { -error } else { error } + dice.between(-OFF, OFF);
    let put_right = from + late + dice.time(ANSWERED, plan.ttl / 2);
    let until = put_right + plan.ttl;
    let faults = &mut plan.faults;
    let mut add = |at, until, what| faults.push(Fault { number: faults.len(), at, until, what });
    if !idles && is_behind {
        add(from + SENT, from + late, What::Pause { client });
    }
    for master in (0..MASTERS).filter(|_| !idles && !is_behind) {
        add(from - SENT, from + late, What::Slow { client, master, delay: late });
    }
    let kind = Kind::LateHandshake;
    let most = kind.most_masters();
    let masters: Vec<usize> = (first..first + most).map(|master| master % MASTERS).collect();
    add(from - SENT, put_right, What::Excluded { kind, masters, by });
    for away in first + most..first + MASTERS - 1 {
        let what = What::Cut { client, master: away % MASTERS, there: true, back: true };
        add(from - SENT, until, what);
    }
}

/// The client first asks at this time, for a lock with each of its actors, and keeps what it gets.
/// Or, if it idles until then, it has asked once before, and the others come a while before it.
fn hold_back(plan: &mut Plan, client: usize, from: Duration, idles: bool) {
    for actor in 0..ACTORS {
        let is_its = |task: &&mut Task| (task.client, task.actor) == (client, actor);
        let asks = plan.tasks.iter_mut().filter(is_its).take(1 + usize::from(idles));
        for (at, task) in asks.enumerate() {
            let is_last = at == usize::from(idles);
            task.ask = Ask::Try;
            task.end = if is_last { End::RunOut } else { End::Release };
            task.think = if is_last { from } else { Duration::ZERO };
            (task.busy, task.lock) = (Duration::ZERO, actor % LOCKS);
            task.steps.clear();
        }
        for other in (0..CLIENTS).filter(|other| idles && *other != client) {
            let is_its = |task: &&mut Task| (task.client, task.actor) == (other, actor);
            plan.tasks.iter_mut().filter(is_its).take(1).for_each(|task| task.think += from - OTHERS);
        }
    }
}
