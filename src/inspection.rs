//! What the masters know of one name, and of all names.

use std::sync::Arc;

use crate::admin::{Progress, Sighting};
use crate::blocking;
use crate::error::{Error, Holder};
use crate::fence::FencingToken;
use crate::held::{HeldPart, LockKind};
use crate::inner::Inner;
use crate::round;
use crate::vote::{Outcome, Refusal, Vote};

/// What the masters know of a name: the kind of lock, who has it, and how many wait.
#[derive(Clone, Debug)]
pub struct Inspection {
    name: Arc<str>,
    seen: Sighting,
}

impl Inspection {
    pub(crate) fn new(name: Arc<str>, seen: Sighting) -> Self {
        Self { name, seen }
    }

    /// The name; several names are joined with `+`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind of lock under the name, held or free; `None` if the masters know of none, for
    /// example because the name was not used for a while.
    pub fn kind(&self) -> Option<LockKind> {
        self.seen.kind
    }

    /// What a majority of the masters knows.
    pub fn state(&self) -> LockState {
        let is_no_lock =
            |vote: &&Vote| matches!(vote.outcome, Outcome::Refused { reason: Refusal::WrongType, .. });
        if self.answered() < self.quorum() {
            LockState::Unknown
        } else if self.is_free() {
            LockState::Free
        } else if !self.held().is_empty() {
            LockState::Held
        } else if self.votes().iter().filter(is_no_lock).count() >= self.quorum() {
            LockState::NoLock
        } else {
            LockState::Split
        }
    }

    /// What each master answered; of several holders, the one that has held its part for longest.
    pub fn votes(&self) -> &[Vote] {
        &self.seen.votes
    }

    /// How many masters a holder needs.
    pub fn quorum(&self) -> usize {
        round::quorum(self.votes().len())
    }

    /// How many masters answered, even if only that the name is no lock.
    pub fn answered(&self) -> usize {
        self.votes().iter().filter(|vote| vote.outcome.is_answer()).count()
    }

    /// How many parts a majority knows to be free: permits of a semaphore, or 1 for any other lock
    /// that nobody has. If it is 0, and nobody [has](Inspection::held) it either, too few masters
    /// answered, or they do not agree.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.semaphore("printers", 3).acquire().await?;
    /// assert_eq!(redlock.inspect("printers").await?.free(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn free(&self) -> usize {
        self.seen.free
    }

    /// Whether a part of it is [free](Inspection::free).
    pub fn is_free(&self) -> bool {
        self.free() > 0
    }

    /// The parts whose holder a majority names, in the order of their grants: several only of a
    /// read lock or a semaphore.
    pub fn held(&self) -> &[HeldPart] {
        &self.seen.held
    }

    /// Who has the lock, by the majority; of several holders, the one that has had it for longest.
    pub fn holder(&self) -> Option<Holder> {
        self.held().first().map(|held| held.holder.clone())
    }

    /// The fencing token of the [`holder`](Inspection::holder).
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.held().first()?.fencing_token
    }

    /// How many processes wait for it, each perhaps with a local queue: a majority of the masters
    /// have at least this many in their queues.
    pub fn waiting(&self) -> u64 {
        self.seen.waiting
    }
}

/// What a majority of the masters knows of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LockState {
    /// The lock, or a permit of a semaphore, is free.
    Free,
    /// The lock, or a part of it, has a holder, and nothing is free.
    Held,
    /// A majority answered, but agrees neither on a holder nor that it is free.
    Split,
    /// Something else is at the lock's key.
    NoLock,
    /// Too few masters answered.
    Unknown,
}

#[cfg(feature = "serde")]
impl serde::Serialize for Inspection {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Fields<'a> {
            name: &'a str,
            #[serde(flatten)]
            kind: Option<LockKind>,
            state: LockState,
            free: usize,
            held: &'a [HeldPart],
            waiting: u64,
            quorum: usize,
            answered: usize,
            votes: &'a [Vote],
        }
        let fields = Fields {
            name: self.name(),
            kind: self.kind(),
            state: self.state(),
            free: self.free(),
            held: self.held(),
            waiting: self.waiting(),
            quorum: self.quorum(),
            answered: self.answered(),
            votes: self.votes(),
        };
        fields.serialize(serializer)
    }
}

/// Lists the names that are held or waited for, a page at a time: see
/// [`Redlock::list`](crate::Redlock::list).
#[derive(Debug)]
pub struct Listing {
    client: Arc<Inner>,
    progress: Progress,
}

impl Listing {
    pub(crate) fn begin(client: &Arc<Inner>) -> Self {
        Self { client: client.clone(), progress: client.engine.begin_list() }
    }

    /// The next page, which may be empty; `None` after the last.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the next call asks for the same page.
    ///
    /// # Errors
    ///
    /// [`Error::NoQuorum`] or [`Error::Refused`] when too few masters answer; its name is the key
    /// pattern, or the name that they were asked about. A master that failed to list its keys is
    /// not asked again by this listing, which needs a majority that lists all.
    ///
    /// # Examples
    ///
    /// See [`Redlock::list`](crate::Redlock::list).
    pub async fn next(&mut self) -> Result<Option<Vec<Inspection>>, Error> {
        let page = self.client.engine.list(&mut self.progress).await?;
        Ok(page.map(|names| names.into_iter().map(|(name, seen)| Inspection::new(name, seen)).collect()))
    }

    /// [`next`](Listing::next) [without async](crate::blocking).
    pub fn next_blocking(&mut self) -> Result<Option<Vec<Inspection>>, Error> {
        let client = self.client.clone();
        blocking::wait(&client, self.next())
    }
}
