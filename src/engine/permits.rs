//! Which permit of a semaphore to ask for. Each permit is a lock of its own on the masters, so that
//! no rule here can let too many in.

use std::collections::HashMap;
use std::sync::Arc;

use crate::round::free_permits;
use crate::sync::{Mutex, MutexGuard};
use crate::vote::Vote;
use crate::wire::Permit;

/// The permits that this client has or asks for, by the semaphore's name.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<HashMap<Arc<str>, Vec<u32>>>);

impl Pool {
    /// Picks a permit, by this random number: one that is free by the last votes, rather one that
    /// this client does not have; where the votes name none, one that this client does not have;
    /// otherwise any. A permit counts as this client's until its `Picked` is dropped, which a slow
    /// master may put off until long after the release; so the votes go first.
    pub(super) fn pick(self: &Arc<Self>, name: &Arc<str>, of: u32, votes: &[Vote], random: u64) -> Picked {
        let mut names = self.lock();
        let own = names.entry(name.clone()).or_default();
        let mut is_own = vec![false; of as usize];
        for number in own.iter().filter(|number| **number < of) {
            is_own[*number as usize] = true;
        }
        let others = |permits: &[u32]| -> Vec<u32> {
            permits.iter().copied().filter(|number| !is_own[*number as usize]).collect()
        };
        let free = free_permits(votes, of).unwrap_or_default();
        let all = Vec::from_iter(0..of);
        let choices = [others(&free), free, others(&all), all];
        let choice = choices.iter().find(|choice| !choice.is_empty()).expect("a semaphore has a permit");
        let number = choice[(random % choice.len() as u64) as usize];
        own.push(number);
        Picked { pool: self.clone(), name: name.clone(), permit: Permit { number, of } }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Vec<u32>>> {
        self.0.lock()
    }
}

/// A permit that this client has or asks for.
#[derive(Debug)]
pub(crate) struct Picked {
    pool: Arc<Pool>,
    name: Arc<str>,
    pub(super) permit: Permit,
}

impl Drop for Picked {
    fn drop(&mut self) {
        let mut names = self.pool.lock();
        let Some(own) = names.get_mut(&self.name) else { return };
        if let Some(place) = own.iter().position(|number| *number == self.permit.number) {
            own.swap_remove(place);
        }
        if own.is_empty() {
            names.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vote::{Outcome, Permits};

    fn told(free: &[u32]) -> Vote {
        Vote::of(Outcome::held_by("a", None, None, Some(Permits::new(free.into(), None))))
    }

    #[test]
    fn what_is_free_is_picked_first_and_what_is_ones_own_last() {
        let pool = Arc::new(Pool::default());
        let name = Arc::from("s");
        let votes = [told(&[2, 3]), told(&[2, 3]), told(&[3, 2])];
        let picked = |votes, random| pool.pick(&name, 4, votes, random);
        let free = [picked(&votes, 0), picked(&votes, 0)];
        assert_eq!(free.each_ref().map(|picked| picked.permit.number), [2, 3]);
        assert_eq!(picked(&votes, 1).permit.number, 3, "its own, which the masters say is free");
        let others = [picked(&[], 1), picked(&[], 0)];
        assert_eq!(others.each_ref().map(|picked| picked.permit.number), [1, 0]);
        assert_eq!(picked(&[], 7).permit.number, 3, "all are its own");
        drop((free, others));
        assert!(pool.lock().is_empty(), "nothing is left");
    }
}
