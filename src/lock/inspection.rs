//! What the masters say of a lock.

use std::sync::Arc;

use crate::coordinator::{self, Sighting};
use crate::error::{Error, Holder};
use crate::vote::{Outcome, Refusal, Vote};

/// Every master's view of one lock. That of a semaphore is one view for each permit.
#[derive(Clone, Debug)]
pub struct Inspection {
    pub(super) name: Arc<str>,
    /// How many permits were asked about, where it is a semaphore.
    pub(super) of: Option<u32>,
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
        let permit =
            |seen: &Sighting| Self { name: self.name.clone(), of: self.of, views: vec![seen.clone()] };
        self.views.iter().map(permit)
    }

    /// How many masters a holder needs.
    pub fn quorum(&self) -> usize {
        coordinator::quorum(self.votes().len())
    }

    /// How many masters answered, be it that the name is in use by something else; of a semaphore, about its first permit.
    pub fn answered(&self) -> usize {
        let is_answer = |vote: &&Vote| match vote.outcome {
            Outcome::Refused { reason, .. } => matches!(reason, Refusal::WrongType | Refusal::AnotherKind),
            _ => vote.outcome.is_definite_no(),
        };
        self.votes().iter().filter(is_answer).count()
    }

    /// The error of an acquire that the name itself stands in the way of: [`Error::AnotherKind`] where a majority has another
    /// kind of lock under it, or something that is none, and [`Error::OtherPermits`] where a majority has a semaphore with
    /// another number of permits. Such a lock is neither free nor held.
    ///
    /// # Examples
    ///
    /// ```
    /// # quorate_testkit::doc(|masters| async move {
    /// # use quorate::Error;
    /// let redlock = quorate::Redlock::builder().masters(masters).build()?;
    /// let guard = redlock.fair_lock("invoice:42").acquire().await?;
    /// assert!(redlock.fair_lock("invoice:42").inspect().await?.misuse().is_none());
    /// let seen = redlock.lock("invoice:42").inspect().await?;
    /// assert!(matches!(seen.misuse(), Some(Error::AnotherKind { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) });
    /// ```
    pub fn misuse(&self) -> Option<Error> {
        coordinator::misuse(&self.name, self.of, self.votes())
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::vote::Silence;

    fn refused(reason: Refusal, detail: &str) -> Outcome {
        Outcome::Refused { reason, detail: detail.into() }
    }

    /// Of a semaphore of two permits.
    fn seen(outcomes: &[Outcome]) -> Inspection {
        let vote = |outcome: &Outcome| Vote {
            master: "m".into(),
            outcome: outcome.clone(),
            latency: Duration::ZERO,
        };
        let votes = outcomes.iter().map(vote).collect();
        Inspection { name: "n".into(), of: Some(2), views: vec![Sighting { votes, fence: None }; 2] }
    }

    #[test]
    fn who_has_something_else_under_the_name_has_answered() {
        let (other, dead) = (refused(Refusal::WrongType, "x"), Outcome::Unknown(Silence::TimedOut));
        let few = seen(&[other.clone(), other.clone(), Outcome::Absent, dead.clone(), dead.clone()]);
        assert_eq!((few.answered(), few.is_free()), (3, false));
        assert!(few.misuse().is_none(), "a minority says nothing of the name");
        let quorum = seen(&[other.clone(), other.clone(), other, dead.clone(), dead]);
        assert!(matches!(quorum.misuse(), Some(Error::AnotherKind { name, .. }) if &*name == "n"));
        let loading = refused(Refusal::Loading, "LOADING");
        assert_eq!(seen(&[loading.clone(), loading, Outcome::Absent]).answered(), 1);
    }

    #[test]
    fn another_number_of_permits_is_told_with_both_numbers() {
        let other = refused(Refusal::AnotherKind, "KIND it is held as semaphore/3");
        let seen = seen(&[other.clone(), other, Outcome::Absent]);
        assert_eq!(seen.answered(), 3);
        assert!(matches!(seen.misuse(), Some(Error::OtherPermits { asked: 2, permits: 3, .. })));
        let of_lock = Inspection { of: None, ..seen };
        assert!(matches!(of_lock.misuse(), Some(Error::AnotherKind { .. })), "a lock has no permits");
    }
}
