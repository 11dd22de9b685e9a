//! Holders that did not release, and for how long they have been watched: in strict mode a lock whose key expired is taken
//! over by whoever has seen its record unchanged for a whole TTL, on its own clock. The masters' clocks take no part.
//!
//! Source: the DynamoDB lock client, which has its waiters time an unchanged record version. Its rule holds for a quorum,
//! too: a holder's lease ends at most a TTL after its last round was sent, every master of that round has the round's version
//! since, and a quorum of a rival shares a master with it. So a version that was seen anywhere at least a TTL ago belongs
//! to a lease that is over, and a master that shows another one has to be watched anew.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Moment};
use crate::lease;

/// How many locks are watched at once, at most. Whoever wants another one waits longer for it, for it is forgotten.
const MOST_NAMES: usize = 10_000;

/// How many versions of one lock: each master may show another one, or each name of a lock over several.
const MOST_VERSIONS: usize = 2 * crate::config::MAX_NAMES;

/// What a client has watched.
#[derive(Debug)]
pub(crate) struct Watched {
    clock: Arc<dyn Clock>,
    names: Mutex<BTreeMap<Arc<str>, Vec<Version>>>,
}

/// One version of a lock's record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    text: Arc<str>,
    /// When its lease is over.
    over: Moment,
}

impl Watched {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, names: Mutex::default() }
    }

    /// A master shows this version, which is to be watched for so long. Answers how much of that is left.
    pub(crate) fn see(&self, name: &Arc<str>, text: &Arc<str>, watch: Duration) -> Duration {
        let now = self.clock.now();
        let mut names = self.names();
        if names.len() >= MOST_NAMES && !names.contains_key(name) {
            names.pop_first();
        }
        let versions = names.entry(name.clone()).or_default();
        if let Some(known) = versions.iter().find(|known| known.text == *text) {
            return known.over.since(now);
        }
        if versions.len() >= MOST_VERSIONS {
            versions.remove(0);
        }
        let over = now + watch + lease::drift(watch);
        versions.push(Version { text: text.clone(), over });
        over.since(now)
    }

    /// The versions whose leases are over, each with a comma on both sides; one comma if there is none.
    pub(crate) fn over(&self, name: &str) -> String {
        let (now, names) = (self.clock.now(), self.names());
        let versions = names.get(name).into_iter().flatten().filter(|version| version.over <= now);
        versions.fold(",".to_owned(), |all, version| all + &version.text + ",")
    }

    /// The lock was granted to this client: what was seen before is no more.
    pub(crate) fn forget(&self, name: &str) {
        self.names().remove(name);
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Vec<Version>>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct Hand(AtomicU64);

    impl Clock for Hand {
        fn now(&self) -> Moment {
            Moment::from_origin(Duration::from_millis(self.0.load(Ordering::Relaxed)))
        }

        fn wall(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[test]
    fn a_version_is_over_when_it_was_watched_for_a_ttl_and_the_drift() {
        let hand = Arc::new(Hand::default());
        let watched = Watched::new(hand.clone());
        let (name, version, ttl) = ("a".into(), "17:3".into(), Duration::from_secs(1));
        assert_eq!(watched.see(&name, &version, ttl), Duration::from_millis(1_012));
        assert_eq!(watched.over("a"), ",");
        hand.0.store(1_011, Ordering::Relaxed);
        assert_eq!(watched.see(&name, &version, ttl), Duration::from_millis(1), "it is the same");
        assert_eq!(watched.over("a"), ",");
        hand.0.store(1_012, Ordering::Relaxed);
        assert_eq!(watched.over("a"), ",17:3,");
        watched.see(&name, &"17:4".into(), ttl);
        assert_eq!(watched.over("a"), ",17:3,", "it was renewed there, and is watched anew");
        watched.forget("a");
        assert_eq!(watched.over("a"), ",");
    }

    #[test]
    fn what_is_watched_is_bounded() {
        let watched = Watched::new(Arc::new(Hand::default()));
        for name in 0..MOST_NAMES + 10 {
            watched.see(&name.to_string().into(), &"1:1".into(), Duration::from_secs(1));
        }
        for version in 0..MOST_VERSIONS + 10 {
            watched.see(&"77".into(), &format!("1:{version}").into(), Duration::from_secs(1));
        }
        let names = watched.names();
        assert_eq!((names.len(), names["77"].len()), (MOST_NAMES, MOST_VERSIONS));
    }
}
