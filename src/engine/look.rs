//! What the masters know of a name: for hand-overs and for taking a lock away, and for whoever
//! inspects a lock or lists all.

use std::sync::Arc;
use std::time::Duration;

use super::engine::Engine;
use super::extend::MOVES;
use crate::error::Error;
use crate::round::Round;
use crate::vote::{Outcome, Refusal, Vote};
use crate::wire::{Entry, Kind, Seen};

impl Engine {
    /// Of each master, the owner that has had the name for longest there, or why it does not say.
    pub(super) async fn holders(self: &Arc<Self>, name: Arc<str>, kind: Kind) -> Result<Arc<[Vote]>, Error> {
        kind.check_name(&name)?;
        self.run(|engine| async move {
            let looks = engine.look(&name, kind).await;
            let now = engine.dispatcher.time();
            Ok(looks.iter().map(|look| look.oldest(now)).collect())
        })
        .await
    }

    /// What each master knows of a name, each asked within its time-out; of several names, of all
    /// of them together.
    pub(crate) async fn look(self: &Arc<Self>, name: &str, kind: Kind) -> Vec<Look> {
        let names = kind.names(name);
        let mut looks = self.look_at_each(names.iter().map(|name| &**name), kind).await.into_iter();
        let first = looks.next().unwrap_or_default();
        looks.fold(first, |all, next| all.into_iter().zip(next).map(|(all, next)| all.and(next)).collect())
    }

    /// What each master knows of each of these names by itself: the same masters for all of them.
    pub(crate) async fn look_at_each(
        self: &Arc<Self>,
        names: impl Iterator<Item = &str> + Clone,
        kind: Kind,
    ) -> Vec<Vec<Look>> {
        let ask = |name: &str| self.dispatcher.inspect(name, kind);
        let mut rounds: Vec<_> = names.clone().map(ask).collect();
        for moves in 0..=MOVES {
            for round in &rounds {
                round.until_all().await;
            }
            if moves == MOVES || !rounds.iter().any(|round| round.is_outdated()) {
                break;
            }
            rounds = names.clone().map(ask).collect();
        }
        let looks = |round: &Arc<Round>| {
            let votes = round.votes().to_vec().into_iter().zip(round.seen());
            votes.map(|(vote, seen)| Look { vote, seen: seen.map(Arc::unwrap_or_clone) }).collect()
        };
        rounds.iter().map(looks).collect()
    }
}

/// One master's answer, with what it knows, if it said so.
pub(crate) struct Look {
    pub(crate) vote: Vote,
    pub(crate) seen: Option<Seen>,
}

impl Look {
    /// Both answers as one: an owner that does not have all names has none.
    fn and(self, next: Self) -> Self {
        let (Some(mut seen), Some(other)) = (self.seen.clone(), next.seen.clone()) else {
            return if self.seen.is_none() { self } else { next };
        };
        let has_all = match (&seen.entries[..], &other.entries[..]) {
            ([], []) => true,
            ([one], [another]) => one.holds > 0 && one.owner == another.owner,
            _ => false,
        };
        if !has_all {
            if seen.entries.is_empty() {
                seen.kind = other.kind;
            }
            for entry in other.entries {
                let is_there = |one: &Entry| one.field == entry.field && one.owner == entry.owner;
                if !seen.entries.iter().any(is_there) {
                    seen.entries.push(entry);
                }
            }
            seen.entries.iter_mut().for_each(|entry| entry.holds = 0);
        }
        seen.waiting = seen.waiting.max(other.waiting);
        Self { seen: Some(seen), ..self }
    }

    /// Whether the master said what it knows.
    pub(crate) fn is_answer(&self) -> bool {
        self.seen.is_some() || self.vote.outcome.is_answer()
    }

    /// The vote with the oldest holder, so that all masters name the same one.
    pub(crate) fn oldest(&self, now: Duration) -> Vote {
        let Some(seen) = &self.seen else { return self.vote.clone() };
        let oldest = seen.entries.iter().min_by_key(|entry| (entry.token, entry.owner.clone()));
        let mut outcome = oldest.map_or(Outcome::Absent, Entry::outcome);
        outcome.set_held_for(oldest.map_or(0, |entry| entry.token), || now);
        Vote { outcome, ..self.vote.clone() }
    }

    /// The vote for a lock of this kind: refused where the name is held as another kind.
    pub(super) fn about(&self, kind: Kind, permits: Option<u32>) -> Vote {
        let others = |seen: &&Seen| is_another_kind(seen, kind, permits) && !seen.entries.is_empty();
        let Some(seen) = self.seen.as_ref().filter(others) else { return self.vote.clone() };
        let detail = format!("KIND it is held as {}", seen.kind).into();
        let outcome = Outcome::Refused { reason: Refusal::AnotherKind, detail };
        Vote { outcome, ..self.vote.clone() }
    }

    /// The entries of a lock of this kind; of a read-write lock those of this half.
    pub(crate) fn entries(&self, kind: Kind, permits: Option<u32>) -> impl Iterator<Item = &Entry> {
        let seen = self.seen.iter().filter(move |seen| !is_another_kind(seen, kind, permits));
        let is_half = move |entry: &&Entry| {
            kind.counterpart().is_none() || (kind == Kind::Write) == (*entry.field == *"x")
        };
        seen.flat_map(|seen| &seen.entries).filter(is_half)
    }
}

/// Whether what a master has of this name is something else.
fn is_another_kind(seen: &Seen, kind: Kind, permits: Option<u32>) -> bool {
    !kind.is_shared() && *seen.kind != *kind.on_masters(permits)
}
