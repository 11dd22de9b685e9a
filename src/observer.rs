//! Who leads, for those that do not campaign. Masters do not announce a new leader, so an observer
//! asks at intervals.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::blocking;
use crate::engine::Engine;
use crate::error::{Error, Holder};
use crate::fence::FencingToken;
use crate::inner::Inner;
use crate::inspection::Inspection;
use crate::set::{MasterStatus, Standing};
use crate::vote::{Outcome, Vote};
use crate::wire::Kind;

/// Who leads, according to the masters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "state", rename_all = "snake_case"))]
pub enum Observed {
    /// The leader that a majority names.
    Leader(Leader),
    /// A majority knows that nobody leads.
    Nobody,
    /// Neither: too few masters answer, some may have lost their locks, or they do not agree, as in
    /// the middle of a change. Somebody may lead.
    Unknown,
}

/// A leader, as observers see it.
///
/// The masters know only its owner and label. A leader that wants to publish more, such as a host
/// and port, stores it elsewhere together with its [term](crate::Leadership::term): the highest
/// term is the latest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Leader {
    /// Its [`Leadership::owner`](crate::Leadership::owner), as text. Each term has another one.
    pub owner: Arc<str>,
    /// Its [`Leadership::term`](crate::Leadership::term), if a master that answered knows it; see
    /// [`Inspection::fencing_token`].
    pub term: Option<FencingToken>,
    /// Whether it is a candidate of the observing client, a [`Redlock`](crate::Redlock) or a clone
    /// of it; also one of a copy of this process.
    pub is_ours: bool,
}

/// Follows who leads an election: it asks at once, and then about every second until it is dropped.
///
/// # What it sees, and when
///
/// A look asks every master as [`Lock::inspect`](crate::Lock::inspect) does. A change is reported
/// within the [interval](crate::Election::look_every) and a per-master time-out. A leader between
/// two looks is missed, and one that died is seen until its TTL and the lock delay are over.
///
/// Use it to find or show the leader. Only the leader itself knows [that it
/// leads](crate::Leadership::is_leader), and only its term keeps out an earlier one.
///
/// # What it costs
///
/// A look is one short read-only script call on each master, by the client's own thread, however
/// often [`changed`](Observer::changed) is called. The pauses are random, from half of the interval
/// to all of it, so that observers do not look at the same time. At the default of a second a
/// thousand observers make 1,300 calls a second on each master, some percent of what it can do.
///
/// # Examples
///
/// ```
/// # quorate_testkit::doc(|masters| async move {
/// # use quorate::Observed;
/// # use std::time::Duration;
/// let redlock = quorate::Redlock::builder().masters(masters).build()?;
/// let election = redlock.election("scheduler").look_every(Duration::from_millis(20));
/// let mut observer = election.observe()?;
/// assert_eq!(observer.changed().await?, Observed::Nobody);
/// let leadership = election.campaign().await?;
/// match observer.changed().await? {
///     Observed::Leader(leader) => assert_eq!(leader.term, Some(leadership.term())),
///     other => panic!("{other}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(()) });
/// ```
#[derive(Clone, Debug)]
pub struct Observer {
    seen: watch::Receiver<Option<Observed>>,
    /// Keeps the background thread, which looks.
    client: Arc<Inner>,
}

impl Observer {
    pub(super) fn begin(client: &Arc<Inner>, name: &Arc<str>, interval: Duration) -> Self {
        let (tell, seen) = watch::channel(None);
        let engine = client.engine.clone();
        let name = name.clone();
        client.engine.spawn_until_closed(async move {
            tokio::select! {
                biased;
                () = tell.closed() => {}
                () = keep_looking(&engine, &name, interval, &tell) => {}
            }
        });
        Self { seen, client: client.clone() }
    }

    /// Waits for a change and returns who leads now; the first call returns after the first look.
    /// Of several changes since the last call it returns the latest.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no change: the next call returns it.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the client was shut down.
    ///
    /// # Examples
    ///
    /// See [`Observer`].
    pub async fn changed(&mut self) -> Result<Observed, Error> {
        self.seen.changed().await.map_err(|_| Error::Closed)?;
        let seen = self.seen.borrow_and_update().clone();
        Ok(seen.unwrap_or(Observed::Unknown))
    }

    /// [`changed`](Observer::changed) [without async](crate::blocking).
    pub fn changed_blocking(&mut self) -> Result<Observed, Error> {
        let client = self.client.clone();
        blocking::wait(&client, self.changed())
    }

    /// Who leads, by the last look; unknown before the first.
    pub fn latest(&self) -> Observed {
        self.seen.borrow().clone().unwrap_or(Observed::Unknown)
    }
}

/// Looks until the client is shut down, and publishes changes.
async fn keep_looking(
    engine: &Arc<Engine>,
    name: &Arc<str>,
    interval: Duration,
    tell: &watch::Sender<Option<Observed>>,
) {
    while let Ok(seen) = look(engine, name).await {
        tell.send_if_modified(|last| {
            let is_news = last.as_ref().is_none_or(|last| seen.is_news_after(last));
            if is_news {
                *last = Some(seen);
            }
            is_news
        });
        tokio::time::sleep(engine.jittered(interval)).await;
    }
}

/// Asks every master.
pub(super) async fn look(engine: &Arc<Engine>, name: &Arc<str>) -> Result<Observed, Error> {
    let seen = engine.inspect(name.clone(), Kind::Lock).await?;
    Ok(Observed::of(&Inspection::new(name.clone(), seen), &engine.master_status()))
}

impl Observed {
    /// Who leads, by these answers of masters with these statuses. One that left the set meanwhile
    /// has none, and does not count.
    fn of(seen: &Inspection, standings: &[MasterStatus]) -> Self {
        if let Some(Holder { owner, is_ours, .. }) = seen.holder() {
            return Self::Leader(Leader { owner, term: seen.fencing_token(), is_ours });
        }
        // A master that may have forgotten the leader cannot tell that there is none.
        let knows = |vote: &Vote| {
            let is_its = |status: &&MasterStatus| status.master == vote.master;
            standings.iter().find(is_its).is_some_and(|status| status.standing == Standing::Trusted)
        };
        let votes = seen.votes().iter();
        let free = votes.filter(|vote| vote.outcome == Outcome::Absent && knows(vote)).count();
        if free >= seen.quorum() { Self::Nobody } else { Self::Unknown }
    }

    /// A leader is reported once, and once more if its term becomes known only later.
    fn is_news_after(&self, last: &Self) -> bool {
        match (last, self) {
            (Self::Leader(last), Self::Leader(now)) => last.owner != now.owner || last.term < now.term,
            _ => last != self,
        }
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leader(leader) => leader.fmt(f),
            Self::Nobody => f.write_str("nobody leads"),
            Self::Unknown => f.write_str("it is not known who leads"),
        }
    }
}

impl fmt::Display for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.term {
            Some(term) => write!(f, "{} leads, in term {term}", self.owner),
            None => write!(f, "{} leads", self.owner),
        }
    }
}
