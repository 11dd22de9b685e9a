//! Waiting that may be cut short.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Stops waits. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Stops all waits, now and later.
    pub fn stop(&self) {
        let (stopped, changed) = &*self.0;
        *stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Waits for `time`, or until it is stopped. Returns whether it was not.
    pub fn wait(&self, time: Duration) -> bool {
        let (stopped, changed) = &*self.0;
        let stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(stopped, time, |stopped| !*stopped);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_until_it_is_stopped() {
        let stop = Stop::default();
        assert!(stop.wait(Duration::from_millis(1)));
        let other = stop.clone();
        std::thread::spawn(move || other.stop());
        assert!(!stop.wait(Duration::from_secs(3_600)));
        assert!(!stop.wait(Duration::ZERO), "it stays so");
    }
}
