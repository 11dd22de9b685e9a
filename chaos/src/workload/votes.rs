//! Which masters had no vote in an acquire, and why, as a history says it.

use quorate::{Outcome, Refusal, Vote};

use crate::history::NoVote;

/// Those of a round, by their places. A master that held the lock for another has voted, and so has
/// one that was not waited for.
pub(super) fn without(votes: &[Vote]) -> Vec<NoVote> {
    let votes = votes.iter().enumerate();
    votes.filter_map(|(master, vote)| Some(NoVote { master, why: why(&vote.outcome)?.to_owned() })).collect()
}

fn why(outcome: &Outcome) -> Option<&'static str> {
    Some(match outcome {
        Outcome::Refused { reason, .. } => match reason {
            Refusal::Quarantined => "quarantine",
            Refusal::Forgot => "forgot",
            Refusal::Clock => "clock",
            Refusal::ReadOnly => "read-only",
            Refusal::Loading => "loading",
            Refusal::Busy => "busy",
            Refusal::OutOfMemory => "no memory",
            Refusal::Misconfigured => "cannot persist",
            Refusal::Stale => "overtaken",
            _ => "error",
        },
        Outcome::Answered(_) => "no time",
        Outcome::Unreachable(_) => "unreachable",
        Outcome::Unknown(_) => "no answer",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_refused_or_was_silent_had_no_vote() {
        let refused = |reason| Outcome::Refused { reason, detail: "".into() };
        let outcomes = [
            Outcome::Granted,
            refused(Refusal::Quarantined),
            Outcome::Pending,
            refused(Refusal::Clock),
            Outcome::Answered("".into()),
            Outcome::Unreachable("gone".into()),
            refused(Refusal::NoPermission),
        ];
        let outcomes: Vec<_> = outcomes.iter().map(why).collect();
        assert_eq!(
            outcomes,
            [
                None,
                Some("quarantine"),
                None,
                Some("clock"),
                Some("no time"),
                Some("unreachable"),
                Some("error"),
            ]
        );
    }
}
