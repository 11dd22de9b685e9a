//! What a workload locks by: Quorate, or something else that is put through the same.

use std::future::pending;
use std::time::Duration;

use quorate::fence::FencingToken;
use quorate::{Error, Moment, Redlock, compat};
use quorate_testkit::Dice;
use rslock::LockManager;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::kind::{Kind, LOCKS};
use super::votes;
use crate::history::{self, NoVote, Outcome, Share, Time, now};
use crate::naive::{self, Naive};

/// The longest pause between two tries for a lock of rslock, which rslock is given.
pub(super) const POLL: u64 = 50;

/// What is locked by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// Quorate, with locks of these kinds.
    Quorate(Vec<Kind>),
    /// The Redlock crate that was there already.
    Rslock,
    /// A lock that is known to be wrong.
    Naive(Naive),
}

impl Subject {
    /// Its name in a history.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Quorate(_) => "quorate",
            Self::Rslock => "rslock",
            Self::Naive(naive) => naive.name(),
        }
    }

    /// The names of the kinds of its locks, where it has several.
    pub fn kinds(&self) -> Vec<String> {
        let kinds = if let Self::Quorate(kinds) = self { kinds.as_slice() } else { &[] };
        kinds.iter().map(ToString::to_string).collect()
    }

    /// What it is, in a sentence, where it is not Quorate's lock.
    pub fn stranger(&self) -> Option<&'static str> {
        Some(match self {
            Self::Quorate(_) => return None,
            Self::Rslock => "Redlock as the crate rslock has it: somebody else's lock.",
            Self::Naive(naive) => naive.about(),
        })
    }
}

/// What a process has to lock by.
#[derive(Debug)]
pub(super) enum Locks {
    Quorate(Redlock, Vec<Kind>),
    Rslock(LockManager),
    Naive(naive::NaiveClient, Naive),
}

/// A lock that may be asked for.
#[derive(Debug)]
pub(super) struct SubjectLock<'a> {
    /// What the history calls it.
    pub(super) named: history::Lock,
    by: By<'a>,
}

#[derive(Debug)]
enum By<'a> {
    Quorate(Box<compat::UnfencedLock>),
    Rslock(&'a LockManager),
    Naive(&'a naive::NaiveClient),
}

/// What an acquire said that was not granted.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) outcome: Outcome,
    /// The masters that had no vote in its last round.
    pub(super) no_vote: Vec<NoVote>,
}

/// A lock that is held. Dropping it gives it back, if the library does so.
#[derive(Debug)]
pub(super) enum Held {
    Quorate(compat::UnfencedGuard),
    Rslock(rslock::Lock, Time),
    Naive(naive::NaiveHold),
}

impl Locks {
    /// Makes an unrecorded call, so that the first recorded ones do not fail because the client is
    /// not connected yet.
    pub(super) async fn connect(&self) {
        if let Self::Quorate(redlock, _) = self {
            let _ = redlock.lock("introduction").inspect().await; // it is as well if they are out of reach
        }
    }

    /// One of the locks; of those that have readers, one of three is to write.
    pub(super) fn draw(&self, dice: &Dice) -> SubjectLock<'_> {
        let kind = if let Self::Quorate(_, kinds) = self { dice.below(kinds.len()) } else { 0 };
        self.lock(kind, dice.below(LOCKS), dice.below(3) > 0)
    }

    /// All of them, to write.
    pub(super) fn all(&self) -> Vec<SubjectLock<'_>> {
        let counts = match self {
            Self::Quorate(_, kinds) => kinds.iter().map(|kind| kind.count()).collect(),
            Self::Rslock(_) | Self::Naive(..) => vec![LOCKS],
        };
        let numbered = |(kind, count)| (0..count).map(move |number| self.lock(kind, number, false));
        counts.into_iter().enumerate().flat_map(numbered).collect()
    }

    /// A lock of its own for each number, which none of [`all`](Self::all) is: of one kind after
    /// the other that has one name, and that is written again on masters that join.
    pub(super) fn lease(&self, number: usize) -> SubjectLock<'_> {
        let Self::Quorate(redlock, kinds) = self else { return self.lock(0, LOCKS + number, false) };
        let goes_on = |kind: &&Kind| **kind != Kind::All && !kind.is_of_others();
        let kinds: Vec<_> = kinds.iter().filter(goes_on).collect();
        let kind = kinds.get(number % kinds.len().max(1)).map_or(Kind::Reentrant, |kind| **kind);
        let (lock, named) = kind.lock(redlock, LOCKS + number, false);
        SubjectLock { named, by: By::Quorate(Box::new(lock)) }
    }

    /// The lock of this number of one of the kinds; to read, if it has readers.
    pub(super) fn lock(&self, kind: usize, number: usize, reads: bool) -> SubjectLock<'_> {
        match self {
            Self::Quorate(redlock, kinds) => {
                let (lock, named) = kinds[kind].lock(redlock, number, reads);
                SubjectLock { named, by: By::Quorate(Box::new(lock)) }
            }
            Self::Rslock(manager) => {
                SubjectLock { named: named("rslock", number, Share::Exclusive), by: By::Rslock(manager) }
            }
            Self::Naive(client, naive) => {
                SubjectLock { named: named(naive.name(), number, naive.share(reads)), by: By::Naive(client) }
            }
        }
    }

    /// Gives back what is left, as far as it can.
    pub(super) async fn close(self, within: Duration) {
        if let Self::Quorate(redlock, _) = self {
            redlock.shutdown(within).await; // what it could not give back ends with its lease
        }
    }
}

fn named(kind: &str, number: usize, share: Share) -> history::Lock {
    history::Lock { kind: kind.to_owned(), names: vec![format!("{kind}-{number}")], share }
}

impl SubjectLock<'_> {
    /// The lock, or what the history says of it.
    pub(super) async fn acquire(&self, ttl: Duration, wait: Duration) -> Result<Held, Refused> {
        match &self.by {
            By::Quorate(lock) => {
                let lock = compat::UnfencedLock::clone(lock).ttl(ttl).wait(wait);
                let asked = if wait.is_zero() { lock.try_acquire().await } else { lock.acquire().await };
                asked.map(Held::Quorate).map_err(|error| refused(&error))
            }
            By::Rslock(manager) => self.acquire_of_rslock(manager, ttl, wait).await,
            By::Naive(client) => {
                match client.acquire(&self.named.names[0], self.named.share, ttl, wait).await {
                    Ok(Some(hold)) => Ok(Held::Naive(hold)),
                    Ok(None) => Err(Outcome::Failed { why: "held".to_owned() }.into()),
                    Err(error) => Err(unknown(&error.to_string()).into()),
                }
            }
        }
    }

    async fn acquire_of_rslock(
        &self,
        manager: &LockManager,
        ttl: Duration,
        wait: Duration,
    ) -> Result<Held, Refused> {
        let over = now() + wait;
        loop {
            match manager.lock(&*self.named.names[0], ttl).await {
                Ok(lock) => {
                    let deadline = now() + Duration::from_millis(lock.validity_time as u64);
                    return Ok(Held::Rslock(lock, deadline));
                }
                Err(error) if now() >= over => return Err(unknown(&error.to_string()).into()),
                Err(_) => sleep(Duration::from_millis(POLL)).await,
            }
        }
    }
}

impl Held {
    pub(super) fn granted(&self) -> Outcome {
        let owner = match self {
            Self::Quorate(guard) => guard.owner().to_string(),
            Self::Rslock(lock, _) => lock.val.iter().map(|byte| format!("{byte:02x}")).collect(),
            Self::Naive(hold) => hold.owner.clone(),
        };
        let deadline = self.deadline().unwrap_or_default();
        let fence = self.fence();
        Outcome::Granted { owner, deadline, fence, permit: self.permit() }
    }

    /// The masters that had no vote in the round that granted it.
    pub(super) fn no_vote(&self) -> Vec<NoVote> {
        if let Self::Quorate(guard) = self { votes::without(&guard.votes()) } else { Vec::new() }
    }

    /// When its lease ends, also of one that is over: a process that stood still may look at it
    /// late. `None` where a guard that is lost does not know any more.
    pub(super) fn deadline(&self) -> Option<Time> {
        match self {
            Self::Quorate(guard) => {
                Some(guard.deadline().since(Moment::default())).filter(|deadline| !deadline.is_zero())
            }
            Self::Rslock(_, deadline) => Some(*deadline),
            Self::Naive(hold) => Some(hold.deadline),
        }
    }

    /// Its token, if it has one.
    pub(super) fn fence(&self) -> Option<u64> {
        if let Self::Quorate(guard) = self {
            guard.fencing_token_if_any().map(FencingToken::get)
        } else {
            None
        }
    }

    /// Whether its holder may believe that it has it.
    pub(super) fn is_valid(&self) -> bool {
        if let Self::Quorate(guard) = self { guard.is_valid() } else { self.deadline() > Some(now()) }
    }

    pub(super) fn permit(&self) -> Option<u32> {
        if let Self::Quorate(guard) = self { guard.permit() } else { None }
    }

    /// Waits until its holder knows that it is lost. One of rslock's looks at its watch; those of
    /// naive locks know nothing.
    pub(super) async fn lost(&self) {
        match self {
            Self::Quorate(guard) => {
                guard.lost().await;
            }
            Self::Rslock(_, deadline) => sleep(deadline.saturating_sub(now())).await,
            Self::Naive(_) => pending().await,
        }
    }

    pub(super) async fn extend(&self, ttl: Duration) -> Outcome {
        let Self::Quorate(guard) = self else {
            return Outcome::Failed { why: "it is not extended here".to_owned() };
        };
        match guard.extend(ttl).await {
            Ok(()) => self.deadline().map_or_else(
                || unknown("it was lost before anybody looked"),
                |deadline| Outcome::Extended { deadline },
            ),
            Err(error) => unknown(&format!("{error:#}")),
        }
    }

    pub(super) async fn release(self) -> Outcome {
        let released = match self {
            Self::Quorate(guard) => guard.release().await.map_err(|error| format!("{error:#}")),
            Self::Rslock(lock, _) => {
                lock.release().await;
                Err("it does not say".to_owned())
            }
            Self::Naive(hold) => hold.release().await.map_err(|error| error.to_string()),
        };
        released.map_or_else(|why| unknown(&why), |()| Outcome::Released)
    }
}

/// What an acquire said that was not granted. Nobody has it by this call; whether it was to be had
/// is known only where somebody else had it.
fn refused(error: &Error) -> Refused {
    let outcome = match error {
        Error::Held { .. } | Error::WaitTimedOut { .. } => Outcome::Failed { why: format!("{error:#}") },
        _ => unknown(&format!("{error:#}")),
    };
    Refused { outcome, no_vote: votes::without(error.votes()) }
}

impl From<Outcome> for Refused {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, no_vote: Vec::new() }
    }
}

pub(super) fn unknown(why: &str) -> Outcome {
    Outcome::Unknown { why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use quorate::Redlock;
    use quorate_testkit::Masters;

    use super::*;

    #[tokio::test]
    async fn a_look_at_a_lease_that_is_over_makes_it_no_longer() {
        let masters = Masters::start(1);
        let redlock = Redlock::builder().masters(masters.urls()).all_new();
        let lock = redlock.build().unwrap().mutex("looked-at").ttl(Duration::from_millis(100)).no_renewal();
        let held = Held::Quorate(lock.acquire().await.unwrap().into());
        let ends = held.deadline().unwrap();
        while now() <= ends {
            sleep(ends.saturating_sub(now()) + Duration::from_micros(1)).await;
        }
        assert!(held.deadline().is_none_or(|deadline| deadline == ends));
    }
}
