//! For each generation of a set of masters one list of masters is decided.
//!
//! Two lists of one generation may have majorities that share no master, and nothing brings clients
//! of the one to the other. Masters that only prepare to join are not looked at.

use crate::history::{Decree, History, Violation};

/// The property's name.
pub const NAME: &str = "decrees";

/// Finds every list that is not the first one of its generation.
pub fn check(history: &History) -> Vec<Violation> {
    let is_first =
        |first: &&Decree, decree: &Decree| (&first.set, first.generation) == (&decree.set, decree.generation);
    let pair = |decree| Some((history.decrees.iter().find(|first| is_first(first, decree))?, decree));
    let pairs = history.decrees.iter().filter_map(pair);
    pairs.filter(|(first, decree)| first.members != decree.members).map(violation).collect()
}

fn violation((first, decree): (&Decree, &Decree)) -> Violation {
    let Decree { generation, master, members, found, .. } = decree;
    let before = first.master;
    let its = &first.members;
    let what =
        format!("the set in generation {generation} is {members} for master {master}, {its} for {before}");
    Violation { property: NAME, what, at: *found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{ms, words};

    fn found_in(sets: &[&str], decrees: &[(u64, usize, &str)]) -> Vec<Violation> {
        let decree = |(at, &(generation, master, members)): (usize, &(u64, usize, &str))| Decree {
            set: sets[at % sets.len()].into(),
            generation,
            master,
            members: members.into(),
            found: ms(master as u64),
        };
        check(&History { decrees: decrees.iter().enumerate().map(decree).collect(), ..History::default() })
    }

    fn found(decrees: &[(u64, usize, &str)]) -> Vec<Violation> {
        found_in(&["a"], decrees)
    }

    #[test]
    fn a_generation_has_one_list() {
        assert_eq!(found(&[(0, 1, "m1, m2"), (1, 1, "m1"), (0, 2, "m1, m2"), (2, 2, "m1, m2")]), []);
        let found = found(&[(1, 1, "m1, m2"), (2, 1, "m1"), (2, 2, "m2"), (2, 3, "m2")]);
        let what = "the set in generation 2 is m2 for master 2, m1 for 1";
        assert_eq!(words(&found)[0], what);
        assert_eq!(found.iter().map(|violation| violation.at).collect::<Vec<_>>(), [ms(2), ms(3)]);
    }

    #[test]
    fn a_set_that_began_again_has_lists_of_its_own() {
        assert_eq!(found_in(&["a", "b"], &[(1, 1, "m1, m2"), (1, 1, "m1")]), []);
    }
}
