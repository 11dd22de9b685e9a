//! A client whose list of masters cannot be that of the set gets no lock.
//!
//! Its votes would be those of other masters than the others ask, so two could hold one lock.

use crate::history::{History, Hold, Violation};

/// The property's name.
pub const NAME: &str = "strangers";

/// Finds every lock that one of them got.
pub fn check(history: &History) -> Vec<Violation> {
    let is_strange = |hold: &&Hold| history.refused.contains(&hold.client);
    history.holds.iter().filter(is_strange).map(violation).collect()
}

fn violation(hold: &Hold) -> Violation {
    let what = format!("{hold} got it by another list of masters than that of the set");
    Violation { property: NAME, what, at: hold.granted }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{history, hold, ms, words};
    use super::*;

    #[test]
    fn a_stranger_gets_no_lock() {
        let of = |client, hold: Hold| Hold { client, ..hold };
        let holds = [of(0, hold("a", 100, 500)), of(1, hold("b", 600, 900))];
        let found = |refused| check(&History { refused, ..history(holds.clone()) });
        assert_eq!(found(vec![]), []);
        let found = found(vec![1]);
        let what = "client 1 (b on lock l) got it by another list of masters than that of the set";
        assert_eq!(words(&found), [what]);
        assert_eq!(found[0].at, ms(600));
    }
}
