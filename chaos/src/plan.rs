//! Which faults there are, and when: what a seed decides before a run begins. A plan is a list, so that parts of it can be
//! left out.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use quorate_testkit::{Dice, Toxic, Way};

use crate::arena::Arena;
use crate::nemesis::{
    Clients, Clocks, Commands, Disks, Fault, Keys, Limits, Network, Replicas, Servers, What, Wound,
};
use crate::run::Stop;

/// How long a fault lasts, at least and at most.
const LASTS: Range<Duration> = Duration::from_millis(100)..Duration::from_secs(4);

/// The longest pause between two faults.
const PAUSE: Duration = Duration::from_millis(1_500);

/// What may go wrong in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Nothing but what Redlock is made for, if masters persist [always](crate::Persistence::Always): networks and processes that
    /// delay, lose, break and stand still; masters that refuse, or are killed and keep their data.
    Inside,
    /// Besides, what Redlock's argument excludes: masters that forget, clocks that jump.
    Outside,
}

/// The faults of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What decided everything.
    pub seed: u64,
    /// The faults, in the order in which they begin.
    pub faults: Vec<Planned>,
}

/// A fault, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its number in the plan, by which it is left out.
    pub number: usize,
    /// When it strikes, from the beginning of the run.
    pub at: Duration,
    /// When it is healed.
    pub until: Duration,
    /// What it is.
    pub fault: Fault,
}

/// What a run does, as it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A fault is about to strike.
    Strikes(&'a Planned),
    /// It has been healed.
    Healed(&'a Planned),
}

impl Plan {
    /// The plan of a seed: faults that begin within `length`, on so many masters and clients. No master, and no client, has
    /// two at a time, but for those of the network.
    pub fn new(seed: u64, profile: Profile, masters: usize, clients: usize, length: Duration) -> Self {
        let dice = Dice::new(seed, "nemesis", 0);
        let mut draw = Draw { dice: &dice, profile, busy: vec![Duration::ZERO; masters + clients], masters };
        let (mut faults, mut at) = (Vec::new(), dice.time(Duration::ZERO, PAUSE));
        while at < length {
            let until = at + dice.time(LASTS.start, LASTS.end);
            if let Some(fault) = draw.fault(at, until) {
                faults.push(Planned { number: faults.len(), at, until, fault });
            }
            at += dice.time(Duration::ZERO, PAUSE);
        }
        Self { seed, faults }
    }

    /// The same with none but these faults.
    #[must_use]
    pub fn with_faults(mut self, faults: &[usize]) -> Self {
        self.faults.retain(|fault| faults.contains(&fault.number));
        self
    }

    /// When the last fault is healed.
    pub fn healed(&self) -> Duration {
        self.faults.iter().map(|fault| fault.until).max().unwrap_or_default()
    }

    /// Carries it out. Returns when everything is healed; later than planned, where masters take their time. Whether it came to its
    /// end: if it is stopped, what has struck stays.
    ///
    /// # Panics
    ///
    /// When a master that has to answer does not, or does not start.
    #[allow(clippy::disallowed_methods, reason = "faults come by the machine's time")]
    pub fn run(&self, arena: &mut Arena, stop: &Stop, mut tell: impl FnMut(Event<'_>)) -> bool {
        let begun = std::time::Instant::now();
        let mut wounds: Vec<(&Planned, Wound)> = Vec::new();
        for (at, planned, strikes) in self.agenda() {
            if !stop.wait(at.saturating_sub(begun.elapsed())) {
                return false;
            }
            if strikes {
                tell(Event::Strikes(planned));
                wounds.push((planned, planned.fault.strike(arena)));
            } else if let Some(place) = wounds.iter().position(|(of, _)| of.number == planned.number) {
                wounds.swap_remove(place).1.heal(arena);
                tell(Event::Healed(planned));
            }
        }
        true
    }

    /// What happens, in the order of time: faults that strike, and faults that are healed.
    fn agenda(&self) -> Vec<(Duration, &Planned, bool)> {
        let strikes = self.faults.iter().map(|planned| (planned.at, planned, true));
        let heals = self.faults.iter().map(|planned| (planned.until, planned, false));
        let mut agenda: Vec<_> = strikes.chain(heals).collect();
        agenda.sort_by_key(|(at, _, strikes)| (*at, *strikes)); // whoever is healed is struck again after that
        agenda
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, at, until, fault } = self;
        write!(f, "fault {number}, {:.3} to {:.3} s: {fault}", at.as_secs_f64(), until.as_secs_f64())
    }
}

/// What faults are drawn with.
struct Draw<'a> {
    dice: &'a Dice,
    profile: Profile,
    /// Until when each master has a fault, and then each client.
    busy: Vec<Duration>,
    masters: usize,
}

impl Draw<'_> {
    /// A fault of those that are free; `None` if nobody is.
    fn fault(&mut self, at: Duration, until: Duration) -> Option<Fault> {
        let what = match (self.profile, self.dice.below(4)) {
            (Profile::Outside, 0) => self.excluded(),
            _ => self.ordinary(),
        };
        let (masters, clients) = (0..self.masters, self.masters..self.busy.len());
        let (mut masters, mut clients) = (self.some_of(masters), self.some_of(clients));
        match what {
            What::Network(_) => {}
            What::Clients(_) => {
                masters.clear();
                self.occupy(&mut clients, at, until);
            }
            _ => {
                clients.clear();
                self.occupy(&mut masters, at, until);
            }
        }
        let clients: Vec<_> = clients.into_iter().map(|client| client - self.masters).collect();
        let strikes = match what {
            What::Network(_) => !masters.is_empty() && !clients.is_empty(),
            _ => !masters.is_empty() || !clients.is_empty(),
        };
        strikes.then_some(Fault { what, masters, clients })
    }

    /// A minority, mostly, from anywhere in a row.
    fn some_of(&self, all: Range<usize>) -> Vec<usize> {
        let most = if self.dice.happens(750) { all.len() / 2 } else { all.len() };
        let (first, count) = (self.dice.below(all.len().max(1)), 1 + self.dice.below(most.max(1)));
        let mut some: Vec<_> = all.clone().cycle().skip(first).take(count.min(all.len())).collect();
        some.sort_unstable();
        some
    }

    /// Leaves out those that have a fault, and has the others have one.
    fn occupy(&mut self, places: &mut Vec<usize>, at: Duration, until: Duration) {
        places.retain(|place| self.busy[*place] <= at);
        places.iter().for_each(|place| self.busy[*place] = until);
    }

    fn ordinary(&self) -> What {
        let dice = self.dice;
        match dice.below(16) {
            0..=1 => What::Servers(Servers::Kill),
            2..=3 => What::Servers(Servers::Freeze),
            4..=8 => What::Network(self.network()),
            9 => What::Commands(Commands::ScriptFlush),
            10 => What::Commands(Commands::ClientKill),
            11 => What::Commands(*dice.one_of(&[Commands::ClientPause, Commands::BusyScript])),
            12 => What::Limits(*dice.one_of(&[Limits::OutOfMemory, Limits::ReadOnly])),
            13 => What::Disks(Disks::Slow { delay: dice.millis(10, 3_000) }),
            14 => What::Clients(Clients::Kill),
            _ => What::Clients(Clients::Freeze),
        }
    }

    fn network(&self) -> Network {
        let dice = self.dice;
        let way = *dice.one_of(&[Way::There, Way::Back, Way::Both]);
        let toxic = match dice.below(9) {
            0..=2 => Toxic::Blackhole,
            3 => Toxic::Latency { delay: dice.millis(1, 300), jitter: dice.millis(0, 300) },
            4 => Toxic::Bandwidth { bytes_per_second: 100 + dice.below(10_000) as u64 },
            5 => Toxic::SlowClose { delay: dice.millis(10, 2_000) },
            6 => Toxic::Cut { per_mille: 1 + dice.below(200) as u64 },
            7 => return *dice.one_of(&[Network::Reset, Network::HalfOpen]),
            _ => Toxic::Reset,
        };
        Network::Toxic(way, toxic)
    }

    /// What Redlock's argument excludes.
    fn excluded(&self) -> What {
        let dice = self.dice;
        let millis = *dice.one_of(&[-60_000, -2_000, 2_000, 60_000]);
        match dice.below(7) {
            0 => What::Servers(Servers::KillEmpty),
            1 => What::Clocks(Clocks::Step { millis }),
            2 => What::Clocks(Clocks::Strobe { millis, every: dice.millis(1, 400) }),
            3 => What::Keys(Keys::FlushAll),
            4 => What::Keys(Keys::WipeByReplication),
            5 => What::Keys(Keys::Evict),
            _ => What::Replicas(Replicas::Promotion),
        }
    }
}
