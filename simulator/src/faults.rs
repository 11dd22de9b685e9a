//! What goes wrong in a run: which faults there are, and how a seed draws them.

use std::fmt;
use std::time::Duration;

use quorate_history::Time;
use quorate_testkit::Dice;

use crate::disaster::Disaster;
use crate::locks::Locks;
use crate::member_change::MemberChange;
use crate::size::{CLIENTS, JOINERS, MASTERS};

/// What may go wrong in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Nothing but what Redlock is made for: networks and processes that delay, lose, break and
    /// stand still, masters that keep their data when they are restarted, clocks that are a little
    /// wrong.
    Inside,
    /// Besides, once or more, the one fault that Redlock's argument excludes.
    Outside(Kind),
}

/// One fault.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// Its number in the plan, by which it is left out.
    pub(crate) number: usize,
    pub(crate) at: Time,
    /// When it is over.
    pub(crate) until: Time,
    pub(crate) what: What,
}

/// What a fault is.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Messages between a client and a master take longer.
    Slow { client: usize, master: usize, delay: Duration },
    /// Nothing gets through, one way or both ways.
    Cut { client: usize, master: usize, there: bool, back: bool },
    /// The connection breaks.
    Break { client: usize, master: usize },
    /// A master stands still.
    Freeze { master: usize },
    /// A master is killed, and started again with its data.
    Restart { master: usize },
    /// A client stands still.
    Pause { client: usize },
    /// A client is killed.
    Kill { client: usize },
    /// A client's wall clock is set forward, or back, by `by` microseconds.
    Step { client: usize, by: i64 },
    /// A process begins to change the set of masters.
    Change { client: usize, change: MemberChange },
    /// When a change is half made, masters restart, and this client stands still or is killed.
    Disaster { client: usize, disaster: Disaster },
    /// What Redlock's argument excludes, on some masters.
    Excluded { kind: Kind, masters: Vec<usize>, by: i64 },
}

/// A fault outside of Redlock's assumptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Killed, and started again empty.
    RestartEmpty,
    /// The clock is set forward.
    ClockStep,
    /// The clock is set forward and soon back.
    ClockStrobe,
    /// Somebody deletes everything.
    FlushAll,
    /// A replica that lags takes over.
    Promotion,
    /// It restarts with the data of a moment before.
    Rollback,
    /// It takes over the keys of a moment before, as a replica, and its process goes on.
    Relapse,
    /// A client is a copy of another one, with the same randomness and the same clock.
    Clone,
    /// The clock is far ahead, or behind, whenever it renews a lease, and right before and after.
    RenewalStrobe,
    /// Its address leads to another server for a while, and then to the first again.
    Detour,
    /// It restarts with older data, and with a clock that is wrong, as is that of a client on its
    /// host, which is new, and the only one to reach it, and reaches nobody else.
    SharedClock,
    /// A client's first answers come late, or long ago, so that it knows the time vaguely. The
    /// clocks of some masters are off, and put right while it has locks.
    LateHandshake,
    /// Somebody deletes keys, and the record stays.
    Eviction,
    /// The set of masters changes, again and again, while masters restart empty.
    Members,
    /// Some clients were given other masters than the set has, and masters restart empty.
    MixedLists,
    /// The set changes and is lost, for masters restart at once, empty or not, and begins again.
    LostSets,
    /// A change of the set is cut short: masters restart while some accepted it, or were told.
    CutShort,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::RestartEmpty,
        Self::ClockStep,
        Self::ClockStrobe,
        Self::FlushAll,
        Self::Promotion,
        Self::Rollback,
        Self::Relapse,
        Self::Clone,
        Self::RenewalStrobe,
        Self::Detour,
        Self::SharedClock,
        Self::Eviction,
        Self::Members,
        Self::MixedLists,
        Self::LateHandshake,
        Self::LostSets,
        Self::CutShort,
    ];

    /// `any`: those that such locks are guarded against.
    pub fn guarded(locks: Locks) -> Vec<Self> {
        let is_one = |kind: &Self| !kind.is_by_itself() && kind.is_survived_by(locks);
        Self::ALL.into_iter().filter(is_one).collect()
    }

    /// Whether such locks are guarded against it. Redis's own expiry ends the keys of other
    /// libraries, so clocks free them.
    pub fn is_survived_by(self, locks: Locks) -> bool {
        !(locks.are_shared() && self.is_of_clocks())
    }

    /// Whether it is none of `any`: what nothing guards against, runs that take long, and what came
    /// later, for one more would give each seed of `any` another fault.
    fn is_by_itself(self) -> bool {
        use Kind::{CutShort, Eviction, LateHandshake, LostSets, Members, MixedLists};
        matches!(self, Eviction | Members | MixedLists | LateHandshake | LostSets | CutShort)
    }

    /// Whether masters' clocks are set.
    fn is_of_clocks(self) -> bool {
        use Kind::{ClockStep, ClockStrobe, LateHandshake, RenewalStrobe, SharedClock};
        matches!(self, ClockStep | ClockStrobe | RenewalStrobe | SharedClock | LateHandshake)
    }

    /// How many masters may have it in one run. What clocks show is judged by what most of them
    /// show, except where nobody reaches those that are wrong.
    pub(crate) fn most_masters(self) -> usize {
        match self {
            Self::ClockStep | Self::ClockStrobe | Self::RenewalStrobe | Self::LateHandshake => MASTERS / 2,
            Self::SharedClock => MASTERS / 2 + 1,
            _ => MASTERS,
        }
    }

    /// What the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::RestartEmpty => "restart-empty",
            Self::ClockStep => "clock-step",
            Self::ClockStrobe => "clock-strobe",
            Self::FlushAll => "flush-all",
            Self::Promotion => "promotion",
            Self::Rollback => "rollback",
            Self::Relapse => "relapse",
            Self::Clone => "clone",
            Self::RenewalStrobe => "renewal-strobe",
            Self::Detour => "detour",
            Self::SharedClock => "shared-clock",
            Self::Eviction => "eviction",
            Self::Members => "members",
            Self::MixedLists => "mixed-lists",
            Self::LateHandshake => "late-handshake",
            Self::LostSets => "lost-sets",
            Self::CutShort => "cut-short",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// For how long faults begin.
const STORM: Duration = Duration::from_millis(2_500);

/// Whom ordinary faults are about, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) clients: usize,
    pub(crate) masters: usize,
    /// For how long they begin.
    pub(crate) storm: Duration,
}

/// The faults of one run.
pub(crate) fn plan(dice: &Dice, profile: Profile, ttl: Duration) -> Vec<Fault> {
    let ordinary = *dice.one_of(&[0, 4, 12, 24]);
    let are_mixed = profile == Profile::Outside(Kind::MixedLists);
    let masters = if are_mixed { MASTERS + JOINERS } else { MASTERS };
    let scope = Scope { clients: CLIENTS, masters, storm: STORM };
    let mut faults: Vec<Fault> =
        (0..ordinary).map(|number| ordinary_fault(dice, number, ttl, scope)).collect();
    if let Profile::Outside(kind) = profile {
        let kind = if are_mixed { Kind::RestartEmpty } else { kind };
        let first = dice.below(MASTERS);
        let most = kind.most_masters();
        let times = match kind {
            Kind::Clone | Kind::LateHandshake => 0, // it is there from the beginning; see `late.rs`
            Kind::SharedClock => 1,
            _ => 1 + dice.below(3),
        };
        for _ in 0..times {
            let strikes = |_: &usize| kind == Kind::SharedClock || dice.happens(500);
            let masters = (0..most).map(|next| (first + next) % MASTERS).filter(strikes).collect();
            let at = dice.time(Duration::ZERO, STORM);
            // Far enough for every key to be over, or so little that it may go unseen.
            let by = if dice.happens(500) { STEP } else { dice.between(-SMALL_STEP, SMALL_STEP) };
            let (at, until) = match kind {
                Kind::RenewalStrobe => (at, at + dice.time(ttl / 4, ttl * 2)),
                Kind::Detour => (at, at + dice.time(Duration::ZERO, LONG_DETOUR)),
                Kind::SharedClock => (Duration::ZERO, at.max(ttl / 2)),
                _ => (at, at + dice.millis(5, 200)),
            };
            // Behind, a quarantine that is measured by it is over when it is put right.
            let by = if kind == Kind::SharedClock && dice.happens(700) { -STEP } else { by };
            let what = What::Excluded { kind, masters, by };
            faults.push(Fault { number: faults.len(), at, until, what });
        }
    }
    faults
}

impl Fault {
    /// When a master restarts whose clock is wrong then; older data are of half that time.
    pub(crate) fn struck_at(&self) -> Time {
        self.until * 9 / 10
    }

    /// In which directions it keeps messages between these from getting through at this moment.
    pub(crate) fn cuts(&self, client: usize, master: usize, now: Time) -> (bool, bool) {
        match &self.what {
            What::Cut { client: one, master: other, there, back } if (*one, *other) == (client, master) => {
                (*there, *back)
            }
            // The client of a number is on the host of the master of that number.
            What::Excluded { kind: Kind::SharedClock, masters, .. } => {
                let is_cut = |host: &usize| (client == *host) != (master == *host && now >= self.struck_at());
                let is_cut = masters.iter().any(is_cut);
                (is_cut, is_cut)
            }
            _ => (false, false),
        }
    }
}

/// One that Redlock is made for.
pub(crate) fn ordinary_fault(dice: &Dice, number: usize, ttl: Duration, scope: Scope) -> Fault {
    let client = dice.below(scope.clients);
    let master = dice.below(scope.masters);
    let at = dice.time(Duration::ZERO, scope.storm);
    let lasts = dice.time(Duration::from_millis(5), ttl * 3 / 2);
    let what = match dice.below(17) {
        0..=1 => What::Slow { client, master, delay: dice.time(Duration::ZERO, ttl) },
        2..=4 => {
            let way = dice.below(3);
            What::Cut { client, master, there: way != 0, back: way != 1 }
        }
        5..=7 => What::Break { client, master },
        8..=9 => What::Freeze { master },
        10..=11 => What::Restart { master },
        12..=14 => What::Pause { client },
        15 => What::Step { client, by: dice.between(-STEP, STEP) },
        _ if dice.happens(400) => What::Kill { client },
        _ => What::Pause { client },
    };
    Fault { number, at, until: at + lasts, what }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = format!("until {:.6}", self.until.as_secs_f64());
        write!(f, "fault {}: ", self.number)?;
        match &self.what {
            What::Slow { client, master, delay } => {
                write!(f, "c{client} m{master} up to {delay:?} slower {until}")
            }
            What::Cut { client, master, there, back } => {
                let way = match (there, back) {
                    (true, false) => "there",
                    (false, true) => "back",
                    _ => "there or back",
                };
                write!(f, "c{client} m{master} nothing gets {way} {until}")
            }
            What::Break { client, master } => write!(f, "c{client} m{master} the connection breaks"),
            What::Freeze { master } => write!(f, "m{master} stands still {until}"),
            What::Restart { master } => write!(f, "m{master} is down {until}"),
            What::Pause { client } => write!(f, "c{client} stands still {until}"),
            What::Kill { client } => write!(f, "c{client} is killed"),
            What::Step { client, by } => write!(f, "c{client} its wall clock is set by {by} us"),
            What::Change { client, change } => write!(f, "c{client} {change}"),
            What::Disaster { disaster, .. } => disaster.fmt(f),
            What::Excluded { kind, masters, by } => {
                write!(f, "{kind} on")?;
                masters.iter().try_for_each(|master| write!(f, " m{master}"))?;
                if kind.is_of_clocks() {
                    write!(f, " by {by} us")?;
                }
                write!(f, " {until}")
            }
        }
    }
}

/// How far clocks are set: far enough for every key to be over.
const STEP: i64 = 60_000_000;

/// How long addresses lead to other servers, at most: for longer than a quarantine lasts, so that
/// some of them vote.
const LONG_DETOUR: Duration = Duration::from_secs(12);

/// How far at most, where it is little.
const SMALL_STEP: i64 = 3_000_000;
