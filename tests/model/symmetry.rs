//! Masters are alike, and so are attempts: states that differ in names only are one to the search.

use std::array;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::client::{Attempt, Call, Phase};
use crate::master::Owner;
use crate::profiles::Profile;
use crate::world::{Place, World};

/// What the search remembers of a state.
pub(crate) type Print = u64;

/// All of a state that a rule may still read, in few bits. Of those with other names, the least stands for all.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Code<const N: usize, const K: usize> {
    places: [u64; N],
    attempts: [u64; K],
    rest: [u8; 4],
}

impl<const N: usize, const K: usize> World<N, K> {
    /// The same number for states that differ in names only. Others have other numbers, as far as 64 bits go: in 10
    /// million states, there are two alike by odds of one in 300,000.
    pub(crate) fn print(&self, profile: &Profile) -> Print {
        let mut order = array::from_fn(|who| who);
        let mut least = self.code(&order, profile);
        while next_order(&mut order) {
            least = least.min(self.code(&order, profile));
        }
        let mut hasher = DefaultHasher::new();
        least.hash(&mut hasher);
        hasher.finish()
    }

    /// The state with attempt `order[0]` as the first, and so on, and the masters in order.
    fn code(&self, order: &[usize; K], profile: &Profile) -> Code<N, K> {
        let mut places = self.places.map(|place| self.place_code(&place, order, profile));
        places.sort_unstable();
        let attempts = order.map(|who| attempt_code(&self.attempts[who], profile));
        let broken = self.broken.map_or(0, |broken| 1 + broken as u8);
        Code { places, attempts, rest: [self.now, self.losses, self.duplicates, broken] }
    }

    fn place_code(&self, place: &Place<K>, order: &[usize; K], profile: &Profile) -> u64 {
        let master = place.master;
        let renamed = |owner: Option<Owner>| {
            let at = order.iter().position(|&who| owner == Some(who as Owner));
            at.map_or(0, |at| at as u8 + 1)
        };
        // Only an extend asks whose a record is.
        let held = if profile.extends { renamed(master.held) } else { 0 };
        let code = Bits(0).put(master.counter, 6).put(held, 2);
        let mut code = code.put(renamed(master.holder), 2).put(master.silent_until, 4);
        for &who in order {
            let Call { runs, replies, agreed, released } = place.calls[who];
            // A greater number that cannot be forgotten refuses extends by itself.
            let released = released && (profile.losses > 0 || master.counter <= self.attempts[who].token);
            code = code.put(runs, 2).put(replies[0], 6).put(replies[1], 6).flag(agreed).flag(released);
        }
        code.0
    }
}

fn attempt_code(attempt: &Attempt, profile: &Profile) -> u64 {
    let Attempt { phase, proposal, token, before, confirms, sent, leased, overtaken, revived, released } =
        *attempt;
    // Without losses no majority matters that has released: not one of its masters agrees to an extend.
    let forgetful = profile.losses > 0;
    let timed = profile.lease.is_some();
    let code = Bits(0).put(phase as u8, 2).put(proposal, 6).put(token, 6).put(before, 6);
    let code = code.put(if timed { leased } else { 0 }, 3);
    let code = code.put(if timed && phase == Phase::Holding { sent } else { 0 }, 3);
    code.flag(confirms).flag(overtaken).flag(revived && forgetful).flag(released && forgetful).0
}

/// Numbers side by side.
struct Bits(u64);

impl Bits {
    fn put(self, number: u8, width: u32) -> Self {
        assert!(u32::from(number) < 1 << width, "{number} is more than {width} bits");
        Self(self.0 << width | u64::from(number))
    }

    fn flag(self, set: bool) -> Self {
        self.put(set.into(), 1)
    }
}

/// Makes the next of all orders, as in a dictionary. There is none after the last.
fn next_order(order: &mut [usize]) -> bool {
    let Some(rise) = order.windows(2).rposition(|pair| pair[0] < pair[1]) else { return false };
    let above = order.iter().rposition(|&who| who > order[rise]).unwrap_or(rise);
    order.swap(rise, above);
    order[rise + 1..].reverse();
    true
}

#[cfg(test)]
mod tests {
    use super::next_order;

    #[test]
    fn every_order_comes_once() {
        let mut order = [0, 1, 2];
        let mut seen = vec![order];
        while next_order(&mut order) {
            seen.push(order);
        }
        assert_eq!(seen, [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]);
    }
}
