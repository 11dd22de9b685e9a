//! Inspect: asks every master what it knows of a name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::config::check_permits;
use crate::engine::{Engine, Look};
use crate::error::{Error, Holder};
use crate::fence::FencingToken;
use crate::held::{HeldPart, LockKind, Part};
use crate::owner::Owner;
use crate::round::{quorum, verdict};
use crate::vote::{Vote, since};
use crate::wire::{Entry, Kind, Seen};

/// What the masters said of a name together.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    /// Of each master, the owner that has had the name for longest there.
    pub(crate) votes: Arc<[Vote]>,
    pub(crate) kind: Option<LockKind>,
    /// The parts whose holder a quorum names, in the order of their grants.
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
