//! Whether those that were ready to wait got what they waited for.

use std::ops::Range;

use crate::history::{Call, History, Micros, Outcome};

/// The acquires that were ready to wait, and of which there is an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// How many were granted.
    pub granted: usize,
    /// How many there were.
    pub all: usize,
}

/// Those that were made within this time.
pub fn waited(history: &History, time: &Range<Micros>) -> Waited {
    let calls = history.calls.iter().filter(|made| made.returned.is_some() && time.contains(&made.invoked));
    let waited = calls.filter(|made| matches!(made.call, Call::Acquire { wait, .. } if wait > 0));
    waited.fold(Waited::default(), |sum, made| Waited {
        granted: sum.granted + usize::from(matches!(made.outcome, Outcome::Granted { .. })),
        all: sum.all + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::made_up::exclusive;
    use crate::history::Made;

    #[test]
    fn those_count_that_were_ready_to_wait_and_have_ended() {
        let granted = || Outcome::Granted { owner: String::new(), deadline: 0, fence: None, permit: None };
        let failed = || Outcome::Failed { why: String::new() };
        let made = |invoked, wait, returned, outcome| Made {
            process: "p".to_owned(),
            number: 0,
            call: Call::Acquire { lock: exclusive("l"), ttl: 1, wait },
            invoked,
            returned,
            outcome,
        };
        let calls = vec![
            made(10, 5, Some(12), granted()),
            made(10, 5, Some(15), failed()),
            made(10, 0, Some(12), granted()), // did not wait
            made(10, 5, None, failed()),      // its client was killed
            made(20, 5, Some(22), granted()), // later
        ];
        let history = History { calls, ..History::default() };
        assert_eq!(waited(&history, &(0..20)), Waited { granted: 1, all: 2 });
    }
}
