//! Whether a master may vote: one that may have forgotten what it granted, or whose clock jumped, may not.
//!
//! Plain Redlock counts whatever a master says. Here each connection begins with a [`Handshake`], which tells a master that
//! lost its memory from one that has it, and every answer carries the master's time, which [`clocks`] judges. Source:
//! Kleppmann, "How to do distributed locking" (2016), which names both failures.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::{Clock, Moment};
use crate::invalid::Invalid;
use crate::protocol::{NEWEST, OLDEST, UNMEASURED, VERSION};
use crate::sync::{Mutex, MutexGuard};

mod clocks;
mod handshake;
mod standing;
mod watched;

use clocks::Clocks;
pub(crate) use clocks::{Astray, BAND};
pub use handshake::{HELLO, Handshake, Passport, Question, Sight, Welcome};
pub use standing::{MasterStatus, Standing};
pub(crate) use watched::Watched;

/// What to trust of a master that has no marker, or that of another process: it is new, or it restarted, and it may have
/// forgotten what it granted a moment ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ColdStart {
    /// Nothing: it has no vote until whatever it may have granted is over, a little more than one
    /// [`max_ttl`](crate::Builder::max_ttl). The default, for it is right whatever happened; while a minority of the
    /// masters sits it out nobody notices, and new masters are used for the first time that much later.
    #[default]
    Quarantine,
    /// A master that has been up for longer than the max TTL and has no marker was never used: it votes at once. Not so
    /// where somebody deletes all keys of a master in use (`FLUSHALL`) and a client comes that never saw it before.
    Uptime,
    /// A master whose `appendfsync` is `always` loses nothing when it restarts: it votes at once. That is looked up
    /// (`CONFIG GET`) with every connection. Not so where its disk is replaced, or as with
    /// [`Uptime`](ColdStart::Uptime).
    Fsync,
    /// Everything: it votes at once. For tests, and for the first time that new masters are used.
    None,
}

impl ColdStart {
    const ALL: [Self; 4] = [Self::Quarantine, Self::Uptime, Self::Fsync, Self::None];

    fn word(self) -> &'static str {
        match self {
            Self::Quarantine => "quarantine",
            Self::Uptime => "uptime",
            Self::Fsync => "fsync",
            Self::None => "none",
        }
    }
}

impl fmt::Display for ColdStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for ColdStart {
    type Err = Invalid;

    /// Reads what [`Display`](fmt::Display) wrote, and nothing else.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let known = Self::ALL.into_iter().find(|policy| policy.word() == text);
        known.ok_or_else(|| Invalid::cold_start(text))
    }
}

/// The difference between the lowest and the highest that one master's clock may show while it remembers a name.
const CLOCK_RANGE: Duration = Duration::from_secs(60);

/// How far (us) a client's proposals may run ahead of the time, which they do where it asks more than once a microsecond.
const LEAD: u64 = 100_000;

/// What clients of the same locks must agree on, and what this one trusts.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Where a master keeps its marker.
    pub(crate) marker: String,
    pub(crate) masters: usize,
    pub(crate) max_ttl: Duration,
    pub(crate) strict: bool,
    pub(crate) cold_start: ColdStart,
}

impl Terms {
    /// How long a master that may have forgotten something has no vote: until a lease of the longest TTL is over, by a
    /// clock that is slow or steps within the band, or was off at the handshake, and until every vote that was asked before is
    /// refused for its time.
    pub(crate) fn quarantine(&self) -> Duration {
        self.max_ttl + self.max_ttl / 100 + OLDEST + NEWEST + BAND * 2 + UNMEASURED
    }

    /// How long a master remembers a name that nobody holds. A broken lock could come back, and a token be given again, where
    /// it forgot one sooner than a master that forgot everything has no vote.
    pub(crate) fn kept_free(&self) -> Duration {
        self.quarantine() + CLOCK_RANGE
    }
}

/// They are stored with the marker, so that operators can read them.
impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (masters, max_ttl) = (self.masters, self.max_ttl.as_millis());
        write!(f, "{VERSION}, {masters} masters and a max TTL of {max_ttl} ms")?;
        if self.strict { f.write_str(", strict") } else { Ok(()) }
    }
}

/// What one client knows about whom to trust.
#[derive(Debug)]
pub(crate) struct Trust {
    terms: Terms,
    clock: Arc<dyn Clock>,
    clocks: Mutex<Clocks>,
    standings: Mutex<Vec<Standing>>,
    /// The last token that was proposed.
    proposed: AtomicU64,
    /// Told when a master's time was seen.
    sighted: Notify,
    /// What holders that did not release have been watched for.
    pub(crate) watched: Watched,
}

impl Trust {
    pub(crate) fn new(terms: Terms, clock: Arc<dyn Clock>) -> Arc<Self> {
        let clocks = Mutex::new(Clocks::new(terms.masters));
        let standings = Mutex::new(vec![Standing::Unknown; terms.masters]);
        let watched = Watched::new(clock.clone(), terms.masters);
        let (proposed, sighted) = (AtomicU64::new(0), Notify::new());
        Arc::new(Self { terms, clock, clocks, standings, proposed, sighted, watched })
    }

    /// How the master at `place` makes its connections known.
    pub(crate) fn handshake(self: &Arc<Self>, place: usize) -> Handshake {
        Handshake::new(self.clone(), place)
    }

    pub(crate) fn is_strict(&self) -> bool {
        self.terms.strict
    }

    /// Hears what time it is on a master (us), between two moments here; tells whether that can be.
    pub(crate) fn hear_time(
        &self,
        place: usize,
        asked: Moment,
        heard: Moment,
        time: u64,
    ) -> Result<(), Astray> {
        self.clocks().note(place, asked, heard, time)
    }

    /// Whether this master is not far from what most masters show, as far as is known now.
    pub(crate) fn agrees(&self, place: usize) -> bool {
        self.clocks().agrees(place)
    }

    /// How many of these masters are not far from what most masters show, as far as is known now.
    pub(crate) fn how_many_agree(&self, places: impl Iterator<Item = usize>) -> usize {
        let clocks = self.clocks();
        places.filter(|place| clocks.agrees(*place)).count()
    }

    /// The time (us) that most masters show, as far as is known; otherwise by this host's own clock.
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

    /// A token to propose: the time, and higher than the one before. Whether it is higher than all that were granted is for
    /// the masters to see to.
    pub(crate) fn propose(&self) -> u64 {
        let time = self.time();
        let next = |last: u64| if last >= time && last - time < LEAD { last + 1 } else { time };
        let last = self.proposed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        next(last.unwrap_or(0))
    }

    /// A master that answers does not know this client any more: whether it may vote is not known before the next handshake.
    pub(crate) fn doubt(&self, place: usize) {
        self.standings()[place] = Standing::Unknown;
    }

    fn clocks(&self) -> MutexGuard<'_, Clocks> {
        self.clocks.lock()
    }

    fn standings(&self) -> MutexGuard<'_, Vec<Standing>> {
        self.standings.lock()
    }

    /// How the masters stand with this client.
    pub(crate) fn status(&self, masters: &[Arc<str>]) -> Vec<MasterStatus> {
        let (now, standings) = (self.clock.now(), self.standings());
        let status = |(master, standing): (&Arc<str>, &Standing)| MasterStatus {
            master: master.clone(),
            standing: standing.at(now),
        };
        masters.iter().zip(standings.iter()).map(status).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_reads_back_what_it_wrote() {
        for policy in ColdStart::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        let error = "trust me".parse::<ColdStart>().unwrap_err().to_string();
        assert!(error.contains("trust me") && error.contains("quarantine"), "{error}");
    }
}
