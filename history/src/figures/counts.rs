//! What came of calls.

use std::collections::BTreeMap;

use crate::history::{Call, History, Made, Outcome};

/// What acquires said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Here is a guard.
    pub granted: usize,
    /// Somebody else has it.
    pub refused: usize,
    /// Nobody knows: too few masters answered, or the client died.
    pub unknown: usize,
}

/// What came of the calls about locks of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of acquires.
    pub answers: Answers,
    /// Guards whose release a quorum confirmed.
    pub released: usize,
    /// Guards that were reported lost.
    pub lost: usize,
    /// Writes under a guard that the store took.
    pub accepted: usize,
    /// Writes that it refused: it had seen a newer token.
    pub rejected: usize,
}

impl Answers {
    /// Adds what an acquire said.
    pub(super) fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Granted { .. } => self.granted += 1,
            Outcome::Failed { .. } => self.refused += 1,
            _ => self.unknown += 1,
        }
    }

    /// These and others.
    #[must_use]
    pub fn plus(self, others: Self) -> Self {
        Self {
            granted: self.granted + others.granted,
            refused: self.refused + others.refused,
            unknown: self.unknown + others.unknown,
        }
    }

    /// How many acquires there were.
    pub fn all(&self) -> usize {
        self.granted + self.refused + self.unknown
    }

    /// The share of acquires that had an answer, be it that somebody else has the lock.
    pub fn availability(&self) -> f64 {
        if self.all() == 0 { 1.0 } else { (self.granted + self.refused) as f64 / self.all() as f64 }
    }
}

/// For each kind of lock.
pub fn by_kind(history: &History) -> BTreeMap<String, Counts> {
    let mut kinds: BTreeMap<_, Counts> = BTreeMap::new();
    let mut of = |kind: &str, add: &dyn Fn(&mut Counts)| add(kinds.entry(kind.to_owned()).or_default());
    for made in &history.calls {
        match &made.call {
            Call::Acquire { lock, .. } => of(&lock.kind, &|counts| counts.answers.add(&made.outcome)),
            Call::Write { resource, .. } => {
                of(resource.split(' ').next().unwrap_or_default(), &|counts| written(counts, made));
            }
            Call::Extend { .. } | Call::Release { .. } => {}
        }
    }
    for hold in &history.holds {
        of(&hold.lock.kind, &|counts| {
            counts.released += usize::from(hold.free.is_some());
            counts.lost += usize::from(hold.lost.is_some());
        });
    }
    kinds
}

fn written(counts: &mut Counts, made: &Made) {
    match made.outcome {
        Outcome::Accepted => counts.accepted += 1,
        Outcome::Rejected => counts.rejected += 1,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acquires::Ending::{Failed, Granted, Pending};
    use crate::made_up::{attempt, given_back, history, lost, made};

    #[test]
    fn calls_are_counted_by_kind_and_by_what_came_of_them() {
        let write =
            |outcome| made(Call::Write { resource: "lock l".to_owned(), fence: 1 }, 1, Some(2), outcome);
        let mut history = history([given_back("a", 10, 100, 50), lost("b", 60, 100, 70)]);
        history.calls = [Granted, Failed, Pending]
            .map(|ending| attempt(1, Some(2), ending))
            .into_iter()
            .chain([write(Outcome::Accepted), write(Outcome::Rejected)])
            .collect();
        let answers = Answers { granted: 1, refused: 1, unknown: 1 };
        let counts = Counts { answers, released: 1, lost: 1, accepted: 1, rejected: 1 };
        assert_eq!(by_kind(&history), BTreeMap::from([("lock".to_owned(), counts)]));
        assert!((answers.availability() - 2.0 / 3.0).abs() < 1e-9);
        assert!((Answers::default().availability() - 1.0).abs() < 1e-9);
    }
}
