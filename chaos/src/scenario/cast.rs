//! Which masters and clients faults strike.

use std::ops::Range;
use std::time::Duration;

use quorate_testkit::Dice;

use crate::nemesis::{Clocks, Fault, Replicas, What};

/// What faults strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Targets {
    /// A minority of the masters, mostly, and sometimes more; other ones each time.
    Any,
    /// Always masters of the same minority.
    Minority,
}

/// Masters and clients, and which of them have a fault.
pub(super) struct Cast<'a> {
    dice: &'a Dice,
    masters: usize,
    /// Those that faults may strike, if not all.
    minority: Option<Vec<usize>>,
    /// Until when each master has a fault, and then each client.
    busy: Vec<Duration>,
    /// Until when each master's wall clock is wrong, or its address.
    wrong: Vec<Duration>,
}

impl<'a> Cast<'a> {
    pub(super) fn new(dice: &'a Dice, targets: Targets, masters: usize, clients: usize) -> Self {
        let first = dice.below(masters.max(1));
        let minority = || (0..masters).cycle().skip(first).take(most(masters)).collect();
        let busy = vec![Duration::ZERO; masters + clients];
        let wrong = vec![Duration::ZERO; masters];
        Self { dice, masters, minority: (targets == Targets::Minority).then(minority), busy, wrong }
    }

    /// This fault, on those that are free; `None` if nobody is.
    pub(super) fn fault(&mut self, what: What, at: Duration, until: Duration) -> Option<Fault> {
        let masters = 0..self.masters;
        let clients = self.masters..self.busy.len();
        let mut masters = self.some_of(masters);
        let mut clients = self.some_of(clients);
        if let Some(minority) = &self.minority {
            masters.clone_from(minority);
            clients = (self.masters..self.busy.len()).collect();
        }
        match what {
            What::Network(_) => {}
            What::Clients(_) => {
                masters.clear();
                self.occupy(&mut clients, at, until);
            }
            What::Clocks(Clocks::Host { .. }) => {
                masters.truncate(1);
                clients.truncate(1);
                self.leave_right(what, &mut masters, at, until);
                self.occupy(&mut masters, at, until);
                self.occupy(&mut clients, at, until);
            }
            _ => {
                clients.clear();
                self.leave_right(what, &mut masters, at, until);
                self.occupy(&mut masters, at, until);
            }
        }
        let clients: Vec<_> = clients.into_iter().map(|client| client - self.masters).collect();
        let strikes = match what {
            What::Network(_) | What::Clocks(Clocks::Host { .. }) => {
                !masters.is_empty() && !clients.is_empty()
            }
            _ => !masters.is_empty() || !clients.is_empty(),
        };
        strikes.then_some(Fault { what, masters, clients })
    }

    /// A minority, mostly, from anywhere in a row.
    fn some_of(&self, all: Range<usize>) -> Vec<usize> {
        let most = if self.dice.happens(750) { all.len() / 2 } else { all.len() };
        let first = self.dice.below(all.len().max(1));
        let count = 1 + self.dice.below(most.max(1));
        let mut some: Vec<_> = all.clone().cycle().skip(first).take(count.min(all.len())).collect();
        some.sort_unstable();
        some
    }

    /// Leaves out those that have a fault, and has the others have one.
    fn occupy(&mut self, places: &mut Vec<usize>, at: Duration, until: Duration) {
        places.retain(|place| self.busy[*place] <= at);
        places.iter().for_each(|place| self.busy[*place] = until);
    }

    /// Leaves the clocks of a majority right: where those jump, nothing is promised. And the
    /// addresses of a majority: where those lead to servers of no set, clients do not wait.
    fn leave_right(&mut self, what: What, masters: &mut Vec<usize>, at: Duration, until: Duration) {
        if !matches!(what, What::Clocks(_) | What::Replicas(Replicas::Detour { has_copy: false })) {
            return;
        }
        masters.retain(|master| self.busy[*master] <= at);
        let wrong = self.wrong.iter().filter(|wrong| **wrong > at).count();
        masters.truncate(most(self.masters).saturating_sub(wrong));
        masters.iter().for_each(|master| self.wrong[*master] = until);
    }
}

/// How many masters are a minority at most.
fn most(masters: usize) -> usize {
    masters.saturating_sub(1) / 2
}
