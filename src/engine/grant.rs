//! A granted hold: it releases itself when it is dropped.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use super::hold::{Hold, Lease};
use crate::error::Error;
use crate::handover::Handover;
use crate::owner::Owner;
use crate::renewal::Renewal;
use crate::round::Round;
use crate::set::Voters;
use crate::sync::MutexGuard;
use crate::time::Moment;
use crate::vote::{Record, Vote};

/// One hold of one lease.
pub(crate) struct Grant {
    engine: Arc<Engine>,
    pub(super) hold: Arc<Hold>,
    pub(super) generation: u64,
    token: u64,
    /// When its round was sent.
    sent: Moment,
    votes: Record,
    /// The masters that were asked.
    voters: Arc<Voters>,
    given_back: bool,
}

impl Grant {
    pub(super) fn new(engine: Arc<Engine>, hold: Arc<Hold>, generation: u64, round: &Round) -> Self {
        let token = hold.lease().terms.token;
        let votes = round.record();
        let voters = round.voters.clone();
        Self { engine, hold, generation, token, sent: round.sent, votes, voters, given_back: false }
    }

    /// Has the lease renewed from now on, if it is to be and is not yet.
    pub(super) fn renew_by(&self, renewal: &Option<Arc<Renewal>>) {
        let Some(renewal) = renewal else { return };
        self.engine.leases.change(&self.hold, |lease| {
            if lease.generation == self.generation {
                lease.timer.renew_by(self.sent, renewal);
            }
        });
    }

    /// This grant, unless it was lost meanwhile: the await before may have taken any time.
    pub(super) fn unless_lost(self) -> Result<Self, Error> {
        match self.loss() {
            Some(loss) => Err(loss),
            None => Ok(self),
        }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.hold.lock.name
    }

    pub(crate) fn owner(&self) -> Owner {
        self.hold.lock.owner
    }

    /// Which permit it is, of a semaphore.
    pub(crate) fn permit(&self) -> Option<u32> {
        self.hold.lock.permit.map(|permit| permit.number)
    }

    pub(crate) fn votes(&self) -> Vec<Vote> {
        self.votes.read(&self.voters.names)
    }

    /// The token of its lease; 0 in a layout of another library.
    pub(crate) fn fencing_token(&self) -> u64 {
        self.token
    }

    /// The lease, unless it was superseded.
    fn lease(&self) -> Option<MutexGuard<'_, Lease>> {
        Some(self.hold.lease()).filter(|lease| lease.generation == self.generation)
    }

    /// When the lease ends, or ended, also where it could not be renewed; the origin of time if it
    /// was released, taken away, or superseded.
    pub(crate) fn deadline(&self) -> Moment {
        self.lease().map_or(Moment::default(), |lease| lease.timer.deadline)
    }

    /// What is left of the lease at this moment.
    pub(crate) fn remaining(&self) -> Duration {
        self.deadline().since(self.engine.clock().now())
    }

    /// How the lease was lost, if it was.
    pub(crate) fn loss(&self) -> Option<Error> {
        self.hold.loss(self.generation, self.engine.clock().now())
    }

    /// Waits until the lease is lost or released, and returns how. The future does not keep it.
    pub(crate) fn lost(&self) -> impl Future<Output = Error> + Send + use<> {
        let hold = self.hold.clone();
        let generation = self.generation;
        let clock = self.engine.clock().clone();
        async move {
            loop {
                let ended = hold.ended(generation);
                if let Some(loss) = hold.loss(generation, clock.now()) {
                    return loss;
                }
                ended.cancelled().await;
            }
        }
    }

    /// Cancelled when the lease is lost or over.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.hold.ended(self.generation)
    }

    /// Why the last renewal failed, if it did.
    pub(crate) fn trouble(&self) -> Option<Error> {
        self.lease()?.trouble.as_deref().cloned()
    }

    /// Notes a sign of life of the work under the lease.
    pub(crate) fn touch(&self) {
        let now = self.engine.clock().now();
        if let Some(mut lease) = self.lease() {
            lease.timer.touched = lease.timer.touched.max(now);
        }
    }

    pub(crate) async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        self.engine.extend(&self.hold, self.generation, ttl).await
    }

    /// Hands the lock over. Then the grant is spent; where that fails, it is as it was.
    pub(crate) async fn hand_over(&self) -> Result<Handover, Error> {
        self.engine.hand_over(&self.hold, self.generation).await
    }

    /// Releases the hold, and returns how that went. Where the future is dropped before it was
    /// polled, the drop of the grant releases; later the release goes on by itself.
    pub(crate) async fn release(mut self) -> Result<(), Error> {
        self.given_back = true;
        self.engine.release(&self.hold, Some(self.generation)).await
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if !self.given_back {
            self.engine.release_in_background(&self.hold, self.generation);
        }
    }
}
