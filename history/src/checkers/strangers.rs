//! A client whose list of masters cannot be that of the set gets no lock.
//!
//! Its votes would be those of other masters than the others ask, so two could hold one lock.

use crate::history::{History, Hold, Time, Violation};

/// The property's name.
pub const NAME: &str = "strangers";

/// Finds every lock that one of them got.
pub fn check(history: &History) -> Vec<Violation> {
    let is_strange = |hold: &&Hold| history.refused.contains(&hold.process);
    let holds = history.holds.iter().filter(is_strange);
    let holds = holds.map(|hold| violation(hold.to_string(), hold.granted));
    let granted = history.strangers.iter().filter(|asked| asked.why.is_none());
    holds.chain(granted.map(|asked| violation("a client".to_owned(), asked.at))).collect()
}

fn violation(who: String, at: Time) -> Violation {
    let what = format!("{who} got a lock by another list of masters than that of the set");
    Violation { property: NAME, what, at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::StrangerAsked;
    use crate::made_up::{client, history, hold, ms, words};

    #[test]
    fn a_stranger_gets_no_lock() {
        let of = |number, hold| Hold { process: client(number), ..hold };
        let holds = [of(0, hold("a", 100, 500)), of(1, hold("b", 600, 900))];
        let found =
            |refused: &[String]| check(&History { refused: refused.to_vec(), ..history(holds.clone()) });
        assert_eq!(found(&[]), []);
        let found = found(&[client(1)]);
        let what = "client 1 (b on lock l) got a lock by another list of masters than that of the set";
        assert_eq!(words(&found), [what]);
        assert_eq!(found[0].at, ms(600));
    }

    #[test]
    fn nor_does_one_that_is_asked_to_try() {
        let asked = |at, why: Option<&str>| StrangerAsked { at: ms(at), why: why.map(str::to_owned) };
        let strangers = vec![asked(10, Some("another list")), asked(20, None)];
        let found = check(&History { strangers, ..History::default() });
        assert_eq!(found.iter().map(|found| found.at).collect::<Vec<_>>(), [ms(20)]);
    }
}
