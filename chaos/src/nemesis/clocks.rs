//! Masters' wall clocks that jump.

use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use quorate_testkit::{ServerClock, Strobe, Toxic, Way};

use super::wound::Wound;
use crate::arena::Arena;

/// What a renewal has on the wire, and no other command.
const RENEWAL: &str = "extend";

/// What happens to a master's wall clock. Healed, it is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// It is stepped forward or back.
    Step {
        /// How far.
        millis: i64,
    },
    /// It is stepped and stepped back, over and over, like one that two sources set.
    Strobe {
        /// How far.
        millis: i64,
        /// How long it stays where it is.
        every: Duration,
    },
    /// It is wrong whenever a client renews a lease, and right before and after.
    Renewals {
        /// How far it is off.
        millis: i64,
    },
    /// The host comes up with a clock that is wrong. On it are the master and a client, which is
    /// new and reaches no other master.
    Host {
        /// How far it is off.
        millis: i64,
    },
}

impl Clocks {
    pub(super) fn strike(self, arena: &mut Arena, masters: &[usize], clients: &[usize]) -> Wound {
        let clocks: Vec<_> = masters.iter().map(|master| arena.masters[*master].process().clock()).collect();
        match self {
            Self::Step { millis } => {
                clocks.iter().for_each(|clock| clock.step(millis));
                Wound::new(move |_| put_right(&clocks))
            }
            Self::Strobe { millis, every } => {
                let (end, ended) = mpsc::channel::<()>();
                let strobe = thread::spawn(move || {
                    let mut offsets = [millis, 0].into_iter().cycle();
                    let mut step = || {
                        let offset = offsets.next().unwrap_or_default();
                        clocks.iter().for_each(|clock| clock.set_offset(offset));
                    };
                    step();
                    while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                        step();
                    }
                    put_right(&clocks);
                });
                Wound::new(move |_| {
                    drop(end);
                    strobe.join().expect("a strobe ends");
                })
            }
            Self::Renewals { millis } => {
                let strobes =
                    clocks.iter().map(|clock| Strobe { word: RENEWAL, clock: clock.clone(), millis });
                strobe(arena, masters, strobes.map(Some));
                let masters = masters.to_vec();
                Wound::new(move |arena| {
                    strobe(arena, &masters, masters.iter().map(|_| None));
                    put_right(&clocks);
                })
            }
            Self::Host { millis } => boot(arena, masters[0], clients[0], millis),
        }
    }
}

/// On the ways of all clients to these masters.
fn strobe(arena: &Arena, masters: &[usize], strobes: impl Iterator<Item = Option<Strobe>>) {
    for (master, strobe) in masters.iter().zip(strobes) {
        (0..arena.places()).for_each(|client| arena.proxy(client, *master).strobe(strobe.clone()));
    }
}

/// A master and a client start anew, by a clock that is so far off.
fn boot(arena: &mut Arena, master: usize, client: usize, millis: i64) -> Wound {
    arena.clients[client].kill();
    arena.masters[master].kill();
    let clocks = [arena.masters[master].process().clock(), arena.clients[client].clock().clone()];
    clocks.iter().for_each(|clock| clock.set_offset(millis));
    let others = (0..arena.masters.len()).filter(|other| *other != master);
    let cut = |other| (other, arena.proxy(client, other).add(Way::Both, Toxic::Blackhole));
    let holes: Vec<_> = others.map(cut).collect();
    arena.masters[master].restart();
    arena.clients[client].restart();
    Wound::new(move |arena| {
        put_right(&clocks);
        for (other, hole) in holes {
            arena.proxy(client, other).remove(hole);
        }
    })
}

fn put_right(clocks: &[ServerClock]) {
    clocks.iter().for_each(|clock| clock.set_offset(0));
}

impl fmt::Display for Clocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step { millis } => write!(f, "clock stepped by {millis} ms"),
            Self::Strobe { millis, every } => write!(f, "clock to and fro by {millis} ms every {every:?}"),
            Self::Renewals { millis } => write!(f, "clock off by {millis} ms in renewals"),
            Self::Host { millis } => write!(f, "host comes up with its clock off by {millis} ms"),
        }
    }
}
