//! A guard is valid when it is handed out: `granted < deadline`.
//!
//! Between the votes and the caller there is time: a process that stood still after its last await
//! would otherwise be handed a lock that somebody else has by now. That is why validity is looked
//! at again after the last await, and why there is no excuse here for a client that stood still.
//!
//! The deadline is the one that the guard said last, so this can miss a guard whose lease was
//! extended after it had run out; invariant 9 forbids that.

use crate::history::{History, Hold, Violation};

/// The property's name.
pub const NAME: &str = "born_valid";

/// Finds every guard whose lease was over when it was handed out.
pub fn check(history: &History) -> Vec<Violation> {
    history.holds.iter().filter(|hold| hold.granted >= hold.deadline).map(violation).collect()
}

fn violation(hold: &Hold) -> Violation {
    let Hold { granted, deadline, .. } = *hold;
    let late = granted - deadline;
    let what = format!("{hold} was handed a guard {late:?} after its deadline, {deadline:?}");
    Violation { property: NAME, what, at: granted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{given_back, history, hold, ms, pause, words};

    #[test]
    fn a_guard_may_be_handed_out_until_just_before_its_deadline() {
        assert_eq!(check(&history([hold("a", 99, 100), given_back("b", 150, 300, 150)])), []);
    }

    #[test]
    fn at_its_deadline_it_is_too_late() {
        let found = check(&history([hold("a", 100, 100), hold("b", 205, 200)]));
        let whats = [
            "client 0 (a on lock l) was handed a guard 0ns after its deadline, 100ms",
            "client 0 (b on lock l) was handed a guard 5ms after its deadline, 200ms",
        ];
        assert_eq!(words(&found), whats);
        assert_eq!(found[1].at, ms(205));
    }

    #[test]
    fn having_stood_still_is_no_excuse() {
        let history = History { pauses: vec![pause(50, 205)], ..history([hold("a", 205, 200)]) };
        assert_eq!(check(&history).len(), 1);
    }
}
