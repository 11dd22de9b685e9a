//! [`Trust`]: the knowledge of one client about its masters: their set, their standing, the time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;

use super::handle::{Actions, Event};
use super::standing::{Contact, MasterStatus, Standing};
use super::state::Set;
use super::terms::Terms;
use super::voters::Voters;
use crate::random::Random;
use crate::sync::{Mutex, MutexGuard};
use crate::time::{Clock, ClockError, Clocks, Moment};
use crate::wire::{ByMaster, MasterIndex, MasterSet, TrustedTime};

/// How far (us) the proposed tokens may run ahead of the time, which they do if there is more than
/// one proposal a microsecond.
const LEAD: u64 = 100_000;

/// A client that knows the time only to within this asks the masters for it before it sends T.
pub(crate) const VAGUE: Duration = Duration::from_secs(1);

/// How exactly a client knows the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimePrecision {
    Unknown,
    /// To within [`VAGUE`] or more, or not any more: its estimates are old, or were made by late
    /// answers, or at different times.
    Vague,
    Exact,
}

/// The session of a master that did not shake hands yet.
const NO_SESSION: u64 = u64::MAX;

/// A view that has ended.
const OLD_VIEW: u64 = u64::MAX - 1;

/// Called with the voters after each change of them.
type Follower = dyn Fn(&Arc<Voters>) + Send + Sync;

/// The knowledge of one client about its masters: their set, their standing, and the time.
pub(crate) struct Trust {
    pub(super) terms: Terms,
    pub(super) clock: Arc<dyn Clock>,
    clocks: Mutex<Clocks>,
    /// How each master stands.
    standings: Mutex<ByMaster<Standing>>,
    /// The masters that refuse connections of this client permanently.
    denying: Mutex<MasterSet>,
    set: Mutex<Set>,
    /// The masters whose votes count.
    voters: Mutex<Arc<Voters>>,
    /// The view of the record that each master showed in its last handshake.
    sessions: ByMaster<AtomicU64>,
    /// Their view.
    view: AtomicU64,
    /// Called when the voters change.
    follower: OnceLock<Box<Follower>>,
    /// Whether this client's list is not that of the set: every acquire asks.
    has_other_list: AtomicBool,
    pub(crate) random: Arc<dyn Random>,
    /// Notified after each handshake that read a master's record.
    pub(crate) record_seen: Notify,
    /// Notified when the client needs promises or the time from masters.
    pub(crate) evidence_wanted: Notify,
    /// The last token that was proposed.
    proposed: AtomicU64,
    /// Notified after each handshake that read a master's time, and each round that asked for it.
    pub(crate) time_seen: Notify,
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
            standings: Mutex::new(ByMaster::all(|| Standing::Unknown)),
            denying: Mutex::default(),
            voters: Mutex::new(Arc::new(Voters::given(&names))),
            sessions: ByMaster::all(|| AtomicU64::new(NO_SESSION)),
            view: AtomicU64::new(0),
            follower: OnceLock::new(),
            evidence_wanted: Notify::new(),
            set: Mutex::new(Set::new(names, terms.clone())),
            has_other_list: AtomicBool::new(false),
            random,
            record_seen: Notify::new(),
            proposed: AtomicU64::new(0),
            time_seen: Notify::new(),
            terms,
            clock,
        })
    }

    /// Notes a master's time (us), read at some moment between `asked` and `heard`. An error if the
    /// clock jumped, or is too far from the others.
    pub(crate) fn hear_time(
        &self,
        index: MasterIndex,
        asked: Moment,
        heard: Moment,
        time: u64,
    ) -> Result<(), ClockError> {
        self.clocks.lock().note(index, asked, heard, time)
    }

    /// How many of these masters have clocks that agree with the median now.
    pub(crate) fn how_many_agree(&self, masters: impl Iterator<Item = MasterIndex>) -> usize {
        self.clocks.lock().how_many_agree(masters, self.clock.now())
    }

    /// The time by a majority of the masters, if it is known.
    pub(super) fn known_time(&self) -> Option<TrustedTime> {
        self.clocks.lock().time(self.clock.now())
    }

    /// How exactly the time is known, if it is.
    pub(crate) fn time_precision(&self) -> TimePrecision {
        let clocks = self.clocks.lock();
        match clocks.time(self.clock.now()) {
            None if clocks.has_seen_most() => TimePrecision::Vague,
            None => TimePrecision::Unknown,
            Some(time) if time.width >= VAGUE => TimePrecision::Vague,
            Some(_) => TimePrecision::Exact,
        }
    }

    /// The time (us) by a majority of the masters. While it is not known, the time of this host;
    /// masters must not go by that.
    pub(crate) fn time(&self) -> u64 {
        let wall = || u64::try_from(self.clock.wall().as_micros()).unwrap_or(0);
        self.known_time().map_or_else(wall, TrustedTime::middle)
    }

    /// The time that masters may go by.
    pub(crate) fn trusted(&self) -> TrustedTime {
        self.known_time().unwrap_or(TrustedTime::UNKNOWN)
    }

    /// Whether a majority of the masters agrees on the time.
    pub(crate) fn knows_the_time(&self) -> bool {
        self.known_time().is_some()
    }

    /// Resolves when the time is known as exactly as this says. Handshakes have to be under way. If
    /// the client knows it vaguely, it asks the masters.
    pub(crate) async fn until_time_is(&self, enough: impl Fn(TimePrecision) -> bool) {
        loop {
            let time_seen = self.time_seen.notified();
            let precision = self.time_precision();
            if enough(precision) {
                return;
            }
            if precision == TimePrecision::Vague {
                self.evidence_wanted.notify_one();
            }
            time_seen.await;
        }
    }

    /// The time to send with a request for a grant. It is the proposed token, too. It is T, or one
    /// more than the last proposed token, if that is higher by less than [`LEAD`]. A master raises
    /// it if it has granted a higher one.
    pub(crate) fn propose(&self) -> TrustedTime {
        let TrustedTime { low: time, width } = self.trusted();
        let next = |last: u64| if last >= time && last - time < LEAD { last + 1 } else { time };
        let last = self.proposed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        TrustedTime { low: next(last.unwrap_or(0)), width }
    }

    /// A master answered that its record has changed. The next handshake finds out whether it may
    /// vote.
    pub(crate) fn doubt(&self, index: MasterIndex) {
        self.standings()[index] = Standing::Unknown;
    }

    /// Notes whether a master refuses connections of this client permanently, and if so, why.
    pub(super) fn note_denial(&self, index: MasterIndex, why: Option<&str>) {
        let mut denying = self.denying.lock();
        match why {
            Some(why) => {
                *denying = denying.or(index.into());
                self.standings()[index] = Standing::Refused(why.into());
            }
            None => *denying = denying.without(index.into()),
        }
    }

    /// The masters that refuse connections of this client permanently.
    pub(crate) fn denying(&self) -> MasterSet {
        *self.denying.lock()
    }

    /// Whether `needed` voters cannot be had because others refuse this client permanently. The
    /// remaining ones get this time to answer, too.
    pub(crate) fn is_denied(&self, needed: usize, is_time_over: bool) -> bool {
        let voters = self.voters().masters;
        let is_unknown = |index: MasterIndex| self.standing_of(index) == Standing::Unknown;
        let denying = self.denying().and(voters);
        voters.len() - denying.len() < needed && (is_time_over || !voters.iter().any(is_unknown))
    }

    /// What is known of the masters and their set.
    pub(crate) fn set(&self) -> MutexGuard<'_, Set> {
        self.set.lock()
    }

    /// How a master stands, also one that is no voter.
    pub(crate) fn standing_of(&self, index: MasterIndex) -> Standing {
        self.standings()[index].at(self.clock.now())
    }

    /// Handles an event, and wakes the handshakes that wait for news.
    pub(crate) fn handle(&self, event: Event) -> Actions {
        let now = self.time();
        let actions = self.set().handle(now, event);
        self.record_seen.notify_waiters();
        actions
    }

    /// The voters that showed that they are members of the set, since the views were ended last.
    pub(crate) fn members(&self) -> MasterSet {
        let voters = self.voters();
        let standings = self.standings();
        let has_place =
            |standing: &Standing| matches!(standing, Standing::Trusted | Standing::Quarantined { .. });
        let counts = |index: &MasterIndex| {
            has_place(&standings[*index]) && self.sessions[*index].load(Ordering::Relaxed) == voters.view
        };
        voters.masters.iter().filter(counts).collect()
    }

    /// Whether a voter that is not one of these answered a moment ago.
    pub(crate) fn hears_of_others(&self, members: MasterSet) -> bool {
        let voters = self.voters();
        let now = self.time();
        let set = self.set();
        voters.masters.without(members).iter().any(|index| set.answered_recently(index, now))
    }

    /// The masters whose votes count now.
    pub(crate) fn voters(&self) -> Arc<Voters> {
        self.voters.lock().clone()
    }

    /// The view that this client asks under.
    pub(super) fn view(&self) -> u64 {
        self.view.load(Ordering::Relaxed)
    }

    /// Follows the view: from now on the votes of its members count.
    pub(crate) fn follow(&self) {
        let voters = {
            let set = self.set();
            let voters = Arc::new(set.voters());
            let mut known = self.voters.lock();
            if *known == voters {
                return;
            }
            *known = voters.clone();
            self.clocks.lock().follow(voters.masters);
            self.view.store(voters.view, Ordering::Relaxed);
            voters
        };
        if let Some(follower) = self.follower.get() {
            follower(&voters); // unlocked
        }
    }

    /// Sets the function to call after each change of the voters.
    pub(crate) fn tell(&self, follower: impl Fn(&Arc<Voters>) + Send + Sync + 'static) {
        let _ = self.follower.set(Box::new(follower)); // called once
    }

    /// A master showed a record of this view, and votes by it from now on.
    pub(super) fn begin_session(&self, index: MasterIndex, view: u64) {
        self.sessions[index].store(view, Ordering::Relaxed);
    }

    /// A master has no vote, and no view that it would vote under.
    pub(super) fn end_session(&self, index: MasterIndex) {
        self.sessions[index].store(NO_SESSION, Ordering::Relaxed);
    }

    /// Has each connection make its handshake again before its next call.
    pub(crate) fn end_views(&self) {
        for session in self.sessions.values() {
            let end = |its| (its != NO_SESSION).then_some(OLD_VIEW);
            let _ = session.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end);
        }
    }

    /// Whether a vote of this master is one of this view, as far as its last handshake says.
    pub(crate) fn votes_under(&self, index: MasterIndex, view: u64) -> bool {
        let its = self.sessions[index].load(Ordering::Relaxed);
        its == view || its == NO_SESSION
    }

    pub(super) fn note_other_list(&self, set: &Set) {
        self.has_other_list.store(set.other_list().is_some(), Ordering::Relaxed);
    }

    /// Why this client's list is not that of a set, if it is not.
    pub(crate) fn other_list(&self) -> Option<Arc<str>> {
        let has_other_list = self.has_other_list.load(Ordering::Relaxed);
        has_other_list.then(|| self.set().other_list()).flatten()
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    pub(super) fn standings(&self) -> MutexGuard<'_, ByMaster<Standing>> {
        self.standings.lock()
    }

    /// How the masters stand with this client.
    pub(crate) fn status(&self, contact: impl Fn(MasterIndex) -> Option<Contact>) -> Vec<MasterStatus> {
        let now = self.clock.now();
        let voters = self.voters();
        let standings = self.standings();
        let status = |(index, master): (MasterIndex, &Arc<str>)| {
            let contact = contact(index);
            MasterStatus {
                master: master.clone(),
                standing: standings[index].at(now),
                reachable: contact.map(|contact| contact.reachable),
                unchanged_for: contact.map(|contact| contact.unchanged_for),
                last_round_trip: contact.and_then(|contact| contact.last_round_trip),
            }
        };
        voters.masters.iter().zip(&voters.names).map(status).collect()
    }
}
