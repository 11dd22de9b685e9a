//! What the masters say of a lock.

use crate::coordinator::{self, Sighting};
use crate::error::Holder;
use crate::vote::{Outcome, Vote};

/// Every master's view of one lock. That of a semaphore is one view for each permit.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// One, or one for each permit.
    pub(super) views: Vec<Sighting>,
}

impl Inspection {
    /// What each master said; of a semaphore, about its first permit.
    pub fn votes(&self) -> &[Vote] {
        &self.views[0].votes
    }

    /// The permits of a semaphore, each by itself, in the order of their [numbers](crate::Guard::permit). Any other lock is
    /// its own only one.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.semaphore("printers", 3).acquire().await?;
    /// let seen = redlock.semaphore("printers", 3).inspect().await?;
    /// assert_eq!(seen.permits().filter(|permit| permit.is_free()).count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn permits(&self) -> impl Iterator<Item = Self> + '_ {
        self.views.iter().map(|seen| Self { views: vec![seen.clone()] })
    }

    /// How many masters a holder needs.
    pub fn quorum(&self) -> usize {
        coordinator::quorum(self.votes().len())
    }

    /// How many masters answered; of a semaphore, about its first permit.
    pub fn answered(&self) -> usize {
        self.votes().iter().filter(|vote| vote.outcome.is_definite_no()).count()
    }

    /// Whether nobody holds the lock, or a permit of the semaphore: a majority of the masters has no such lock. Neither
    /// this nor a [`holder`](Inspection::holder) means that too few masters answered, or that they do not agree.
    pub fn is_free(&self) -> bool {
        let is_absent = |vote: &&Vote| vote.outcome == Outcome::Absent;
        self.views.iter().any(|seen| seen.votes.iter().filter(is_absent).count() >= self.quorum())
    }

    /// Who holds the lock: the owner that a majority names. Of a semaphore, whoever holds the first permit that is held.
    pub fn holder(&self) -> Option<Holder> {
        let holders = self.views.iter().filter_map(|seen| coordinator::holder(&seen.votes));
        holders.into_iter().find(|holder| holder.masters >= self.quorum())
    }

    /// The fencing token by which the [`holder`](Inspection::holder) has the lock: what its
    /// [`Guard::fence`](crate::Guard::fence) is. `None` where nobody holds it, or no master that answered told: masters know it of
    /// holders with guards, to clients with guards.
    pub fn fence(&self) -> Option<u64> {
        let quorum = self.quorum();
        let is_held =
            |votes: &[Vote]| coordinator::holder(votes).is_some_and(|holder| holder.masters >= quorum);
        self.views.iter().find(|seen| is_held(&seen.votes)).and_then(|seen| seen.fence)
    }

    /// The number of the permit that some master says is `owner`'s; the first, if there is none.
    pub(super) fn permit_of(&self, owner: &str) -> u32 {
        let is_its =
            |vote: &Vote| matches!(&vote.outcome, Outcome::Held { owner: its, .. } if **its == *owner);
        let number = self.views.iter().position(|seen| seen.votes.iter().any(is_its));
        number.unwrap_or(0) as u32
    }
}
