//! Inspect: asks every master what it knows of a name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::engine::Engine;
use super::extend::MOVES;
use super::quorum::quorum;
use super::tally::Round;
use super::verdict;
use crate::config::check_permits;
use crate::error::{Error, Holder};
use crate::fence::FencingToken;
use crate::held::{HeldPart, LockKind, Part};
use crate::owner::Owner;
use crate::protocol::{Entry, Kind, Seen};
use crate::vote::{Outcome, Refusal, Vote, since};

/// What the masters said of a name together.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    /// Of each master, the owner that has had the name for longest there.
    pub(crate) votes: Arc<[Vote]>,
    pub(crate) kind: Option<LockKind>,
    /// The parts whose holder a quorum names, in the order in which they were granted.
    pub(crate) held: Vec<HeldPart>,
    /// How many parts a quorum knows to be free: permits of a semaphore, otherwise one at most.
    pub(crate) free: usize,
    /// How many waiters a quorum knows of.
    pub(crate) waiting: u64,
}

impl Engine {
    /// What every master knows of the name, each asked within its time-out.
    pub(crate) async fn inspect(self: &Arc<Self>, name: Arc<str>, kind: Kind) -> Result<Sighting, Error> {
        kind.check_name(&name)?;
        self.run(|engine| async move { Ok(engine.sighting(&engine.look(&name, kind).await)) }).await
    }

    /// What the masters said together.
    pub(super) fn sighting(&self, looks: &[Look]) -> Sighting {
        sighting(looks, self.dispatcher.time(), self.client())
    }

    /// Whether a quorum says that `owner` has this lock, or one permit of it.
    pub(crate) async fn is_held_by(
        self: &Arc<Self>,
        name: Arc<str>,
        kind: Kind,
        permits: Option<u32>,
        owner: Owner,
    ) -> Result<bool, Error> {
        kind.check_name(&name)?;
        check_permits(permits)?;
        self.run(|engine| async move {
            let looks = engine.look(&name, kind).await;
            let owner = owner.to_string();
            let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
            let entries = looks.iter().flat_map(|look| look.entries(kind, permits));
            for entry in entries.filter(|entry| *entry.owner == *owner && entry.holds > 0) {
                *parts.entry(&entry.field).or_default() += 1;
            }
            let on = parts.into_values().max().unwrap_or(0);
            let unknown = looks.iter().filter(|look| !look.is_answer()).count();
            match quorum(looks.len()) {
                quorum if on >= quorum => Ok(true),
                // Fewer may be those that joined the set since, and have not heard of the lock yet.
                quorum if looks.len() - on - unknown >= quorum => Ok(false),
                _ => Err(verdict::no_quorum(&name, engine.sighting(&looks).votes, false)),
            }
        })
        .await
    }

    /// What each master knows of a name, each asked within its time-out; of several names, of all
    /// of them together.
    pub(super) async fn look(self: &Arc<Self>, name: &str, kind: Kind) -> Vec<Look> {
        let names = kind.names(name);
        let mut looks = self.look_at_each(names.iter().map(|name| &**name), kind).await.into_iter();
        let first = looks.next().unwrap_or_default();
        looks.fold(first, |all, next| all.into_iter().zip(next).map(|(all, next)| all.and(next)).collect())
    }

    /// What each master knows of each of these names by itself: the same masters for all of them.
    pub(super) async fn look_at_each(
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
pub(super) struct Look {
    pub(super) vote: Vote,
    pub(super) seen: Option<Seen>,
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
    pub(super) fn is_answer(&self) -> bool {
        self.seen.is_some() || self.vote.outcome.is_answer()
    }

    /// The vote with the oldest holder, so that all masters name the same one.
    fn oldest(&self, now: Duration) -> Vote {
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
    pub(super) fn entries(&self, kind: Kind, permits: Option<u32>) -> impl Iterator<Item = &Entry> {
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

/// The same at this time, as this client tells it.
fn sighting(looks: &[Look], now: Duration, client: Uuid) -> Sighting {
    let quorum = quorum(looks.len());
    let seen = || looks.iter().filter_map(|look| look.seen.as_ref());
    let mut parts: BTreeMap<(&str, &str), Vec<&Entry>> = BTreeMap::new();
    for entry in seen().flat_map(|seen| &seen.entries) {
        parts.entry((&entry.field, &entry.owner)).or_default().push(entry);
    }
    let mut held: Vec<HeldPart> =
        parts.values().filter(|on| on.len() >= quorum).map(|on| held_part(on, now, client)).collect();
    held.sort_by(|a, b| (a.fencing_token, &a.holder.owner).cmp(&(b.fencing_token, &b.holder.owner)));
    let mut waiting: Vec<u64> = seen().map(|seen| seen.waiting).collect();
    waiting.sort_unstable();
    let kind = kind_of(seen());
    let is_free = |is_taken: &dyn Fn(&Entry) -> bool| {
        seen().filter(|seen| !seen.entries.iter().any(is_taken)).count() >= quorum
    };
    Sighting {
        votes: looks.iter().map(|look| look.oldest(now)).collect(),
        kind,
        held,
        free: match kind {
            Some(LockKind::Semaphore { permits }) => (0..permits)
                .map(|number| format!("p:{number}"))
                .filter(|field| is_free(&|entry| *entry.field == **field))
                .count(),
            _ => usize::from(is_free(&|_| true)),
        },
        waiting: waiting.iter().rev().nth(quorum - 1).copied().unwrap_or(0),
    }
}

/// The kind that most masters have entries of; of equals, the kind that most masters name.
fn kind_of<'a>(seen: impl Iterator<Item = &'a Seen>) -> Option<LockKind> {
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for seen in seen {
        let (held, known) = kinds.entry(&seen.kind).or_default();
        (*held, *known) = (*held + usize::from(!seen.entries.is_empty()), *known + 1);
    }
    kinds.into_iter().max_by_key(|(_, masters)| *masters).and_then(|(word, _)| LockKind::of_word(word))
}

/// The held part that these entries make: all of one owner, each on another master.
fn held_part(entries: &[&Entry], now: Duration, client: Uuid) -> HeldPart {
    let first = entries[0];
    let token = entries.iter().map(|entry| entry.token).max().unwrap_or(0);
    let left = || entries.iter().map(|entry| entry.left);
    HeldPart {
        part: Part::of_field(&first.field),
        fencing_token: FencingToken::new(token),
        holder: Holder {
            owner: first.owner.clone(),
            label: first.label.clone(),
            is_ours: Owner::is_text_of(&first.owner, client),
            held_for: since(token, now),
            masters: entries.len(),
            remaining: left().all(|left| left.is_some()).then(|| left().flatten().max()).flatten(),
            permits: None,
        },
    }
}
