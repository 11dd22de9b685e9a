//! Who leads, for those that do not campaign. Masters tell nobody of a new leader, so an observer
//! asks, at intervals.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::blocking;
use crate::engine::Engine;
use crate::error::Error;
use crate::fence::FencingToken;
use crate::inner::Inner;
use crate::inspection::Inspection;
use crate::owner::Owner;
use crate::protocol::Kind;
use crate::trust::{MasterStatus, Standing};
use crate::vote::Outcome;
use tokio::sync::watch;

/// Who leads, as the masters tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Whom a majority names.
    Leader(Leader),
    /// A majority knows that nobody leads.
    Nobody,
    /// Neither. Too few masters answer, or may have forgotten what they granted; or they do not
    /// agree, as in the middle of a change. Somebody may lead.
    Unknown,
}

/// A leader, as observers see it.
///
/// Its owner is all that the masters know of it. A leader that wants to be found under another
/// name, its host and port say, writes that down where others look for it, together with its
/// [term](crate::Leadership::term): the highest term is the latest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// What its [`Leadership::owner`](crate::Leadership::owner) is, written out. Each term has
    /// another one.
    pub owner: Arc<str>,
    /// What its [`Leadership::term`](crate::Leadership::term) is, where a master that answered
    /// told; see [`Inspection::fencing_token`].
    pub term: Option<FencingToken>,
    /// Whether it is a candidate of the client that observes: of that [`Redlock`](crate::Redlock)
    /// or a clone of it.
    pub is_ours: bool,
}

/// Follows who leads an election: it looks when it begins, and then about every second until it is
/// dropped.
///
/// # What it sees, and when
///
/// A look asks every master as [`Lock::inspect`](crate::Lock::inspect) does. A change is told
/// within the [interval](crate::Election::look_every) and a per-master time-out. A leader that came
/// and went between two looks is not seen. One that died is seen until nobody is kept from leading
/// any more: for its TTL and the lock delay.
///
/// What it sees is for information: to find the leader, or to show it. Only the leader itself knows
/// [that it leads](crate::Leadership::is_leader), and only its term keeps out one that comes too
/// late.
///
/// # What it costs
///
/// A look is one short script call that reads, on each master. The pause between two looks is drawn
/// between half of the interval and all of it, so that observers do not look at the same time. With
/// the default of a second a thousand observers make 1,300 calls a second on each master, some
/// percent of what it can do. It does not depend on how often [`changed`](Observer::changed) is
/// called. The looks are made by the client's own thread.
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
        let engine = client.engine().clone();
        let name = name.clone();
        client.engine().spawn_until_closed(async move {
            tokio::select! {
                biased;
                () = tell.closed() => {}
                () = keep_looking(&engine, &name, interval, &tell) => {}
            }
        });
        Self { seen, client: client.clone() }
    }

    /// Waits for a change, and tells who leads now; the first time, as soon as that was looked at.
    /// Changes that came since the last call are told as one, the latest.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no change: the next call tells it.
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

    /// Who leads, as of the last look; unknown before the first.
    pub fn latest(&self) -> Observed {
        self.seen.borrow().clone().unwrap_or(Observed::Unknown)
    }
}

/// Looks until the client is shut down, and tells what is new.
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
    let mut observed = Observed::of(&Inspection::new(name.clone(), seen), &engine.master_status());
    if let Observed::Leader(leader) = &mut observed {
        leader.is_ours = leader.owner.parse().is_ok_and(|owner: Owner| owner.client() == engine.client());
    }
    Ok(observed)
}

impl Observed {
    /// What such answers mean, of masters that stand so; without guards nobody knows how they
    /// stand.
    fn of(seen: &Inspection, standings: &[MasterStatus]) -> Self {
        if let Some(holder) = seen.holder() {
            return Self::Leader(Leader { owner: holder.owner, term: seen.fencing_token(), is_ours: false });
        }
        // A master that may have forgotten the leader cannot tell that there is none.
        let knows = |index| {
            standings.get(index).is_none_or(|status: &MasterStatus| status.standing == Standing::Trusted)
        };
        let votes = seen.votes().iter().enumerate();
        let free = votes.filter(|(index, vote)| vote.outcome == Outcome::Absent && knows(*index)).count();
        if free >= seen.quorum() { Self::Nobody } else { Self::Unknown }
    }

    /// A leader is told once, and once more should its term become known only then.
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
