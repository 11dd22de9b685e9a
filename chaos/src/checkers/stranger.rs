//! A client with another list of masters gets no lock.

use quorate_simulator::history::Violation;

use super::words::time;
use crate::history::History;

/// The property's name.
pub const NAME: &str = "stranger";

/// Finds every lock that it got.
pub fn check(history: &History) -> Vec<Violation> {
    let granted = history.strangers.iter().filter(|asked| asked.why.is_none());
    let what = || "a client with another list of masters was granted a lock".to_owned();
    granted.map(|asked| Violation { property: NAME, what: what(), at: time(asked.at) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::StrangerAsked;

    #[test]
    fn a_stranger_that_gets_a_lock_is_found() {
        let asked = |at, why: Option<&str>| StrangerAsked { at, why: why.map(str::to_owned) };
        let strangers = vec![asked(10, Some("another list")), asked(20, None)];
        let found = check(&History { strangers, ..History::default() });
        assert_eq!(found.iter().map(|found| found.at).collect::<Vec<_>>(), [time(20)]);
    }
}
