//! One round: the same question to all masters at once, and the first decision wins.

use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;

use super::quorum::{Decision, decide};
use super::reply;
use crate::clock::{Clock, Moment};
use crate::master::{Failure, Master, Value};
use crate::vote::{Outcome, Vote};

/// One master's answer, to come.
pub(crate) type Answer = BoxFuture<'static, Result<Value, Failure>>;

/// A round under way. It can be asked for its decision, dropped, or left to finish, at any moment.
pub(crate) struct Round {
    clock: Arc<dyn Clock>,
    /// Before anything was sent. Leases count from here.
    pub(crate) sent: Moment,
    votes: Vec<Vote>,
    waiting: FuturesUnordered<BoxFuture<'static, (usize, Outcome)>>,
}

impl Round {
    /// A round of one answer from each master. Nothing is sent until it is polled.
    pub(crate) fn new(
        clock: &Arc<dyn Clock>,
        masters: &[Arc<dyn Master>],
        answers: impl Iterator<Item = Answer>,
    ) -> Self {
        let pending = |master: &Arc<dyn Master>| Vote {
            master: master.name().clone(),
            outcome: Outcome::Pending,
            latency: std::time::Duration::ZERO,
        };
        let answer = |(i, answer): (usize, Answer)| -> BoxFuture<'static, _> {
            Box::pin(async move { (i, reply::outcome(answer.await)) })
        };
        Self {
            sent: clock.now(),
            votes: masters.iter().map(pending).collect(),
            waiting: answers.enumerate().map(answer).collect(),
            clock: clock.clone(),
        }
    }

    /// Waits until a quorum has granted or can no longer be reached. Dropping the future loses no vote.
    pub(crate) async fn decision(&mut self) -> Decision {
        loop {
            let decision = self.so_far();
            if decision != Decision::Open || !self.next_vote().await {
                return decision;
            }
        }
    }

    /// Waits for every vote.
    pub(crate) async fn finish(&mut self) {
        while self.next_vote().await {}
    }

    /// The votes as they stand; those that have not come in are pending since the round began.
    pub(crate) fn votes(&self) -> Arc<[Vote]> {
        let waited = self.clock.now().since(self.sent);
        let stamped = self.votes.iter().cloned().map(|vote| match vote.outcome {
            Outcome::Pending => Vote { latency: waited, ..vote },
            _ => vote,
        });
        stamped.collect()
    }

    /// The outcomes as they stand, in the masters' order.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.votes.iter().map(|vote| &vote.outcome)
    }

    fn so_far(&self) -> Decision {
        let count = |wanted: fn(&Outcome) -> bool| self.outcomes().filter(|outcome| wanted(outcome)).count();
        let granted = count(|outcome| *outcome == Outcome::Granted);
        let pending = count(|outcome| *outcome == Outcome::Pending);
        decide(self.votes.len(), granted, self.votes.len() - granted - pending)
    }

    async fn next_vote(&mut self) -> bool {
        let Some((i, outcome)) = self.waiting.next().await else { return false };
        let vote = &mut self.votes[i];
        vote.latency = self.clock.now().since(self.sent);
        vote.outcome = outcome;
        true
    }
}
