//! The schedule: what to look at next, by the clock that leases are measured with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::clock::{Clock, Moment};
use crate::sync::Mutex;

/// The longest sleep. Timers stop while the machine is suspended and leases do not, so leases are
/// looked at soon after a suspend.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// Things that are due at a moment each.
#[derive(Debug)]
pub(crate) struct Schedule<T> {
    clock: Arc<dyn Clock>,
    state: Mutex<Agenda<T>>,
    /// Notified when something is due before the sleep ends, or the schedule is closed.
    changed: Notify,
}

#[derive(Debug)]
struct Agenda<T> {
    entries: BTreeMap<Scheduled, T>,
    numbers: u64,
    /// When the current sleep ends; `None` while there is nothing to wait for.
    wakes_at: Option<Moment>,
    closed: bool,
}

/// The place of something on the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scheduled {
    at: Moment,
    number: u64,
}

impl<T> Schedule<T> {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let state = Agenda { entries: BTreeMap::new(), numbers: 0, wakes_at: None, closed: false };
        Arc::new(Self { clock, state: Mutex::new(state), changed: Notify::new() })
    }

    /// Puts `thing` on the schedule.
    pub(crate) fn put(&self, at: Moment, thing: T) -> Scheduled {
        let mut state = self.state.lock();
        state.numbers += 1;
        let entry = Scheduled { at, number: state.numbers };
        state.entries.insert(entry, thing);
        if state.wakes_at.is_none_or(|wakes_at| at < wakes_at) {
            self.changed.notify_one();
        }
        entry
    }

    /// Takes something off the schedule, if it is still there.
    pub(crate) fn remove(&self, entry: Scheduled) {
        self.state.lock().entries.remove(&entry);
    }

    /// Waits until something is due, and takes it off: up to `most` things at once. `None` when the
    /// schedule was closed.
    pub(crate) async fn due(&self, most: usize) -> Option<Vec<T>> {
        loop {
            let sleep = {
                let mut state = self.state.lock();
                if state.closed {
                    return None;
                }
                let now = self.clock.now();
                let due = state.take_due(now, most);
                if !due.is_empty() {
                    return Some(due);
                }
                let next = state.entries.first_key_value().map(|(entry, _)| entry.at);
                let sleep = next.map(|at| at.since(now).min(LONGEST_SLEEP));
                state.wakes_at = sleep.map(|sleep| now + sleep);
                sleep
            };
            match sleep {
                Some(sleep) => {
                    let _ = tokio::time::timeout(sleep, self.changed.notified()).await;
                }
                None => self.changed.notified().await,
            }
        }
    }

    /// Ends the waiting.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }
}

impl<T> Agenda<T> {
    fn take_due(&mut self, now: Moment, most: usize) -> Vec<T> {
        let mut due = Vec::new();
        while due.len() < most
            && let Some(first) = self.entries.first_entry()
            && first.key().at <= now
        {
            due.push(first.remove());
        }
        due
    }
}
