//! The local queues: of the waiters for one lock in one client only the first asks the masters, or
//! the first few where several can have the lock: readers, and those who want a permit.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Holder;
use crate::sync::{Mutex, MutexGuard};
use crate::vote::Votes;

/// The local queues of a client.
#[derive(Debug)]
pub(crate) struct LocalQueues {
    /// How many may wait in one queue.
    limit: usize,
    queues: Mutex<HashMap<Key, LocalQueue>>,
}

/// The lock's kind, and its name. Kinds have queues of their own: the first waiter for one kind may
/// wait until an owner that waits for the other kind has been served.
type Key = (&'static str, Arc<str>);

#[derive(Debug)]
struct LocalQueue {
    /// One turn for each waiter that may ask the masters at the same time. Tokio's semaphore
    /// serves waiters in order, and a cancelled one costs nobody their place.
    turns: Arc<Semaphore>,
    length: usize,
    last_holder: Option<LastHolder>,
}

/// Who had the lock when a waiter last asked the masters.
#[derive(Clone, Debug)]
pub(crate) struct LastHolder {
    pub(crate) holder: Box<Holder>,
    pub(crate) votes: Votes,
}

impl LocalQueues {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, queues: Mutex::default() })
    }

    /// Joins the end of the queue for the lock `name` of this kind. `abreast` waiters may ask at
    /// the same time. `Err` is the limit, if the queue is full.
    pub(crate) fn join(
        self: &Arc<Self>,
        kind: &'static str,
        name: &Arc<str>,
        abreast: usize,
    ) -> Result<LocalSlot, usize> {
        let mut queues = self.lock();
        let key = (kind, name.clone());
        let queue = queues.entry(key.clone()).or_insert_with(|| LocalQueue {
            turns: Arc::new(Semaphore::new(abreast)),
            length: 0,
            last_holder: None,
        });
        if queue.length >= self.limit {
            return Err(self.limit);
        }
        queue.length += 1;
        let turns = queue.turns.clone();
        Ok(LocalSlot { queues: self.clone(), key, turns, turn: None })
    }

    /// Whether anybody waits for this lock.
    pub(crate) fn has(&self, kind: &'static str, name: &Arc<str>) -> bool {
        self.lock().contains_key(&(kind, name.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, LocalQueue>> {
        self.queues.lock()
    }
}

/// A place in a local queue. Dropping it leaves the queue, and lets the next waiter be first.
#[derive(Debug)]
pub(crate) struct LocalSlot {
    queues: Arc<LocalQueues>,
    key: Key,
    turns: Arc<Semaphore>,
    turn: Option<OwnedSemaphorePermit>,
}

impl LocalSlot {
    /// Waits until this is one of the first. The order is that of the first polls.
    pub(crate) async fn until_first(&mut self) {
        let turn = self.turns.clone().acquire_owned().await;
        self.turn = Some(turn.expect("the semaphore is never closed"));
    }

    /// Notes who has the lock, for the errors of the others in the queue.
    pub(crate) fn note(&self, last: LastHolder) {
        if let Some(queue) = self.queues.lock().get_mut(&self.key) {
            queue.last_holder = Some(last);
        }
    }

    /// Who had the lock when a waiter last asked the masters.
    pub(crate) fn last(&self) -> Option<LastHolder> {
        self.queues.lock().get(&self.key).and_then(|queue| queue.last_holder.clone())
    }
}

impl Drop for LocalSlot {
    fn drop(&mut self) {
        let mut queues = self.queues.lock();
        let Some(queue) = queues.get_mut(&self.key) else { return };
        queue.length -= 1;
        if queue.length == 0 {
            queues.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn the_queue_is_first_in_first_out_and_whoever_leaves_costs_nobody_a_place() {
        let queues = LocalQueues::new(10);
        let name = Arc::from("l");
        let mut slots: Vec<_> = (0..4).map(|_| Some(queues.join("k", &name, 1).unwrap())).collect();
        let standing = |slot: Option<LocalSlot>| {
            let mut slot = slot.unwrap();
            Box::pin(async move {
                slot.until_first().await;
                slot
            })
        };
        let mut last = standing(slots.pop().unwrap());
        let mut gone = standing(slots.pop().unwrap());
        let mut second = standing(slots.pop().unwrap());
        let first = standing(slots.pop().unwrap()).now_or_never().expect("it is first");
        for waiter in [&mut second, &mut gone, &mut last] {
            assert!(waiter.now_or_never().is_none());
        }
        drop(gone);
        drop(first);
        assert!((&mut last).now_or_never().is_none(), "it is not its turn");
        drop(second.now_or_never().expect("it is first now"));
        drop(last.now_or_never().expect("whoever left cost it nothing"));
        assert!(queues.lock().is_empty(), "nothing is left");
    }

    #[test]
    fn a_full_queue_says_its_limit() {
        let queues = LocalQueues::new(2);
        let name = Arc::from("l");
        let slots = [queues.join("k", &name, 1).unwrap(), queues.join("k", &name, 1).unwrap()];
        assert_eq!(queues.join("k", &name, 1).unwrap_err(), 2);
        assert!(queues.join("k", &Arc::from("other"), 1).is_ok());
        assert!(queues.join("another", &name, 1).is_ok(), "another kind");
        drop(slots);
        assert!(queues.join("k", &name, 1).is_ok());
    }
}
