//! What the votes of a denied round mean to the caller: pure.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::quorum::{has_free_permit, quorum, surely_lost};
use crate::error::{Error, Holder, Loss};
use crate::owner::Owner;
use crate::vote::{Outcome, Refusal, Vote};

/// The error of a round in which no quorum granted. The first of these that is so: too many masters
/// refused permanently; a quorum has something else under this name; another owner has the lock,
/// and a quorum was able to vote; there was no quorum.
pub(crate) fn denied(name: &Arc<str>, permits: Option<u32>, votes: Arc<[Vote]>, client: Uuid) -> Error {
    if let Some(never) = refused_for_good(name, &votes).or_else(|| misuse(name, permits, &votes)) {
        return never;
    }
    let able = votes.iter().filter(|vote| !vote.outcome.is_out_of_service()).count();
    match holder(&votes) {
        Some(mut holder) if able >= quorum(votes.len()) => {
            if let Some(permits) = permits.filter(|_| !has_free_permit(&votes, permits)) {
                (holder.permits, holder.remaining) = (Some(permits), first_free(&votes));
            }
            holder.is_ours = Owner::is_text_of(&holder.owner, client);
            Error::Held { name: name.clone(), holder: Box::new(holder), votes: votes.into() }
        }
        _ => no_quorum(name, votes, false),
    }
}

/// The error where so many masters refused permanently that the rest are no quorum.
fn refused_for_good(name: &Arc<str>, votes: &Arc<[Vote]>) -> Option<Error> {
    let reasons = votes.iter().filter_map(|vote| match vote.outcome {
        Outcome::Refused { reason, .. } if reason.is_permanent() => Some(reason),
        _ => None,
    });
    let reasons: Vec<Refusal> = reasons.collect();
    let how_many = |wanted: &Refusal| reasons.iter().filter(|reason| *reason == wanted).count();
    let most = *reasons.iter().rev().max_by_key(|reason| how_many(reason))?;
    let name = name.clone();
    let masters = reasons.len();
    surely_lost(votes.len(), masters).then(|| Error::Refused {
        name,
        masters,
        reason: most,
        votes: votes.clone().into(),
    })
}

/// How long until the first permit of a full semaphore is free, by these votes.
fn first_free(votes: &[Vote]) -> Option<Duration> {
    let told = votes.iter().filter_map(|vote| match &vote.outcome {
        Outcome::Held { permits, .. } => permits.as_ref()?.first_over(),
        _ => None,
    });
    told.max()
}

/// The error where a quorum has something else under this name.
pub(crate) fn misuse(name: &Arc<str>, permits: Option<u32>, votes: &[Vote]) -> Option<Error> {
    if let Some((asked, permits)) = permits.zip(other_permits(votes)) {
        return Some(Error::OtherPermits { name: name.clone(), asked, permits, votes: votes.into() });
    }
    let others = votes.iter().filter(|vote| is_another_kind(&vote.outcome)).count();
    (others >= quorum(votes.len())).then(|| Error::AnotherKind { name: name.clone(), votes: votes.into() })
}

/// The error of an extend that no quorum granted: the lease is lost where that is certain, and
/// otherwise there was no quorum.
pub(crate) fn not_ours(name: &Arc<str>, votes: Arc<[Vote]>) -> Error {
    let not_ours = votes.iter().filter(|vote| vote.outcome.is_definite_no()).count();
    lost(not_ours, name, &votes).unwrap_or_else(|| no_quorum(name, votes, false))
}

/// The loss of a lease, where `not_ours` masters say for certain that this owner does not have the
/// lock, if the rest are no quorum.
pub(crate) fn lost(not_ours: usize, name: &Arc<str>, votes: &Arc<[Vote]>) -> Option<Error> {
    surely_lost(votes.len(), not_ours).then(|| Error::Lost {
        name: name.clone(),
        cause: Loss::NotOurs,
        work_ended: false,
        votes: votes.clone().into(),
    })
}

/// Too few masters granted, and the others did not say no for certain; or, if `late`, a quorum
/// granted too late.
pub(crate) fn no_quorum(name: &Arc<str>, votes: Arc<[Vote]>, late: bool) -> Error {
    if let Some(never) = refused_for_good(name, &votes) {
        return never;
    }
    let granted = votes.iter().filter(|vote| vote.outcome == Outcome::Granted).count();
    Error::NoQuorum { name: name.clone(), granted, needed: quorum(votes.len()), late, votes: votes.into() }
}

fn is_another_kind(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused { reason: Refusal::WrongType | Refusal::AnotherKind, .. })
}

/// How many permits a semaphore has, where a quorum says that it is not the number that was asked
/// for.
fn other_permits(votes: &[Vote]) -> Option<u32> {
    let told = votes.iter().filter_map(|vote| match &vote.outcome {
        Outcome::Refused { reason: Refusal::AnotherKind, detail } => {
            detail.rsplit_once(" semaphore/")?.1.parse().ok()
        }
        _ => None,
    });
    (told.clone().count() >= quorum(votes.len())).then(|| told.max()).flatten()
}

/// Whether a quorum names one owner.
pub(crate) fn is_held(votes: &[Vote]) -> bool {
    quorum_holder(votes).is_some()
}

/// The owner that a quorum names.
pub(crate) fn quorum_holder(votes: &[Vote]) -> Option<Holder> {
    holder(votes).filter(|holder| holder.masters >= quorum(votes.len()))
}

/// The owner that most masters name.
pub(crate) fn holder(votes: &[Vote]) -> Option<Holder> {
    let mut holders: Vec<Holder> = Vec::new();
    for vote in votes {
        let Outcome::Held { owner, label, held_for, remaining, .. } = &vote.outcome else { continue };
        match holders.iter_mut().find(|known| known.owner == *owner) {
            Some(known) => {
                known.masters += 1;
                known.held_for = known.held_for.max(*held_for);
                known.remaining = known.remaining.zip(*remaining).map(|(a, b)| a.max(b));
            }
            None => {
                let owner = owner.clone();
                let label = label.clone();
                let held_for = *held_for;
                let remaining = *remaining;
                holders.push(Holder {
                    owner,
                    label,
                    is_ours: false,
                    held_for,
                    masters: 1,
                    remaining,
                    permits: None,
                });
            }
        }
    }
    // The first of equals, so that all that see the same votes name the same holder.
    holders.into_iter().rev().max_by_key(|holder| holder.masters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vote::{Permits, Silence};

    const CLIENT: Uuid = Uuid::from_u128(7);

    fn denied(name: &Arc<str>, permits: Option<u32>, votes: Arc<[Vote]>) -> Error {
        super::denied(name, permits, votes, CLIENT)
    }

    fn votes(outcomes: &[Outcome]) -> Arc<[Vote]> {
        outcomes.iter().cloned().map(Vote::of).collect()
    }

    fn held(owner: &str, ms: u64) -> Outcome {
        Outcome::held_by(owner, Some(Duration::from_millis(ms)), None, None)
    }

    const DEAD: Outcome = Outcome::Unknown(Silence::TimedOut);

    #[test]
    fn held_needs_a_quorum_that_can_vote() {
        let name = Arc::from("n");
        let error = denied(&name, None, votes(&[DEAD, DEAD, held("a", 1), held("a", 5), Outcome::Granted]));
        let Error::Held { holder, .. } = error else { panic!("{error}") };
        assert_eq!((&*holder.owner, holder.masters), ("a", 2));
        assert_eq!(holder.remaining, Some(Duration::from_millis(5)));

        let error = denied(&name, None, votes(&[DEAD, DEAD, DEAD, held("a", 1), Outcome::Granted]));
        assert!(matches!(error, Error::NoQuorum { granted: 1, needed: 3, late: false, .. }), "{error}");
    }

    #[test]
    fn a_holder_of_the_same_client_is_told_to_be_one() {
        let name = Arc::from("n");
        for (client, is_ours) in [(CLIENT, true), (Uuid::from_u128(8), false)] {
            let owner = Owner::new(client, 3).to_string();
            let error = denied(&name, None, votes(&[held(&owner, 1), held(&owner, 1), DEAD]));
            assert_eq!(error.holder().unwrap().is_ours, is_ours);
            assert_eq!(error.to_string().contains("held by this client itself, "), is_ours, "{error}");
        }
    }

    #[test]
    fn what_a_quorum_has_as_another_kind_is_none_of_this() {
        let name = Arc::from("n");
        let other = || Outcome::Refused { reason: Refusal::WrongType, detail: "x".into() };
        let error = denied(&name, None, votes(&[other(), other(), other(), Outcome::Granted, DEAD]));
        assert!(matches!(error, Error::AnotherKind { .. }), "{error}");
        let error = denied(&name, None, votes(&[other(), other(), DEAD, Outcome::Granted, Outcome::Granted]));
        assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
    }

    #[test]
    fn what_so_many_refuse_for_good_that_the_rest_are_no_quorum_is_refused() {
        let name = Arc::from("n");
        let no = |reason| Outcome::Refused { reason, detail: "x".into() };
        let password = no(Refusal::Password);
        let terms = no(Refusal::OtherTerms);
        let error =
            denied(&name, None, votes(&[terms.clone(), password.clone(), DEAD, password.clone(), DEAD]));
        assert!(matches!(error, Error::Refused { masters: 3, reason: Refusal::Password, .. }), "{error}");
        for other in [DEAD, Outcome::Pending, Outcome::Granted, no(Refusal::ReadOnly)] {
            let error = denied(&name, None, votes(&[terms.clone(), password.clone(), DEAD, other, DEAD]));
            assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
        }
        let error = denied(&name, None, votes(&[terms, password, held("a", 1), held("a", 1)]));
        assert!(matches!(error, Error::Refused { masters: 2, .. }), "two of four: {error}");
    }

    #[test]
    fn a_semaphore_is_full_where_no_permit_may_be_free() {
        let name = Arc::from("n");
        let taken = |free: &[u32], ms| {
            let permits = Permits::new(free.into(), Some(Duration::from_millis(ms)));
            Outcome::held_by("b", Some(Duration::from_secs(9)), None, Some(permits))
        };
        let error = denied(&name, Some(3), votes(&[taken(&[], 100), taken(&[1], 300), taken(&[], 200)]));
        assert_eq!(
            error.to_string(),
            "all 3 permits of semaphore \"n\" are taken; the first is free in at most 300.0ms"
        );
        assert_eq!(error.retry_after(), Some(Duration::from_millis(300)));
        let error = denied(&name, Some(3), votes(&[taken(&[1], 100), taken(&[1], 300), taken(&[], 200)]));
        assert!(error.to_string().starts_with("lock \"n\" is held by b"), "a permit may be free: {error}");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(9)));
    }

    #[test]
    fn another_number_of_permits_is_told_where_a_quorum_says_so() {
        let name = Arc::from("n");
        let other = || Outcome::Refused {
            reason: Refusal::AnotherKind,
            detail: "KIND it is held as semaphore/3".into(),
        };
        let error = denied(&name, Some(2), votes(&[other(), other(), DEAD]));
        assert!(matches!(error, Error::OtherPermits { asked: 2, permits: 3, .. }), "{error}");
        let error = denied(&name, Some(2), votes(&[other(), DEAD, Outcome::Granted]));
        assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
        let error = denied(&name, None, votes(&[other(), other(), DEAD]));
        assert!(matches!(error, Error::AnotherKind { .. }), "{error}");
    }

    #[test]
    fn a_split_vote_names_whoever_has_most() {
        let votes = votes(&[held("b", 1), held("a", 1), held("a", 1), held("b", 1), Outcome::Granted]);
        assert_eq!(&*holder(&votes).unwrap().owner, "b");
        assert_eq!(holder(&votes[1..4]).unwrap().masters, 2);
    }

    #[test]
    fn lost_needs_more_than_the_masters_a_quorum_can_spare() {
        let name = Arc::from("n");
        let error = not_ours(&name, votes(&[Outcome::Absent, held("a", 1), DEAD, Outcome::Granted, DEAD]));
        assert!(matches!(error, Error::NoQuorum { .. }), "{error}");
        let gone = votes(&[Outcome::Absent, held("a", 1), Outcome::Absent, DEAD, DEAD]);
        assert!(matches!(not_ours(&name, gone.clone()), Error::Lost { .. }));
        assert!(lost(1, &name, &gone).is_none(), "two may have lost their state");
        assert!(matches!(lost(3, &name, &gone), Some(Error::Lost { .. })));
    }
}
