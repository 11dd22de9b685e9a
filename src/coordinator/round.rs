//! One round: the same question to all masters at once, and the first decision wins.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use super::kind::Errand;
use super::quorum::{Decision, decide, surely_lost};
use super::{Coordinator, reply};
use crate::clock::{Clock, Moment};
use crate::master::{Master, Terms};
use crate::vote::{Outcome, Vote};

/// One master's answer, to come.
pub(crate) type Answer = BoxFuture<'static, Outcome>;

impl Coordinator {
    /// The same question to all masters. Nothing is sent until the round is polled.
    pub(super) fn ask(&self, errand: &Errand, terms: Terms) -> Round {
        let call = errand.call(terms);
        let ask =
            |master: &Arc<dyn Master>| -> Answer { Box::pin(master.call(call.clone()).map(reply::outcome)) };
        Round::new(&self.clock, &self.masters, self.masters.iter().map(ask))
    }

    /// A round for each of many questions, which go to each master in one call. All have the same script.
    pub(super) fn ask_together(&self, errands: &[Errand], terms: &Terms) -> Vec<Round> {
        let errand = Errand::join(errands);
        let count = errands.len();
        let answers: Vec<_> = self
            .masters
            .iter()
            .map(|master| {
                let answer = master.call(errand.call(terms.clone()));
                answer
                    .map(move |answer| Arc::<[Outcome]>::from(reply::outcomes(answer, count)))
                    .boxed()
                    .shared()
            })
            .collect();
        let of = |i: usize| {
            let own = answers.iter().map(move |answer| -> Answer {
                Box::pin(answer.clone().map(move |outcomes| outcomes[i].clone()))
            });
            Round::new(&self.clock, &self.masters, own)
        };
        (0..count).map(of).collect()
    }
}

/// A round under way. It can be asked for its decision, dropped, or left to finish, at any moment.
pub(crate) struct Round {
    clock: Arc<dyn Clock>,
    /// Before anything was sent. Leases count from here.
    pub(crate) sent: Moment,
    votes: Vec<Vote>,
    waiting: FuturesUnordered<Ballot>,
}

/// One master's answer, with its place among the masters.
struct Ballot {
    place: usize,
    answer: Answer,
}

impl Future for Ballot {
    type Output = (usize, Outcome);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let place = self.place;
        self.answer.poll_unpin(context).map(|outcome| (place, outcome))
    }
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
        let ballot = |(place, answer)| Ballot { place, answer };
        Self {
            sent: clock.now(),
            votes: masters.iter().map(pending).collect(),
            waiting: answers.enumerate().map(ballot).collect(),
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

    /// Waits until so many masters say "not yours" that the rest are no quorum, or for every vote.
    pub(super) async fn certainty(&mut self) {
        let lost = |round: &Self| {
            let not_yours = round.outcomes().filter(|outcome| outcome.is_definite_no()).count();
            surely_lost(round.votes.len(), not_yours)
        };
        while !lost(self) && self.next_vote().await {}
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
