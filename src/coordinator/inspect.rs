//! Inspect: ask every master who holds a lock.

use std::sync::Arc;
use std::time::Duration;

use super::Coordinator;
use super::hold::Hold;
use super::round::Round;
use super::verdict::holder;
use crate::config::check_permits;
use crate::error::Error;
use crate::master::Terms;
use crate::owner::Owner;
use crate::protocol::{Entry, Kind, Op, Permit, Seen};
use crate::vote::{Outcome, Refusal, Vote};

/// What masters said of a lock, or of one permit of a semaphore.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) votes: Arc<[Vote]>,
    /// The token of the owner that most masters name, if any of them told it.
    pub(crate) fence: Option<u64>,
}

impl Coordinator {
    /// Every master's view of the lock, each within its time-out; of a semaphore, of each of its permits. Where several may hold it,
    /// whether `asked` does.
    pub(crate) async fn inspect(
        self: &Arc<Self>,
        name: Arc<str>,
        kind: Kind,
        permits: Option<u32>,
        asked: Option<Owner>,
    ) -> Result<Vec<Sighting>, Error> {
        kind.check_name(&name)?;
        check_permits(permits)?;
        self.run(|engine| async move {
            let looks = engine.look(&name, kind).await;
            let asked = asked.map(|owner| owner.to_string());
            let view =
                |permit: Option<Permit>| sighting(&looks, kind, permit, asked.as_deref(), engine.time());
            Ok(match permits {
                Some(of) => (0..of).map(|number| view(Some(Permit { number, of }))).collect(),
                None => vec![view(None)],
            })
        })
        .await
    }

    /// What each master knows of a lock, each asked within its time-out; of several names, of all of them together.
    pub(super) async fn look(self: &Arc<Self>, name: &str, kind: Kind) -> Vec<Look> {
        let (nobody, terms) = (Owner::of_nobody(self.client), self.unconditional());
        let (one, permit) = kind.to_look_at();
        let ask = |name: String| {
            let hold = Hold::new(name.into(), nobody, one, permit);
            self.ask(&hold, 0, &Op::Inspect, terms, None)
        };
        let rounds: Vec<Round> = kind.names(name).into_iter().map(ask).collect();
        let mut all: Vec<Look> = Vec::new();
        for round in rounds {
            round.finish().await;
            let votes = round.votes().to_vec().into_iter().zip(round.seen());
            let looks = votes.map(|(vote, seen)| Look { vote, seen: seen.map(Arc::unwrap_or_clone) });
            all = match all.is_empty() {
                true => looks.collect(),
                false => all.into_iter().zip(looks).map(|(all, next)| all.and(next)).collect(),
            };
        }
        all
    }

    /// A vote within the time-out that has nothing to do with a lease.
    pub(super) fn unconditional(&self) -> Terms {
        Terms::Vote { timeout: self.settings.timeout() }
    }
}

/// One master's answer, and what it knows, if it told.
pub(super) struct Look {
    vote: Vote,
    pub(super) seen: Option<Seen>,
}

impl Look {
    /// The same of several names: who has not all of them has none.
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
            seen.entries.extend(other.entries);
            seen.entries.iter_mut().for_each(|entry| entry.holds = 0);
        }
        Self { seen: Some(seen), ..self }
    }
}

/// What the masters said of one lock or permit.
pub(super) fn sighting(
    looks: &[Look],
    kind: Kind,
    permit: Option<Permit>,
    asked: Option<&str>,
    now: Duration,
) -> Sighting {
    let entries: Vec<Option<&Entry>> =
        looks.iter().map(|look| entry_of(look.seen.as_ref()?, kind, permit, asked)).collect();
    let view = |(Look { vote, seen }, entry): (&Look, &Option<&Entry>)| {
        let Some(seen) = seen else { return vote.clone() };
        let mut outcome = outcome_of(seen, kind, permit, *entry);
        outcome.since(entry.map_or(0, |entry| entry.token), now);
        Vote { outcome, ..vote.clone() }
    };
    let votes: Arc<[Vote]> = looks.iter().zip(&entries).map(view).collect();
    let told = || entries.iter().flatten();
    let token = |owner: &str| told().filter(|entry| *entry.owner == *owner).map(|entry| entry.token).max();
    let fence = holder(&votes).and_then(|holder| token(&holder.owner)).filter(|token| *token > 0);
    Sighting { votes, fence }
}

/// The entry that tells who has this lock or permit: that of `asked`, where several may have it; otherwise the oldest one, so that
/// all masters name the same.
fn entry_of<'a>(
    seen: &'a Seen,
    kind: Kind,
    permit: Option<Permit>,
    asked: Option<&str>,
) -> Option<&'a Entry> {
    if is_another_kind(seen, kind, permit) {
        return None;
    }
    let part = match (kind, permit) {
        (_, Some(Permit { number, .. })) => format!("p:{number}"),
        (Kind::Read, None) => asked.map(|owner| format!("r:{owner}")).unwrap_or_default(),
        (Kind::Write, None) if asked.is_some() => "x".to_owned(),
        _ => String::new(),
    };
    let its = seen.entries.iter().filter(|entry| part.is_empty() || *entry.field == *part);
    let oldest = its.min_by_key(|entry| (entry.token, entry.owner.clone()));
    // A reader that is asked for and does not read: somebody else may have the lock.
    let other = |asked: &str| seen.entries.iter().find(|entry| *entry.owner != *asked);
    oldest.or_else(|| asked.filter(|_| permit.is_none()).and_then(other))
}

/// Whether what a master has of this name is something else.
fn is_another_kind(seen: &Seen, kind: Kind, permit: Option<Permit>) -> bool {
    !kind.is_shared() && *seen.kind != *kind.on_masters(permit)
}

/// Who has this lock or permit there: somebody, nobody, or somebody that has the name as another kind.
fn outcome_of(seen: &Seen, kind: Kind, permit: Option<Permit>, entry: Option<&Entry>) -> Outcome {
    match entry {
        Some(entry) => entry.outcome(),
        None if is_another_kind(seen, kind, permit) && !seen.entries.is_empty() => {
            let detail = format!("KIND it is held as {}", seen.kind).into();
            Outcome::Refused { reason: Refusal::AnotherKind, detail }
        }
        None => Outcome::Absent,
    }
}
