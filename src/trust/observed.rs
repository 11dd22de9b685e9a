//! Strict mode: a client takes over a lock after it has seen the version of its entry unchanged for
//! a whole TTL, by its own clock. The masters' clocks take no part. Here is how long each version
//! has been watched.
//!
//! Source: the DynamoDB lock client, which has its waiters time an unchanged record version. Its
//! rule holds for a quorum, too: a holder's lease ends at most a TTL after its last round was sent,
//! every master of that round has the round's version since, and a quorum of a rival shares a
//! master with it. So a version that was seen on a master at least a TTL ago belongs to leases that
//! are over there. That says nothing about another master, where other readers may share the
//! version, nor about the same master after it lost its keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, Moment};
use crate::lease;
use crate::master_set::MasterSet;
use crate::sync::{Mutex, MutexGuard};

/// How many locks are watched at a time. One that is forgotten for another is watched from the
/// start again, so its taker waits longer.
const MOST_WATCHED: usize = 10_000;

/// How many versions of one lock are watched: each name of a lock over several has its own.
const MOST_VERSIONS: usize = 5 * crate::config::MAX_NAMES;

/// What a client has watched.
#[derive(Debug)]
pub(crate) struct ObservedVersions {
    clock: Arc<dyn Clock>,
    masters: Mutex<Box<[Watch]>>,
}

/// What was watched on one master.
#[derive(Clone, Debug, Default)]
struct Watch {
    /// The incarnation that the master was all the time.
    incarnation: Arc<str>,
    names: BTreeMap<Arc<str>, Vec<Version>>,
}

/// One version of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    text: Arc<str>,
    /// When its lease is over.
    over: Moment,
}

impl ObservedVersions {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, masters: Mutex::new(vec![Watch::default(); MasterSet::INDICES].into()) }
    }

    /// A connection to this master begins, which is this incarnation. Versions that were watched of
    /// another one are forgotten.
    pub(super) fn begin(&self, index: usize, incarnation: &Arc<str>) {
        let known = &mut self.masters()[index];
        if known.incarnation != *incarnation {
            *known = Watch { incarnation: incarnation.clone(), ..Watch::default() };
        }
    }

    /// Notes that a master shows this version, which is to be watched for `watch`. Returns how much
    /// of that is left.
    pub(crate) fn see(&self, index: usize, name: &Arc<str>, text: &Arc<str>, watch: Duration) -> Duration {
        let now = self.clock.now();
        let names = &mut self.masters()[index].names;
        if names.len() >= MOST_WATCHED && !names.contains_key(name) {
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

    /// The versions that were watched there for long enough, as `,VERSION,VERSION,`; `,` if there
    /// is none.
    pub(crate) fn over(&self, index: usize, name: &str) -> String {
        let now = self.clock.now();
        let masters = self.masters();
        let versions = masters[index].names.get(name).into_iter().flatten();
        versions
            .filter(|version| version.over <= now)
            .fold(",".to_owned(), |all, version| all + &version.text + ",")
    }

    /// Forgets the versions of a lock: it was granted to this client.
    pub(crate) fn forget(&self, name: &str) {
        self.masters().iter_mut().for_each(|master| drop(master.names.remove(name)));
    }

    fn masters(&self) -> MutexGuard<'_, Box<[Watch]>> {
        self.masters.lock()
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
        let watched = ObservedVersions::new(hand.clone());
        let name = "a".into();
        let version = "17:3".into();
        let ttl = Duration::from_secs(1);
        assert_eq!(watched.see(0, &name, &version, ttl), Duration::from_millis(1_012));
        assert_eq!(watched.over(0, "a"), ",");
        hand.0.store(1_011, Ordering::Relaxed);
        assert_eq!(watched.see(0, &name, &version, ttl), Duration::from_millis(1), "it is the same");
        assert_eq!(watched.over(0, "a"), ",");
        hand.0.store(1_012, Ordering::Relaxed);
        assert_eq!(watched.over(0, "a"), ",17:3,");
        watched.see(0, &name, &"17:4".into(), ttl);
        assert_eq!(watched.over(0, "a"), ",17:3,", "it was renewed there, and is watched anew");
        watched.forget("a");
        assert_eq!(watched.over(0, "a"), ",");
    }

    #[test]
    fn what_one_master_shows_says_nothing_of_another_or_of_one_that_lost_its_keys() {
        let hand = Arc::new(Hand::default());
        let watched = ObservedVersions::new(hand.clone());
        let name = "a".into();
        let version = "17:3".into();
        watched.begin(0, &"one".into());
        watched.see(0, &name, &version, Duration::from_secs(1));
        hand.0.store(1_012, Ordering::Relaxed);
        watched.begin(0, &"one".into());
        assert_eq!((watched.over(0, "a"), watched.over(1, "a")), (",17:3,".into(), ",".into()));
        watched.begin(0, &"two".into());
        assert_eq!(watched.over(0, "a"), ",");
    }

    #[test]
    fn what_is_watched_is_bounded() {
        let watched = ObservedVersions::new(Arc::new(Hand::default()));
        for name in 0..MOST_WATCHED + 10 {
            watched.see(0, &name.to_string().into(), &"1:1".into(), Duration::from_secs(1));
        }
        for version in 0..MOST_VERSIONS + 10 {
            watched.see(0, &"77".into(), &format!("1:{version}").into(), Duration::from_secs(1));
        }
        let names = &watched.masters()[0].names;
        assert_eq!((names.len(), names["77"].len()), (MOST_WATCHED, MOST_VERSIONS));
    }
}
