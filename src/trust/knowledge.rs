//! [`Trust`]: which masters may vote, and what time it is, as far as one client knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

use super::clocks::{ClockError, Clocks};
use super::membership::Membership;
use super::observed::ObservedVersions;
use super::standing::{Contact, MasterStatus, Standing};
use super::terms::Terms;
use crate::clock::{Clock, Moment};
use crate::random::Random;
use crate::sync::{Mutex, MutexGuard};

/// How far (us) the proposed tokens may run ahead of the time, which they do if there is more than
/// one proposal a microsecond.
const LEAD: u64 = 100_000;

/// Which masters may vote, and what time it is, as far as one client knows.
#[derive(Debug)]
pub(crate) struct Trust {
    pub(super) terms: Terms,
    pub(super) clock: Arc<dyn Clock>,
    clocks: Mutex<Clocks>,
    standings: Mutex<Vec<Standing>>,
    membership: Mutex<Membership>,
    /// Whether the membership knows of another list: every acquire asks.
    pub(super) has_other_list: AtomicBool,
    pub(super) random: Arc<dyn Random>,
    /// Notified after each handshake that told a master's record.
    pub(crate) record_seen: Notify,
    /// The last token that was proposed.
    proposed: AtomicU64,
    /// Notified after each handshake that told a master's time.
    pub(super) time_seen: Notify,
    /// In strict mode, how long entries have been watched.
    pub(crate) watched: ObservedVersions,
}

impl Trust {
    pub(crate) fn new(
        names: Vec<Arc<str>>,
        terms: Terms,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Arc<Self> {
        let masters = names.len();
        Arc::new(Self {
            clocks: Mutex::new(Clocks::new(masters)),
            standings: Mutex::new(vec![Standing::Unknown; masters]),
            membership: Mutex::new(Membership::new(names, terms.clone())),
            has_other_list: AtomicBool::new(false),
            random,
            record_seen: Notify::new(),
            watched: ObservedVersions::new(clock.clone(), masters),
            proposed: AtomicU64::new(0),
            time_seen: Notify::new(),
            terms,
            clock,
        })
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.terms.strict
    }

    /// Notes a master's time (us), read at some moment between `asked` and `heard`. An error if the
    /// clock jumped, or is too far from the others.
    pub(crate) fn hear_time(
        &self,
        index: usize,
        asked: Moment,
        heard: Moment,
        time: u64,
    ) -> Result<(), ClockError> {
        self.clocks().note(index, asked, heard, time)
    }

    /// How many of these masters have clocks that agree with the median, as far as is known now.
    pub(crate) fn how_many_agree(&self, masters: impl Iterator<Item = usize>) -> usize {
        self.clocks().how_many_agree(masters)
    }

    /// The time (us) on which a majority of the masters agrees, if that is known.
    fn known_time(&self) -> Option<u64> {
        self.clocks().time(self.clock.now())
    }

    /// The time (us) on which most masters agree, if that is known; otherwise this host's own,
    /// which masters must not go by.
    pub(crate) fn time(&self) -> u64 {
        let wall = || u64::try_from(self.clock.wall().as_micros()).unwrap_or(0);
        self.known_time().unwrap_or_else(wall)
    }

    /// The time (us) that masters may go by, T of docs/PROTOCOL.md. Until it is known that is 1,
    /// which every master refuses, and sends its own.
    pub(crate) fn trusted(&self) -> u64 {
        self.known_time().unwrap_or(1)
    }

    /// Whether it is known on which time a majority of the masters agrees.
    pub(crate) fn knows_the_time(&self) -> bool {
        self.known_time().is_some()
    }

    /// Resolves when [`knows_the_time`](Self::knows_the_time); handshakes have to be under way.
    pub(crate) async fn until_it_knows_the_time(&self) {
        loop {
            let time_seen = self.time_seen.notified();
            if self.knows_the_time() {
                return;
            }
            time_seen.await;
        }
    }

    /// A token to propose: the time; or one more than the last one that this client proposed, if
    /// that is higher, but not by [`LEAD`]. Masters raise it where they have granted a higher one.
    pub(crate) fn propose(&self) -> u64 {
        let time = self.trusted();
        let next = |last: u64| if last >= time && last - time < LEAD { last + 1 } else { time };
        let last = self.proposed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        next(last.unwrap_or(0))
    }

    /// A master's answer says that its record is another one: whether it may vote is not known
    /// before the next handshake.
    pub(crate) fn doubt(&self, index: usize) {
        self.standings()[index] = Standing::Unknown;
    }

    /// What is known of the masters' records.
    pub(crate) fn membership(&self) -> MutexGuard<'_, Membership> {
        self.membership.lock()
    }

    /// How many masters are members of the set, and connected.
    pub(crate) fn members(&self) -> usize {
        let counts =
            |standing: &&Standing| matches!(standing, Standing::Trusted | Standing::Quarantined { .. });
        self.standings().iter().filter(counts).count()
    }

    /// Why this client's list is not that of a set, if it is not.
    pub(crate) fn other_list(&self) -> Option<Arc<str>> {
        let has_other_list = self.has_other_list.load(Ordering::Relaxed);
        has_other_list.then(|| self.membership().other_list()).flatten()
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    fn clocks(&self) -> MutexGuard<'_, Clocks> {
        self.clocks.lock()
    }

    pub(super) fn standings(&self) -> MutexGuard<'_, Vec<Standing>> {
        self.standings.lock()
    }

    /// How the masters stand with this client.
    pub(crate) fn status<'a>(
        &self,
        masters: impl Iterator<Item = (&'a Arc<str>, Option<Contact>)>,
    ) -> Vec<MasterStatus> {
        let now = self.clock.now();
        let standings = self.standings();
        let status =
            |((master, contact), standing): ((&Arc<str>, Option<Contact>), &Standing)| MasterStatus {
                master: master.clone(),
                standing: standing.at(now),
                reachable: contact.map(|contact| contact.reachable),
                unchanged_for: contact.map(|contact| contact.unchanged_for),
                last_round_trip: contact.and_then(|contact| contact.last_round_trip),
            };
        masters.zip(standings.iter()).map(status).collect()
    }
}
