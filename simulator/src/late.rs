//! A client that knows the time vaguely, by answers that came late or long ago. Some clocks are off
//! as far as what it takes for the time, and it reaches few others, so that it needs their votes.
//! They are put right while it has locks.

use std::time::Duration;

use quorate_testkit::Dice;

use crate::faults::{Fault, Kind, What};
use crate::size::{CLIENTS, MASTERS};

/// How far (us) clocks are from the middle of what late or old answers leave open, at most.
const OFF: i64 = 150_000;

/// How much too fast or slow the clock of a client is that does nothing for long: less than the
/// hundredth that leases leave for it.
const RATE: i64 = 9_000;

/// How long a question takes to be sent, and at most, to be answered. The others are cut off then,
/// if that is late: their answers are on the way.
const SENT: Duration = Duration::from_millis(1);
const ANSWERED: Duration = Duration::from_millis(50);

/// What a late client does, and what goes wrong meanwhile.
pub(crate) struct Late {
    pub(crate) client: usize,
    /// When it asks, which is first, or after it did nothing for long.
    pub(crate) from: Duration,
    pub(crate) idles: bool,
    /// How much too fast its clock is, if it idles.
    pub(crate) rate: i64,
    pub(crate) faults: Vec<Fault>,
}

impl Late {
    /// The client asks when the set has long begun.
    pub(crate) fn draw(dice: &Dice, ttl: Duration) -> Self {
        let client = dice.below(CLIENTS);
        let first = dice.below(MASTERS);
        let idles = dice.happens(400);
        let from = if idles {
            dice.time(Duration::from_secs(60), Duration::from_secs(110))
        } else {
            dice.millis(300, 1_500)
        };
        let late = if idles { Duration::ZERO } else { dice.millis(1_000, 2_400) };
        let is_behind = dice.happens(700);
        let error = if idles { from * RATE.unsigned_abs() as u32 / 1_000_000 } else { late / 2 };
        let error = i64::try_from(error.as_micros()).unwrap_or(0);
        let by = if is_behind { -error } else { error } + dice.between(-OFF, OFF);
        let put_right = from + late + dice.time(ANSWERED, ttl / 2);
        let until = put_right + ttl;
        let mut faults = Vec::new();
        let mut add = |at, until, what| faults.push(Fault { number: 0, at, until, what });
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
        let cut_off = if !idles && is_behind { from + late - SENT } else { from - SENT };
        for away in first + most..first + MASTERS - 1 {
            let what = What::Cut { client, master: away % MASTERS, there: true, back: true };
            add(cut_off, until, what);
        }
        Self { client, from, idles, rate: if is_behind { -RATE } else { RATE }, faults }
    }
}
