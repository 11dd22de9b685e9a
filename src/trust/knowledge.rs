//! What one client knows about which masters to trust.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use super::clocks::{ClockError, Clocks};
use super::observed::ObservedVersions;
use super::standing::{MasterStatus, Standing};
use super::terms::Terms;
use crate::clock::{Clock, Moment};
use crate::master::Contact;
use crate::sync::{Mutex, MutexGuard};

/// How far (us) a client's proposals may run ahead of the time, which they do where it asks more
/// than once a microsecond.
const LEAD: u64 = 100_000;

/// What one client knows about which masters to trust.
#[derive(Debug)]
pub(crate) struct Trust {
    pub(super) terms: Terms,
    pub(super) clock: Arc<dyn Clock>,
    clocks: Mutex<Clocks>,
    standings: Mutex<Vec<Standing>>,
    /// The last token that was proposed.
    proposed: AtomicU64,
    /// Told when a master's time was seen.
    pub(super) sighted: Notify,
    /// What holders that did not release have been watched for.
    pub(crate) watched: ObservedVersions,
}

impl Trust {
    pub(crate) fn new(terms: Terms, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            clocks: Mutex::new(Clocks::new(terms.masters)),
            standings: Mutex::new(vec![Standing::Unknown; terms.masters]),
            watched: ObservedVersions::new(clock.clone(), terms.masters),
            proposed: AtomicU64::new(0),
            sighted: Notify::new(),
            terms,
            clock,
        })
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.terms.strict
    }

    /// Hears what time it is on a master (us), between two moments here; tells whether that can be.
    pub(crate) fn hear_time(
        &self,
        index: usize,
        asked: Moment,
        heard: Moment,
        time: u64,
    ) -> Result<(), ClockError> {
        self.clocks().note(index, asked, heard, time)
    }

    /// How many of these masters are not far from what most masters show, as far as is known now.
    pub(crate) fn how_many_agree(&self, masters: impl Iterator<Item = usize>) -> usize {
        let clocks = self.clocks();
        masters.filter(|index| clocks.agrees(*index)).count()
    }

    /// The time (us) that most masters show, as far as is known; otherwise by this host's own
    /// clock.
    pub(crate) fn time(&self) -> u64 {
        let now = self.clock.now();
        let median = self.clocks().time(now);
        median.unwrap_or_else(|| u64::try_from(self.clock.wall().as_micros()).unwrap_or(0))
    }

    /// Whether a majority's time was seen, so that this host's own does not count.
    pub(crate) fn knows_the_time(&self) -> bool {
        self.clocks().time(self.clock.now()).is_some()
    }

    /// Resolves once it is, if masters are being connected to.
    pub(crate) async fn until_it_knows_the_time(&self) {
        loop {
            let told = self.sighted.notified();
            if self.knows_the_time() {
                return;
            }
            told.await;
        }
    }

    /// A token to propose: the time, and higher than the one before. Whether it is higher than all
    /// that were granted is for the masters to see to.
    pub(crate) fn propose(&self) -> u64 {
        let time = self.time();
        let next = |last: u64| if last >= time && last - time < LEAD { last + 1 } else { time };
        let last = self.proposed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        next(last.unwrap_or(0))
    }

    /// A master that answers does not know this client any more: whether it may vote is not known
    /// before the next handshake.
    pub(crate) fn doubt(&self, index: usize) {
        self.standings()[index] = Standing::Unknown;
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
