//! The clients' side: one attempt to have the lock, from its first message to its last extend.

use crate::master::{Tick, Token};
use crate::profiles::Profile;
use crate::variants::Flaw;

/// How far an attempt has come. None ever gives up: that is the same as to send nothing more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Idle,
    Asking,
    Confirming,
    Holding,
}

/// One attempt. What it does not need any more is zero, so that fewer states differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) phase: Phase,
    /// What its acquires propose.
    pub(crate) proposal: Token,
    /// What it confirms, and then has.
    pub(crate) token: Token,
    /// The greatest token that had been given out when it began.
    pub(crate) before: Token,
    /// Whether confirms are under way, late ones too.
    pub(crate) confirms: bool,
    /// When the extends under way were sent.
    pub(crate) sent: Tick,
    /// Since when its lease runs: when the last round that succeeded was sent.
    pub(crate) leased: Tick,
    /// Whether a greater token was out before any master agreed to the extends under way.
    pub(crate) overtaken: bool,
    /// Whether a majority had released the lock before any master agreed to the extends under way.
    pub(crate) revived: bool,
    /// Whether a majority has released the lock.
    pub(crate) released: bool,
}

/// What an attempt has to do with one master.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    /// How often the acquire ran.
    pub(crate) runs: u8,
    /// What it was answered, each time.
    pub(crate) replies: [Token; 2],
    /// Whether the master agreed, to the confirm or to the extend that is under way.
    pub(crate) agreed: bool,
    /// Whether the master ran the release, and did not forget it.
    pub(crate) released: bool,
}

/// What an attempt concludes from the grants that it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Token(Token),
    Confirm(Token),
}

/// More than half of the masters.
pub(crate) const fn majority(masters: usize) -> usize {
    masters / 2 + 1
}

/// The rule: a number that a majority of all masters gave is the token. Else a majority has to confirm the greatest.
pub(crate) fn verdict<const N: usize>(grants: [Option<Token>; N], profile: &Profile) -> Option<Verdict> {
    let granted = grants.iter().flatten().count();
    let greatest = grants.into_iter().flatten().max()?;
    if granted < majority(N) {
        return None;
    }
    if profile.has(Flaw::OneRound) {
        return Some(Verdict::Token(greatest));
    }
    let enough = majority(if profile.has(Flaw::MajorityOfGrants) { granted } else { N });
    let same = |token: &Token| grants.iter().flatten().filter(|&other| other == token).count();
    let token = grants.into_iter().flatten().find(|token| same(token) >= enough);
    Some(token.map_or(Verdict::Confirm(greatest), Verdict::Token))
}

/// Every way to count enough replies: one of each master, or none of those that were not heard in time.
pub(crate) fn countings<const N: usize>(replies: [[Token; 2]; N]) -> Vec<[Option<Token>; N]> {
    if replies.iter().filter(|answers| answers[0] != 0).count() < majority(N) {
        return Vec::new();
    }
    let mut countings = vec![[None; N]];
    for (place, answers) in replies.iter().enumerate() {
        for of in 0..countings.len() {
            for &answer in answers.iter().filter(|&&answer| answer != 0) {
                let mut more = countings[of];
                more[place] = Some(answer);
                countings.push(more);
            }
        }
    }
    countings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::PLAIN;

    const FIVE: [Option<Token>; 5] = [Some(3), Some(3), Some(10), None, None];

    #[test]
    fn a_majority_of_the_grants_is_not_one_of_the_masters() {
        assert_eq!(verdict(FIVE, &PLAIN), Some(Verdict::Confirm(10)));
        let flawed = Profile { flaw: Some(Flaw::MajorityOfGrants), ..PLAIN };
        assert_eq!(verdict(FIVE, &flawed), Some(Verdict::Token(3)));
    }

    #[test]
    fn too_few_grants_are_nothing() {
        assert_eq!(verdict([Some(3), Some(3), None, None, None], &PLAIN), None);
        assert_eq!(verdict([Some(3), None, None], &PLAIN), None);
        assert_eq!(verdict([Some(3), None, Some(3)], &PLAIN), Some(Verdict::Token(3)));
    }

    #[test]
    fn each_reply_may_be_counted_or_not() {
        assert_eq!(countings([[4, 0], [0, 0], [0, 0]]).len(), 0);
        assert_eq!(countings([[4, 0], [5, 6], [0, 0]]).len(), 6);
    }
}
