//! Which masters each client was given, where some were given others than the set has.

use std::collections::BTreeMap;

use quorate_testkit::Dice;

use crate::client::ClientNumber;
use crate::size::{CLIENTS, JOINERS, MASTERS};

/// The lists of masters of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    /// The clients whose list is not that of the set, and those lists.
    others: BTreeMap<ClientNumber, Vec<usize>>,
    /// The clients that begin sets, before anybody works.
    pub(crate) founders: Vec<ClientNumber>,
    /// Whether masters may have been used before.
    pub(crate) are_used: bool,
}

impl Lists {
    /// All clients have that of the set, which one process begins.
    pub(crate) fn founded() -> Self {
        Self::begun_by(CLIENTS)
    }

    /// The same, by this process.
    pub(crate) fn begun_by(founder: ClientNumber) -> Self {
        Self { founders: vec![founder], ..Self::default() }
    }

    /// The list of each set that a process begins.
    pub(crate) fn founded_lists(&self) -> Vec<Vec<usize>> {
        self.founders.iter().map(|founder| self.of(*founder)).collect()
    }

    /// One or two clients have another list. The masters that are not of the set are empty, or a
    /// set of their own.
    pub(crate) fn mixed(dice: &Dice) -> Self {
        let first = dice.below(CLIENTS);
        let list = other_list(dice);
        let mut lists = Self { others: [(first, list.clone())].into(), ..Self::founded() };
        if dice.happens(500) {
            let list = if dice.happens(500) { list } else { other_list(dice) };
            lists.others.insert((first + 1) % CLIENTS, list);
        }
        if dice.happens(500) {
            lists.founders.push(CLIENTS + 1);
            lists.others.insert(CLIENTS + 1, (MASTERS..MASTERS + JOINERS).collect());
        }
        lists
    }

    /// The masters that a client was given.
    pub(crate) fn of(&self, client: ClientNumber) -> Vec<usize> {
        self.others.get(&client).cloned().unwrap_or_else(|| (0..MASTERS).collect())
    }

    /// Whether a client's list is that of the set.
    pub(crate) fn is_of_set(&self, client: ClientNumber) -> bool {
        !self.others.contains_key(&client)
    }

    /// The clients that get no lock, whichever masters they hear. A list with one or two other
    /// names may be that of the set, as long as nobody answers under these: its client may have
    /// names of its own for the masters.
    pub(crate) fn refused(&self) -> Vec<ClientNumber> {
        let is_of_few =
            |list: &Vec<usize>| list.iter().filter(|master| **master < MASTERS).count() <= MASTERS / 2;
        let others = self.others.iter().filter(|(_, list)| list.len() != MASTERS || is_of_few(list));
        others.map(|(client, _)| *client).collect()
    }
}

/// A list with one to three masters replaced, or one or two more or less.
fn other_list(dice: &Dice) -> Vec<usize> {
    let (less, more) = match dice.below(4) {
        0 => (1 + dice.below(2), 0),
        1 => (0, 1 + dice.below(2)),
        _ => {
            let replaced = 1 + dice.below(JOINERS);
            (replaced, replaced)
        }
    };
    let mut list: Vec<usize> = (0..MASTERS).collect();
    for _ in 0..less {
        list.remove(dice.below(list.len()));
    }
    let first = dice.below(JOINERS);
    list.extend((0..more).map(|next| MASTERS + (first + next) % JOINERS));
    list
}
