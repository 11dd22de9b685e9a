//! Whom a round asks first. While a client has much to do, a fresh acquire asks a quorum of the
//! masters, and the rest only if those do not decide it: docs/PROTOCOL.md, "A quorum first".

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::quorum::quorum;
use crate::set::Voters;
use crate::time::Moment;
use crate::vote::{Outcome, Refusal};
use crate::wire::{ByMaster, MasterIndex, MasterSet};

/// A master is near if it exceeds the slowest of the nearest quorum by this at most, or by half: so
/// that noise does not make clients prefer different masters for one name.
const NEAR: Duration = Duration::from_micros(500);

/// A new latency counts for one part in so many, as a new round trip in RFC 6298.
const SMOOTHING: u64 = 8;

/// A master that was not heard from for this long is asked besides, by one round.
const UNHEARD: Duration = Duration::from_secs(1);

/// A round waits for those that it asked first for at least this long: timers are no finer.
const SHORTEST_HEDGE: Duration = Duration::from_millis(1);

/// And for so many of their latencies: few rounds take that long where all is well.
const HEDGE: u32 = 4;

/// How masters have answered this client lately.
pub(super) struct Preference {
    /// A quorum is asked first where more rounds than this are under way.
    above: usize,
    under_way: AtomicUsize,
    paces: ByMaster<Pace>,
    /// How many rounds have deferred masters.
    deferred: AtomicU64,
    /// How many of these asked them because a master was silent, or slow.
    hedged: AtomicU64,
}

/// How a master has answered. The moments are nanoseconds of the client's clock, and 0 is never.
#[derive(Default)]
struct Pace {
    /// How long it takes to vote (ns), smoothed; 0 before its first vote.
    latency: AtomicU64,
    /// The same, but a lower one counts for half: noise makes a master seem farther away, and never
    /// nearer.
    distance: AtomicU64,
    /// When it voted last.
    heard: AtomicU64,
    /// When it was asked last because it had not voted for long.
    tried: AtomicU64,
    /// When it last had no vote, or was silent. 0 once it has granted or refused what was sent
    /// later.
    failed: AtomicU64,
}

/// Whom to ask first, and for how long to wait for them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FirstMasters {
    pub(super) masters: MasterSet,
    pub(super) patience: Patience,
}

/// For how long a round waits for those that it asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// If one of them is silent.
    pub(super) usual: Duration,
    /// In any case: the rest has to be able to answer in time.
    pub(super) latest: Duration,
}

/// How often a client asked a quorum first.
#[cfg(feature = "unstable-testing")]
#[derive(Clone, Copy, Debug)]
pub struct QuorumFirstCounts {
    /// In how many rounds: acquires, and releases of what they got.
    pub rounds: u64,
    /// How many of these asked the rest because a master was silent, or slow.
    pub hedged: u64,
    /// How many rounds of any kind are under way.
    pub under_way: usize,
}

impl Preference {
    pub(super) fn new(above: usize) -> Self {
        Self {
            above,
            under_way: AtomicUsize::new(0),
            paces: ByMaster::all(Pace::default),
            deferred: AtomicU64::new(0),
            hedged: AtomicU64::new(0),
        }
    }

    /// Another round is under way.
    pub(super) fn begin(&self) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
    }

    /// A round has its decision, or needs none any more.
    pub(super) fn end(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whom a round for this name asks first; `None` to ask all of them. Clients that contend for a
    /// name ask the same ones, as far as they can: of the masters that are near, those with the
    /// highest ranks for it.
    pub(super) fn choose(
        &self,
        voters: &Voters,
        name: &str,
        timeout: Duration,
        now: Moment,
    ) -> Option<FirstMasters> {
        if self.under_way.load(Ordering::Relaxed) < self.above {
            return None;
        }
        let needed = quorum(voters.len());
        let mut well: Vec<(Duration, u64, MasterIndex)> = Vec::with_capacity(voters.len());
        let name = fnv_1a(name);
        let numbered = voters.masters.iter().zip(&voters.numbers);
        well.extend(numbered.filter_map(|(index, number)| {
            let distance = self.paces[index].if_well()?;
            Some((distance, mixed(name ^ u64::from(*number)), index))
        }));
        if well.len() < needed || needed == voters.len() {
            return None;
        }
        well.sort_unstable_by_key(|(distance, ..)| *distance);
        let slowest = well[needed - 1].0;
        let limit = (slowest + NEAR).max(slowest * 3 / 2);
        let near = well.partition_point(|(distance, ..)| *distance <= limit);
        well[..near].sort_unstable_by_key(|(_, rank, _)| Reverse(*rank));
        let mut masters: MasterSet = well[..needed].iter().map(|(.., index)| *index).collect();
        let patience = self.patience(masters, voters.masters.without(masters), timeout)?;
        for index in voters.masters.without(masters).iter() {
            if self.paces[index].is_to_be_tried(now) {
                masters = masters.or(index.into());
            }
        }
        Some(FirstMasters { masters, patience })
    }

    /// For how long to wait for some masters before the rest is asked. `None` if it has to be asked
    /// at once.
    pub(super) fn patience(&self, asked: MasterSet, rest: MasterSet, timeout: Duration) -> Option<Patience> {
        let latency = |index: MasterIndex| self.paces[index].latency();
        let slowest = |of: MasterSet| of.iter().map(latency).max().unwrap_or_default();
        let latest = timeout.checked_sub(slowest(rest) * 2).filter(|latest| *latest >= SHORTEST_HEDGE)?;
        Some(Patience { usual: (slowest(asked) * HEDGE).max(SHORTEST_HEDGE).min(latest), latest })
    }

    /// Marks as failed, and returns, those of these masters that have answered nothing for this
    /// long. One that answers others is busy, and so may the rest be: a master answers in the order
    /// in which it was asked.
    pub(super) fn mark_silent(&self, slow: MasterSet, time: Duration, now: Moment) -> MasterSet {
        let silent: MasterSet = slow.iter().filter(|index| self.paces[*index].is_silent(time, now)).collect();
        silent.iter().for_each(|index| self.paces[index].note_failure(now));
        silent
    }

    /// A round has deferred masters.
    pub(super) fn note_deferred(&self) {
        self.deferred.fetch_add(1, Ordering::Relaxed);
    }

    /// A round asks them because a master is silent, or slow.
    pub(super) fn note_hedge(&self) {
        self.hedged.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a master's vote on what was sent to it at `asked`.
    pub(super) fn note(&self, index: MasterIndex, outcome: &Outcome, asked: Moment, heard: Moment) {
        let pace = &self.paces[index];
        match outcome {
            Outcome::Granted | Outcome::Held { .. } => pace.note_vote(asked, heard, true),
            // One that has no vote answers this, too, if there is nothing to release.
            Outcome::Absent => pace.note_vote(asked, heard, false),
            Outcome::Refused { reason, .. } => match reason {
                Refusal::Moved => {} // it was not sent
                // That is about the lock, not about the master.
                Refusal::Stale | Refusal::WrongType | Refusal::AnotherKind => {
                    pace.note_vote(asked, heard, false)
                }
                _ => pace.note_failure(heard),
            },
            Outcome::Unreachable(_) | Outcome::Unknown(_) => pace.note_failure(heard),
            Outcome::Answered(_) | Outcome::Pending | Outcome::NotAsked => {
                pace.note_vote(asked, heard, false)
            }
        }
    }

    #[cfg(feature = "unstable-testing")]
    pub(super) fn counts(&self) -> QuorumFirstCounts {
        let rounds = self.deferred.load(Ordering::Relaxed);
        let under_way = self.under_way.load(Ordering::Relaxed);
        QuorumFirstCounts { rounds, hedged: self.hedged.load(Ordering::Relaxed), under_way }
    }
}

impl Pace {
    fn latency(&self) -> Duration {
        Duration::from_nanos(self.latency.load(Ordering::Relaxed))
    }

    /// How far a master is that may be preferred: one that has voted, and has not failed since.
    fn if_well(&self) -> Option<Duration> {
        let distance = self.distance.load(Ordering::Relaxed);
        let is_well = distance > 0 && self.failed.load(Ordering::Relaxed) == 0;
        is_well.then(|| Duration::from_nanos(distance))
    }

    /// Whether it was not heard from for long, and this round is the one that asks it.
    fn is_to_be_tried(&self, now: Moment) -> bool {
        let tried = self.tried.load(Ordering::Relaxed);
        let is_long_ago = |then: u64| nanos(now).saturating_sub(then) > UNHEARD.as_nanos() as u64;
        let claim = || self.tried.compare_exchange(tried, nanos(now), Ordering::Relaxed, Ordering::Relaxed);
        is_long_ago(self.heard.load(Ordering::Relaxed)) && is_long_ago(tried) && claim().is_ok()
    }

    fn is_silent(&self, time: Duration, now: Moment) -> bool {
        nanos(now - time) >= self.heard.load(Ordering::Relaxed)
    }

    fn note_failure(&self, at: Moment) {
        self.failed.store(nanos(at), Ordering::Relaxed);
    }

    /// With `is_well`, it has a vote.
    fn note_vote(&self, asked: Moment, heard: Moment, is_well: bool) {
        self.heard.store(nanos(heard), Ordering::Relaxed);
        let failed = self.failed.load(Ordering::Relaxed);
        if is_well && failed > 0 && nanos(asked) > failed {
            self.failed.store(0, Ordering::Relaxed);
        }
        let took = nanos(heard).saturating_sub(nanos(asked)).max(1);
        for (smoothed, of_a_lower) in [(&self.latency, SMOOTHING), (&self.distance, 2)] {
            let next = match smoothed.load(Ordering::Relaxed) {
                0 => took,
                known if took < known => known - (known - took) / of_a_lower,
                known => known + (took - known) / SMOOTHING,
            };
            smoothed.store(next, Ordering::Relaxed); // of two at a time one may be lost
        }
    }
}

/// FNV-1a: <http://www.isthe.com/chongo/tech/comp/fnv/>. The same in all versions of all clients.
fn fnv_1a(text: &str) -> u64 {
    let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, hash)
}

/// The last step of SplitMix64, so that each bit of the number changes half of those of the result.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn nanos(moment: Moment) -> u64 {
    moment.since(Moment::default()).as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const TIMEOUT: Duration = Duration::from_millis(250);

    fn at(millis: u64) -> Moment {
        Moment::from_origin(Duration::from_millis(millis))
    }

    fn voters(count: usize) -> Voters {
        let names: Vec<Arc<str>> = (0..count).map(|index| format!("redis://m{index}").into()).collect();
        Voters::given(&names)
    }

    /// Each master has voted at 10 s, after so many milliseconds.
    fn heard(latencies: &[u64]) -> (Preference, Voters) {
        let preference = Preference::new(0);
        for (index, latency) in latencies.iter().enumerate() {
            preference.note(index.into(), &Outcome::Granted, at(10_000), at(10_000 + latency));
        }
        (preference, voters(latencies.len()))
    }

    fn first(known: &(Preference, Voters), name: &str, now: u64) -> Option<Vec<bool>> {
        let (preference, voters) = known;
        let first = preference.choose(voters, name, TIMEOUT, at(now))?;
        Some(voters.masters.iter().map(|index| first.masters.has(index)).collect())
    }

    fn count(first: &[bool]) -> usize {
        first.iter().filter(|is_asked| **is_asked).count()
    }

    #[test]
    fn each_name_has_a_quorum_of_its_own_and_always_the_same() {
        let known = heard(&[2; 5]);
        let mut times = [0; 5];
        for name in 0..100 {
            let asked = first(&known, &name.to_string(), 10_100).unwrap();
            assert_eq!(count(&asked), 3);
            assert_eq!(first(&known, &name.to_string(), 10_200), Some(asked.clone()));
            times.iter_mut().zip(asked).for_each(|(times, is_asked)| *times += usize::from(is_asked));
        }
        assert!(times.iter().all(|times| (40..80).contains(times)), "{times:?}");
    }

    #[test]
    fn the_nearest_come_before_those_that_are_slower_by_half() {
        let known = heard(&[40, 2, 2, 2, 2]);
        assert!((0..100).all(|name| !first(&known, &name.to_string(), 10_100).unwrap()[0]));
        let known = heard(&[60, 2, 50, 2, 30]);
        assert_eq!(first(&known, "l", 10_100), Some(vec![false, true, false, true, true]));
    }

    #[test]
    fn all_are_asked_where_too_few_are_well_or_nothing_is_saved() {
        assert_eq!(first(&heard(&[2]), "l", 10_100), None);
        assert_eq!(first(&heard(&[2, 2]), "l", 10_100), None, "two of two are a quorum");
        let known = heard(&[2; 3]);
        assert_eq!(count(&first(&known, "l", 10_100).unwrap()), 2);
        for index in [0, 1] {
            known.0.note(index.into(), &Outcome::Unreachable("x".into()), at(10_200), at(10_200));
        }
        assert_eq!(first(&known, "l", 10_300), None);
    }

    #[test]
    fn a_master_that_failed_is_preferred_when_it_has_answered_what_was_sent_later() {
        let known = heard(&[2; 3]);
        let asks_it = || (0..50).any(|name| first(&known, &name.to_string(), 10_500).unwrap()[1]);
        assert!(asks_it());
        let slow = MasterSet::from(MasterIndex::from(1));
        assert_eq!(known.0.mark_silent(slow, Duration::from_millis(8), at(10_150)), slow);
        assert!(!asks_it());
        known.0.note(1.into(), &Outcome::Granted, at(10_149), at(10_151));
        assert!(!asks_it(), "it was sent before");
        known.0.note(1.into(), &Outcome::Granted, at(10_151), at(10_153));
        assert!(asks_it());
    }

    #[test]
    fn one_round_a_second_asks_a_master_that_was_not_heard_of() {
        let known = heard(&[100, 2, 2]);
        let asked = |now| first(&known, "l", now).unwrap();
        assert_eq!(asked(11_100), [false, true, true]);
        assert_eq!(asked(11_300), [true; 3]);
        assert_eq!(asked(11_310), [false, true, true], "one round was enough");
        assert_eq!(asked(12_400), [true; 3]);
    }

    #[test]
    fn a_master_that_answers_others_is_not_silent() {
        let known = heard(&[2; 3]);
        let all = known.1.masters;
        let silent = |now| known.0.mark_silent(all, Duration::from_millis(8), at(now)).len();
        assert_eq!(silent(10_009), 0);
        known.0.note(0.into(), &Outcome::Granted, at(10_001), at(10_009));
        assert_eq!(silent(10_010), 2);
        assert_eq!(silent(10_016), 2);
        assert_eq!(silent(10_017), 3);
    }

    #[test]
    fn a_master_without_a_vote_is_not_well_for_having_nothing_to_release() {
        let known = heard(&[2; 3]);
        let refused = Outcome::Refused { reason: Refusal::Quarantined, detail: "".into() };
        known.0.note(1.into(), &refused, at(10_100), at(10_102));
        known.0.note(1.into(), &Outcome::Absent, at(10_103), at(10_105));
        assert!((0..50).all(|name| !first(&known, &name.to_string(), 10_500).unwrap()[1]));
    }

    #[test]
    fn the_rest_is_asked_in_time_to_answer() {
        let (preference, voters) = heard(&[2, 2, 2, 100, 100]);
        let all = voters.masters;
        let asked = MasterSet::first(3);
        let ms = Duration::from_millis;
        let patience = |timeout| {
            let Patience { usual, latest } = preference.patience(asked, all.without(asked), ms(timeout))?;
            Some((usual, latest))
        };
        assert_eq!(patience(1_000), Some((ms(8), ms(800))));
        assert_eq!(patience(205), Some((ms(5), ms(5))));
        assert_eq!(patience(200), None);
        let quick = heard(&[0; 5]).0;
        let Patience { usual, .. } = quick.patience(asked, all.without(asked), TIMEOUT).unwrap();
        assert_eq!(usual, SHORTEST_HEDGE);
    }
}
