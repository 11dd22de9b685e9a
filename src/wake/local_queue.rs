//! The local queue: waiters of one name in one process stand in line, and only the first of them
//! asks the masters.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Holder;
use crate::sync::{Mutex, MutexGuard};
use crate::vote::Votes;

/// The lines of a client.
#[derive(Debug)]
pub(crate) struct LocalQueues {
    limit: usize,
    lines: Mutex<HashMap<Key, LocalQueue>>,
}

/// The lock's kind, and its name. Locks of two kinds need not be in each other's way: who is first
/// in line for one may be waiting for what another one's holder does behind it.
type Key = (&'static str, Arc<str>);

#[derive(Debug)]
struct LocalQueue {
    /// One permit for each waiter that may ask the masters at the same time. Tokio's semaphore
    /// hands permits out in the order of asking, and a cancelled waiter costs nobody their place.
    first: Arc<Semaphore>,
    length: usize,
    last: Option<Denial>,
}

/// Who had the lock when the first in line last asked.
#[derive(Clone, Debug)]
pub(crate) struct Denial {
    pub(crate) holder: Box<Holder>,
    pub(crate) votes: Votes,
}

impl LocalQueues {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, lines: Mutex::default() })
    }

    /// Joins the end of the queue for the lock `name` of this kind. `abreast` waiters may ask at
    /// the same time. `Err` is the limit, if the queue is full.
    pub(crate) fn join(
        self: &Arc<Self>,
        kind: &'static str,
        name: &Arc<str>,
        abreast: usize,
    ) -> Result<LocalSlot, usize> {
        let mut lines = self.lock();
        let key = (kind, name.clone());
        let line = lines.entry(key.clone()).or_insert_with(|| LocalQueue {
            first: Arc::new(Semaphore::new(abreast)),
            length: 0,
            last: None,
        });
        if line.length >= self.limit {
            return Err(self.limit);
        }
        line.length += 1;
        let first = line.first.clone();
        Ok(LocalSlot { lines: self.clone(), key, first, permit: None })
    }

    /// Whether anybody stands in line for it.
    pub(crate) fn has(&self, kind: &'static str, name: &Arc<str>) -> bool {
        self.lock().contains_key(&(kind, name.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, LocalQueue>> {
        self.lines.lock()
    }
}

/// A place in a line. Dropping it leaves the line, and lets the next one be first.
#[derive(Debug)]
pub(crate) struct LocalSlot {
    lines: Arc<LocalQueues>,
    key: Key,
    first: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
}

impl LocalSlot {
    /// Waits until this is the first in line. The order is that of the first polls.
    pub(crate) async fn is_first(&mut self) {
        let permit = self.first.clone().acquire_owned().await;
        self.permit = Some(permit.expect("the semaphore is never closed"));
    }

    /// Tells the rest of the line who has the lock.
    pub(crate) fn note(&self, denial: Denial) {
        if let Some(line) = self.lines.lock().get_mut(&self.key) {
            line.last = Some(denial);
        }
    }

    /// Who had the lock when the first in line last asked.
    pub(crate) fn last(&self) -> Option<Denial> {
        self.lines.lock().get(&self.key).and_then(|line| line.last.clone())
    }
}

impl Drop for LocalSlot {
    fn drop(&mut self) {
        let mut lines = self.lines.lock();
        let Some(line) = lines.get_mut(&self.key) else { return };
        line.length -= 1;
        if line.length == 0 {
            lines.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn the_line_is_first_in_first_out_and_whoever_leaves_costs_nobody_a_place() {
        let lines = LocalQueues::new(10);
        let name = Arc::from("l");
        let mut spots: Vec<_> = (0..4).map(|_| Some(lines.join("k", &name, 1).unwrap())).collect();
        let standing = |spot: Option<LocalSlot>| {
            let mut spot = spot.unwrap();
            Box::pin(async move {
                spot.is_first().await;
                spot
            })
        };
        let mut last = standing(spots.pop().unwrap());
        let mut gone = standing(spots.pop().unwrap());
        let mut second = standing(spots.pop().unwrap());
        let first = standing(spots.pop().unwrap()).now_or_never().expect("it is first");
        for waiter in [&mut second, &mut gone, &mut last] {
            assert!(waiter.now_or_never().is_none());
        }
        drop(gone);
        drop(first);
        assert!((&mut last).now_or_never().is_none(), "it is not its turn");
        drop(second.now_or_never().expect("it is first now"));
        drop(last.now_or_never().expect("whoever left cost it nothing"));
        assert!(lines.lock().is_empty(), "nothing is left");
    }

    #[test]
    fn a_full_line_says_its_limit() {
        let lines = LocalQueues::new(2);
        let name = Arc::from("l");
        let spots = [lines.join("k", &name, 1).unwrap(), lines.join("k", &name, 1).unwrap()];
        assert_eq!(lines.join("k", &name, 1).unwrap_err(), 2);
        assert!(lines.join("k", &Arc::from("other"), 1).is_ok());
        assert!(lines.join("another", &name, 1).is_ok(), "another kind");
        drop(spots);
        assert!(lines.join("k", &name, 1).is_ok());
    }
}
