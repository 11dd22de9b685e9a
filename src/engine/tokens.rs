//! What token a quorum of grants makes: pure counting.

use super::quorum::quorum;

/// What the grants of a round say about their token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tokens {
    /// A majority of all masters gave this one: it is the lease's.
    Agreed(u64),
    /// No majority gave the same one. The highest is the lease's once a majority has confirmed it.
    Split(u64),
}

/// What the tokens of the masters that granted come to. A majority of those that granted is not
/// enough: the next grant's may share no master with it.
pub(crate) fn agree(masters: usize, granted: impl Iterator<Item = u64> + Clone) -> Tokens {
    let gave = |token| granted.clone().filter(|other| *other == token).count();
    match granted.clone().find(|token| gave(*token) >= quorum(masters)) {
        Some(token) => Tokens::Agreed(token),
        None => Tokens::Split(granted.max().unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_needs_a_majority_of_all_masters() {
        let tokens = |granted: &[u64]| agree(5, granted.iter().copied());
        assert_eq!(tokens(&[7, 7, 7]), Tokens::Agreed(7));
        assert_eq!(tokens(&[9, 7, 7, 7]), Tokens::Agreed(7));
        assert_eq!(
            tokens(&[3, 3, 10]),
            Tokens::Split(10),
            "two of three that granted are no majority of five"
        );
        assert_eq!(tokens(&[1, 2, 3, 4, 5]), Tokens::Split(5));
        assert_eq!(tokens(&[]), Tokens::Split(0));
    }
}
